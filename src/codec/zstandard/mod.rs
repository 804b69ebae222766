//! Chapters 5.3 to 5.5 and 5.10: the encodings that use Zstandard.

mod bitshuffle_zstd;
mod dictionary;
pub(super) mod frame;
mod planes_zstd;
#[cfg(test)]
mod tests;
mod zstd;

pub(super) use self::zstd::ZstdBlocks;
pub(super) use bitshuffle_zstd::BitshuffleBlocks;
pub(crate) use dictionary::{Dictionary, EncodingDictionary, train};
pub(super) use planes_zstd::PlaneBlocks;
