//! Converts arrays from the types that follow from the columns to the types of the source.
//!
//! [`Retype::between`] compares the types before the first batch, so most mismatches are detected
//! early. [`Retype::apply`] detects the mismatches that depend on values: wrong lengths of
//! fixed-size lists, and too many values in a dictionary.
//!
//! The conversion is as exact as possible. Values that cannot have the type of the source get the
//! type that follows from their column, but the types around them are the same as in the source.
//! Lists are converted to the list type of the source.
//!
//! A null list of a fixed size has members in Arrow, but takes only one bit in a file, so the total
//! size of members in null lists is bounded. A nested struct is null wherever the enclosing struct
//! is null. A file records this only once, for the enclosing struct.

use super::dictionary::{DictionaryEncoder, can_change_layout, mismatch, with_layout};
use super::field::{CAST, Repetition};
use crate::bytes::le::u64_of;
use crate::logical::arrow_type::{self, is_tensor, members, null_bytes, with_members};
use crate::logical::saved_schema::{DICTIONARY, METADATA_BYTES, NAME};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray, OffsetSizeTrait,
    StructArray, make_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum number of bytes by which the total size of fixed-width nulls can exceed the size of
/// the other values. In a file, such a null takes only one bit.
pub(super) const MAX_NULL_BYTES: u64 = 64 << 20;

/// The conversion of arrays to a field of another type.
pub(super) struct Retype {
    pub field: FieldRef,
    /// Whether all values get the types of the source. Encodings that an export does not restore do
    /// not count: run-end encoding and, in Parquet, some dictionaries.
    pub is_exact: bool,
    change: ArrayChange,
}

/// The new type of a field's values, and the conversion to it.
struct FieldValues {
    data_type: DataType,
    change: ArrayChange,
    is_exact: bool,
}

enum ArrayChange {
    Same,
    /// Strings or binaries in a different layout.
    Text,
    Dictionary(Box<DictionaryEncoder>),
    /// For each new field, the number of the current field from which it is converted, and the
    /// conversion.
    Struct(Vec<(usize, Retype)>),
    List(Box<Retype>),
}

/// The properties of the fields around a field.
#[derive(Clone, Copy)]
struct Context {
    repetition: Repetition,
    /// Whether dictionaries may be declared ordered.
    ordered: bool,
    /// Whether an enclosing struct can be null. The field is then null, too.
    masked: bool,
    /// Whether the field is a component of a tensor, which some formats require to be nullable.
    in_tensor: bool,
}

impl Retype {
    /// Returns the conversion of arrays from one field to another; `None` if the types do not fit.
    /// If `ordered` is false, dictionaries are never declared ordered.
    pub(super) fn between(from: &Field, to: &Field, repetition: Repetition, ordered: bool) -> Option<Self> {
        between(from, to, Context { repetition, ordered, masked: false, in_tensor: false })
    }

