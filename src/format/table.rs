//! Chapter 4.5: tables.

use super::footer::TableEntry;
use super::region::{FileId, RegionHead, RegionKind, region_head};
use crate::le::structure;
use crate::{Error, Result};

structure! {
    /// Chapter 4.5: the fields that only the head of a table has.
    mod table_head: 64 bytes with region_head {
        4 => COLUMN: u32,
        32 => TABLE: u32,
        36 => RESERVED: u64,
        48 => ALSO_RESERVED: u64,
    }
}

/// The head of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableHead {
    pub column: u32,
    pub table: u32,
}

impl TableHead {
    /// Returns the head of a table at `offset` with this body, and its entry in the footer.
    pub(crate) fn seal(self, file_id: FileId, offset: u64, body: &[u8]) -> Result<(RegionHead, TableEntry)> {
        let head = RegionHead::new(RegionKind::Table, file_id, offset, body)?
            .with(table_head::COLUMN, self.column)
            .with(table_head::TABLE, self.table);
        let entry = self.entry(&head);
        Ok((head, entry))
    }

    /// Returns the entry that the footer has of the table with this head.
    pub(crate) fn entry(self, head: &RegionHead) -> TableEntry {
        TableEntry {
            column: self.column,
            table: self.table,
            offset: head.offset,
            body_bytes: head.body_bytes,
            body_crc: head.body_crc,
        }
    }

    /// Reads the fields of a region that is a table, unchecked.
    pub(crate) fn unchecked(head: &RegionHead) -> Self {
        Self { column: head.get(table_head::COLUMN), table: head.get(table_head::TABLE) }
    }

    /// Parses the head of a region that is a table: of its reserved fields.
    pub(crate) fn parse(head: &RegionHead) -> Result<Self> {
        if head.get(table_head::RESERVED) | head.get(table_head::ALSO_RESERVED) != 0 {
            let message = "reserved bytes of a table's head are set";
            return Err(Error::corrupt("R-4.11", message).with_offset(head.offset));
        }
        Ok(Self::unchecked(head))
    }
}
