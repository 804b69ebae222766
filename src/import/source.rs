//! The interface of importers, and the border at which panics of decoders become errors.

#[cfg(feature = "arrow")]
use super::arrow::united::TypeOrigin;
use super::batch::InputBatch;
use super::input_column::InputColumn;
use crate::{Error, Metadata, Result};
#[cfg(feature = "arrow")]
use arrow_schema::{Fields, SchemaRef};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Batches, in the order of their samples. The first error is the last item.
pub(super) type BatchIter<'a> = Box<dyn Iterator<Item = Result<InputBatch>> + 'a>;

/// An input of one format. It can be read from its start as often as needed.
///
/// A conversion reads `columns`, decides what to write, and makes one or two passes over `batches`:
/// the first finds shapes, the second converts.
pub(super) trait BatchSource {
    /// Returns the columns, which do not change.
    fn columns(&self) -> &[InputColumn];

    /// Returns the metadata of the whole.
    fn metadata(&self) -> &Metadata;

    /// Returns the path of the file, for errors.
    fn path(&self) -> Option<&Path>;

    /// Returns the number of samples, if it is known before reading.
    fn row_count(&self) -> Option<u64>;

    /// Returns whether this is a tensilo file.
    fn is_native(&self) -> bool {
        false
    }

    /// Begins a pass over some columns, given by their positions in `columns`.
    ///
    /// A batch takes a bounded amount of memory: about 2 MiB, or one sample.
    fn batches(&self, columns: &[usize]) -> Result<BatchIter<'_>>;

    /// Begins a pass over the rows from number `first` on, and returns the number of the row that
    /// it begins with, at most `first`. Unless the format can skip rows, that is 0.
    fn batches_from(&self, columns: &[usize], first: u64) -> Result<(u64, BatchIter<'_>)> {
        let _ = first;
        Ok((0, self.batches(columns)?))
    }

    /// Begins a pass that looks only at extents and instants. Other values may be missing.
    fn outlines(&self, columns: &[usize]) -> Result<BatchIter<'_>> {
        self.batches(columns)
    }

    /// Returns whether a column may have nulls that its type allows: null structs, or null members
    /// of lists. `false` is what the file states, known without reading samples. If a pass finds
    /// that to be wrong, [`is_belied`](Self::is_belied) says so.
    fn may_have_nulls(&self, _column: usize) -> bool {
        true
    }

    /// Returns whether a pass has found nulls that the file denies.
    fn is_belied(&self) -> bool {
        false
    }

    /// Makes the source say of all columns that they may have nulls, whatever the file states.
    fn distrust(&self) {}

    /// Returns the number of parts (row groups) that can be read at the same time. They follow one
    /// another.
    fn part_count(&self) -> usize {
        1
    }

    /// Begins a pass over one part.
    fn part(&self, _part: usize, columns: &[usize]) -> Result<BatchIter<'_>> {
        self.batches(columns)
    }

    /// Returns the Arrow schema of the source, if it has one, and how its types are known.
    #[cfg(feature = "arrow")]
    fn own_schema(&self) -> Option<(&SchemaRef, TypeOrigin)> {
        None
    }

    /// Makes the columns those of other fields, which are [aligned](super::arrow::united::aligned)
    /// with the source's own.
    #[cfg(feature = "arrow")]
    fn adopt(&mut self, _fields: Fields) -> Result<()> {
        Ok(())
    }

    /// Refuses a source that was changed since it was opened: its batches may be of two versions.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// Refuses sources that were changed since they were opened.
pub(super) fn check_unchanged(sources: &[&dyn BatchSource]) -> Result<()> {
    sources.iter().try_for_each(|source| source.check_unchanged().map_err(|error| located(error, *source)))
}

/// Adds the source's path to an error that has none. If the source was changed, that is the error.
pub(super) fn located(error: Error, source: &dyn BatchSource) -> Error {
    let error = source.check_unchanged().err().unwrap_or(error);
    match source.path() {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// Runs code that may panic on malformed input. Returns a panic as an error.
pub(super) fn guard<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // the values that `body` used are dropped, or not used again by any caller, after an error
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no message");
    Error::bad_input(format!("the file is malformed: its decoder gave up ({text})"))
}
