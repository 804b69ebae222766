//! A table of a file (chapter 4.5), which is read when a chunk first needs it.

use super::body;
use super::source::{Source, fetch_array};
use crate::codec::Dictionary;
use crate::format::footer::TableEntry;
use crate::format::region::{FileId, RegionHead, RegionKind};
use crate::format::table::TableHead;
use crate::{Error, Result, limits};
use std::sync::{Arc, OnceLock};

/// A table, as the footer or a walk over the file states it.
pub(crate) struct TableSlot {
    pub(crate) entry: TableEntry,
    /// The table, once it has been read and checked.
    loaded: OnceLock<Arc<Dictionary>>,
}

impl TableSlot {
    pub(crate) fn new(entry: TableEntry) -> Self {
        Self { entry, loaded: OnceLock::new() }
    }

    /// Takes over the table that another slot of the same entry has read.
    pub(crate) fn load_as(&self, earlier: &Self) {
        if let Some(dictionary) = earlier.loaded.get().filter(|_| earlier.entry == self.entry) {
            let _ = self.loaded.set(dictionary.clone()); // or it was loaded before
        }
    }

    /// Returns the table. Reads and checks it, unless that was done before.
    pub(crate) fn dictionary(&self, source: &dyn Source, file_id: FileId) -> Result<Arc<Dictionary>> {
        if let Some(dictionary) = self.loaded.get() {
            return Ok(dictionary.clone());
        }
        if self.entry.body_bytes > limits::DICTIONARY_BYTES {
            let message = format!(
                "a table of {} bytes is no dictionary: {} are allowed",
                self.entry.body_bytes,
                limits::DICTIONARY_BYTES
            );
            return Err(Error::corrupt("R-5.13", message).with_offset(self.entry.offset));
        }
        let loaded = self.body(source, file_id).and_then(Dictionary::new);
        let dictionary = Arc::new(loaded.map_err(|error| error.with_offset(self.entry.offset))?);
        Ok(self.loaded.get_or_init(|| dictionary).clone())
    }

    /// Reads the body, and checks and that the head agrees with the footer
    ///
    pub(crate) fn body(&self, source: &dyn Source, file_id: FileId) -> Result<Vec<u8>> {
        let head = RegionHead::parse(&fetch_array(source, self.entry.offset)?, self.entry.offset)?;
        head.expect(RegionKind::Table, file_id)?;
        if TableHead::parse(&head)?.entry(&head) != self.entry {
            return Err(Error::corrupt("R-7.4", "the footer does not agree with the head of the table"));
        }
        body(source, &head)
    }
}

/// The error of a chunk that needs a table that its column does not have.
pub(crate) fn no_table(table: u32) -> Error {
    let message = format!("the chunk needs table {table}, which its column does not have before it");
    Error::corrupt("R-5.13", message)
}
