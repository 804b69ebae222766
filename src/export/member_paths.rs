//! Fields of structs that have no path, because it would say that they are structs.
//!
//! Chapter 3.4 of the specification: a column of bools with a path, rank 1 and the extent 0 has the
//! nulls of a struct. A list of 0 bools in a struct is therefore a column without a path. The
//! schema of the source says where it was.

use crate::arrow_type::{is_tensor, members};
use crate::format::path;
use crate::{ColumnSchema, DType, Extent};
use arrow_schema::{DataType, Field, FieldRef};
use std::borrow::Cow;
use std::collections::HashMap;

/// Returns the columns to join to fields, with the paths that only the source's fields, `saved`,
/// say. A column that gets such a path is no longer one of bools.
pub(super) fn with_paths<'a>(
    columns: impl Iterator<Item = &'a ColumnSchema>,
    saved: &[FieldRef],
) -> Vec<Cow<'a, ColumnSchema>> {
    let mut paths = None;
    let mut with_path = |column: &'a ColumnSchema| {
        let is_empty = column.dtype == DType::Bool && column.shape.extents() == [Extent::Fixed(0)];
        if !is_empty || column.path().is_some() {
            return Cow::Borrowed(column);
        }
        let paths = paths.get_or_insert_with(|| paths_of(saved));
        let Some(path) = paths.get(&column.name) else { return Cow::Borrowed(column) };
        let mut column = ColumnSchema { dtype: DType::U8, ..column.clone() };
        column.metadata.insert(path::KEY.to_owned(), path.clone());
        Cow::Owned(column)
    };
    columns.map(&mut with_path).collect()
}

/// Returns the paths of lists of 0 bools in structs, by the names of the columns.
fn paths_of(saved: &[FieldRef]) -> HashMap<String, String> {
    let mut paths = HashMap::new();
    for field in saved {
        collect(field, field.name().clone(), path::escaped(field.name()), false, &mut paths);
    }
    paths
}

/// Collects the paths in a field. The depth of a field is bounded.
fn collect(field: &Field, name: String, path: String, in_struct: bool, paths: &mut HashMap<String, String>) {
    match field.data_type() {
        DataType::Struct(fields) if !is_tensor(field) => {
            for field in fields {
                let child = (format!("{name}.{}", field.name()), format!("{path}.{}", path::escaped(field.name())));
                collect(field, child.0, child.1, true, paths);
            }
        }
        DataType::FixedSizeList(item, 0) if in_struct && *item.data_type() == DataType::Boolean => {
            paths.insert(name, path);
        }
        other => {
            if let Some(item) = members(other) {
                collect(item, name, format!("{path}[]"), in_struct, paths);
            }
        }
    }
}
