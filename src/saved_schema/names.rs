//! The columns that a field becomes.

use crate::arrow_type::VARIABLE_SHAPE_TENSOR;
use serde_json::Value;

/// Returns the names of the columns that a field becomes; none if it is not well formed.
pub(super) fn columns(field: &Value) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(name) = field.get("name").and_then(Value::as_str) {
        collect(field, name.to_owned(), &mut names);
    }
    names
}

fn collect(field: &Value, name: String, names: &mut Vec<String>) {
    let Some(data_type) = field.get("type") else { return };
    let extension = field.pointer("/metadata/ARROW:extension:name").and_then(Value::as_str);
    let is_tensor = extension == Some(VARIABLE_SHAPE_TENSOR);
    let children = data_type.get("struct").and_then(Value::as_array).filter(|children| !children.is_empty());
    if let (Some(children), false) = (children, is_tensor) {
        for child in children {
            let own = child.get("name").and_then(Value::as_str).unwrap_or_default();
            collect(child, format!("{name}.{own}"), names);
        }
        return;
    }
    const LISTS: [&str; 7] =
        ["list", "large_list", "list_view", "large_list_view", "fixed_size_list", "map", "sorted_map"];
    match LISTS.iter().find_map(|list| data_type.get(list)) {
        Some(item) => collect(item, name, names),
        None => names.push(name),
    }
}
