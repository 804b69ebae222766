//! The interface of formats.

use super::field::Parts;
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::io::{self, Write};

/// A file that is made of record batches.
pub(super) trait BatchWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes what comes after the last batch.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Begins a file.
pub(super) type Begin = for<'a> fn(&'a mut (dyn Write + Send), &SchemaRef) -> Result<Box<dyn BatchWriter + 'a>>;

/// How a format is written.
pub(super) struct Format {
    pub begin: Begin,
    pub parts: Parts,
}

/// Returns the error of a library that writes: a failing device, or what it cannot express.
pub(super) fn write_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::io("writing the file", io::Error::other(error))
}
