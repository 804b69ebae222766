//! The options of an export.

use std::ops::ControlFlow;

/// The options of [`export_to`](super::export_to).
#[derive(Default)]
#[non_exhaustive]
pub struct TargetOptions<'a> {
    pub(super) columns: Option<Vec<String>>,
    pub(super) progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> TargetOptions<'a> {
    /// Returns the defaults: all columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the columns that are exported, and their order. The default is all, in the order of the
    /// table.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets a function that is called after each batch with the number of samples written. If it
    /// breaks, the work ends with an error of kind [`Cancelled`](tensilo::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}
