//! Batches that a GPU decodes.
//!
//! Plans and fetches are the same as without a GPU. In place of decoding, the blocks of a batch are
//! checked and collected ([`collect`]) into a list that the GPU decodes ([`blocks`]). A batch is
//! launched ([`batch`]) to memory of the caller, by the caller or ahead of time ([`iterator`]).
//! Samples that stay on the GPU as they are stored are sent once ([`resident`]).

mod batch;
pub(super) mod blocks;
pub(super) mod collect;
mod iterator;
pub(super) mod resident;

pub use batch::DeviceBatch;
pub use iterator::DeviceIterator;
pub use resident::{ResidentColumn, ResidentSamples};
