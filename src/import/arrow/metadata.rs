//! The metadata of columns and files, and the source schema that is saved for an export.
//!
//! The metadata of the input is copied, except for the keys that describe the layout of the source
//! or that the importer itself defines. Entries that exceed a limit of the format are dropped, and
//! their keys are recorded. The saved schema does not repeat long entries that are in the metadata
//! of a column.

use super::types::{ENCRYPTED, INT96, decoded, dim_names, element_type, expressed_by_shape, is_nullable};
use crate::format::path;
use crate::import::run::found::{DROPPED, add_dropped};
use crate::logical::arrow_type;
use crate::logical::arrow_type::{ArrowType, CAST_TYPE, DIM_NAMES, DTYPE, INFERRED_SHAPE, with_members};
use crate::logical::saved_schema;
use crate::logical::saved_schema::{DICTIONARY, LOGICAL_TYPE, METADATA_BYTES, encoded, has_dictionary};
use crate::{Metadata, limits};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, downcast_integer_array};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

const FIELD_ID: &str = "PARQUET:field_id";
/// The metadata keys of a field that describe its source, or that the importer defines.
const INTERNAL_KEYS: [&str; 10] = [
    FIELD_ID,
    LOGICAL_TYPE,
    DTYPE,
    INT96,
    ENCRYPTED,
    INFERRED_SHAPE,
    CAST_TYPE,
    DROPPED,
    path::KEY,
    saved_schema::NAME,
];
/// The internal keys that the saved schema contains.
const SCHEMA_KEYS: [&str; 3] = [FIELD_ID, LOGICAL_TYPE, saved_schema::NAME];

/// Returns the metadata of the column that stores a field. If the field holds the members of a
/// list, the metadata of the list takes precedence.
pub(super) fn of_column(field: &Field, list: Option<&Field>) -> Metadata {
    let own = field.metadata().iter().filter(|(key, _)| list.is_none_or(|list| !list.metadata().contains_key(key)));
    let all = list.into_iter().flat_map(|list| list.metadata().iter()).chain(own);
    let preserved = all.filter(|(key, _)| !INTERNAL_KEYS.contains(&key.as_str()) && !expressed_by_shape(field, key));
    let mut metadata = within_limits(preserved, &[]);
    metadata.remove(arrow_type::KEY); // set by the importer, never by the input
    if let Some(data_type) = ArrowType::from_arrow(element_type(field.data_type())) {
        metadata.insert(arrow_type::KEY.to_owned(), data_type.to_string());
    }
    if let Some(names) = dim_names(field) {
        metadata.insert(DIM_NAMES.to_owned(), names);
    }
    metadata
}

/// Returns the metadata of the file. `saved` is the schema to save. It can exceed the limit of the
/// format until the fields whose columns are not converted are removed from it. `dropped` lists the
/// keys that the reader of the file has already dropped.
pub(super) fn of_file(schema: &Schema, saved: Option<String>, dropped: &[String]) -> Metadata {
    let own = schema.metadata().iter();
    let own = own.filter(|(key, _)| ![saved_schema::KEY, DROPPED].contains(&key.as_str()));
    let mut metadata = within_limits(own, dropped);
    metadata.extend(saved.map(|value| (saved_schema::KEY.to_owned(), value)));
    metadata
}

/// Returns the entries that are within the limits of the format. The keys of all other entries are
/// recorded after the keys in `dropped`.
fn within_limits<'a>(entries: impl Iterator<Item = (&'a String, &'a String)>, dropped: &[String]) -> Metadata {
    let mut metadata = Metadata::new();
    let mut dropped = dropped.to_vec();
    for (key, value) in entries {
        let key_fits = (1..=limits::METADATA_KEY_BYTES).contains(&key.len());
        let room = metadata.len() < limits::METADATA_ENTRIES / 2;
        if key_fits && room && value.len() <= limits::METADATA_VALUE_BYTES {
            metadata.insert(key.clone(), value.clone());
        } else {
            dropped.push(key.clone());
        }
    }
    add_dropped(&mut metadata, &dropped);
    metadata
}

/// The maximum size of saved dictionary values, in bytes.
const MAX_DICTIONARY_BYTES: usize = 64 << 10;

