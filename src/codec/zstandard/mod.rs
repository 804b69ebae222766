//! Chapters 5.3 to 5.5 and 5.10: the encodings that use Zstandard.
//!
//! `frame.rs` has frames and dictionaries, `blocks.rs` the encodings. `absent.rs` takes the place
//! of both in a build without the feature `zstd`. How a dictionary begins is checked in any build.

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

/// The bytes that a dictionary begins with (RFC 8878, 5).
const ZSTD_DICTIONARY_MAGIC: [u8; 4] = 0xEC30_A437_u32.to_le_bytes();
/// The bytes of magic number and id.
const ZSTD_DICTIONARY_HEADER_BYTES: usize = 8;

/// Checks how the body of a table that is a dictionary begins, as far as it can be checked without
/// Zstandard.
fn check_zstd_dictionary(body: &[u8]) -> Result<()> {
    if body.starts_with(&ZSTD_DICTIONARY_MAGIC) && body.len() >= ZSTD_DICTIONARY_HEADER_BYTES {
        return Ok(());
    }
    Err(malformed_zstd_dictionary("it does not begin with the magic number and an id"))
}

fn malformed_zstd_dictionary(reason: &str) -> Error {
    Error::corrupt("R-5.13", format!("a table is not a valid Zstandard dictionary: {reason}"))
}
