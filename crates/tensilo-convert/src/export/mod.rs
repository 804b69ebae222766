//! Exports to formats of others.

mod batches;
mod megatron;
mod npy;
mod options;
mod safetensors;
mod target;
mod webdataset;

pub use megatron::export_megatron;
pub use options::TargetOptions;
pub use target::{TargetFormat, export_to};
