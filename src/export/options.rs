//! The options of an export.

use std::ops::ControlFlow;

/// How tensors are exported whose shape is fixed, or has more than one dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorForm {
    /// As the source of the file had them, if that was Arrow or Parquet, otherwise as extension
    /// types.
    #[default]
    AsImported,
    /// As the extension types `arrow.fixed_shape_tensor` and `arrow.variable_shape_tensor`.
    Extension,
    /// As lists in lists, one level for each dimension.
    Lists,
}

/// The options of [`export`](super::export) and [`export_into`](super::export_into).
#[derive(Default)]
#[non_exhaustive]
pub struct ExportOptions<'a> {
    pub(super) columns: Option<Vec<String>>,
    pub(super) overwrite: bool,
    pub(super) tensors: TensorForm,
    pub(super) stored_types: bool,
    pub(super) progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> ExportOptions<'a> {
    /// Returns the defaults: all columns, no file replaced.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the columns that are exported, and their order. The default is all, in the order of the
    /// file. The name of a struct stands for all its fields. If all fields of a struct are named,
    /// they have the order of the source. A field of a struct brings the nulls of the struct with
    /// it.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether [`export`](super::export) replaces an existing file (default: no).
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets how tensors are exported.
    pub fn tensors(mut self, form: TensorForm) -> Self {
        self.tensors = form;
        self
    }

    /// Sets whether the Arrow types of the source are left aside (default: no). The types are then
    /// those that [the module](super) lists, also those of rounded columns.
    pub fn stored_types(mut self, stored_types: bool) -> Self {
        self.stored_types = stored_types;
        self
    }

    /// Sets a function that is called after each batch with the number of samples written. If it
    /// breaks, the work ends with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}
