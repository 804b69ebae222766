//! Batches that a GPU decodes.
//!
//! The first two stages are the same as without a GPU. Instead of decoding, the loader checks the
//! stored blocks of a batch and collects them ([`collect`]) into a list in pinned memory
//! ([`blocks`]), because stored blocks are usually smaller than decoded values. The GPU copies the
//! list and decodes it into the caller's memory, either when the caller launches the [`batch`], or
//! ahead of time in the [`iterator`]. Samples that stay on the GPU in stored form are sent once
//! ([`resident`]).

mod batch;
pub(super) mod blocks;
pub(super) mod collect;
mod iterator;
pub(super) mod resident;

pub use batch::DeviceBatch;
pub use iterator::DeviceIterator;
pub use resident::{ResidentColumn, ResidentSamples};
