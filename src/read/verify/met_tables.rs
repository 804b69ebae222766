//! The tables that the walk has met, for the chunks after them.

use crate::Result;
use crate::codec::{Dictionary, Tables};
use crate::format::FileId;
use crate::format::region::{RegionHead, RegionKind};
use crate::format::table::TableHead;
use crate::open::Source;
use crate::open::{TableSlot, no_table};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tables of a file by column and number.
pub(super) struct MetTables<'a> {
    source: &'a dyn Source,
    file_id: FileId,
    tables: Mutex<BTreeMap<(u32, u32), Arc<TableSlot>>>,
}

impl<'a> MetTables<'a> {
    pub(super) fn new(source: &'a dyn Source, file_id: FileId) -> Self {
        Self { source, file_id, tables: Mutex::default() }
    }

    /// Adds a region if it is a table whose number is new.
    pub(super) fn meet(&self, head: &RegionHead) {
        if head.kind == RegionKind::Table {
            let table = TableHead::unchecked(head);
            let slot = || Arc::new(TableSlot::new(table.entry(head)));
            self.lock().entry((table.column, table.table)).or_insert_with(slot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(u32, u32), Arc<TableSlot>>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tables of a column that are before a chunk.
pub(super) struct TablesBefore<'t, 'a> {
    pub met: &'t MetTables<'a>,
    pub column: u32,
    /// The offset of the chunk.
    pub offset: u64,
}

impl Tables for TablesBefore<'_, '_> {
    fn dictionary(&self, table: u32) -> Result<Arc<Dictionary>> {
        let slot = self.met.lock().get(&(self.column, table)).cloned();
        let slot = slot.filter(|slot| slot.entry.offset < self.offset).ok_or_else(|| no_table(table))?;
        slot.dictionary(self.met.source, self.met.file_id)
    }
}
