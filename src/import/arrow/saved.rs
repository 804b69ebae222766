//! The schema of a source as it is kept for an export.

use super::metadata::{IMPORTERS, OF_SCHEMA};
use super::types::{INT96, decoded, is_nullable};
use crate::arrow_type::{self, with_members};
use crate::saved_schema::{DICTIONARY, METADATA_BYTES, encoded};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, downcast_integer_array};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A dictionary with more bytes of values is not kept.
const DICTIONARY_BYTES: usize = 64 << 10;

/// Returns the value of a schema in the metadata. `first_batch` reads the first batch of only these
/// fields.
pub(super) fn of(schema: &Schema, first_batch: impl FnOnce(&[usize]) -> Option<RecordBatch>) -> Option<String> {
    let fields = schema.fields();
    let keyed: Vec<usize> = (0..).zip(fields).filter(|(_, field)| has_dictionary(field)).map(|(i, _)| i).collect();
    let batch = if keyed.is_empty() { None } else { first_batch(&keyed) };
    let array_of = |i: usize| batch.as_ref()?.columns().get(keyed.binary_search(&i).ok()?);
    let fields: Vec<FieldRef> = (0..).zip(fields).map(|(i, field)| kept(field, array_of(i), true)).collect();
    encoded(&fields)
}

fn has_dictionary(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field)),
        other => arrow_type::members(other).is_some_and(|item| has_dictionary(item)),
    }
}

/// Returns a field with the metadata to keep. `array` has samples of it. Long metadata of a column
/// are not kept twice.
fn kept(field: &FieldRef, array: Option<&ArrayRef>, may_be_column: bool) -> FieldRef {
    let is_column = may_be_column && !matches!(decoded(field.data_type()), DataType::Struct(_));
    let own = |(key, value): &(&String, &String)| {
        let is_kept = OF_SCHEMA.contains(&key.as_str()) || !IMPORTERS.contains(&key.as_str());
        is_kept && key.as_str() != DICTIONARY && !(is_column && value.len() > METADATA_BYTES)
    };
    let metadata = field.metadata().iter().filter(own);
    let mut metadata: HashMap<String, String> = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let (DataType::Dictionary(..), Some(array)) = (field.data_type(), array) {
        metadata.extend(values(array).map(|values| (DICTIONARY.to_owned(), values)));
    }
    let item = |item: &FieldRef| kept(item, array.and_then(members).as_ref(), false);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            let child = |i: usize| array?.as_struct_opt()?.columns().get(i);
            DataType::Struct((0..).zip(fields).map(|(i, field)| kept(field, child(i), true)).collect::<Fields>())
        }
        // as Arrow's readers take them
        DataType::FixedSizeBinary(_) if field.metadata().contains_key(INT96) => {
            DataType::Timestamp(TimeUnit::Nanosecond, None)
        }
        // values with parts are exported as they are
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) if decoded(field.data_type()).is_nested() => {
            let values = Field::new(field.name(), decoded(field.data_type()).clone(), is_nullable(field));
            return kept(&Arc::new(values.with_metadata(metadata)), None, may_be_column);
        }
        other => with_members(other, item).unwrap_or_else(|| other.clone()),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

/// Returns the members of lists.
fn members(lists: &ArrayRef) -> Option<ArrayRef> {
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

/// Returns the texts or integers in a dictionary as a JSON array, if it is small and has no null.
fn values(array: &ArrayRef) -> Option<String> {
    let values = array.as_any_dictionary_opt()?.values();
    if values.null_count() > 0 || values.get_array_memory_size() > 2 * DICTIONARY_BYTES {
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
    (values.len() <= DICTIONARY_BYTES).then_some(values)
}
