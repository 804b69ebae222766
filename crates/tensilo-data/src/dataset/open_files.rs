//! The open files of a dataset, of which there is a bounded number.
//!
//! Opening an object takes a round trip. So if several threads request the same file, one opens it
//! and the others wait, and an opening can begin before any thread waits for it. The file that was
//! used least recently is closed first. In a process that was forked, files are opened each time: a
//! lock may be held by a thread that this process does not have.

use super::groups::FilePlace;
use crate::error::Result;
use crate::io::{IoChoice, Opener, Opening};
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
    /// Files that are being opened; the lock is the turn to open one.
    opening: HashMap<FilePlace, Arc<Mutex<Turn>>>,
    clock: u64,
}

/// The turn to open a file.
#[derive(Default)]
struct Turn {
    /// The opening, if it was begun and no thread waits for it yet.
    begun: Option<Opening>,
    has_failed: bool,
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

    /// Returns whether a file is open, or being opened.
    pub(super) fn has(&self, place: FilePlace) -> bool {
        self.process == process::id() && self.locked(|readers| readers.has(place))
    }

    /// Begins to open a file, unless it is open or being opened. [`OpenFiles::get`] then waits for
    /// it.
    pub(super) fn begin(&self, place: FilePlace, begin: impl FnOnce() -> Option<Opening>) {
        if self.process != process::id() {
            return;
        }
        self.locked(|readers| {
            if !readers.has(place)
                && let Some(opening) = begin()
            {
                let turn = Turn { begun: Some(opening), has_failed: false };
                readers.opening.insert(place, Arc::new(Mutex::new(turn)));
            }
        });
    }

    /// Returns the reader of a file. Of threads that ask for the same file, one opens it and the
    /// others wait: opening an object takes a round trip. If it fails, all of them try at the same
    /// time. `open` gets the opening, if that was begun.
    pub(super) fn get(&self, place: FilePlace, open: impl FnOnce(Option<Opening>) -> Result<Reader>) -> Result<Reader> {
        if self.process != process::id() {
            return open(None);
        }
        let turn = match self.locked(|readers| readers.get(place).ok_or_else(|| readers.turn(place))) {
            Ok(reader) => return Ok(reader),
            Err(turn) => turn,
        };
        let mut turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = self.locked(|readers| readers.get(place)) {
            return Ok(reader);
        }
        let begun = turn.begun.take();
        let mut turn = Some(turn).filter(|turn| !turn.has_failed);
        let opened = open(begun);
        if let Some(turn) = &mut turn {
            turn.has_failed = opened.is_err();
        }
        self.locked(|readers| {
            readers.opening.remove(&place);
            if let Ok(reader) = &opened {
                readers.insert(place, reader.clone(), self.most);
            }
        });
        opened
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

    fn has(&self, place: FilePlace) -> bool {
        self.by_place.contains_key(&place) || self.opening.contains_key(&place)
    }

    /// Returns the turn to open a file.
    fn turn(&mut self, place: FilePlace) -> Arc<Mutex<Turn>> {
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
