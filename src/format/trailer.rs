//! Chapter 7.2: the trailer.

use super::region::{FileId, RegionHead, RegionKind, region_head};
use crate::le::structure;
use crate::{Error, Result};

structure! {
    /// Chapter 7.2: the fields that only the head of a trailer has.
    mod trailer_head: 64 bytes with region_head {
        4 => TRAILER_FLAGS: u32,
        32 => FOOTER_OFFSET: u64,
        40 => RESERVED: u32,
        48 => PREVIOUS_TRAILER: u64,
    }
}

/// The bit of `trailer_flags` that a writer sets with its last commit.
const FINISHED: u32 = 1;

/// The facts that a trailer states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub finished: bool,
    pub footer_offset: u64,
    pub previous_trailer: u64,
}

impl Trailer {
    /// Returns the head of the trailer that begins at `offset`.
    pub(crate) fn head(self, file_id: FileId, offset: u64) -> Result<RegionHead> {
        Ok(RegionHead::new(RegionKind::Trailer, file_id, offset, &[])?
            .with(trailer_head::TRAILER_FLAGS, if self.finished { FINISHED } else { 0 })
            .with(trailer_head::FOOTER_OFFSET, self.footer_offset)
            .with(trailer_head::PREVIOUS_TRAILER, self.previous_trailer))
    }

    /// Parses a region that is a trailer, except for the offsets that it states.
    pub(crate) fn parse(head: &RegionHead) -> Result<Self> {
        let flags = head.get(trailer_head::TRAILER_FLAGS);
        if flags & !FINISHED != 0 || head.get(trailer_head::RESERVED) != 0 || head.body_crc != 0 {
            return Err(Error::corrupt("R-7.7", "reserved bits of the trailer are set").with_offset(head.offset));
        }
        Ok(Self {
            finished: flags & FINISHED != 0,
            footer_offset: head.get(trailer_head::FOOTER_OFFSET),
            previous_trailer: head.get(trailer_head::PREVIOUS_TRAILER),
        })
    }
}
