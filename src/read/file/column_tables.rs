//! The tables of a column of an open file, for the chunks that need them.

use super::opened_column::OpenedColumn;
use crate::codec::{Dictionary, Tables, encoding};
use crate::open::no_table;
use crate::{ErrorKind, Result};
use std::sync::Arc;

impl Tables for OpenedColumn {
    fn dictionary(&self, table: u32) -> Result<Arc<Dictionary>> {
        let tables = &self.index().tables;
        let found = tables.binary_search_by_key(&table, |slot| slot.entry.table).ok();
        let slot = found.and_then(|at| tables.get(at)).ok_or_else(|| no_table(table))?;
        slot.dictionary(&*self.file.source, self.file.file_id)
    }
}

impl OpenedColumn {
    /// Returns the bodies of the tables 0, 1, 2, ... of the column, or `None` if one of them is
    /// lost or damaged.
    pub(in crate::read) fn table_bodies(&self) -> Result<Option<Vec<Vec<u8>>>> {
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

    /// Reads the first tables of a column whose chunks need some, so that decoding does no I/O.
    /// Chunks report what is wrong with the table that they need.
    pub(in crate::read) fn load_tables(&self) {
        let index = self.index();
        if index.facts.encodings.iter().any(|&(id, _)| encoding(id).is_ok_and(|encoding| encoding.needs_table())) {
            for slot in index.tables.iter().take(LOADED_TABLES) {
                let _ = slot.dictionary(&*self.file.source, self.file.file_id);
            }
        }
    }
}

/// The most tables of a column that are read before a chunk needs them. Writers make one, and
/// another only if that is damaged.
const LOADED_TABLES: usize = 16;
