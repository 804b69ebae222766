//! The columns of a dataset that a new file has.

use super::listed_reader;
use crate::manifest::{IdentifiedColumn, Layout, Version};
use tensilo::{ColumnSchema, Schema};

/// Gives a dataset without columns those of a file.
pub(super) fn adopt_columns(version: &mut Version, schema: &Schema) {
    for column in &schema.columns {
        add_column(version, column.clone());
    }
}

/// Adds a column, and returns its id.
pub(super) fn add_column(version: &mut Version, schema: ColumnSchema) -> u64 {
    let id = version.column_ids;
    version.column_ids = id.saturating_add(1);
    version.columns.push(IdentifiedColumn { id, schema });
    id
}

/// Returns the layout of a file whose samples are appended, or why they cannot be.
pub(super) fn of_appended(schema: &Schema, columns: &[IdentifiedColumn]) -> Result<Layout, String> {
    let mut layout = Layout::new();
    for column in &schema.columns {
        let due = columns.iter().find(|due| due.schema.name == column.name).ok_or_else(|| {
            let name = &column.name;
            format!("the dataset has no column {name:?}; add it first, so that the samples before have it, too")
        })?;
        listed_reader::check_column(column, &due.schema).map_err(|broken| broken.message)?;
        layout.insert(column.name.clone(), due.id);
    }
    let missing = columns.iter().find(|due| !due.schema.nullable && !layout.contains_key(&due.schema.name));
    match missing {
        None => Ok(layout),
        Some(due) => Err(format!("there is no column {:?}, which is not nullable in the dataset", due.schema.name)),
    }
}

/// Returns the index of a layout; adds it if it is a new one.
pub(super) fn index_of(layouts: &mut Vec<Layout>, layout: Layout) -> usize {
    let found = layouts.iter().position(|known| *known == layout);
    found.unwrap_or_else(|| {
        layouts.push(layout);
        layouts.len().saturating_sub(1)
    })
}
