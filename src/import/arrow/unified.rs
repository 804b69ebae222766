//! One schema for several inputs.
//!
//! Formats such as JSON lines do not declare types: a member that is null in each line of one file
//! may be a text in the next one. Their types are found over all inputs, as within one file.
//! Parquet and Arrow files declare types, and still differ a little: pandas gives a column without
//! values the type null, and leaves out what a shard does not have.
//!
//! [`UnifiedSchema`] joins the schemas of all inputs, and [`aligned`] says what one input becomes in
//! it: its own fields first and in their order, so that what a file states about them by position
//! stays right, and then those that it lacks. Both leave fields alone that contradict each other;
//! the plan of the conversion then reports these. [`adapted`] makes arrays of the aligned types. An
//! alternative was to let each format read with a given schema, which every format would have had
//! to do again.

use super::decode::by_index;
use super::fields::joined as dotted_name;
use super::rows::schema_mismatch;
use super::types::{ENCRYPTED, INT96, fixed_extents, is_variable_tensor};
use crate::export::plain_fields;
use crate::import::rows::RowError;
use crate::logical::arrow_type::{DTYPE, members, with_members};
use crate::{DType, Schema as FileSchema};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericListArray, OffsetSizeTrait, PrimitiveArray, StructArray, new_null_array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How a source knows the types of its fields, see
/// [`RecordSource::type_origin`](crate::import::RecordSource::type_origin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TypeOrigin {
    /// The file declares them. A field of the type null becomes one of the type that other inputs
    /// declare, and a nullable field may be missing.
    Declared,
    /// They were found in the values of the file, and hold for these only. If other inputs have
    /// floats in a field, its integers become `f64`, unless one of them equals none. A field may be
    /// missing, and members of empty lists have the type null.
    Inferred,
    /// As [`Inferred`](Self::Found), and one value is the same as a list of one value.
    InferredRepeated,
}

/// The fields of inputs together, in the order in which they come first.
pub(in crate::import) struct UnifiedSchema {
    fields: Fields,
    origin: TypeOrigin,
}

impl UnifiedSchema {
    pub(in crate::import) fn new(first: &Schema, origin: TypeOrigin) -> Self {
        Self { fields: first.fields().clone(), origin }
    }

    /// Adds the schema of another input.
    pub(in crate::import) fn join(&mut self, other: &Schema, origin: TypeOrigin) {
        if self.fields != *other.fields() {
            self.fields = joined(&self.fields, other.fields(), (self.origin, origin));
        }
        self.origin = self.origin.min(origin);
    }

    /// Returns the fields. Lists that are empty in all inputs whose types are found have integers.
    pub(in crate::import) fn into_fields(self) -> Fields {
        match self.origin {
            TypeOrigin::Declared => self.fields,
            _ => self.fields.iter().map(|field| settled(field, false)).collect(),
        }
    }
}

fn settled(field: &FieldRef, in_list: bool) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Null if in_list => DataType::Int64,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| settled(field, false)).collect()),
        other => match with_members(other, |item| settled(item, true)) {
            Some(lists) => lists,
            None => return Arc::clone(field),
        },
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Returns the fields by their names.
fn by_name(fields: &Fields) -> HashMap<&str, &FieldRef> {
    fields.iter().map(|field| (field.name().as_str(), field)).collect()
}

/// Returns the fields of two structs together. One that a struct lacks is nullable.
fn joined(a: &Fields, b: &Fields, origins: (TypeOrigin, TypeOrigin)) -> Fields {
    let (in_a, in_b) = (by_name(a), by_name(b));
    let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    let may_lack = |field: &FieldRef, origin| field.is_nullable() || origin != TypeOrigin::Declared;
    let common = a.iter().map(|field| match in_b.get(field.name().as_str()) {
        Some(other) => unified_field(field, other, origins),
        None if may_lack(field, origins.1) => nullable(field),
        None => Arc::clone(field),
    });
    let added = b.iter().filter(|field| !in_a.contains_key(field.name().as_str()) && may_lack(field, origins.0));
    common.chain(added.map(nullable)).collect()
}

