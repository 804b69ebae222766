//! Other file formats, as inputs of [tensilo's conversions](tensilo::import) and as outputs of
//! exports.
//!
//! Each input format is a module that implements [`InputFormat`]: it recognizes its files by their
//! first bytes or names, and returns their rows as Arrow record batches. The module `export`
//! contains the output formats. Formats of named tensors share the modules `tensor` and `element`,
//! and formats without an index share `stream`.
//!
//! Inputs are not trusted. A malformed file results in an error that states the position, and
//! memory is allocated only for bytes that are present, never for a length that a file claims. No
//! value changes silently: values that a column or an output format cannot hold are refused.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod element;
mod export;
mod json_lines;
mod megatron;
mod npy;
mod safetensors;
mod stream;
mod tensor;
mod tfrecord;
mod webdataset;

pub use export::{TargetFormat, TargetOptions, export_megatron, export_to, npy_header};
pub use tensor::FormatOptions;

use std::sync::Arc;
use tensilo::import::InputFormat;

/// Returns all input formats of this crate, for
/// [`ConvertOptions::formats`](tensilo::import::ConvertOptions::formats).
pub fn input_formats(options: FormatOptions) -> Vec<Arc<dyn InputFormat>> {
    vec![
        Arc::new(npy::Npy),
        Arc::new(npy::Npz(options)),
        Arc::new(megatron::Megatron),
        // tested early: its first bytes contain a 32-bit checksum, so other files match only by
        // chance
        Arc::new(tfrecord::TfRecord),
        Arc::new(safetensors::SafetensorsFormat(options)),
        Arc::new(webdataset::WebDataset),
        Arc::new(json_lines::JsonLines),
    ]
}
