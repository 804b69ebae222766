//! Chapter 3.1: the header.

use super::flags::Flags;
use super::region::{FileId, RegionHead, RegionKind, region_head};
use crate::le::structure;
use crate::{Error, Result};

structure! {
    /// Chapter 3.1: the fields that only the head of a header has.
    mod header_head: 64 bytes with region_head {
        4 => MAGIC_TAIL: [u8; 4],
        32 => INCOMPAT_FLAGS: u32,
        36 => RO_COMPAT_FLAGS: u32,
        40 => COMPAT_FLAGS: u32,
        48 => ALIGNMENT: u32,
        52 => RESERVED: u32,
    }
}

const MAGIC_TAIL: [u8; 4] = [0x0D, 0x0A, 0x1A, 0x0A];

/// The facts that the header states beside the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub file_id: FileId,
    pub flags: Flags,
    pub alignment: u32,
}

impl Header {
    /// Returns the head of a header whose body is `schema_block`.
    pub(crate) fn head(&self, schema_block: &[u8]) -> Result<RegionHead> {
        Ok(RegionHead::new(RegionKind::Header, self.file_id, 0, schema_block)?
            .with(header_head::MAGIC_TAIL, MAGIC_TAIL)
            .with(header_head::INCOMPAT_FLAGS, self.flags.incompat)
            .with(header_head::RO_COMPAT_FLAGS, self.flags.ro_compat)
            .with(header_head::COMPAT_FLAGS, self.flags.compat)
            .with(header_head::ALIGNMENT, self.alignment))
    }

    /// Parses the head of a header.
    pub(crate) fn parse(head: &RegionHead) -> Result<Self> {
        head.expect(RegionKind::Header, head.file_id)?;
        let flags = Flags {
            incompat: head.get(header_head::INCOMPAT_FLAGS),
            ro_compat: head.get(header_head::RO_COMPAT_FLAGS),
            compat: head.get(header_head::COMPAT_FLAGS),
        };
        flags.check()?;
        if head.get(header_head::MAGIC_TAIL) != MAGIC_TAIL || head.get(header_head::RESERVED) != 0 {
            let message = "the header's magic tail or reserved bytes are wrong";
            return Err(Error::corrupt("R-3.1", message).with_offset(0));
        }
        let alignment = head.get(header_head::ALIGNMENT);
        if alignment != 64 && alignment != 4096 {
            let message = format!("alignment {alignment}; it is 64 or 4096");
            return Err(Error::corrupt("R-3.2", message).with_offset(0));
        }
        Ok(Self { file_id: head.file_id, flags, alignment })
    }
}
