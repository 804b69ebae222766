//! Formats of others, as inputs of [tensilo's conversions](tensilo::import) and as outputs of
//! exports.
//!
//! Each input format is a file or a folder that implements [`InputFormat`]; `export` has the
//! outputs. Formats of named tensors share `tensor` and `element`, and formats without an index
//! share `stream`.

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

/// Returns all formats of this crate, for
/// [`ConvertOptions::formats`](tensilo::import::ConvertOptions::formats).
pub fn input_formats(options: FormatOptions) -> Vec<Arc<dyn InputFormat>> {
    vec![
        Arc::new(npy::Npy),
        Arc::new(npy::Npz(options)),
        Arc::new(megatron::Megatron),
        // their first bytes are those of others only by a checksum of 32 bits
        Arc::new(tfrecord::TfRecord),
        Arc::new(safetensors::SafetensorsFormat(options)),
        Arc::new(webdataset::WebDataset),
        Arc::new(json_lines::JsonLines),
    ]
}
