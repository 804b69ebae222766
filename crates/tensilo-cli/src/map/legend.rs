//! The legend of a map.

use crate::text::human;
use tensilo::{Column, Reader};

/// One line of the legend.
pub(super) struct Entry {
    pub(super) name: String,
    /// Type and shape.
    pub(super) kind: String,
    /// Encodings and the number of chunks of each; `-` if the column has no chunks.
    pub(super) encodings: String,
    pub(super) stored: String,
    pub(super) ratio: String,
    /// The ratio as a number.
    pub(super) compression: f64,
}

/// Returns the lines of the first `most` columns.
pub(super) fn entries(reader: &Reader, most: usize) -> Vec<Entry> {
    reader.columns().take(most).map(|column| entry(&column)).collect()
}

fn entry(column: &Column) -> Entry {
    let (schema, facts) = (column.schema(), column.facts());
    Entry {
        name: human::excerpt(&schema.name),
        kind: format!("{} {}", schema.type_name(), schema.shape),
        encodings: human::encodings(&facts),
        stored: human::bytes(facts.stored_bytes),
        ratio: human::ratio(facts.raw_bytes, facts.stored_bytes),
        compression: facts.raw_bytes as f64 / facts.stored_bytes.max(1) as f64, // an approximation
    }
}

/// Returns the bytes of the file outside the bodies of chunks.
pub(super) fn structure_bytes(reader: &Reader) -> u64 {
    let stored = reader.columns().map(|column| column.facts().stored_bytes).fold(0, u64::saturating_add);
    reader.file_bytes().saturating_sub(stored)
}

/// Returns the number of chunks of all columns.
pub(crate) fn chunk_count(reader: &Reader) -> u64 {
    reader.columns().map(|column| column.facts().chunk_count).fold(0, u64::saturating_add)
}

/// Returns `and 3 more columns` if the file has more than `most` columns.
pub(super) fn more(reader: &Reader, most: usize) -> Option<String> {
    let more = reader.schema().columns.len().checked_sub(most).filter(|more| *more > 0)?;
    Some(format!("and {more} more columns"))
}
