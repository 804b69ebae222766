//! Files as memory maps.
//!
//! A map lends samples without a copy. But if any process changes the file, it changes the bytes
//! behind the references that were lent, which is undefined behavior, and truncation kills the
//! reader. Rust has no safe way to rule that out. So the functions that map are `unsafe`, and the
//! caller promises that the mapped bytes do not change.
//!
//! The promise is easy to keep for files of this crate: new files appear complete, by rename, and
//! appends write only after the last commit. A reader therefore maps the file only up to the end of
//! its last commit, and the file can be appended to while it is mapped.

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
    /// As long as the map lives, no process may change or truncate the file. Otherwise the bytes
    /// seen through the map change under references to them, which is undefined behavior, and
    /// access to a page beyond the new end kills the process (`SIGBUS`). Files that are complete
    /// and only ever replaced by renaming, as this crate does, are safe to map. On network file
    /// systems use [`PositionedFile`].
    ///
    /// This maps the whole file, including the bytes of an append that has not committed, which are
    /// cut off if it fails. Use [`Reader::map`] for a file that may be appended to.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = PositionedFile::open(&path)?;
        // SAFETY: the caller promises that the file does not change, see above.
        unsafe { Self::of(&file, file.byte_count()) }.map_err(|error| error.with_path(path.as_ref()))
    }

    /// Maps the first `bytes` bytes of a file.
    ///
    /// # Safety
    ///
    /// The same as for [`MappedFile::open`], except that only these bytes must stay unchanged.
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
    /// The file header and the footer are read with positional reads. This costs less than the page
    /// faults of touching them in the map, whatever the size of the file.
    ///
    /// The map ends at the end of the last commit. An append writes after it and, if it fails, cuts
    /// the file back to that length, so files can be appended to while they are mapped. (Windows
    /// cannot cut off a mapped file: the bytes of a failed append stay there, and the next append
    /// fails until the map is gone.)
    ///
    /// # Safety
    ///
    /// As long as the reader lives, no process may change or cut off the bytes up to the last
    /// commit, see [`MappedFile::open`]. Appends of this crate do neither.
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
    /// As long as the reader lives, no process may change or cut off the bytes up to the last
    /// commit, see [`OpenOptions::map_file`].
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller makes the same promise.
        unsafe { OpenOptions::new().map_file(path) }
    }
}

/// Advises random access, because the kernel's read-around would fetch many times the requested
/// bytes.
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
