//! The facts that decoding a part needs: its lengths, and the tables of its column.

use super::zstandard::Dictionary;
use crate::kernel::Width;
use crate::{Error, Result};
use std::sync::Arc;

/// The facts about a part that a decoder is given.
#[derive(Clone, Copy)]
pub(crate) struct PartSpec<'a> {
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Decoded length.
    pub raw_bytes: usize,
    /// The table that [`Codec::table`](super::encoding::Codec::table) names.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "the encoding that needs it is absent"))]
    pub dictionary: Option<&'a Dictionary>,
}

impl<'a> PartSpec<'a> {
    /// Returns the facts about a part that needs no table.
    pub(crate) fn new(element_bytes: usize, raw_bytes: usize) -> Self {
        Self { element_bytes, raw_bytes, dictionary: None }
    }

    /// Sets the table.
    pub(super) fn with(self, dictionary: Option<&'a Dictionary>) -> Self {
        Self { dictionary, ..self }
    }

    /// Returns width and number of the elements. Fails if their number is not whole, or if
    /// no kernel has their width.
    pub(super) fn width_and_count(self) -> Result<(Width, usize)> {
        if let Some(width) = Width::from_bytes(self.element_bytes)
            && self.raw_bytes.is_multiple_of(width.bytes())
        {
            return Ok((width, self.raw_bytes / width.bytes()));
        }
        Err(Error::corrupt("R-4.5", format!("{} bytes of elements of {}", self.raw_bytes, self.element_bytes)))
    }
}

/// The tables of one column (4.5). All of them are dictionaries.
pub(crate) trait Tables {
    /// Returns a table by its number. Reads it, unless that was done before.
    fn dictionary(&self, table: u32) -> Result<Arc<Dictionary>>;
}
