//! Arrays of the types that columns imply, as arrays of the types that the source had.
//!
//! [`Retype::between`] compares the types before the first batch, so that what does not fit is
//! known then. What depends on values is found in [`Retype::apply`]: lengths of fixed-size lists,
//! the number of values in a dictionary.
//!
//! Values that cannot have the type that they had keep the one that their column implies. What is
//! around them is as it was in the source.

mod dictionary;
mod dictionary_values;
mod lists;
mod mismatch;
mod structs;
mod texts;

use super::field::{CAST, Parts};
use crate::arrow_type::{self, is_tensor};
use crate::saved_schema::{DICTIONARY, METADATA_BYTES, NAME};
use arrow_array::ArrayRef;
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use dictionary::DictionaryEncoder;
use std::sync::Arc;

/// The change of an array to a field of another type.
pub(super) struct Retype {
    pub field: FieldRef,
    /// Whether all values have the types that they had, but for encodings that Arrow's files and
    /// Parquet's do not restore.
    pub is_exact: bool,
    change: ArrayChange,
}

/// The type that the values of a field get, and the change to it.
struct FieldValues {
    data_type: DataType,
    change: ArrayChange,
    is_exact: bool,
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
    let dictionary = metadata.remove(DICTIONARY);
    let name = metadata.remove(NAME).unwrap_or_else(|| to.name().clone());
    let FieldValues { data_type, change, is_exact } = values(from, to, context, dictionary)?;
    let is_kept = |key: &str| key == CAST || (key == arrow_type::KEY && !is_exact);
    let own = from.metadata().iter().filter(|(key, value)| is_kept(key) || value.len() > METADATA_BYTES);
    metadata.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    if !is_exact && !is_tensor(to) {
        // an extension type is of one storage type
        metadata.retain(|key, _| ![EXTENSION_TYPE_NAME_KEY, EXTENSION_TYPE_METADATA_KEY].contains(&key.as_str()));
    }
    let ordered = matches!(&change, ArrayChange::Dictionary(encoder) if encoder.is_ordered());
    let nullable = to.is_nullable() || (context.in_tensor && from.is_nullable());
    let field = Field::new(name, data_type, nullable).with_dict_is_ordered(ordered).with_metadata(metadata);
    Some(Retype { field: Arc::new(field), is_exact, change })
}

impl FieldValues {
    fn exact(data_type: &DataType, change: ArrayChange) -> Self {
        Self { data_type: data_type.clone(), change, is_exact: true }
    }

    /// Returns those that keep the type that their column implies.
    fn as_implied(data_type: &DataType) -> Self {
        Self { data_type: data_type.clone(), change: ArrayChange::Same, is_exact: false }
    }

    fn in_lists(data_type: DataType, item: Box<Retype>) -> Self {
        Self { data_type, is_exact: item.is_exact, change: ArrayChange::List(item) }
    }
}

fn values(from: &Field, to: &Field, context: Context, dictionary: Option<String>) -> Option<FieldValues> {
    let in_list = Context { masked: false, ..context };
    let lists = |from: &Field, item: &Field| between(from, item, in_list).map(Box::new);
    let list = |from: &Field, item: &Field, of: fn(FieldRef) -> DataType| {
        let item = lists(from, item)?;
        Some(FieldValues::in_lists(of(item.field.clone()), item))
    };
    match (from.data_type(), to.data_type()) {
        (DataType::Struct(own), DataType::Struct(wanted)) => {
            let context = Context { masked: context.masked || to.is_nullable(), ..context };
            let children = structs::children(own, wanted, |from, to| between(from, to, context))?;
            let fields: Fields = children.iter().map(|(_, child)| child.field.clone()).collect();
            let is_exact = children.iter().all(|(_, child)| child.is_exact);
            Some(FieldValues { data_type: DataType::Struct(fields), change: ArrayChange::Struct(children), is_exact })
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
            Some(FieldValues::in_lists(DataType::FixedSizeList(item.field.clone(), *length), item))
        }
        (DataType::List(own), DataType::Map(entries, sorted)) => {
            let entries = lists(own, entries)?;
            let keys_and_values = matches!(entries.field.data_type(), DataType::Struct(fields) if fields.len() == 2);
            let is_map = keys_and_values && !entries.field.is_nullable();
            is_map.then(|| FieldValues::in_lists(DataType::Map(entries.field.clone(), *sorted), entries))
        }
        (own, DataType::Dictionary(_, value)) if context.parts == Parts::Optional && is_fixed_bytes(value) => {
            leaves(own, value)
        }
        (own, wanted @ DataType::Dictionary(_, value)) => {
            let ordered = context.ordered && to.dict_is_ordered() == Some(true);
            let encoder = DictionaryEncoder::new(own, wanted, ordered, dictionary.as_deref(), context.parts);
            encoder.map_or_else(
                || leaves(own, value).map(|values| FieldValues { is_exact: false, ..values }),
                |encoder| Some(FieldValues::exact(wanted, ArrayChange::Dictionary(Box::new(encoder)))),
            )
        }
        (own, wanted) => leaves(own, wanted),
    }
}

/// Returns what becomes of values without parts.
fn leaves(own: &DataType, wanted: &DataType) -> Option<FieldValues> {
    if own.is_nested() || wanted.is_nested() {
        return None;
    }
    Some(match texts::can_relay(own, wanted) {
        true => FieldValues::exact(wanted, ArrayChange::Text),
        false if own == wanted => FieldValues::exact(own, ArrayChange::Same),
        false => FieldValues::as_implied(own),
    })
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
