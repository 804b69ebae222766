//! The interface of importers, and the border at which panics of decoders become errors.
//!
//! A conversion makes one or two passes over a source. The first pass reads [outlines](Outline) of
//! the columns whose type does not tell all; the second pass reads [rows](ColumnRows). A pass
//! covers all rows, one part that another thread reads at the same time, or the rows from a number
//! on.

#[cfg(feature = "arrow")]
use super::arrow::unified::TypeOrigin;
use super::plan::input_column::{ColumnRequest, InputColumn};
use super::rows::{Batch, ColumnRows, Outline};
use crate::{Error, Metadata, Result};
#[cfg(feature = "arrow")]
use arrow_schema::{Fields, SchemaRef};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Batches, in the order of their rows. The first error is the last item.
pub(super) type Batches<'a, T> = Box<dyn Iterator<Item = Result<Batch<T>>> + 'a>;

/// The content of a file. Threads share it.
pub(super) type SharedSource = Arc<dyn RowSource + Send + Sync>;

/// The rows of a pass.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet files have parts, and skip rows"))]
pub(super) enum PassRows {
    All,
    /// Those of one part. Parts follow one another.
    RowGroup(usize),
    /// Those from this number on, if the source [can skip rows](RowSource::can_skip_rows).
    From(u64),
}

/// An input of one format. It can be read from its start as often as needed.
pub(super) trait RowSource {
    /// Returns the columns, which do not change.
    fn columns(&self) -> &[InputColumn];

    /// Returns the metadata of the whole.
    fn metadata(&self) -> &Metadata;

    /// Returns the path of the file, for errors.
    fn path(&self) -> Option<&Path>;

    /// Returns the number of rows, if it is known before reading.
    fn row_count(&self) -> Option<u64>;

    /// Returns whether this is a tensilo file.
    fn is_tensilo(&self) -> bool {
        false
    }

    /// Begins a pass over some columns. A batch takes about 2 MiB, or has one row.
    fn batches(&self, columns: &[ColumnRequest], rows: PassRows) -> Result<Batches<'_, ColumnRows>>;

    /// Begins a pass that looks at columns, given by their positions: at offsets and validity, and
    /// at timestamps without a unit. A source whose types tell all has nothing to look at.
    fn outlines(&self, columns: &[usize], rows: PassRows) -> Result<Batches<'_, Outline>> {
        let _ = (columns, rows);
        Ok(Box::new(std::iter::empty()))
    }

    /// Returns the number of parts (row groups) that can be read at the same time.
    fn row_group_count(&self) -> usize {
        1
    }

    /// Returns whether a pass can begin with any row. Otherwise it begins with the first.
    fn can_skip_rows(&self) -> bool {
        false
    }

    /// Returns whether a column may have nulls that its type allows: null structs, or null members
    /// of lists. `false` is what the file states, known without reading rows. If a pass finds that
    /// to be wrong, [`contradicts_statistics`](Self::is_belied) says so.
    fn may_have_nulls(&self, _column: usize) -> bool {
        true
    }

    /// Returns whether a pass has found nulls that the file denies.
    fn contradicts_statistics(&self) -> bool {
        false
    }

    /// Makes the source say of all columns that they may have nulls, whatever the file states.
    fn ignore_statistics(&self) {}

    /// Returns the Arrow schema of the source, if it has one, and how its types are known.
    #[cfg(feature = "arrow")]
    fn own_schema(&self) -> Option<(&SchemaRef, TypeOrigin)> {
        None
    }

    /// Makes the columns those of other fields, which are [aligned](super::arrow::unified::aligned)
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
pub(super) fn check_unchanged(sources: &[&dyn RowSource]) -> Result<()> {
    sources.iter().try_for_each(|source| source.check_unchanged().map_err(|error| with_source_path(error, *source)))
}

/// Adds the source's path to an error that has none. If the source was changed, that is the error.
pub(super) fn with_source_path(error: Error, source: &dyn RowSource) -> Error {
    let error = source.check_unchanged().err().unwrap_or(error);
    match source.path() {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// Returns the number of rows of all sources, if each knows it.
pub(super) fn total_rows(sources: &[&dyn RowSource]) -> Option<u64> {
    sources.iter().try_fold(0_u64, |total, source| total.checked_add(source.row_count()?))
}

/// Runs code that may panic on malformed input. Returns a panic as an error.
pub(super) fn catch_panic<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // the values that `body` used are dropped, or not used again by any caller, after an error
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panic_error(&*panic)))
}

fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no message");
    Error::bad_input(format!("the file is malformed: its decoder gave up ({text})"))
}
