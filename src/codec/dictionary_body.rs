//! Chapter 5.5: the body of a table that is a dictionary, as far as it can be checked without
//! Zstandard.

use crate::{Error, Result};

/// The bytes that a dictionary begins with (RFC 8878, 5).
const MAGIC: [u8; 4] = 0xEC30_A437_u32.to_le_bytes();
/// The bytes of magic number and id.
const HEAD_BYTES: usize = 8;

/// Checks how the body of a table begins.
pub(super) fn check(body: &[u8]) -> Result<()> {
    if body.starts_with(&MAGIC) && body.len() >= HEAD_BYTES {
        return Ok(());
    }
    Err(no_dictionary("it does not begin with the magic number and an id"))
}

pub(super) fn no_dictionary(reason: &str) -> Error {
    Error::corrupt("R-5.13", format!("a table is no dictionary: {reason}"))
}
