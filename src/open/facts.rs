//! Facts of columns, for callers.

use crate::codec::encoding_name;
use crate::format::CastFacts;
use crate::format::column_record::ColumnRecord;

/// The facts of a column, as the file states them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnFacts {
    /// Decoded bytes of all chunks.
    pub raw_bytes: u64,
    /// Stored bytes of all chunks, without their heads.
    pub stored_bytes: u64,
    /// Null samples.
    pub null_count: u64,
    /// Chunks.
    pub chunk_count: u64,
    /// Names of encodings, and of how many chunks they encode the values. 0: they encode only
    /// validity or shape.
    pub encodings: Vec<(String, u64)>,
    /// The effect of the cast, if the column has one.
    pub cast: Option<CastFacts>,
}

impl From<&ColumnRecord> for ColumnFacts {
    fn from(facts: &ColumnRecord) -> Self {
        Self {
            raw_bytes: facts.raw_bytes,
            stored_bytes: facts.stored_bytes,
            null_count: facts.null_count,
            chunk_count: facts.chunk_count,
            encodings: facts.encodings.iter().map(|&(id, chunks)| (encoding_name(id), chunks)).collect(),
            cast: facts.cast,
        }
    }
}
