//! What codecs are given about a part, and what they tell of it.
//!
//! [`PartSpec`] has the lengths and the table that decoding needs, [`Body`] the bytes of a chunk,
//! or those that were read of them, and [`Anatomy`] describes stored bytes for people.

use super::zstandard::Dictionary;
use crate::kernel::Width;
use crate::le::u64_of;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The facts about a part that a decoder is given.
#[derive(Clone, Copy)]
pub(crate) struct PartSpec<'a> {
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Decoded length.
    pub raw_bytes: usize,
    /// The table that [`Encoding::table`](super::blocked::Encoding::table) names.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "the encoding that needs it is absent"))]
    pub dictionary: Option<&'a Dictionary>,
}

impl<'a> PartSpec<'a> {
    /// Returns the facts about a part that needs no table.
    pub(crate) fn new(element_bytes: usize, raw_bytes: usize) -> Self {
        Self { element_bytes, raw_bytes, dictionary: None }
    }

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

/// The body of a chunk; of one in blocks, perhaps only its front and some blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Body<'a> {
    /// The body up to any length.
    start: &'a [u8],
    /// Bytes from somewhere else in it.
    piece: &'a [u8],
    /// Their offset.
    piece_at: usize,
    is_mapped: bool,
}

impl<'a> Body<'a> {
    /// Returns a body that was read whole.
    pub(crate) fn whole(body: &'a [u8]) -> Self {
        Self { start: body, piece: &[], piece_at: 0, is_mapped: false }
    }

    /// Returns a body in a file that is mapped, or in memory otherwise.
    pub(crate) fn mapped(body: &'a [u8]) -> Self {
        Self { is_mapped: true, ..Self::whole(body) }
    }

    /// Returns a body of which the start was read, and a piece that is at byte `piece_at`.
    pub(crate) fn pieces(start: &'a [u8], piece_at: usize, piece: &'a [u8]) -> Self {
        Self { start, piece, piece_at, is_mapped: false }
    }

    /// Returns whether the bytes are perhaps in no cache of the processor: they were not just read.
    pub(crate) fn is_mapped(self) -> bool {
        self.is_mapped
    }

    /// Returns the start of the body; all of one that was read whole.
    pub(crate) fn start(self) -> &'a [u8] {
        self.start
    }

    /// Returns some bytes, if they were read.
    #[inline]
    pub(crate) fn get(self, range: Range<usize>) -> Option<&'a [u8]> {
        match self.start.get(range.clone()) {
            Some(bytes) => Some(bytes),
            None => {
                let start = range.start.checked_sub(self.piece_at)?;
                self.piece.get(start..range.end.checked_sub(self.piece_at)?)
            }
        }
    }
}

/// A section of the stored values of a chunk, such as a tier or a bit plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// The name, such as `tier 1` or `bit plane 7`.
    pub name: String,
    /// The content in words, such as `16384 codes of 2 bits`. May be empty.
    pub detail: String,
    /// The length in bytes.
    pub stored_bytes: u64,
}

/// The sections of the stored bytes of a part.
#[derive(Debug, Default)]
pub(crate) struct Anatomy {
    /// The transform of the elements, in words; `None` in encodings without transforms.
    pub transform: Option<String>,
    /// In the order of the file. Their lengths add up to the stored bytes. Empty ones are left out.
    pub sections: Vec<Section>,
}

impl Anatomy {
    /// Adds the next section, unless it is empty.
    pub(super) fn add(&mut self, name: impl Into<String>, detail: impl Into<String>, stored: &[u8]) {
        if !stored.is_empty() {
            let stored_bytes = u64_of(stored.len());
            self.sections.push(Section { name: name.into(), detail: detail.into(), stored_bytes });
        }
    }

    /// Adds the sections of a block to those of the blocks before it, by name.
    pub(super) fn add_block(&mut self, block: Anatomy) {
        for section in block.sections {
            match self.sections.iter_mut().find(|found| found.name == section.name) {
                Some(found) => {
                    found.stored_bytes = found.stored_bytes.saturating_add(section.stored_bytes);
                    if found.detail != section.detail {
                        found.detail = without_number(&found.detail).to_owned();
                    }
                }
                None => self.sections.push(section),
            }
        }
    }
}

/// Returns a detail without the number that it begins with, which differs from block to block.
fn without_number(detail: &str) -> &str {
    detail.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start()
}
