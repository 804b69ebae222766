//! Files as memory maps.
//!
//! A map lends samples without a copy. If any process changes the file, however, the bytes behind
//! the lent references change, which is undefined behavior. If a process truncates the file, the
//! reader is killed. Rust has no safe way to rule this out. The functions that map files are
//! therefore `unsafe`: the caller promises that the mapped bytes do not change.
//!
//! The promise is easy to keep for files that this crate writes: a new file is complete when it
//! gets its name, and an append writes only beyond the end of the last commit. A reader maps the
//! file only up to the end of the last commit, so the file can be appended to while it is mapped.

use crate::bytes::le::u64_of;
use crate::open::{FileIdentity, InMemory, PositionedFile, Source};
use crate::read::{OpenOptions, Reader};
use crate::{Error, Result};
use memmap2::{Mmap, MmapOptions};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A file as a read-only memory map.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    identity: Option<FileIdentity>,
}

impl MappedFile {
    /// Maps a file.
    ///
    /// # Safety
    ///
    /// As long as the map lives, no process may change or truncate the file. Otherwise, the bytes
    /// of the map change while there are references to them, which is undefined behavior. An access
    /// to a page beyond the new end kills the process (`SIGBUS`). A file is safe to map if it is
    /// complete and is only ever replaced by a rename, as this crate does. On network file systems,
    /// use [`PositionedFile`].
    ///
    /// This function maps the whole file, including the bytes of an append that has not yet
    /// committed. If that append fails, it truncates the file. Use [`Reader::map`] for a file that
    /// can be appended to.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = PositionedFile::open(&path)?;
        // SAFETY: the caller promises that the file does not change (see `# Safety`).
        unsafe { Self::of(&file, file.byte_count()) }.map_err(|error| error.with_path(path.as_ref()))
    }

    /// Maps the first `bytes` bytes of a file.
    ///
    /// # Safety
    ///
    /// The same as for [`MappedFile::open`], except that only these bytes must not change.
    unsafe fn of(file: &PositionedFile, bytes: u64) -> Result<Self> {
        let mut options = MmapOptions::new();
        if let Ok(length) = usize::try_from(bytes) {
            options.len(length);
        }
        // SAFETY: the caller promises that these bytes do not change.
        let map = unsafe { options.map(file.file()) }.map_err(|error| Error::io("mapping the file", error))?;
        advise_random(&map);
        Ok(Self { map, identity: file.identity() })
    }
}

impl OpenOptions {
    /// Opens a file as a memory map. Samples of raw chunks can be viewed without a copy.
    ///
    /// The file header and the footer are read with positional reads. For a file of any size, this
    /// costs less than the page faults that reading them through the map would cause.
    ///
    /// The map ends at the end of the last commit. An append writes after that point. If it fails,
    /// it truncates the file to its previous length. Files can therefore be appended to while they
    /// are mapped. (Windows cannot truncate a mapped file: the bytes of a failed append remain, and
    /// the next append fails as long as the map exists.)
    ///
    /// # Safety
    ///
    /// As long as the reader lives, no process may change or remove the bytes up to the end of the
    /// last commit, see [`MappedFile::open`]. Appends by this crate do neither.
    pub unsafe fn map_file(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        let file = Arc::new(PositionedFile::open(path)?);
        // SAFETY: the caller makes the same promise.
        let map = |end| unsafe { MappedFile::of(&file, end) }.map(|map| Arc::new(map) as Arc<dyn Source>);
        self.open_through(file.clone(), Some(path), map).map_err(|error| error.with_path(path))
    }
}

impl Reader {
    /// Opens a file as a memory map, see [`OpenOptions::map_file`].
    ///
    /// # Safety
    ///
    /// As long as the reader lives, no process may change or remove the bytes up to the end of the
    /// last commit, see [`OpenOptions::map_file`].
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller makes the same promise.
        unsafe { OpenOptions::new().map_file(path) }
    }
}

/// Advises the kernel that accesses will be random. Otherwise, its read-around would fetch many
/// times more bytes than requested.
#[cfg(unix)]
fn advise_random(map: &Mmap) {
    // only a hint: reading works without it
    let _ = map.advise(memmap2::Advice::Random);
}

#[cfg(not(unix))]
fn advise_random(_: &Mmap) {}

impl Source for MappedFile {
    fn byte_count(&self) -> u64 {
        u64_of(self.map.len())
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        InMemory(&self.map).read_exact_at(offset, out)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        Some(&self.map)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        ranges.iter().for_each(|range| will_need(&self.map, range));
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.identity.clone()
    }
}

#[cfg(unix)]
fn will_need(map: &Mmap, range: &Range<u64>) {
    let inside = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(map.len());
    let (start, end) = (inside(range.start), inside(range.end));
    if let Some(length) = end.checked_sub(start) {
        // only a hint: reading works without it
        let _ = map.advise_range(memmap2::Advice::WillNeed, start, length);
    }
}

#[cfg(not(unix))]
fn will_need(_: &Mmap, _: &Range<u64>) {}