    /// Converts an array.
    pub(super) fn apply(&mut self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match &mut self.change {
            ArrayChange::Same => Ok(array.clone()),
            ArrayChange::Text => with_layout(array, self.field.data_type()),
            ArrayChange::Dictionary(encoder) => encoder.encode(array),
            ArrayChange::Struct(children) => retyped_structs(array, self.field.data_type(), children),
            ArrayChange::List(item) => retyped_lists(array, self.field.data_type(), item),
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
    let is_preserved = |key: &str| key == CAST || (key == arrow_type::KEY && !is_exact);
    let own = from.metadata().iter().filter(|(key, value)| is_preserved(key) || value.len() > METADATA_BYTES);
    metadata.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    if !is_exact && !is_tensor(to) {
        // an extension type is valid only with its storage type
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
}

fn values(from: &Field, to: &Field, context: Context, dictionary: Option<String>) -> Option<FieldValues> {
    if let (DataType::List(own) | DataType::FixedSizeList(own, _), Some(item)) =
        (from.data_type(), members(to.data_type()))
    {
        return list(from.data_type(), to.data_type(), own, item, context);
    }
    match (from.data_type(), to.data_type()) {
        (DataType::Struct(own), DataType::Struct(target)) => {
            let context = Context { masked: context.masked || to.is_nullable(), ..context };
            let children = children(own, target, context)?;
            let fields: Fields = children.iter().map(|(_, child)| child.field.clone()).collect();
            let is_exact = children.iter().all(|(_, child)| child.is_exact);
            Some(FieldValues { data_type: DataType::Struct(fields), change: ArrayChange::Struct(children), is_exact })
        }
        (own, DataType::Dictionary(_, value))
            if context.repetition == Repetition::Optional && is_fixed_bytes(value) =>
        {
            leaves(own, value)
        }
        (own, target @ DataType::Dictionary(_, value)) => {
            let ordered = context.ordered && to.dict_is_ordered() == Some(true);
            let encoder = DictionaryEncoder::new(own, target, ordered, dictionary.as_deref(), context.repetition);
            encoder.map_or_else(
                || leaves(own, value).map(|values| FieldValues { is_exact: false, ..values }),
                |encoder| Some(FieldValues::exact(target, ArrayChange::Dictionary(Box::new(encoder)))),
            )
        }
        (own, target) => leaves(own, target),
    }
}

/// Returns the conversion to each field of a struct, with the number of the current field that has
/// the same name. Returns `None` if the fields differ.
fn children(own: &Fields, target: &Fields, context: Context) -> Option<Vec<(usize, Retype)>> {
    let child = |target: &FieldRef| {
        let (number, own) = own.find(target.name())?;
        Some((number, between(own, target, context)?))
    };
    let is_same = own.len() == target.len();
    let children: Vec<(usize, Retype)> = if is_same { target.iter().map(child).collect() } else { None }?;
    let numbers: HashSet<usize> = children.iter().map(|(number, _)| *number).collect();
    (numbers.len() == children.len()).then_some(children)
}

/// Returns the conversion of lists with members `own` to lists, or to a map, with members `item`.
fn list(from: &DataType, to: &DataType, own: &Field, item: &Field, context: Context) -> Option<FieldValues> {
    match (from, to) {
        (DataType::FixedSizeList(_, length), DataType::FixedSizeList(_, target_length)) if length != target_length => {
            return None;
        }
        (DataType::FixedSizeList(..), DataType::Map(..)) => return None,
        _ => {}
    }
    let item = between(own, item, Context { masked: false, ..context })?;
    let is_pair = matches!(item.field.data_type(), DataType::Struct(fields) if fields.len() == 2);
    if matches!(to, DataType::Map(..)) && (!is_pair || item.field.is_nullable()) {
        return None;
    }
    let data_type = with_members(to, |_| item.field.clone())?;
    Some(FieldValues { data_type, is_exact: item.is_exact, change: ArrayChange::List(Box::new(item)) })
}

/// Returns the conversion of values that are not nested. Values that cannot have the type of the
/// source keep the type that follows from their column.
fn leaves(own: &DataType, target: &DataType) -> Option<FieldValues> {
    if own.is_nested() || target.is_nested() {
        return None;
    }
    Some(match can_change_layout(own, target) {
        true => FieldValues::exact(target, ArrayChange::Text),
        false => FieldValues { is_exact: own == target, ..FieldValues::exact(own, ArrayChange::Same) },
    })
}

/// Returns whether Parquet stores values of a type as fixed-length bytes. Its readers misinterpret
/// these in a dictionary.
fn is_fixed_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Interval(_) => true,
        DataType::Decimal128(precision, _) | DataType::Decimal256(precision, _) => *precision > 18,
        _ => false,
    }
}

/// The components of a list array.
struct ListParts {
    offsets: OffsetBuffer<i32>,
    members: ArrayRef,
    nulls: Option<NullBuffer>,
}

/// Converts lists to a type, and their members with `item`.
fn retyped_lists(array: &ArrayRef, to: &DataType, item: &mut Retype) -> Result<ArrayRef, ArrowError> {
    if let (DataType::FixedSizeList(field, length), Some(lists)) = (to, array.as_fixed_size_list_opt()) {
        let (members, nulls) = (item.apply(lists.values())?, lists.nulls().cloned());
        let lists = FixedSizeListArray::try_new_with_length(field.clone(), *length, members, nulls, lists.len())?;
        return Ok(Arc::new(lists));
    }
    let ListParts { offsets, members, nulls } = lists(array, to)?;
    let members = match to {
        DataType::FixedSizeList(_, length) => padded(&members, &offsets, nulls.as_ref(), *length)?,
        _ => members,
    };
    let members = item.apply(&members)?;
    Ok(match to {
        DataType::List(field) => Arc::new(GenericListArray::try_new(field.clone(), offsets, members, nulls)?),
        DataType::LargeList(field) => {
            let wide = offsets.iter().map(|&offset| i64::from(offset)).collect();
            let offsets = OffsetBuffer::new(wide); // the offsets are still in ascending order
            Arc::new(GenericListArray::try_new(field.clone(), offsets, members, nulls)?)
        }
        DataType::ListView(field) => {
            let (starts, sizes) = views::<i32>(&offsets);
            Arc::new(GenericListViewArray::try_new(field.clone(), starts.into(), sizes.into(), members, nulls)?)
        }
        DataType::LargeListView(field) => {
            let (starts, sizes) = views::<i64>(&offsets);
            Arc::new(GenericListViewArray::try_new(field.clone(), starts.into(), sizes.into(), members, nulls)?)
        }
        DataType::FixedSizeList(field, length) => {
            let count = offsets.len().saturating_sub(1);
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *length, members, nulls, count)?)
        }
        DataType::Map(field, sorted) => {
            let entries = members.as_struct_opt().ok_or_else(|| mismatch(array, to))?.clone();
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted)?)
        }
        _ => return Err(mismatch(array, to)),
    })
}

