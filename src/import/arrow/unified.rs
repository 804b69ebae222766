//! Unifies the schemas of several inputs.
//!
//! Formats such as JSON lines do not declare types: a member that is null in every line of one file
//! can be a string in the next file. So the types are inferred from all inputs together, as if they
//! were one file. Parquet and Arrow files declare types, but these can still differ slightly:
//! pandas gives a column without values the type null, and omits columns that a shard does not
//! have.
//!
//! [`UnifiedSchema`] merges the schemas of all inputs. [`aligned`] returns the fields that one
//! input has in the unified schema. The input's own fields come first, in their original order, so
//! statistics that the file records by position stay valid. The fields that the input does not have
//! follow. If fields contradict each other, [`UnifiedSchema`] and [`aligned`] leave them unchanged,
//! and the plan of the conversion reports them. [`adapted`] converts arrays to the aligned types.
//!
//! The alternative would be to let each format read its files with a given schema, but then every
//! format would have to implement the conversion to that schema.

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

/// How the types of the fields of a source were determined; see
/// [`RecordSource::type_origin`](crate::import::RecordSource::type_origin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TypeOrigin {
    /// The file declares the types. A field of type null gets the type that other inputs declare,
    /// and a nullable field may be missing.
    Declared,
    /// The types were inferred from the values of the file, and hold only for these values. If
    /// other inputs have floats in a field, its integers become `f64`; an integer without an exact
    /// `f64` value is refused. A field may be missing, and the members of empty lists have the type
    /// null.
    Inferred,
    /// Like [`Inferred`](Self::Inferred), except that a single value is equivalent to a list of one
    /// value.
    InferredRepeated,
}

/// The fields of all inputs, in order of first appearance.
pub(in crate::import) struct UnifiedSchema {
    fields: Fields,
    origin: TypeOrigin,
}

impl UnifiedSchema {
    pub(in crate::import) fn new(first: &Schema, origin: TypeOrigin) -> Self {
        Self { fields: first.fields().clone(), origin }
    }

    /// Merges the schema of another input.
    pub(in crate::import) fn join(&mut self, other: &Schema, origin: TypeOrigin) {
        if self.fields != *other.fields() {
            self.fields = joined(&self.fields, other.fields(), (self.origin, origin));
        }
        self.origin = self.origin.min(origin);
    }

    /// Returns the fields. If types are inferred, lists that are empty in all inputs become lists
    /// of integers.
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

/// Returns the fields, keyed by name.
fn by_name(fields: &Fields) -> HashMap<&str, &FieldRef> {
    fields.iter().map(|field| (field.name().as_str(), field)).collect()
}

/// Returns the union of the fields of two structs. A field that only one of them has becomes
/// nullable if the other input may omit it. Otherwise, a field of `a` stays unchanged, and a field
/// of `b` is left out.
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

/// Returns the unified field of two inputs, or the first field if they contradict each other.
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

/// Returns whether a field may have nulls. A field of type null has nulls, unless its type was
/// inferred.
fn has_nulls(field: &Field, origin: TypeOrigin) -> bool {
    field.is_nullable() || *field.data_type() == DataType::Null && origin == TypeOrigin::Declared
}

/// Returns whether values of type `own`, which is not a list or struct, can be converted to `other`
/// without loss.
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

/// Returns the fields that an input has in the unified schema. Its own fields come first, with the
/// unified types if its values allow them. The nullable fields that it does not have follow. A
/// top-level field is added only if `is_lacking` returns `true` for its name.
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

/// Adds the names of the columns of a field. `outer` is the name of the enclosing struct.
fn add_names(field: &Field, outer: &str, names: &mut HashSet<String>) {
    let name = dotted_name(outer, field.name());
    match struct_fields(field) {
        Some(fields) => fields.iter().for_each(|field| add_names(field, &name, names)),
        None => drop(names.insert(name.into_owned())),
    }
}

/// Returns how many columns the fields have, including the columns for the nulls of structs.
pub(in crate::import) fn column_count(fields: &Fields) -> usize {
    let count = |field: &FieldRef| struct_fields(field).map_or(0, column_count).saturating_add(1);
    fields.iter().map(count).fold(0, usize::saturating_add)
}

/// Returns the fields of a struct, or of a struct inside lists.
fn struct_fields(field: &Field) -> Option<&Fields> {
    match field.data_type() {
        DataType::Struct(fields) if !is_variable_tensor(field) => Some(fields),
        DataType::Struct(_) => None,
        other => members(other).and_then(|item| struct_fields(item)),
    }
}

/// Aligns the fields of one input with the unified fields.
struct Alignment {
    /// The names of the input's columns. In another input, a column `a.b` can be a field `b` of a
    /// struct `a`. That field must not be added, because the column would occur twice.
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

    /// Returns a field with the type of `target`, as far as its values allow. `name` is the name of
    /// its column.
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

/// Returns whether an array of nulls can stand for the field. This requires that the arrays of the
/// field have the type that the field states.
fn is_fillable(field: &Field) -> bool {
    let is_raw = [INT96, ENCRYPTED].iter().any(|key| field.metadata().contains_key(key));
    !is_raw
        && match field.data_type() {
            DataType::Struct(fields) => fields.iter().all(|field| is_fillable(field)),
            DataType::Union(..) => false,
            other => members(other).is_none_or(|item| is_fillable(item)),
        }
}

/// Returns the input fields that, before casts, become the columns of a tensilo file. Tensors are
/// lists, as in formats that infer types.
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

/// Returns a field with lists instead of tensors. `mark` is the mark of the enclosing field; see
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
                (Some(element), DataType::FixedSizeList(_, ndim)) => usize::try_from(*ndim).ok().zip(Some(element)),
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
        (Some((ndim, element)), _) => {
            (0..ndim).fold(element.data_type().clone(), |inner, level| list(inner, level == 0))
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

/// Converts an array of a field from type `from` to type `to`, as determined by [`aligned`]. The
/// row in an error is a position in the array.
pub(in crate::import::arrow) fn adapted(
    array: &ArrayRef,
    from: &DataType,
    to: &DataType,
) -> Result<ArrayRef, RowError> {
    if from == to {
        return Ok(Arc::clone(array)); // an array that is read raw does not have the type of its field
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
            u64::try_from(value).map_err(|_| {
                format!("the integer {value} is negative, but other inputs have integers beyond the range of i64")
            })
        }),
        _ => Err(schema_mismatch()),
    }
}

fn no_float(integer: i128) -> String {
    format!("the integer {integer} has no exact f64 value, but other inputs have floats in this column")
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
    // a slice of a batch has only some of the members
    let own = lists.values().slice(first, end.saturating_sub(first));
    let members = adapted(&own, from, to).map_err(|problem| {
        let list_of = |entry: usize| offsets.partition_point(|o| o.as_usize() <= entry.saturating_add(first));
        RowError { row: problem.row.map(|entry| list_of(entry).saturating_sub(1)), ..problem }
    })?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets.iter().map(|&offset| offset - start)));
    let lists = GenericListArray::<O>::try_new(field_of("item", &members), offsets, members, lists.nulls().cloned());
    Ok(Arc::new(lists.map_err(failed)?))
}

/// Turns each value into a list of one value, and null values into null lists.
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

    /// Returns the unified type of two inputs, if both inputs can have that type.
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
