//! What the map says of each column in words.

use crate::human;
use tensilo::{Column, Reader};

/// A line of the legend.
pub(super) struct Entry {
    pub(super) name: String,
    /// Type and shape.
    pub(super) kind: String,
    /// With the number of chunks of each; `-` if there are none.
    pub(super) encodings: String,
    pub(super) stored: String,
    pub(super) ratio: String,
    /// The same as a number.
    pub(super) compression: f64,
}

/// A line for each of the first `most` columns.
pub(super) fn entries(reader: &Reader, most: usize) -> Vec<Entry> {
    reader.columns().take(most).map(|column| entry(&column)).collect()
}

fn entry(column: &Column) -> Entry {
    let (schema, facts) = (column.schema(), column.facts());
    Entry {
        name: human::excerpt(&schema.name),
        kind: format!("{} {}", schema.dtype, schema.shape),
        encodings: human::encodings(&facts),
        stored: human::bytes(facts.stored_bytes),
        ratio: human::ratio(facts.raw_bytes, facts.stored_bytes),
        compression: facts.raw_bytes as f64 / facts.stored_bytes.max(1) as f64, // rounded anyway
    }
}

/// What is left of the file without the bodies of chunks.
pub(super) fn structure_bytes(reader: &Reader) -> u64 {
    let stored = reader.columns().map(|column| column.facts().stored_bytes).fold(0, u64::saturating_add);
    reader.file_bytes().saturating_sub(stored)
}

/// Chunks of all columns.
pub(super) fn chunk_count(reader: &Reader) -> u64 {
    reader.columns().map(|column| column.facts().chunk_count).fold(0, u64::saturating_add)
}

/// Columns that have no line of the legend: `and 3 more columns`.
pub(super) fn more(reader: &Reader, most: usize) -> Option<String> {
    let more = reader.schema().columns.len().checked_sub(most).filter(|more| *more > 0)?;
    Some(format!("and {more} more columns"))
}
