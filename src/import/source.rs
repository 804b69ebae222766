//! The interface between importers and conversions.
//!
//! A conversion makes one or two passes over a [`RowSource`]. The first pass reads
//! [outlines](Outline) of the columns whose types do not describe them completely. The second pass
//! reads [rows](ColumnRows). A pass covers all rows, all rows from an index on, or a single row
//! group; several threads can each read a row group. A source must therefore support repeated
//! passes, and concurrent passes over its row groups.
//!
//! Decoders of other crates can panic on malformed files. [`catch_panic`] turns these panics into
//! errors. No other function catches panics.

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

/// Batches, in row order. If an error occurs, it is the last item.
pub(super) type Batches<'a, T> = Box<dyn Iterator<Item = Result<Batch<T>>> + 'a>;

/// The content of a file, shared by threads.
pub(super) type SharedSource = Arc<dyn RowSource + Send + Sync>;

/// The rows of a pass.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(any(feature = "parquet", test)),
    expect(dead_code, reason = "only Parquet files have row groups and can skip rows")
)]
pub(super) enum PassRows {
    All,
    /// The rows of one row group. Row groups are consecutive.
    RowGroup(usize),
    /// All rows starting at this index, if the source [can skip rows](RowSource::can_skip_rows).
    From(u64),
}

/// An input of one format. It can be read repeatedly, each time from the start.
pub(super) trait RowSource {
    /// Returns the columns, which do not change.
    fn columns(&self) -> &[InputColumn];

    /// Returns the metadata of the whole file.
    fn metadata(&self) -> &Metadata;

    /// Returns the path of the file, for error messages.
    fn path(&self) -> Option<&Path>;

    /// Returns the number of rows, if it is known before reading.
    fn row_count(&self) -> Option<u64>;

    /// Returns whether this is a tensilo file.
    fn is_tensilo(&self) -> bool {
        false
    }

    /// Starts a pass over some columns. A batch takes about 2 MiB, or has a single larger row.
    fn batches(&self, columns: &[ColumnRequest], rows: PassRows) -> Result<Batches<'_, ColumnRows>>;

    /// Starts a pass over the outlines of columns: their offsets, their validity, and timestamps
    /// without a unit. `columns` has the positions of the columns. A source whose types describe
    /// its columns completely yields no batches.
    fn outlines(&self, columns: &[usize], rows: PassRows) -> Result<Batches<'_, Outline>> {
        let _ = (columns, rows);
        Ok(Box::new(std::iter::empty()))
    }

    /// Returns the number of row groups that can be read concurrently.
    fn row_group_count(&self) -> usize {
        1
    }

    /// Returns whether a pass can start at any row. Otherwise, each pass starts at the first row.
    fn can_skip_rows(&self) -> bool {
        false
    }

    /// Returns whether a column may have nulls that its type allows: null structs, or null members
    /// of lists. `false` means that the file claims to have none; the rows are not read to check
    /// this. If a pass finds such nulls, [`contradicts_statistics`](Self::contradicts_statistics)
    /// returns `true`.
    fn may_have_nulls(&self, _column: usize) -> bool {
        true
    }

    /// Returns whether a pass has found nulls in a column that has none according to the statistics
    /// of the file.
    fn contradicts_statistics(&self) -> bool {
        false
    }

    /// Makes [`may_have_nulls`](Self::may_have_nulls) return `true` for all columns, whatever the
    /// file states.
    fn ignore_statistics(&self) {}

    /// Returns the Arrow schema of the source, if it has one, and how its types were determined.
    #[cfg(feature = "arrow")]
    fn own_schema(&self) -> Option<(&SchemaRef, TypeOrigin)> {
        None
    }

    /// Replaces the fields, and derives the columns from the new ones, which are
    /// [aligned](super::arrow::unified::aligned) with the fields of the source.
    #[cfg(feature = "arrow")]
    fn adopt(&mut self, _fields: Fields) -> Result<()> {
        Ok(())
    }

    /// Refuses a source that changed since it was opened, because its batches can mix two versions.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// Refuses sources that changed since they were opened.
pub(super) fn check_unchanged(sources: &[&dyn RowSource]) -> Result<()> {
    sources.iter().try_for_each(|source| source.check_unchanged().map_err(|error| with_source_path(error, *source)))
}

/// Adds the path of the source to an error that has none. If the source has changed since it was
/// opened, the result is an error about the change instead.
pub(super) fn with_source_path(error: Error, source: &dyn RowSource) -> Error {
    let error = source.check_unchanged().err().unwrap_or(error);
    match source.path() {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// Returns the total number of rows, if every source knows its own.
pub(super) fn total_rows(sources: &[&dyn RowSource]) -> Option<u64> {
    sources.iter().try_fold(0_u64, |total, source| total.checked_add(source.row_count()?))
}

/// Runs code that can panic on malformed input, and returns a panic as an error.
pub(super) fn catch_panic<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // unwind safe: after an error, callers no longer use the values that `body` used
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panic_error(&*panic)))
}

fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no message");
    Error::bad_input(format!("malformed file: its decoder panicked ({text})"))
}
