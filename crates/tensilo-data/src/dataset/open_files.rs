//! The open files of a dataset: a bounded cache of readers.
//!
//! Opening an object takes a round trip. So if several threads request the same file, one of them
//! opens it and the others wait. An open can also be started before any thread needs the file. If
//! too many files are open, the least recently used one is closed.
//!
//! A forked process does not use the cache, because its lock may be held by a thread that does not
//! exist in the child. There, a file is opened each time it is needed.

use super::groups::FileKey;
use crate::error::Result;
use crate::io::{IoChoice, Opener, PendingReader};
use std::collections::HashMap;
use std::fmt;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use tensilo::Reader;

/// A cache of readers that evicts the least recently used one.
#[derive(Debug)]
pub(super) struct OpenFiles {
    max_open: usize,
    io: IoChoice,
    process: u32,
    cache: Mutex<ReaderCache>,
}

#[derive(Default)]
struct ReaderCache {
    /// Readers, and the time of their last use.
    by_key: HashMap<FileKey, (Reader, u64)>,
    /// Files that are being opened. A thread holds the lock of an attempt while it opens the file.
    opening: HashMap<FileKey, Arc<Mutex<OpenAttempt>>>,
    clock: u64,
}

/// An attempt to open a file, shared by the threads that need it.
#[derive(Default)]
struct OpenAttempt {
    /// The open in flight, unless a thread is already waiting for it.
    pending: Option<PendingReader>,
    has_failed: bool,
}

impl fmt::Debug for ReaderCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} open files", self.by_key.len())
    }
}

impl OpenFiles {
    pub(super) fn new(max_open: usize, io: IoChoice) -> Self {
        Self { max_open: max_open.max(1), io, process: process::id(), cache: Mutex::default() }
    }

    /// Returns a cache with the same settings and no open files.
    pub(super) fn reopened(&self) -> Self {
        self.with_io(self.io.clone())
    }

    /// Returns a cache with the same maximum, no open files, and this I/O method.
    pub(super) fn with_io(&self, io: IoChoice) -> Self {
        Self::new(self.max_open, io)
    }

    pub(super) fn io(&self) -> &IoChoice {
        &self.io
    }

    pub(super) fn opener(&self) -> &Opener {
        &self.io.opener
    }

    /// Returns whether a file is open, or being opened.
    pub(super) fn has(&self, key: FileKey) -> bool {
        self.process == process::id() && self.with_cache(|cache| cache.has(key))
    }

    /// Starts opening a file, unless it is open or being opened. [`OpenFiles::get`] then waits for
    /// it.
    pub(super) fn begin(&self, key: FileKey, begin: impl FnOnce() -> Option<PendingReader>) {
        if self.process != process::id() {
            return;
        }
        self.with_cache(|cache| {
            if !cache.has(key)
                && let Some(opening) = begin()
            {
                let attempt = OpenAttempt { pending: Some(opening), has_failed: false };
                cache.opening.insert(key, Arc::new(Mutex::new(attempt)));
            }
        });
    }

    /// Returns the reader of a file. If several threads request the same file, one of them opens it
    /// and the others wait. If that fails, all the others try at the same time. `open` is called
    /// with the pending open, if there is one.
    pub(super) fn get(
        &self,
        key: FileKey,
        open: impl FnOnce(Option<PendingReader>) -> Result<Reader>,
    ) -> Result<Reader> {
        if self.process != process::id() {
            return open(None);
        }
        let attempt = match self.with_cache(|cache| cache.get(key).ok_or_else(|| cache.attempt(key))) {
            Ok(reader) => return Ok(reader),
            Err(attempt) => attempt,
        };
        let mut attempt = attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = self.with_cache(|cache| cache.get(key)) {
            return Ok(reader);
        }
        let pending = attempt.pending.take();
        let mut attempt = Some(attempt).filter(|attempt| !attempt.has_failed);
        let opened = open(pending);
        if let Some(attempt) = &mut attempt {
            attempt.has_failed = opened.is_err();
        }
        self.with_cache(|cache| {
            cache.opening.remove(&key);
            if let Ok(reader) = &opened {
                cache.insert(key, reader.clone(), self.max_open);
            }
        });
        opened
    }

    fn with_cache<T>(&self, act: impl FnOnce(&mut ReaderCache) -> T) -> T {
        // a thread that panicked left only complete entries
        act(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ReaderCache {
    fn get(&mut self, key: FileKey) -> Option<Reader> {
        self.clock = self.clock.saturating_add(1);
        let (reader, used) = self.by_key.get_mut(&key)?;
        *used = self.clock;
        Some(reader.clone())
    }

    fn has(&self, key: FileKey) -> bool {
        self.by_key.contains_key(&key) || self.opening.contains_key(&key)
    }

    /// Returns the shared attempt to open a file.
    fn attempt(&mut self, key: FileKey) -> Arc<Mutex<OpenAttempt>> {
        self.opening.entry(key).or_default().clone()
    }

    /// Adds a reader, and closes other readers so that at most `max_open` are open.
    fn insert(&mut self, key: FileKey, reader: Reader, max_open: usize) {
        self.evict_below(max_open);
        self.clock = self.clock.saturating_add(1);
        self.by_key.insert(key, (reader, self.clock));
    }

    /// Closes files until fewer than `max_open` are open.
    fn evict_below(&mut self, max_open: usize) {
        while self.by_key.len() >= max_open {
            let oldest = self.by_key.iter().min_by_key(|(_, (_, used))| *used).map(|(&key, _)| key);
            let Some(oldest) = oldest else { return };
            self.by_key.remove(&oldest);
        }
    }
}
