//! The tables of a column of an open file, for the chunks that need them.

use super::opened_column::OpenedColumn;
use crate::codec::{Dictionary, Tables};
use crate::open::no_table;
use crate::{ErrorKind, Result};
use std::sync::Arc;

impl Tables for OpenedColumn {
    fn dictionary(&self, table: u32) -> Result<Arc<Dictionary>> {
        let slot = self.index().tables.iter().find(|slot| slot.entry.table == table);
        slot.ok_or_else(|| no_table(table))?.dictionary(&*self.file.source, self.file.file_id)
    }
}

impl OpenedColumn {
    /// Returns the bodies of the tables 0, 1, 2, ... of the column, or `None` if one of them is
    /// lost or damaged.
    pub(super) fn table_bodies(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let mut bodies = Vec::new();
        for (number, slot) in (0..).zip(&self.index().tables) {
            match slot.body(&*self.file.source, self.file.file_id) {
                Ok(body) if slot.entry.table == number => bodies.push(body),
                Err(error) if error.kind() != ErrorKind::Corrupt => return Err(self.in_column(error)),
                _ => return Ok(None),
            }
        }
        Ok(Some(bodies))
    }

    /// Reads the tables of the column, so that decoding does no I/O. The chunks that need one
    /// report that it is damaged, or is no dictionary.
    pub(super) fn load_tables(&self) -> Result<()> {
        for slot in &self.index().tables {
            match slot.dictionary(&*self.file.source, self.file.file_id) {
                Err(error) if error.kind() == ErrorKind::Io => return Err(self.in_column(error)),
                _ => {}
            }
        }
        Ok(())
    }
}
