//! Encodings that use Zstandard (chapters 5.3 to 5.5 and 5.10).
//!
//! `frame.rs` has frames and Zstandard dictionaries, and `blocks.rs` has the encodings. In a build
//! without the feature `zstd`, `absent.rs` replaces both: it recognizes the encodings, but refuses
//! to use them. The start of a dictionary is checked in every build.

#[cfg(not(feature = "zstd"))]
mod absent;
#[cfg(feature = "zstd")]
mod blocks;
#[cfg(feature = "zstd")]
mod frame;

#[cfg(feature = "zstd")]
pub(super) use blocks::{BitshuffleBlocks, PlaneBlocks, ZstdBlocks};
#[cfg(feature = "zstd")]
pub(super) use frame::{FrameEncodeScratch, FrameScratch};
#[cfg(all(test, feature = "zstd"))]
pub(super) use frame::{MAGIC, stated_window};
#[cfg(feature = "zstd")]
pub(crate) use frame::{ZstdDictionary, ZstdEncoderDictionary, train};

#[cfg(not(feature = "zstd"))]
pub(super) use absent::{BitshuffleBlocks, PlaneBlocks, ZstdBlocks};
#[cfg(not(feature = "zstd"))]
pub(crate) use absent::{ZstdDictionary, ZstdEncoderDictionary, train};

use crate::{Error, Result};

/// The magic number of a dictionary (RFC 8878, 5).
const ZSTD_DICTIONARY_MAGIC: [u8; 4] = 0xEC30_A437_u32.to_le_bytes();
/// The size of the magic number and the id of a dictionary, in bytes.
const ZSTD_DICTIONARY_HEADER_BYTES: usize = 8;

/// Checks the part of that does not require Zstandard: the start of a dictionary.
fn check_zstd_dictionary(body: &[u8]) -> Result<()> {
    if body.starts_with(&ZSTD_DICTIONARY_MAGIC) && body.len() >= ZSTD_DICTIONARY_HEADER_BYTES {
        return Ok(());
    }
    Err(malformed_zstd_dictionary("it does not begin with the magic number and an id"))
}

fn malformed_zstd_dictionary(reason: &str) -> Error {
    Error::corrupt("R-5.13", format!("a table is not a valid Zstandard dictionary: {reason}"))
}