/// Returns the field of two inputs together, and that of the first if they contradict each other.
fn unified_field(a: &FieldRef, b: &FieldRef, (first, second): (TypeOrigin, TypeOrigin)) -> FieldRef {
    let nullable = has_nulls(a, first) || has_nulls(b, second);
    let of_type = |data_type: DataType| Arc::new(a.as_ref().clone().with_data_type(data_type).with_nullable(nullable));
    match (a.data_type(), b.data_type()) {
        (DataType::Struct(own), DataType::Struct(other)) if !is_variable_tensor(a) && !is_variable_tensor(b) => {
            of_type(DataType::Struct(joined(own, other, (first, second))))
        }
        (DataType::List(own), DataType::List(other)) => {
            of_type(DataType::List(unified_field(own, other, (first, second))))
        }
        (DataType::LargeList(own), DataType::LargeList(other)) => {
            of_type(DataType::LargeList(unified_field(own, other, (first, second))))
        }
        (own, other) if own == other => of_type(own.clone()),
        (own, other) if becomes(own, other, first) => Arc::new(b.as_ref().clone().with_nullable(nullable)),
        (own, other) if becomes(other, own, second) => of_type(own.clone()),
        _ => Arc::clone(a),
    }
}

/// Returns whether values of a field may be null. Of the type null they are, unless none was found.
fn has_nulls(field: &Field, origin: TypeOrigin) -> bool {
    field.is_nullable() || *field.data_type() == DataType::Null && origin == TypeOrigin::Declared
}

/// Returns whether values of one type, which is no list or struct, can have the other type without
/// a change.
fn becomes(own: &DataType, other: &DataType, origin: TypeOrigin) -> bool {
    match (own, other) {
        (DataType::Null, _) => true,
        (DataType::Int64, DataType::Float64 | DataType::UInt64) | (DataType::UInt64, DataType::Float64) => {
            origin != TypeOrigin::Declared
        }
        (own, DataType::List(item)) if !own.is_nested() => {
            origin == TypeOrigin::InferredRepeated
                && (own == item.data_type() || becomes(own, item.data_type(), origin))
        }
        _ => false,
    }
}

/// Returns the fields that an input has if it is to have those of `unified`: its own, of the types
/// that its values can have, and then nullable ones that it lacks. A field of the schema, not of a
/// struct, is added only if `is_lacking` says that the input lacks it.
pub(in crate::import) fn aligned(
    own: &Fields,
    unified: &Fields,
    origin: TypeOrigin,
    is_lacking: &dyn Fn(&str) -> bool,
) -> Fields {
    if own == unified {
        return own.clone();
    }
    let mut names = HashSet::new();
    own.iter().for_each(|field| add_names(field, "", &mut names));
    Alignment { names, origin }.fields(own, unified, "", is_lacking)
}

/// Adds the names of the columns that a field becomes. `outer` are the names of the structs around
/// it.
fn add_names(field: &Field, outer: &str, names: &mut HashSet<String>) {
    let name = dotted_name(outer, field.name());
    match struct_fields(field) {
        Some(fields) => fields.iter().for_each(|field| add_names(field, &name, names)),
        None => drop(names.insert(name.into_owned())),
    }
}

/// Returns the number of columns that fields become, nulls of structs included.
pub(in crate::import) fn column_count(fields: &Fields) -> usize {
    let count = |field: &FieldRef| struct_fields(field).map_or(0, column_count).saturating_add(1);
    fields.iter().map(count).fold(0, usize::saturating_add)
}

/// Returns the fields of a struct, also of one in lists.
fn struct_fields(field: &Field) -> Option<&Fields> {
    match field.data_type() {
        DataType::Struct(fields) if !is_variable_tensor(field) => Some(fields),
        DataType::Struct(_) => None,
        other => members(other).and_then(|item| struct_fields(item)),
    }
}

/// Gives one input the fields of all.
struct Alignment {
    /// The names of the columns that the input has. A column `a.b` may be the field of a struct in
    /// another input, and must not be there twice.
    names: HashSet<String>,
    origin: TypeOrigin,
}

impl Alignment {
    fn fields(&self, own: &Fields, unified: &Fields, outer: &str, is_lacking: &dyn Fn(&str) -> bool) -> Fields {
        let (known, targets) = (by_name(own), by_name(unified));
        let existing = own.iter().map(|field| match targets.get(field.name().as_str()) {
            Some(target) => self.field(field, target, &dotted_name(outer, field.name())),
            None => Arc::clone(field),
        });
        let added = unified.iter().filter(|field| {
            let name = field.name().as_str();
            let is_addable = field.is_nullable() && is_fillable(field) && is_lacking(name);
            !known.contains_key(name) && is_addable && self.has_none_of(field, outer)
        });
        existing.chain(added.cloned()).collect()
    }

