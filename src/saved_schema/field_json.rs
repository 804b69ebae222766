//! From Arrow's fields to the text, and back.

use super::document::document;
use super::simple_types::{name, of_name};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The most fields around a field, and itself. A field in a struct is three levels deeper in the
/// text than the struct, and `serde_json` reads 127 levels: two around the outermost field, and one
/// for the metadata of the innermost.
const DEPTH: usize = 42;

/// Returns the text of fields. Fields whose types cannot be stored are left out. `None`: no field
/// is left.
pub(crate) fn text<'a>(fields: impl Iterator<Item = &'a FieldRef>) -> Option<String> {
    let fields: Vec<Value> = fields.filter_map(|field| of_field(field, DEPTH)).collect();
    (!fields.is_empty()).then(|| json!({ "fields": fields }).to_string())
}

fn of_field(field: &Field, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let mut object = Map::new();
    object.insert("name".to_owned(), field.name().as_str().into());
    object.insert("type".to_owned(), of_type(field.data_type(), depth)?);
    if !field.is_nullable() {
        object.insert("nullable".to_owned(), false.into());
    }
    if field.dict_is_ordered() == Some(true) {
        object.insert("ordered".to_owned(), true.into());
    }
    if !field.metadata().is_empty() {
        let sorted: BTreeMap<&String, &String> = field.metadata().iter().collect();
        let metadata: Map<String, Value> =
            sorted.into_iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        object.insert("metadata".to_owned(), metadata.into());
    }
    Some(object.into())
}

fn of_type(data_type: &DataType, depth: usize) -> Option<Value> {
    let of = |field: &FieldRef| of_field(field, depth);
    Some(match data_type {
        DataType::List(item) => json!({ "list": of(item)? }),
        DataType::LargeList(item) => json!({ "large_list": of(item)? }),
        DataType::ListView(item) => json!({ "list_view": of(item)? }),
        DataType::LargeListView(item) => json!({ "large_list_view": of(item)? }),
        DataType::FixedSizeList(item, length) => json!({ "fixed_size_list": of(item)?, "length": length }),
        DataType::Struct(fields) => json!({ "struct": fields.iter().map(of).collect::<Option<Vec<_>>>()? }),
        DataType::Map(entries, false) => json!({ "map": of(entries)? }),
        DataType::Map(entries, true) => json!({ "sorted_map": of(entries)? }),
        DataType::Dictionary(index, values) => json!({ "dictionary": name(values)?, "index": name(index)? }),
        DataType::RunEndEncoded(ends, values) => {
            json!({ "run_end_encoded": of(values)?, "ends": name(ends.data_type())? })
        }
        simple => name(simple)?.into(),
    })
}

/// Returns the fields of a text. Fields that are not well formed are left out.
pub(crate) fn parse(text: &str) -> Vec<FieldRef> {
    let document = document(text);
    let fields = document.as_ref().and_then(|document| document.get("fields")?.as_array());
    fields.into_iter().flatten().filter_map(|field| field_of(field, DEPTH)).collect()
}

/// Returns the field of a JSON value.
pub(crate) fn field(value: &Value) -> Option<FieldRef> {
    field_of(value, DEPTH)
}

fn field_of(value: &Value, depth: usize) -> Option<FieldRef> {
    let depth = depth.checked_sub(1)?;
    let name = value.get("name")?.as_str()?;
    let data_type = type_of(value.get("type")?, depth)?;
    let nullable = value.get("nullable") != Some(&Value::Bool(false));
    let ordered = value.get("ordered") == Some(&Value::Bool(true));
    let entries = value.get("metadata").and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let metadata: HashMap<String, String> = entries.into_iter().flatten().filter_map(text).collect();
    Some(Arc::new(Field::new(name, data_type, nullable).with_dict_is_ordered(ordered).with_metadata(metadata)))
}

fn type_of(value: &Value, depth: usize) -> Option<DataType> {
    if let Some(text) = value.as_str() {
        return of_name(text);
    }
    let (kind, child) = value.as_object()?.iter().next()?;
    let item = || field_of(child, depth);
    let named = |key: &str| value.get(key).and_then(Value::as_str).and_then(of_name);
    match kind.as_str() {
        "list" => item().map(DataType::List),
        "large_list" => item().map(DataType::LargeList),
        "list_view" => item().map(DataType::ListView),
        "large_list_view" => item().map(DataType::LargeListView),
        "fixed_size_list" => {
            let length = i32::try_from(value.get("length")?.as_i64()?).ok().filter(|length| *length >= 0)?;
            item().map(|item| DataType::FixedSizeList(item, length))
        }
        "struct" => {
            let fields = child.as_array()?.iter().map(|child| field_of(child, depth));
            fields.collect::<Option<Fields>>().map(DataType::Struct)
        }
        "map" => entries(item()?).map(|entries| DataType::Map(entries, false)),
        "sorted_map" => entries(item()?).map(|entries| DataType::Map(entries, true)),
        "dictionary" => {
            let index = named("index").filter(DataType::is_dictionary_key_type)?;
            Some(DataType::Dictionary(Box::new(index), Box::new(of_name(child.as_str()?)?)))
        }
        "run_end_encoded" => {
            let ends = named("ends").filter(DataType::is_run_ends_type)?;
            Some(DataType::RunEndEncoded(Arc::new(Field::new("run_ends", ends, false)), item()?))
        }
        _ => None,
    }
}

/// Returns the entries of a map, if they are pairs.
fn entries(entries: FieldRef) -> Option<FieldRef> {
    matches!(entries.data_type(), DataType::Struct(fields) if fields.len() == 2).then_some(entries)
}
