//! Chapters 5.3 to 5.5 and 5.10: the encodings that use Zstandard.
//!
//! `frame.rs` has frames and dictionaries, `blocks.rs` the encodings whose blocks are one frame,
//! and `planes.rs` the one with a frame for each plane. `absent.rs` takes the place of all in a
//! build without the feature `zstd`.

mod blocks;
mod frame;
mod planes;

pub(super) use blocks::{BitshuffleBlocks, ZstdBlocks};
pub(crate) use frame::{Dictionary, EncodingDictionary, train};
pub(super) use frame::{FrameEncodeScratch, FrameScratch};
#[cfg(test)]
pub(super) use frame::{MAGIC, stated_window};
pub(super) use planes::PlaneBlocks;
