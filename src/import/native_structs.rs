//! The structs of tensilo files: each has a column of nulls as an input, also where the file has
//! none because no struct is null. So files with and without null structs can be converted
//! together.

use super::batch::{InputLists, SampleValues, Samples};
use super::input_column::{ColumnKind, InputColumn, StructNulls};
use crate::format::{followed_paths, path};
use crate::{ColumnSchema, DType, Metadata, Schema, limits};
use std::collections::HashSet;

/// The most bytes of a path whose names fit into the name of a column: each may be escaped.
const MOST_PATH_BYTES: usize = 2 * (limits::NAME_BYTES + limits::LEVELS);

/// The nulls of a struct of which the file has only fields: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoNulls {
    /// The position of a field, which has the same lists.
    pub field: usize,
    /// The levels of lists around the struct.
    pub levels: usize,
}

/// Returns which columns have the nulls of a struct, and of what sort.
pub(super) fn stored(schema: &Schema) -> Vec<Option<StructNulls>> {
    let paths = followed_paths(schema.columns.iter());
    let with_fields: HashSet<&str> = paths.iter().flatten().flat_map(|path| path::around(path.text)).collect();
    let nulls = |text| StructNulls { has_fields: with_fields.contains(text), may_be_null: true, is_written: true };
    let of_structs = paths.iter().map(|path| path.as_ref().filter(|path| path.is_struct));
    of_structs.map(|path| path.map(|path| nulls(path.text))).collect()
}

/// Returns the nulls of the structs for which the file has no column, except structs whose names
/// are too long for a column.
pub(super) fn absent(schema: &Schema) -> Vec<(InputColumn, NoNulls)> {
    let mut known: HashSet<&str> = schema.columns.iter().filter_map(ColumnSchema::path).collect();
    let mut found = Vec::new();
    let paths = followed_paths(schema.columns.iter());
    for (field, (column, path)) in schema.columns.iter().zip(&paths).enumerate() {
        for path in path.iter().flat_map(|path| path::around(path.text)) {
            if path.len() > MOST_PATH_BYTES || found.len() > limits::COLUMNS {
                break;
            }
            let Some(names) = path::parse(path) else { continue };
            let levels = names.iter().map(|name| name.lists).sum();
            let Some(lists) = column.levels.get(..levels).filter(|_| known.insert(path)) else { continue };
            let names: Vec<String> = names.into_iter().map(|name| name.name).collect();
            let nulls = StructNulls { has_fields: true, may_be_null: false, is_written: false };
            let input = InputColumn {
                name: names.join("."),
                kind: Ok(ColumnKind::struct_nulls(lists.to_vec())),
                nullable: column.nullable,
                metadata: Metadata::from([(path::KEY.to_owned(), path.to_owned())]),
                stored: None,
                struct_nulls: Some(nulls),
            };
            found.push((input, NoNulls { field, levels }));
        }
    }
    found
}

impl NoNulls {
    /// Returns the samples beside those of the field, of which there are `sample_count`.
    pub(super) fn samples(self, sample_count: usize, lists: Vec<InputLists>) -> Samples {
        let count = match lists.last() {
            // in memory
            Some(lists) => lists.lengths.iter().map(|&length| usize::try_from(length).unwrap_or(0)).sum(),
            None => sample_count,
        };
        Samples {
            dtype: DType::Bool,
            values: SampleValues::Structs { first_null: None },
            ranges: vec![0..0; count],
            open_extents: Vec::new(),
            lists,
            nulls: None,
            element_nulls: None,
            no_tensor: None,
        }
    }
}
