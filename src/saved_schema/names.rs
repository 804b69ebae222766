//! The columns that a field becomes, and other names of fields.

use super::document::{NAME, name};
use crate::arrow_type::VARIABLE_SHAPE_TENSOR;
use serde_json::Value;
use std::collections::HashMap;

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

/// The new names of a field and of those inside it.
#[derive(Default)]
struct Renames<'a> {
    own: Option<&'a str>,
    inside: HashMap<&'a str, Renames<'a>>,
}

/// Renames the fields that names lead to.
pub(super) fn rename(fields: &mut [Value], renames: &[(Vec<String>, &str)]) {
    let mut all = Renames::default();
    for (names, to) in renames {
        let of_field = names.iter().fold(&mut all, |outer, name| outer.inside.entry(name).or_default());
        of_field.own = Some(to);
    }
    rename_inside(fields, &all);
}

/// Renames fields of a struct, and those inside them. A depth has at most as many levels as a path.
fn rename_inside(fields: &mut [Value], renames: &Renames<'_>) {
    for field in fields {
        let Some(renames) = name(field).and_then(|name| renames.inside.get(name)) else { continue };
        if let (false, Some(fields)) = (renames.inside.is_empty(), struct_fields(field)) {
            rename_inside(fields, renames);
        }
        if let (Some(to), Some(field)) = (renames.own, field.as_object_mut()) {
            field.insert("name".to_owned(), to.into());
            // the caller's name counts, not that of the source
            let metadata = field.get_mut("metadata").and_then(Value::as_object_mut);
            metadata.into_iter().for_each(|metadata| drop(metadata.shift_remove(NAME)));
        }
    }
}

/// Returns the fields of a struct, also of one in lists.
fn struct_fields(mut field: &mut Value) -> Option<&mut [Value]> {
    loop {
        let (kind, inside) = field.get_mut("type")?.as_object_mut()?.iter_mut().next()?;
        let (is_list, is_struct) = (LISTS.contains(&kind.as_str()), kind == "struct");
        match inside {
            item if is_list => field = item,
            Value::Array(fields) if is_struct => return Some(fields),
            _ => return None,
        }
    }
}
