//! Finds out which leaves of a Parquet file can have nulls according to the file's statistics.
//!
//! If the null count is zero in every row group, the leaf has no nulls. If the file has histograms
//! of definition levels, null members of lists are counted separately.

use crate::import::arrow::paths::ColumnPath;
use crate::import::arrow::paths::{FieldListing, SchemaOrder};
use ::parquet::basic::Repetition;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use ::parquet::file::statistics::Statistics;
use ::parquet::schema::types::Type;
use arrow_schema::Schema;

/// The nulls of all leaves, in the order of the file.
pub(super) struct LeafNulls {
    leaves: Vec<Leaf>,
    order: SchemaOrder,
}

/// Whether one leaf can have nulls.
struct Leaf {
    /// Whether the leaf or an enclosing struct or list can be null. An empty list also counts as a
    /// null.
    any: bool,
    /// Whether members of lists can be null.
    in_lists: bool,
}

impl LeafNulls {
    pub(super) fn of(metadata: &ParquetMetaData, schema: &Schema) -> Self {
        let mut levels = Vec::new();
        find_null_levels(metadata.file_metadata().schema(), LevelsAbove::default(), &mut levels);
        let leaves: Vec<Leaf> = levels.iter().enumerate().map(|(i, levels)| Leaf::of(metadata, i, levels)).collect();
        Self { leaves, order: SchemaOrder::of(schema, FieldListing::Leaves) }
    }

    /// Returns whether a path can lead to nulls: a null struct, or lists with null members.
    pub(super) fn may_occur(&self, path: &ColumnPath) -> bool {
        let is_same = self.order.count == self.leaves.len(); // otherwise the schemas do not match
        let leaves = self.order.range(path).filter(|_| is_same).and_then(|leaves| self.leaves.get(leaves));
        leaves.is_none_or(|leaves| match path.is_struct {
            true => leaves.iter().all(|leaf| leaf.any), // if a struct is null, so are all its fields
            false => leaves.iter().any(|leaf| leaf.in_lists),
        })
    }
}

impl Leaf {
    /// Reads the statistics of a leaf. `levels` are the definition levels of null members of lists.
    fn of(metadata: &ParquetMetaData, leaf: usize, levels: &[usize]) -> Self {
        let is_null = |column: &ColumnChunkMetaData| null_count(column) != Some(0);
        let in_lists = |column: &ColumnChunkMetaData| match column.definition_level_histogram() {
            Some(histogram) => levels.iter().any(|&level| histogram.get(level) != Some(0)),
            None => !levels.is_empty() && is_null(column),
        };
        let any_group = |may_be: &dyn Fn(&ColumnChunkMetaData) -> bool| {
            metadata.row_groups().iter().any(|group| group.columns().get(leaf).is_none_or(may_be))
        };
        Self { any: any_group(&is_null), in_lists: any_group(&in_lists) }
    }
}

fn null_count(column: &ColumnChunkMetaData) -> Option<u64> {
    column.statistics().and_then(Statistics::null_count_opt)
}

/// Facts about the enclosing nodes of a node in the file's schema.
#[derive(Clone, Default)]
struct LevelsAbove {
    /// The number of optional and repeated nodes that enclose the node.
    level: usize,
    in_list: bool,
    /// The definition levels of null members of lists.
    null_levels: Vec<usize>,
}

/// Finds the definition levels of null members of lists for each leaf below a node. The recursion
/// is bounded, because the depth of the schema has been [checked](super::footer::check).
fn find_null_levels(node: &Type, at: LevelsAbove, found: &mut Vec<Vec<usize>>) {
    if !node.is_group() {
        found.push(at.null_levels);
        return;
    }
    for child in node.get_fields() {
        let mut inside = at.clone();
        match child.get_basic_info().repetition() {
            Repetition::REQUIRED => {}
            Repetition::OPTIONAL => {
                inside.null_levels.extend(inside.in_list.then_some(inside.level));
                inside.level += 1; // bounded by the depth
            }
            Repetition::REPEATED => {
                inside.in_list = true;
                inside.level += 1;
            }
        }
        find_null_levels(child, inside, found);
    }
}
