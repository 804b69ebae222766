//! The options of an export.

use std::ops::ControlFlow;

/// The options of [`export`](super::export) and [`export_into`](super::export_into).
#[derive(Default)]
#[non_exhaustive]
pub struct ExportOptions<'a> {
    pub(super) columns: Option<Vec<String>>,
    pub(super) overwrite: bool,
    pub(super) progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> ExportOptions<'a> {
    /// Returns the defaults: all columns, no file replaced.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the columns that are exported, and their order. The default is all, in the order of the
    /// file.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether [`export`](super::export) replaces an existing file (default: no).
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets a function that is called after each batch with the number of samples written. If it
    /// breaks, the work ends with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}