/// Returns the schema, encoded as a metadata value. `first_batch` reads the given fields of the
/// first batch.
pub(super) fn saved_schema_of(
    schema: &Schema,
    first_batch: impl FnOnce(&[usize]) -> Option<RecordBatch>,
) -> Option<String> {
    let fields = schema.fields();
    let keyed: Vec<usize> = (0..).zip(fields).filter(|(_, field)| has_dictionary(field)).map(|(i, _)| i).collect();
    let batch = if keyed.is_empty() { None } else { first_batch(&keyed) };
    let array_of = |i: usize| batch.as_ref()?.columns().get(keyed.binary_search(&i).ok()?);
    let fields: Vec<FieldRef> = (0..).zip(fields).map(|(i, field)| preserved(field, array_of(i), true)).collect();
    encoded(&fields)
}

/// Returns a field with the metadata to save. `array` contains samples of the field. Long values
/// are left out if the field is a column, because the metadata of the column contains them.
fn preserved(field: &FieldRef, array: Option<&ArrayRef>, may_be_column: bool) -> FieldRef {
    let is_column = may_be_column && !matches!(decoded(field.data_type()), DataType::Struct(_));
    let own = |(key, value): &(&String, &String)| {
        let is_preserved = SCHEMA_KEYS.contains(&key.as_str()) || !INTERNAL_KEYS.contains(&key.as_str());
        is_preserved && key.as_str() != DICTIONARY && !(is_column && value.len() > METADATA_BYTES)
    };
    let metadata = field.metadata().iter().filter(own);
    let mut metadata: HashMap<String, String> = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let (DataType::Dictionary(..), Some(array)) = (field.data_type(), array) {
        metadata.extend(dictionary_values(array).map(|dictionary_values| (DICTIONARY.to_owned(), dictionary_values)));
    }
    let item = |item: &FieldRef| preserved(item, array.and_then(list_members).as_ref(), false);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            let child = |i: usize| array?.as_struct_opt()?.columns().get(i);
            DataType::Struct((0..).zip(fields).map(|(i, field)| preserved(field, child(i), true)).collect::<Fields>())
        }
        // dictionaries of nested values are exported as plain values
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) if decoded(field.data_type()).is_nested() => {
            let dictionary_values = Field::new(field.name(), decoded(field.data_type()).clone(), is_nullable(field));
            return preserved(&Arc::new(dictionary_values.with_metadata(metadata)), None, may_be_column);
        }
        other => with_members(other, item).unwrap_or_else(|| other.clone()),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

/// Returns the members of lists.
fn list_members(lists: &ArrayRef) -> Option<ArrayRef> {
    Some(match lists.data_type() {
        DataType::List(_) => lists.as_list_opt::<i32>()?.values().clone(),
        DataType::LargeList(_) => lists.as_list_opt::<i64>()?.values().clone(),
        DataType::ListView(_) => lists.as_list_view_opt::<i32>()?.values().clone(),
        DataType::LargeListView(_) => lists.as_list_view_opt::<i64>()?.values().clone(),
        DataType::FixedSizeList(..) => lists.as_fixed_size_list_opt()?.values().clone(),
        DataType::Map(..) => Arc::new(lists.as_map_opt()?.entries().clone()),
        _ => return None,
    })
}

/// Returns the strings or integers of a dictionary as a JSON array, if the dictionary is small and
/// has no nulls.
fn dictionary_values(array: &ArrayRef) -> Option<String> {
    let values = array.as_any_dictionary_opt()?.values();
    if values.null_count() > 0 || values.get_array_memory_size() > 2 * MAX_DICTIONARY_BYTES {
        return None;
    }
    let text = |text: &str| Value::from(text);
    let values: Vec<Value> = match values.data_type() {
        DataType::Utf8 => values.as_string_opt::<i32>()?.iter().flatten().map(text).collect(),
        DataType::LargeUtf8 => values.as_string_opt::<i64>()?.iter().flatten().map(text).collect(),
        DataType::Utf8View => values.as_string_view_opt()?.iter().flatten().map(text).collect(),
        _ => downcast_integer_array!(
            values => values.iter().flatten().map(Value::from).collect(),
            _ => return None
        ),
    };
    let values = Value::from(values).to_string();
    (values.len() <= MAX_DICTIONARY_BYTES).then_some(values)
}
