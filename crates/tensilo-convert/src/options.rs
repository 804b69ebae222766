//! The options of formats.

/// The options of [`input_formats`](crate::input_formats).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FormatOptions {
    pub(crate) file_is_sample: bool,
}

impl FormatOptions {
    /// Advice about tensors whose first axes differ.
    pub(crate) const SAMPLE_ADVICE: &'static str =
        "; a file of named tensors can also be one sample (`FormatOptions::file_is_sample`, --file-is-sample)";

    /// Returns the defaults: the first axis of tensors counts samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether a file of named tensors (`.npz`, `.safetensors`) is one sample, with a column
    /// for each tensor (default: no, the first axis counts samples).
    pub fn file_is_sample(mut self, file_is_sample: bool) -> Self {
        self.file_is_sample = file_is_sample;
        self
    }
}
