//! The columns of an export: those that are named, the fields of structs that are named, and the
//! nulls of structs.

use super::member_paths::with_paths;
use crate::format::{FieldNode, followed_paths, path};
use crate::{Error, Result, Schema, saved_schema};
use std::collections::{HashMap, HashSet};

/// Returns the numbers of the columns of these names, in this order, and of all if `None`. The name
/// of a struct stands for all its fields. A field of a struct brings the nulls of the struct with
/// it.
pub(super) fn columns(schema: &Schema, names: Option<&[String]>) -> Result<Vec<usize>> {
    let Some(names) = names else { return Ok((0..schema.columns.len()).collect()) };
    let mut named = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !named.insert(name.as_str())) {
        return Err(Error::bad_argument(format!("the column {twice:?} is named twice")));
    }
    let all = with_paths(schema.columns.iter(), &saved_schema::fields(&schema.metadata));
    let all = all.iter().map(|column| &**column);
    let nodes = FieldNode::of_columns(all.clone());
    let paths = followed_paths(all);
    let path_of = |number: usize| paths.get(number).and_then(Option::as_ref);
    let of_structs = (0..paths.len()).filter_map(|number| Some((path_of(number)?, number)));
    let nulls: HashMap<&str, usize> =
        of_structs.filter(|(path, _)| path.is_struct).map(|(path, number)| (path.text, number)).collect();
    let (mut seen, mut numbers) = (HashSet::new(), Vec::new());
    let mut add = |number: usize| {
        if seen.insert(number) {
            numbers.push(number);
        }
    };
    for name in names {
        for number in columns_of(schema, &nodes, name)? {
            let around = path_of(number).into_iter().flat_map(|path| path::around(path.text));
            around.filter_map(|path| nulls.get(path)).for_each(|nulls| add(*nulls));
            add(number);
        }
    }
    Ok(numbers)
}

/// Returns the numbers of the columns that a name stands for.
fn columns_of(schema: &Schema, nodes: &[FieldNode], name: &str) -> Result<Vec<usize>> {
    let column = schema.columns.iter().position(|column| column.name == name && !column.is_struct_nulls());
    match (column, FieldNode::named(nodes, name)) {
        (Some(number), _) => Ok(vec![number]),
        (None, Some((found, _))) => Ok(found.columns()),
        // one whose path is not its own
        (None, None) => schema.find_column(name).map(|(number, _)| vec![number]),
    }
}
