//! Errors of mappings, and the field that all of them have.

use crate::kernel::Width;
use crate::{Error, Result};

#[cold]
pub(in crate::codec::bins) fn cut() -> Error {
    Error::corrupt("R-5.18", "the tables of bins: they do not end where table_bytes says")
}

#[cold]
pub(super) fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.20", format!("the mapping of bins: {what}"))
}

#[cold]
pub(super) fn malformed_block(what: &str) -> Error {
    Error::corrupt("R-5.21", format!("a block of bins with a mapping: {what}"))
}

/// Returns the mapping's field of the bytes of a number.
pub(super) fn number_width(bytes: u8, most: usize) -> Result<Width> {
    let width = Width::from_bytes(bytes.into()).filter(|width| width.bytes() <= most);
    width.ok_or_else(|| malformed(&format!("numbers of {bytes} bytes")))
}
