//! Arrays of the types that columns imply, as arrays of the types that the source had.
//!
//! [`Retype::between`] compares the types before the first batch, so that what does not fit is
//! known then. What depends on values is found in [`Retype::apply`]: lengths of fixed-size lists,
//! the number of values in a dictionary.

mod dictionary;
mod dictionary_values;
mod lists;
mod mismatch;
mod structs;
mod texts;

use super::field::{CAST, Parts};
use crate::arrow_type::is_tensor;
use crate::saved_schema::{DICTIONARY, METADATA_BYTES, NAME};
use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use dictionary::DictionaryEncoder;
use std::sync::Arc;

/// The change of an array to a field of another type.
pub(super) struct Retype {
    pub field: FieldRef,
    change: ArrayChange,
}

enum ArrayChange {
    Same,
    /// Texts or binaries of another layout.
    Text,
    Dictionary(Box<DictionaryEncoder>),
    /// For each field, the number of the present field that it is made of.
    Struct(Vec<(usize, Retype)>),
    List(Box<Retype>),
}

/// The surroundings of a field.
#[derive(Clone, Copy)]
struct Context {
    parts: Parts,
    /// Whether dictionaries may say that their values are ordered.
    ordered: bool,
    /// Whether a struct around the field may be null, and its fields with it.
    masked: bool,
    /// Whether it is a part of a tensor, which the format may want to be nullable.
    in_tensor: bool,
}

impl Retype {
    /// Returns the change of arrays of one field to another, or `None` if the types do not fit.
    /// `ordered` says whether dictionaries may say that their values are ordered.
    pub(super) fn between(from: &Field, to: &Field, parts: Parts, ordered: bool) -> Option<Self> {
        between(from, to, Context { parts, ordered, masked: false, in_tensor: false })
    }

    /// Changes an array.
    pub(super) fn apply(&mut self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match &mut self.change {
            ArrayChange::Same => Ok(array.clone()),
            ArrayChange::Text => texts::relaid(array, self.field.data_type()),
            ArrayChange::Dictionary(encoder) => encoder.encode(array),
            ArrayChange::Struct(children) => {
                structs::retyped(array, self.field.data_type(), children, |child: &mut Self, own| child.apply(own))
            }
            ArrayChange::List(item) => lists::retyped(array, self.field.data_type(), |members| item.apply(members)),
        }
    }
}

fn between(from: &Field, to: &Field, mut context: Context) -> Option<Retype> {
    if let DataType::RunEndEncoded(_, values) = to.data_type() {
        let nullable = to.is_nullable() || values.is_nullable();
        let plain = Field::new(to.name(), values.data_type().clone(), nullable);
        return between(from, &plain.with_metadata(to.metadata().clone()), context);
    }
    context.in_tensor |= is_tensor(to);
    let is_struct = matches!(to.data_type(), DataType::Struct(_));
    let may_be_null = to.is_nullable() || context.masked || context.in_tensor;
    if from.is_nullable() && !may_be_null && !is_struct {
        return None;
    }
    let mut metadata = to.metadata().clone();
    let values = metadata.remove(DICTIONARY);
    let name = metadata.remove(NAME).unwrap_or_else(|| to.name().clone());
    let own = from.metadata().iter().filter(|(key, value)| key.as_str() == CAST || value.len() > METADATA_BYTES);
    metadata.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    let (data_type, change) = change(from, to, context, values)?;
    let ordered = matches!(&change, ArrayChange::Dictionary(encoder) if encoder.is_ordered());
    let nullable = to.is_nullable() || (context.in_tensor && from.is_nullable());
    let field = Field::new(name, data_type, nullable).with_dict_is_ordered(ordered).with_metadata(metadata);
    Some(Retype { field: Arc::new(field), change })
}

fn change(from: &Field, to: &Field, context: Context, values: Option<String>) -> Option<(DataType, ArrayChange)> {
    let in_list = Context { masked: false, ..context };
    let lists = |from: &Field, item: &Field| between(from, item, in_list).map(Box::new);
    let list = |from: &Field, item: &Field, of: fn(FieldRef) -> DataType| {
        let item = lists(from, item)?;
        Some((of(item.field.clone()), ArrayChange::List(item)))
    };
    match (from.data_type(), to.data_type()) {
        (DataType::Struct(own), DataType::Struct(wanted)) => {
            let context = Context { masked: context.masked || to.is_nullable(), ..context };
            let children = structs::children(own, wanted, |from, to| between(from, to, context))?;
            let fields: Fields = children.iter().map(|(_, child)| child.field.clone()).collect();
            Some((DataType::Struct(fields), ArrayChange::Struct(children)))
        }
        (DataType::List(own) | DataType::FixedSizeList(own, _), DataType::List(item)) => {
            list(own, item, DataType::List)
        }
        (DataType::List(own) | DataType::FixedSizeList(own, _), DataType::LargeList(item)) => {
            list(own, item, DataType::LargeList)
        }
        (DataType::List(own) | DataType::FixedSizeList(own, _), DataType::ListView(item)) => {
            list(own, item, DataType::ListView)
        }
        (DataType::List(own) | DataType::FixedSizeList(own, _), DataType::LargeListView(item)) => {
            list(own, item, DataType::LargeListView)
        }
        (DataType::FixedSizeList(_, length), DataType::FixedSizeList(_, due)) if length != due => None,
        (DataType::List(own) | DataType::FixedSizeList(own, _), DataType::FixedSizeList(item, length)) => {
            let item = lists(own, item)?;
            Some((DataType::FixedSizeList(item.field.clone(), *length), ArrayChange::List(item)))
        }
        (DataType::List(own), DataType::Map(entries, sorted)) => {
            let entries = lists(own, entries)?;
            let keys_and_values = matches!(entries.field.data_type(), DataType::Struct(fields) if fields.len() == 2);
            let is_map = keys_and_values && !entries.field.is_nullable();
            is_map.then(|| (DataType::Map(entries.field.clone(), *sorted), ArrayChange::List(entries)))
        }
        (own, DataType::Dictionary(_, value)) if context.parts == Parts::Optional && is_fixed_bytes(value) => {
            (own == value.as_ref()).then(|| (own.clone(), ArrayChange::Same))
        }
        (own, wanted @ DataType::Dictionary(..)) => {
            let ordered = context.ordered && to.dict_is_ordered() == Some(true);
            let encoder = DictionaryEncoder::new(own, wanted, ordered, values.as_deref(), context.parts)?;
            Some((wanted.clone(), ArrayChange::Dictionary(Box::new(encoder))))
        }
        (own, wanted) if own == wanted && !own.is_nested() => Some((own.clone(), ArrayChange::Same)),
        (own, wanted) if texts::can_relay(own, wanted) => Some((wanted.clone(), ArrayChange::Text)),
        _ => None,
    }
}

/// Returns whether Parquet stores values as bytes of a fixed length that its readers take for
/// something else in a dictionary.
fn is_fixed_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Interval(_) => true,
        DataType::Decimal128(precision, _) | DataType::Decimal256(precision, _) => *precision > 18,
        _ => false,
    }
}
