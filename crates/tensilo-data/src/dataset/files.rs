//! The open files of a dataset, of which there is a bounded number.

use super::io::{IoChoice, Opener};
use super::place::FilePlace;
use crate::error::Result;
use std::collections::HashMap;
use std::fmt;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use tensilo::Reader;

/// Readers, of which the least recently used is closed when there are too many.
#[derive(Debug)]
pub(super) struct OpenFiles {
    most: usize,
    io: IoChoice,
    process: u32,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    /// Readers, and when each was last asked for.
    by_place: HashMap<FilePlace, (Reader, u64)>,
    /// Files that a thread opens now; the lock is its turn, and tells whether it has failed.
    opening: HashMap<FilePlace, Arc<Mutex<bool>>>,
    clock: u64,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} open files", self.by_place.len())
    }
}

impl OpenFiles {
    pub(super) fn new(most: usize, io: IoChoice) -> Self {
        Self { most: most.max(1), io, process: process::id(), readers: Mutex::default() }
    }

    /// Returns the same without open files.
    pub(super) fn reopened(&self) -> Self {
        self.with_io(self.io.clone())
    }

    /// Returns the same without open files, which are opened in another way.
    pub(super) fn with_io(&self, io: IoChoice) -> Self {
        Self::new(self.most, io)
    }

    pub(super) fn io(&self) -> &IoChoice {
        &self.io
    }

    pub(super) fn opener(&self) -> &Opener {
        &self.io.opener
    }

    /// Returns the reader of a file, and whether it was opened now. Of threads that ask for the
    /// same file, one opens it and the others wait: opening an object takes a round trip. If it
    /// fails, all of them try at the same time.
    pub(super) fn get(&self, place: FilePlace, open: impl FnOnce() -> Result<Reader>) -> Result<(Reader, bool)> {
        if self.process != process::id() {
            return Ok((open()?, true));
        }
        let turn = match self.locked(|readers| readers.get(place).ok_or_else(|| readers.turn(place))) {
            Ok(reader) => return Ok((reader, false)),
            Err(turn) => turn,
        };
        let has_failed = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = self.locked(|readers| readers.get(place)) {
            return Ok((reader, false));
        }
        let mut turn = Some(has_failed).filter(|has_failed| !**has_failed);
        let opened = open();
        if let Some(has_failed) = &mut turn {
            **has_failed = opened.is_err();
        }
        self.locked(|readers| {
            readers.opening.remove(&place);
            if let Ok(reader) = &opened {
                readers.insert(place, reader.clone(), self.most);
            }
        });
        Ok((opened?, true))
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

    /// Returns the turn to open a file.
    fn turn(&mut self, place: FilePlace) -> Arc<Mutex<bool>> {
        self.opening.entry(place).or_default().clone()
    }

    /// Adds a reader, and closes others until there are at most `most`.
    fn insert(&mut self, place: FilePlace, reader: Reader, most: usize) {
        self.make_room(most);
        self.clock = self.clock.saturating_add(1);
        self.by_place.insert(place, (reader, self.clock));
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
