//! The columns of an export: those that are named, the fields of structs that are named, and the
//! nulls of structs.

use crate::format::{FieldNode, path};
use crate::{Column, ColumnSchema, Error, Reader, Result};
use std::collections::{HashMap, HashSet};

/// Returns the columns of these names, in this order, and all if `None`. The name of a struct
/// stands for all its fields. A field of a struct brings the nulls of the struct with it.
pub(super) fn columns(reader: &Reader, names: Option<&[String]>) -> Result<Vec<Column>> {
    let Some(names) = names else { return Ok(reader.columns().collect()) };
    let mut named = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !named.insert(name.as_str())) {
        return Err(Error::bad_argument(format!("the column {twice:?} is named twice")));
    }
    let all = &reader.schema().columns;
    let nodes = FieldNode::of_columns(all.iter());
    let nulls: HashMap<&str, usize> = all
        .iter()
        .enumerate()
        .filter(|(_, column)| column.is_struct_nulls())
        .filter_map(|(number, column)| Some((path_of(column)?, number)))
        .collect();
    let (mut seen, mut numbers) = (HashSet::new(), Vec::new());
    let mut add = |number: usize| {
        if seen.insert(number) {
            numbers.push(number);
        }
    };
    for name in names {
        for number in columns_of(reader, &nodes, name)? {
            let around = all.get(number).and_then(path_of).into_iter().flat_map(path::around);
            around.filter_map(|path| nulls.get(path)).for_each(|nulls| add(*nulls));
            add(number);
        }
    }
    Ok(numbers.into_iter().filter_map(|number| reader.column_at(number)).collect())
}

/// Returns the numbers of the columns that a name stands for.
fn columns_of(reader: &Reader, nodes: &[FieldNode], name: &str) -> Result<Vec<usize>> {
    let column = reader.schema().columns.iter().position(|column| column.name == name && !column.is_struct_nulls());
    match (column, FieldNode::named(nodes, name)) {
        (Some(number), _) => Ok(vec![number]),
        (None, Some((found, _))) => Ok(found.columns()),
        // one whose path is not its own
        (None, None) => reader.column(name).map(|_| reader.schema().column_index(name).into_iter().collect()),
    }
}

fn path_of(column: &ColumnSchema) -> Option<&str> {
    column.metadata.get(path::KEY).map(String::as_str)
}
