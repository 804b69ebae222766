//! Chapter 3.1: the header.

use super::Flags;
use super::region::{FileId, RegionHead, RegionKind};
use crate::le::{array_at, put, u32_at};
use crate::{Error, Result};

const MAGIC_TAIL: [u8; 4] = [0x0D, 0x0A, 0x1A, 0x0A];

/// What the header says beside the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub file_id: FileId,
    pub flags: Flags,
    pub alignment: u32,
}

impl Header {
    /// The head of a header whose body is `schema_block`.
    pub(crate) fn head(&self, schema_block: &[u8]) -> Result<RegionHead> {
        let mut head = RegionHead::new(RegionKind::Header, self.file_id, 0, schema_block)?;
        head.slot4 = MAGIC_TAIL;
        head.slot32 = self.flags.to_slot();
        put::<0, 4, 8>(&mut head.slot48, self.alignment.to_le_bytes());
        Ok(head)
    }

    ///
    pub(crate) fn parse(head: &RegionHead) -> Result<Self> {
        head.expect(RegionKind::Header, head.file_id)?;
        let flags = Flags::from_slot(&head.slot32);
        flags.check()?;
        if head.slot4 != MAGIC_TAIL || array_at::<4, 4, 8>(&head.slot48) != [0; 4] {
            let message = "the header's magic tail or reserved bytes are wrong";
            return Err(Error::corrupt("R-3.1", message).with_offset(0));
        }
        let alignment = u32_at::<0, 8>(&head.slot48);
        if alignment != 64 && alignment != 4096 {
            let message = format!("alignment {alignment}; it is 64 or 4096");
            return Err(Error::corrupt("R-3.2", message).with_offset(0));
        }
        Ok(Self { file_id: head.file_id, flags, alignment })
    }
}

impl Flags {
    pub(crate) fn to_slot(self) -> [u8; 12] {
        let mut slot = [0; 12];
        put::<0, 4, 12>(&mut slot, self.incompat.to_le_bytes());
        put::<4, 4, 12>(&mut slot, self.ro_compat.to_le_bytes());
        put::<8, 4, 12>(&mut slot, self.compat.to_le_bytes());
        slot
    }

    pub(crate) fn from_slot(slot: &[u8; 12]) -> Self {
        Self { incompat: u32_at::<0, 12>(slot), ro_compat: u32_at::<4, 12>(slot), compat: u32_at::<8, 12>(slot) }
    }
}