    fn has_none_of(&self, field: &Field, outer: &str) -> bool {
        let mut names = HashSet::new();
        add_names(field, outer, &mut names);
        names.is_disjoint(&self.names)
    }

    /// Returns a field with the type of `target`, as far as its values can have it. `name` is that
    /// of its column.
    fn field(&self, own: &FieldRef, target: &FieldRef, name: &str) -> FieldRef {
        let of_type = |data_type: DataType| Arc::new(own.as_ref().clone().with_data_type(data_type));
        match (own.data_type(), target.data_type()) {
            (DataType::Struct(fields), DataType::Struct(targets)) if !is_variable_tensor(own) => {
                of_type(DataType::Struct(self.fields(fields, targets, name, &|_| true)))
            }
            (DataType::Null, data_type) if *data_type != DataType::Null && is_fillable(target) => {
                let nullable = target.is_nullable() || has_nulls(own, self.origin);
                Arc::new(target.as_ref().clone().with_nullable(nullable))
            }
            (from, to) if from != to && becomes(from, to, self.origin) => of_type(to.clone()),
            (DataType::List(item), other) => match members(other) {
                Some(target) => of_type(DataType::List(self.field(item, target, name))),
                None => Arc::clone(own),
            },
            (DataType::LargeList(item), other) => match members(other) {
                Some(target) => of_type(DataType::LargeList(self.field(item, target, name))),
                None => Arc::clone(own),
            },
            _ => Arc::clone(own),
        }
    }
}

/// Returns whether nulls of the field can be made: its arrays have the type that it states.
fn is_fillable(field: &Field) -> bool {
    let is_raw = [INT96, ENCRYPTED].iter().any(|key| field.metadata().contains_key(key));
    !is_raw
        && match field.data_type() {
            DataType::Struct(fields) => fields.iter().all(|field| is_fillable(field)),
            DataType::Union(..) => false,
            other => members(other).is_none_or(|item| is_fillable(item)),
        }
}

/// Returns the fields of inputs that give the columns of a file, before casts: tensors are lists,
/// as formats have them that find their types.
pub(in crate::import) fn fields_of_file(schema: &FileSchema) -> Fields {
    let mut pushed = schema.clone();
    for column in &mut pushed.columns {
        (column.dtype, column.cast) = (column.pushed_dtype(), None);
        column.metadata.remove(DTYPE);
        if column.dtype == DType::Bf16 {
            column.dtype = DType::U16;
            column.metadata.insert(DTYPE.to_owned(), DType::Bf16.name().to_owned());
        }
    }
    plain_fields(&pushed).iter().map(|field| as_lists(field, None)).collect()
}

/// Returns a field with lists instead of tensors. `mark` is that of the field around it, see
/// [`DTYPE`].
fn as_lists(field: &FieldRef, mark: Option<&str>) -> FieldRef {
    let mark = field.metadata().get(DTYPE).map(String::as_str).or(mark);
    let marked = |field: Field| match mark {
        Some(name) => field.with_metadata([(DTYPE, name)]),
        None => field,
    };
    let list = |item: DataType, is_element: bool| {
        let item = Field::new_list_field(item, true);
        DataType::List(Arc::new(if is_element { marked(item) } else { item }))
    };
    let rank_and_element = match field.data_type() {
        DataType::Struct(parts) if is_variable_tensor(field) => match parts.as_ref() {
            [data, shape] => match (members(data.data_type()), shape.data_type()) {
                (Some(element), DataType::FixedSizeList(_, rank)) => usize::try_from(*rank).ok().zip(Some(element)),
                _ => None,
            },
            _ => None,
        },
        DataType::FixedSizeList(element, length) => {
            fixed_extents(field, *length).ok().map(|extents| (extents.len(), element))
        }
        _ => None,
    };
    let data_type = match (rank_and_element, field.data_type()) {
        (Some((rank, element)), _) => {
            (0..rank).fold(element.data_type().clone(), |inner, level| list(inner, level == 0))
        }
        (None, DataType::Struct(fields)) => {
            DataType::Struct(fields.iter().map(|field| as_lists(field, mark)).collect())
        }
        (None, other) => match with_members(other, |item| as_lists(item, mark)) {
            Some(lists) => lists,
            None => return Arc::new(marked(Field::new(field.name(), other.clone(), field.is_nullable()))),
        },
    };
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
}

