//! The nulls of structs, as columns of sources.

use super::column::Column;
use crate::format::path;
use crate::import::input_column::InputColumn;
use std::collections::{HashMap, HashSet};

/// Adds the nulls of the structs around columns, each before the first field that is chosen.
pub(super) fn with_nulls<'a>(
    structs: &[(usize, &'a InputColumn)],
    chosen: Vec<(usize, &'a InputColumn)>,
) -> Vec<(usize, &'a InputColumn)> {
    let by_path = structs.iter().filter_map(|found| Some((found.1.path()?, *found)));
    let mut left: HashMap<&str, (usize, &InputColumn)> = by_path.collect();
    let mut all = Vec::with_capacity(chosen.len());
    for column in chosen {
        let around = column.1.path().into_iter().flat_map(path::around);
        all.extend(around.filter_map(|path| left.remove(path)));
        all.push(column);
    }
    all
}

/// The nulls of structs in a source that is not the first.
pub(super) struct OtherStructs {
    by_path: HashMap<String, (Column, usize)>,
}

impl OtherStructs {
    pub(super) fn new(structs: Vec<(Column, usize)>) -> Self {
        let by_path = structs.into_iter().filter_map(|found| Some((found.0.path()?.to_owned(), found)));
        Self { by_path: by_path.collect() }
    }

    /// Adds those of the same struct to a column of the plan, and returns their position. If the
    /// source has no such struct, the column loses its path. That is an error if its nulls are in
    /// a tensilo file.
    pub(super) fn join(&mut self, column: &mut Column) -> Result<Option<usize>, String> {
        match column.path().and_then(|path| self.by_path.remove(path)) {
            Some((other, position)) => {
                column.join(&other);
                Ok(Some(position))
            }
            None if is_written(column) => Err(format!("column {:?} is missing", column.name)),
            None => {
                column.metadata.remove(path::KEY);
                Ok(None)
            }
        }
    }

    /// Returns the names of those that have been joined to no column, and are in a tensilo file.
    pub(super) fn needed(&self) -> impl Iterator<Item = &str> {
        self.by_path.values().map(|(column, _)| column).filter(|column| is_written(column)).map(|c| c.name.as_str())
    }
}

fn is_written(column: &Column) -> bool {
    column.struct_nulls.is_some_and(|nulls| nulls.is_written)
}

/// Returns which columns all sources have, and not only the first: all but the nulls of some
/// structs, whose fields are columns without a path.
pub(super) fn common(columns: &[Column]) -> Vec<bool> {
    let values = columns.iter().filter(|column| !column.follows_fields());
    let around: HashSet<&str> = values.filter_map(Column::path).flat_map(path::around).collect();
    let is_common = |column: &Column| column.path().is_some_and(|path| around.contains(path));
    columns.iter().map(|column| !column.follows_fields() || is_common(column)).collect()
}