fn lists(array: &ArrayRef, to: &DataType) -> Result<ListParts, ArrowError> {
    if let Some(lists) = array.as_list_opt::<i32>() {
        let (offsets, members) = (lists.offsets().clone(), lists.values().clone());
        return Ok(ListParts { offsets, members, nulls: lists.nulls().cloned() });
    }
    let lists = array.as_fixed_size_list_opt().ok_or_else(|| mismatch(array, to))?;
    let offsets = (0..=lists.len()).map(|i| {
        let length = usize::try_from(lists.value_length()).unwrap_or(0); // not negative
        i.checked_mul(length).and_then(|offset| i32::try_from(offset).ok())
    });
    let offsets: Option<Vec<i32>> = offsets.collect();
    let offsets = offsets.ok_or(ArrowError::OffsetOverflowError(lists.values().len()))?;
    // in ascending order, because all are multiples of one length
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(ListParts { offsets, members: lists.values().clone(), nulls: lists.nulls().cloned() })
}

/// Returns the start and length of each list.
fn views<O: OffsetSizeTrait + From<i32>>(offsets: &[i32]) -> (Vec<O>, Vec<O>) {
    let lengths = offsets.iter().zip(offsets.iter().skip(1));
    lengths.map(|(&start, &end)| (O::from(start), O::from(end.saturating_sub(start)))).unzip()
}

/// Returns the members of lists, with padding for null lists: each list then has `length` members.
/// Fails if a list that is not null has a different length.
fn padded(
    members: &ArrayRef,
    offsets: &OffsetBuffer<i32>,
    nulls: Option<&NullBuffer>,
    length: i32,
) -> Result<ArrayRef, ArrowError> {
    let data = members.to_data();
    let target_length = usize::try_from(length).unwrap_or(0); // not negative
    let in_nulls = u64_of(nulls.map_or(0, NullBuffer::null_count)).saturating_mul(u64_of(target_length));
    let member_bytes = u64_of(null_bytes(members.data_type()).max(1));
    let bytes = in_nulls.saturating_mul(member_bytes);
    if bytes > u64_of(data.len()).saturating_mul(member_bytes).saturating_add(MAX_NULL_BYTES) {
        let message = format!(
            "null lists of {length} members would take {bytes} bytes, which exceeds the size of the other lists by \
             more than {MAX_NULL_BYTES} bytes"
        );
        return Err(ArrowError::InvalidArgumentError(message));
    }
    let mut padded = MutableArrayData::new(vec![&data], true, data.len());
    for (i, (start, end)) in offsets.iter().zip(offsets.iter().skip(1)).enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(i)) {
            padded.try_extend_nulls(target_length)?;
            continue;
        }
        if end.checked_sub(*start) != Some(length) {
            let message = format!("the type requires lists of {length} members, but one has members {start} to {end}");
            return Err(ArrowError::InvalidArgumentError(message));
        }
        // not negative
        let range = usize::try_from(*start).unwrap_or(0)..usize::try_from(*end).unwrap_or(0);
        padded.try_extend(0, range.start, range.end)?;
    }
    Ok(make_array(padded.freeze()))
}

/// Converts structs to a type.
fn retyped_structs(array: &ArrayRef, to: &DataType, children: &mut [(usize, Retype)]) -> Result<ArrayRef, ArrowError> {
    let structs = array.as_struct_opt().ok_or_else(|| mismatch(array, to))?;
    let DataType::Struct(fields) = to else { return Err(mismatch(array, to)) };
    let mut arrays = Vec::with_capacity(children.len());
    for (number, child) in children.iter_mut() {
        let own = structs.columns().get(*number).ok_or_else(|| mismatch(array, to))?;
        arrays.push(child.apply(&masked(own, structs.nulls())?)?);
    }
    let nulls = structs.nulls().cloned();
    let retyped = StructArray::try_new_with_length(fields.clone(), arrays, nulls, structs.len())?;
    Ok(Arc::new(retyped))
}

/// Returns a field of a struct. If the field is a struct itself, it becomes null wherever the outer
/// struct is null, because a file records these nulls only for the outer struct.
fn masked(field: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let (Some(inner), Some(nulls)) = (field.as_struct_opt(), nulls) else { return Ok(field.clone()) };
    let nulls = NullBuffer::union(inner.nulls(), Some(nulls));
    let inner = StructArray::try_new_with_length(inner.fields().clone(), inner.columns().to_vec(), nulls, inner.len())?;
    Ok(Arc::new(inner))
}