/// Returns an array of a field whose type is `from` as one of the type `to`, which
/// [`aligned`] gave. The row of a problem is an entry of the array.
pub(in crate::import::arrow) fn adapted(
    array: &ArrayRef,
    from: &DataType,
    to: &DataType,
) -> Result<ArrayRef, RowError> {
    if from == to {
        return Ok(Arc::clone(array)); // some are read raw, and have another type than their field
    }
    match (from, to) {
        (DataType::Null, _) => Ok(new_null_array(to, array.len())),
        (DataType::Struct(own), DataType::Struct(targets)) => {
            let parent = array.as_struct_opt().ok_or_else(schema_mismatch)?;
            let known = parent.columns().iter().zip(own).zip(targets);
            let known = known.map(|((array, own), target)| adapted(array, own.data_type(), target.data_type()));
            let added = targets.iter().skip(own.len());
            let added = added.map(|field| Ok(new_null_array(field.data_type(), array.len())));
            let arrays = known.chain(added).collect::<Result<Vec<_>, _>>()?;
            let fields = arrays.iter().zip(targets).map(|(array, target)| field_of(target.name(), array));
            let nulls = parent.nulls().cloned();
            let structs = StructArray::try_new_with_length(fields.collect(), arrays, nulls, array.len());
            Ok(Arc::new(structs.map_err(failed)?))
        }
        (DataType::List(own), DataType::List(target)) => lists::<i32>(array, own.data_type(), target.data_type()),
        (DataType::LargeList(own), DataType::LargeList(target)) => {
            lists::<i64>(array, own.data_type(), target.data_type())
        }
        (_, DataType::List(item)) => lists_of_one(array, from, item.data_type()),
        (DataType::Int64, DataType::Float64) => numbers::<Int64Type, Float64Type>(array, |value| {
            let float = value as f64;
            (float as i128 == i128::from(value)).then_some(float).ok_or_else(|| no_float(value.into()))
        }),
        (DataType::UInt64, DataType::Float64) => numbers::<UInt64Type, Float64Type>(array, |value| {
            let float = value as f64;
            (float as i128 == i128::from(value)).then_some(float).ok_or_else(|| no_float(value.into()))
        }),
        (DataType::Int64, DataType::UInt64) => numbers::<Int64Type, UInt64Type>(array, |value| {
            u64::try_from(value).map_err(|_| format!("{value} is negative, and other inputs have integers beyond i64"))
        }),
        _ => Err(schema_mismatch()),
    }
}

fn no_float(integer: i128) -> String {
    format!("no f64 equals the integer {integer}, and other inputs have floats in this column")
}

fn failed(error: ArrowError) -> RowError {
    RowError::from(error.to_string())
}

fn field_of(name: &str, array: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(name, array.data_type().clone(), true))
}

fn lists<O: OffsetSizeTrait>(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef, RowError> {
    let lists = array.as_list_opt::<O>().ok_or_else(schema_mismatch)?;
    let offsets = lists.offsets();
    let (start, end) = (offsets.first(), offsets.last());
    let (first, end) = (start.as_usize(), end.as_usize());
    // a slice of a batch has a part of the members
    let own = lists.values().slice(first, end.saturating_sub(first));
    let members = adapted(&own, from, to).map_err(|problem| {
        let list_of = |entry: usize| offsets.partition_point(|o| o.as_usize() <= entry.saturating_add(first));
        RowError { row: problem.row.map(|entry| list_of(entry).saturating_sub(1)), ..problem }
    })?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets.iter().map(|&offset| offset - start)));
    let lists = GenericListArray::<O>::try_new(field_of("item", &members), offsets, members, lists.nulls().cloned());
    Ok(Arc::new(lists.map_err(failed)?))
}

