//! Chapters 5.3 to 5.5, 5.10 and 5.11: the encodings that use Zstandard.

mod bitshuffle_zstd;
mod blocks;
mod dictionary;
pub(super) mod frame;
mod planes_zstd;
#[cfg(test)]
mod tests;
mod zstd;
mod zstd_dictionary;

pub(super) use self::zstd::Zstd;
pub(super) use bitshuffle_zstd::BitshuffleZstd;
pub(super) use blocks::{BitshuffleBlocks, ZstdBlocks};
pub(crate) use dictionary::{Dictionary, EncodingDictionary, train};
pub(super) use planes_zstd::PlanesZstd;
pub(super) use zstd_dictionary::ZstdDictionary;
