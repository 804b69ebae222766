//! The open files of a dataset, of which there is a bounded number.

use super::access::{Access, Opener};
use super::place::FilePlace;
use crate::error::Result;
use std::collections::HashMap;
use std::fmt;
use std::process;
use std::sync::{Mutex, PoisonError};
use tensilo::Reader;

/// Readers, of which the least recently used is closed when there are too many.
#[derive(Debug)]
pub(super) struct OpenFiles {
    most: usize,
    access: Access,
    process: u32,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    /// Readers, and when each was last asked for.
    by_place: HashMap<FilePlace, (Reader, u64)>,
    clock: u64,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} open files", self.by_place.len())
    }
}

impl OpenFiles {
    pub(super) fn new(most: usize, access: Access) -> Self {
        Self { most: most.max(1), access, process: process::id(), readers: Mutex::default() }
    }

    /// Returns the same without open files.
    pub(super) fn reopened(&self) -> Self {
        self.with_access(self.access.clone())
    }

    /// Returns the same without open files, which are opened in another way.
    pub(super) fn with_access(&self, access: Access) -> Self {
        Self::new(self.most, access)
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    pub(super) fn opener(&self) -> &Opener {
        &self.access.opener
    }

    /// Returns the reader of a file, and whether it was opened now. Two threads may open a file at
    /// the same time; one of the readers is kept.
    pub(super) fn get(&self, place: FilePlace, open: impl FnOnce() -> Result<Reader>) -> Result<(Reader, bool)> {
        if self.process != process::id() {
            return Ok((open()?, true));
        }
        if let Some(reader) = self.locked(|readers| readers.get(place)) {
            return Ok((reader, false));
        }
        let reader = open()?;
        self.locked(|readers| {
            readers.make_room(self.most);
            readers.clock = readers.clock.saturating_add(1);
            readers.by_place.insert(place, (reader.clone(), readers.clock));
        });
        Ok((reader, true))
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Readers) -> T) -> T {
        // a thread that panicked has left whole entries
        act(&mut self.readers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Readers {
    fn get(&mut self, place: FilePlace) -> Option<Reader> {
        self.clock = self.clock.saturating_add(1);
        let (reader, used) = self.by_place.get_mut(&place)?;
        *used = self.clock;
        Some(reader.clone())
    }

    /// Closes files until fewer than `most` are open.
    fn make_room(&mut self, most: usize) {
        while self.by_place.len() >= most {
            let oldest = self.by_place.iter().min_by_key(|(_, (_, used))| *used).map(|(&place, _)| place);
            let Some(oldest) = oldest else { return };
            self.by_place.remove(&oldest);
        }
    }
}
