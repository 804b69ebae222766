//! One column of an open file, as every handle to it keeps it.

use super::column_index::ColumnIndex;
use super::opened_file::OpenedFile;
use crate::format::ColumnSchema;
use crate::format::schema::Layout;
use crate::{Error, Result};
use std::sync::Arc;

/// A column of an open file. A clone is one more reference to the file.
#[derive(Clone)]
pub(in crate::read) struct OpenedColumn {
    pub file: Arc<OpenedFile>,
    /// Below the number of columns.
    number: usize,
}

impl OpenedColumn {
    pub(in crate::read) fn new(file: &Arc<OpenedFile>, number: usize) -> Option<Self> {
        let is_column = number < file.schema.columns.len() && number < file.columns.len();
        is_column.then(|| Self { file: file.clone(), number })
    }

    /// Returns the number of the column, counted from 0.
    pub(in crate::read) fn number(&self) -> usize {
        self.number
    }

    #[inline]
    pub(in crate::read) fn schema(&self) -> &ColumnSchema {
        &self.file.schema.columns[self.number] // inside: `new` checked it, and neither changes
    }

    #[inline]
    pub(in crate::read) fn index(&self) -> &ColumnIndex {
        &self.file.columns[self.number] // inside: `new` checked it, and neither changes
    }

    #[inline]
    pub(in crate::read) fn layout(&self) -> &Layout {
        &self.index().layout
    }

    #[inline]
    pub(in crate::read) fn check_sample(&self, i: u64) -> Result<()> {
        let count = self.file.sample_count;
        if i < count {
            return Ok(());
        }
        Err(Error::bad_argument(format!("the file has {count} samples, numbered from 0")))
    }

    /// Adds the file and the column to an error.
    pub(in crate::read) fn in_column(&self, error: Error) -> Error {
        self.file.in_file(error.with_column(&self.schema().name))
    }

    /// Adds the file, the column and the sample to an error.
    pub(in crate::read) fn at_sample(&self, error: Error, i: u64) -> Error {
        self.in_column(error.with_samples(i..i.saturating_add(1)))
    }
}
