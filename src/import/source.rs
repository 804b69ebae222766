//! Where record batches come from, and the border at which panics of decoders become errors.

use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Record batches, in order.
pub(super) type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>;

/// Something that can be read from the start as often as needed.
pub(super) trait Source {
    fn schema(&self) -> &SchemaRef;

    /// The file, to be named in errors.
    fn path(&self) -> Option<&Path>;

    /// How many rows there are, if that is known before reading.
    fn row_count(&self) -> Option<u64>;

    /// All batches, of only these fields of the schema, which ascend.
    fn batches(&self, fields: &[usize]) -> Result<Batches<'_>>;

    /// Refuses a source that was changed since it was opened: what was read may be of two versions.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// Refuses sources that were changed since they were opened.
pub(super) fn check_unchanged(sources: &[&dyn Source]) -> Result<()> {
    sources.iter().try_for_each(|source| source.check_unchanged().map_err(|error| located(error, *source)))
}

/// Adds the source's path to an error that has none. If the source was changed, that is the error.
pub(super) fn located(error: Error, source: &dyn Source) -> Error {
    let error = source.check_unchanged().err().unwrap_or(error);
    match source.path() {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// Runs code that malformed input might make panic; a panic is an error.
pub(super) fn guard<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // what `body` had in its hands is dropped, or given up by all callers, after an error
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no message");
    Error::bad_input(format!("the file is malformed: its decoder gave up ({text})"))
}

/// An iterator of which an error, or a panic that became one, is the end.
pub(super) struct Guarded<I> {
    inner: Option<I>,
}

impl<I> Guarded<I> {
    pub(super) fn new(inner: I) -> Self {
        Self { inner: Some(inner) }
    }
}

impl<I: Iterator<Item = std::result::Result<RecordBatch, ArrowError>>> Iterator for Guarded<I> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let inner = self.inner.as_mut()?;
        let next = guard(|| inner.next().transpose().map_err(|error| malformed(&error))).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.inner = None;
        }
        next
    }
}

/// An error of an Arrow decoder.
pub(super) fn malformed(error: &ArrowError) -> Error {
    match error {
        ArrowError::IoError(message, source) => {
            Error::bad_input(format!("the file cannot be read or is cut off: {message} ({source})"))
        }
        error => Error::bad_input(format!("the file is malformed or damaged: {error}")),
    }
}
