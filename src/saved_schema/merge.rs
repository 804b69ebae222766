//! The schemas of several sources, joined to one.

use super::document::fields_mut;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Joins the fields of `other` to those of the same names.
pub(super) fn fields(own: &mut Value, other: &Value) {
    let Some(other) = other.get("fields").and_then(Value::as_array) else { return };
    let name = |field: &Value| field.get("name").and_then(Value::as_str).map(str::to_owned);
    let other: HashMap<String, &Value> = other.iter().filter_map(|field| Some((name(field)?, field))).collect();
    for field in fields_mut(own).into_iter().flatten() {
        let other = name(field).and_then(|name| other.get(&name));
        if let (Some(field), Some(other)) = (field.as_object_mut(), other) {
            join(field, other);
        }
    }
}

/// Joins a field to another: it is nullable if either is. Its dictionary is ordered if both have
/// the same values in the same order.
fn join(field: &mut Map<String, Value>, other: &Value) {
    if other.get("nullable").is_none() {
        field.shift_remove("nullable");
    }
    let values = |metadata: Option<&Value>| metadata.and_then(|all| all.get("tensilo.dictionary").cloned());
    if other.get("ordered").is_none() || values(field.get("metadata")) != values(other.get("metadata")) {
        field.shift_remove("ordered");
    }
    let (Some(own), Some(other)) = (field.get_mut("type"), other.get("type")) else { return };
    join_types(own, other);
}

fn join_types(own: &mut Value, other: &Value) {
    let Some((kind, child)) = own.as_object_mut().and_then(|own| own.iter_mut().next()) else { return };
    let Some(other) = other.get(kind) else { return };
    match (child, other) {
        (Value::Object(item), other) if kind != "dictionary" => join(item, other),
        (Value::Array(children), Value::Array(others)) => {
            for (child, other) in children.iter_mut().filter_map(Value::as_object_mut).zip(others) {
                join(child, other);
            }
        }
        _ => {}
    }
}
