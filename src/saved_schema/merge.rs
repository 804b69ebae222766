//! The schemas of several sources, joined to one.

use super::document::{DICTIONARY, fields_mut, name};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The types of indexes that number few values.
const NARROW: [&str; 4] = ["int8", "uint8", "int16", "uint16"];
/// The type of indexes in their place.
const WIDE: &str = "int32";

/// Joins the fields of `other` to those of the same names.
pub(super) fn fields(own: &mut Value, other: &Value) {
    let (Some(own), Some(other)) = (fields_mut(own), other.get("fields").and_then(Value::as_array)) else { return };
    join_all(own, other);
}

fn join_all(own: &mut [Value], other: &[Value]) {
    let other: HashMap<&str, &Value> = other.iter().filter_map(|field| Some((name(field)?, field))).collect();
    for field in own {
        let other = name(field).and_then(|name| other.get(name));
        if let (Some(field), Some(other)) = (field.as_object_mut(), other) {
            join(field, other);
        }
    }
}

/// Joins a field to another: it is nullable if either is. If the values of its dictionary are not
/// known to be the same, it is not ordered, and has as many indexes as the values of both may need.
fn join(field: &mut Map<String, Value>, other: &Value) {
    if other.get("nullable").is_none() {
        field.shift_remove("nullable");
    }
    let values = |metadata: Option<&Value>| metadata?.get(DICTIONARY).cloned();
    let own = values(field.get("metadata"));
    if own.is_none() || own != values(other.get("metadata")) {
        field.shift_remove("ordered");
        field.get_mut("type").into_iter().for_each(widen_index);
    }
    if other.get("ordered").is_none() {
        field.shift_remove("ordered");
    }
    let (Some(own), Some(other)) = (field.get_mut("type"), other.get("type")) else { return };
    join_types(own, other);
}

/// Makes all dictionaries in a document unordered. The depth of a document is bounded.
pub(super) fn forget_order(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // metadata of this name are texts
            if members.get("ordered") == Some(&Value::Bool(true)) {
                members.shift_remove("ordered");
            }
            members.values_mut().for_each(forget_order);
        }
        Value::Array(members) => members.iter_mut().for_each(forget_order),
        _ => {}
    }
}

/// Makes the indexes of a dictionary wide.
fn widen_index(data_type: &mut Value) {
    if let Some(index) = data_type.get_mut("index").filter(|index| NARROW.iter().any(|narrow| **index == *narrow)) {
        *index = WIDE.into();
    }
}

fn join_types(own: &mut Value, other: &Value) {
    let Some((kind, child)) = own.as_object_mut().and_then(|own| own.iter_mut().next()) else { return };
    let Some(other) = other.get(kind) else { return };
    match (child, other) {
        (Value::Object(item), other) => join(item, other),
        (Value::Array(children), Value::Array(others)) => join_all(children, others),
        _ => {}
    }
}
