//! The text as a JSON document.

use serde_json::Value;

pub(super) fn document(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok() // refuses what is nested deeper than 128 levels
}

pub(super) fn fields_mut(document: &mut Value) -> Option<&mut Vec<Value>> {
    document.get_mut("fields")?.as_array_mut()
}