/// Makes a list of each value; null values are null lists.
fn lists_of_one(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef, RowError> {
    let values = adapted(array, from, to)?;
    let valid: Vec<usize> = (0..array.len()).filter(|&i| array.is_valid(i)).collect();
    let members = if array.null_count() == 0 { values } else { by_index(&values, &values, &valid, None)? };
    let offsets = OffsetBuffer::from_lengths((0..array.len()).map(|i| usize::from(array.is_valid(i))));
    let lists = GenericListArray::<i32>::try_new(field_of("item", &members), offsets, members, array.nulls().cloned());
    Ok(Arc::new(lists.map_err(failed)?))
}

fn numbers<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    array: &ArrayRef,
    number: impl Fn(A::Native) -> Result<B::Native, String>,
) -> Result<ArrayRef, RowError> {
    let values = array.as_primitive_opt::<A>().ok_or_else(schema_mismatch)?;
    let numbers = values
        .iter()
        .enumerate()
        .map(|(i, value)| value.map(&number).transpose().map_err(|message| RowError::at(i, message)));
    Ok(Arc::new(numbers.collect::<Result<PrimitiveArray<B>, RowError>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use TypeOrigin::{Declared, Inferred, InferredRepeated};

    fn schema(fields: &[(&str, DataType, bool)]) -> Schema {
        Schema::new(
            fields
                .iter()
                .map(|(name, data_type, null)| Field::new(*name, data_type.clone(), *null))
                .collect::<Vec<_>>(),
        )
    }

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(item, true)))
    }

    /// Returns the type that two inputs have together, if both can have it.
    fn together(a: DataType, b: DataType, origin: TypeOrigin) -> Option<DataType> {
        let (a, b) = (schema(&[("a", a, true)]), schema(&[("a", b, true)]));
        let mut unified = UnifiedSchema::new(&a, origin);
        unified.join(&b, origin);
        let unified = unified.into_fields();
        let both = [&a, &b].map(|own| aligned(own.fields(), &unified, origin, &|_| true));
        (both[0] == both[1]).then(|| both[0][0].data_type().clone())
    }

    #[test]
    fn types_are_unified_in_either_order() {
        let (int, float, text) = (DataType::Int64, DataType::Float64, DataType::Utf8);
        for (a, b, origin, expected) in [
            (DataType::Null, text.clone(), Declared, Some(text.clone())),
            (list(DataType::Null), list(text.clone()), Inferred, Some(list(text.clone()))),
            (list(DataType::Null), DataType::Null, Inferred, Some(list(int.clone()))),
            (int.clone(), float.clone(), Inferred, Some(float.clone())),
            (int.clone(), DataType::UInt64, Inferred, Some(DataType::UInt64)),
            (list(list(int.clone())), list(DataType::Null), Inferred, Some(list(list(int.clone())))),
            (int.clone(), list(int.clone()), InferredRepeated, Some(list(int.clone()))),
            (int.clone(), list(int.clone()), Inferred, None),
            (int.clone(), float.clone(), Declared, None),
            (int, text, Inferred, None),
        ] {
            assert_eq!(together(a.clone(), b.clone(), origin), expected, "{a} {b}");
            assert_eq!(together(b.clone(), a.clone(), origin), expected, "{b} {a}");
        }
    }

    #[test]
    fn a_column_is_not_there_twice() {
        let inner = DataType::Struct(vec![Field::new("b", DataType::Int64, true)].into());
        let (a, b) = (schema(&[("a", inner, true)]), schema(&[("a.b", DataType::Int64, true)]));
        let mut unified = UnifiedSchema::new(&a, Inferred);
        unified.join(&b, Inferred);
        let unified = unified.into_fields();
        for own in [a, b] {
            assert_eq!(aligned(own.fields(), &unified, Inferred, &|_| true), *own.fields());
        }
    }

    #[test]
    fn fields_that_are_missing_keep_the_order_of_each_input() {
        let int = || DataType::Int64;
        let a = schema(&[("x", int(), false), ("z", int(), true)]);
        let b = schema(&[("z", int(), true), ("y", int(), true), ("w", int(), false)]);
        let names = |fields: &Fields| fields.iter().map(|field| field.name().clone()).collect::<Vec<_>>().concat();
        for (origin, unified_names, aligned_names) in
            [(Inferred, "xzyw", ["xzyw", "zywx"]), (Declared, "xzy", ["xzy", "zyw"])]
        {
            let mut unified = UnifiedSchema::new(&a, origin);
            unified.join(&b, origin);
            let unified = unified.into_fields();
            assert_eq!(names(&unified), unified_names);
            let found = [&a, &b].map(|own| names(&aligned(own.fields(), &unified, origin, &|_| true)));
            assert_eq!(found, aligned_names);
        }
    }
}
