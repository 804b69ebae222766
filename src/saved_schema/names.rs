//! The columns that a field becomes, and other names of fields.

use super::document::{NAME, name};
use crate::arrow_type::VARIABLE_SHAPE_TENSOR;
use serde_json::Value;

const LISTS: [&str; 7] = ["list", "large_list", "list_view", "large_list_view", "fixed_size_list", "map", "sorted_map"];

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
    match LISTS.iter().find_map(|list| data_type.get(list)) {
        Some(item) => collect(item, name, names),
        None => names.push(name),
    }
}

/// Renames the fields that names lead to.
pub(super) fn rename(fields: &mut [Value], renames: &[(Vec<String>, &str)]) {
    let pending = |number: usize| format!("\0{number}"); // no name of a column
    for (number, (names, _)) in renames.iter().enumerate() {
        rename_one(fields, names, &pending(number));
    }
    for (number, (names, to)) in renames.iter().enumerate() {
        let outer = names.iter().take(names.len().saturating_sub(1)).cloned();
        rename_one(fields, &outer.chain([pending(number)]).collect::<Vec<_>>(), to);
    }
}

/// Renames a field, through lists.
fn rename_one(fields: &mut [Value], names: &[String], to: &str) {
    let Some((first, inner)) = names.split_first() else { return };
    let Some(mut field) = fields.iter_mut().find(|field| name(field) == Some(first)) else { return };
    if inner.is_empty() {
        let Some(field) = field.as_object_mut() else { return };
        field.insert("name".to_owned(), to.into());
        // the caller's name counts, not that of the source
        let metadata = field.get_mut("metadata").and_then(Value::as_object_mut);
        metadata.into_iter().for_each(|metadata| drop(metadata.shift_remove(NAME)));
        return;
    }
    loop {
        let Some(data_type) = field.get_mut("type").and_then(Value::as_object_mut) else { return };
        let Some((kind, inside)) = data_type.iter_mut().next() else { return };
        match inside {
            Value::Array(fields) if kind == "struct" => return rename_one(fields, inner, to),
            item if LISTS.contains(&kind.as_str()) => field = item,
            _ => return,
        }
    }
}
