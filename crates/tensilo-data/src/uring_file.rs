//! Files that are read by io_uring.

use crate::sys::{ReadAt, Ring};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use tensilo::source::{FileIdentity, PositionedFile, Source};
use tensilo::stages::{Fragment, RangeError};

/// The reads that a thread has in flight at most.
const DEPTH: u32 = 64;
/// Offsets and lengths of direct reads are multiples of this.
const SECTOR: u64 = 4096;
/// Longer ranges are read by position.
const LONGEST: u64 = 1 << 30;
/// The bytes that are read at a time at most, unless one range is longer.
const WAVE_BYTES: usize = 8 << 20;

/// Whether the page cache of the system is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageCache {
    /// Bytes that were read stay in it: for datasets that fit in memory.
    #[default]
    Used,
    /// The chunks are read past it (O_DIRECT): for datasets larger than memory, of which it would
    /// keep nothing that is wanted again. The index and the fronts of chunks still go through it.
    Passed,
}

/// A file whose ranges are read by io_uring: all of a batch at the same time, by one system call
/// for many. Single reads are by position.
///
/// Each thread that reads has a ring of its own. Where the kernel has no io_uring, or forbids it,
/// ranges are read by position, one after the other.
#[derive(Debug)]
pub struct UringFile {
    positioned: PositionedFile,
    /// The same file, opened to be read past the page cache.
    direct: Option<File>,
}

impl UringFile {
    /// Opens a file for reading. Fails with [`PageCache::Passed`] if its file system refuses
    /// O_DIRECT.
    pub fn open(path: impl AsRef<Path>, page_cache: PageCache) -> tensilo::Result<Self> {
        let path = path.as_ref();
        let positioned = PositionedFile::open(path)?;
        let direct = match page_cache {
            PageCache::Used => None,
            PageCache::Passed => {
                // the same file, whatever has the path meanwhile
                let same = format!("/proc/self/fd/{}", positioned.as_fd().as_raw_fd());
                let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
                let opened = OpenOptions::new().read(true).custom_flags(flags).open(same);
                let doing = "opening the file to read it past the page cache";
                Some(opened.map_err(|error| tensilo::Error::io(doing, error).with_path(path))?)
            }
        };
        Ok(Self { positioned, direct })
    }

    /// Returns why this process cannot use io_uring; `None` if it can. Cost: makes a ring.
    pub fn unavailable() -> Option<io::Error> {
        Ring::new(1).err()
    }

    /// Returns the bytes of the file that are read for a range.
    fn widened(&self, range: &Range<u64>) -> Range<u64> {
        match self.direct {
            None => range.clone(),
            Some(_) => {
                let end = range.end.checked_next_multiple_of(SECTOR).unwrap_or(range.end);
                range.start / SECTOR * SECTOR..end
            }
        }
    }

    /// Returns how many ranges are read together, at least one.
    fn wave(&self, ranges: &[Range<u64>]) -> usize {
        let mut bytes = 0_u64;
        let fits = |range: &&Range<u64>| {
            let widened = self.widened(range);
            bytes = bytes.saturating_add(widened.end.saturating_sub(widened.start));
            usize::try_from(bytes).is_ok_and(|bytes| bytes <= WAVE_BYTES)
        };
        ranges.iter().take_while(fits).count().max(1)
    }

    /// Reads ranges that fit together in memory. `first` is the number of the first one.
    fn read_wave(
        &self,
        ring: &mut Ring,
        ranges: &[Range<u64>],
        first: usize,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RangeError> {
        let mut end = 0_usize;
        let reads: Vec<ReadAt> = ranges
            .iter()
            .map(|range| {
                let widened = self.widened(range);
                let length = usize::try_from(widened.end.saturating_sub(widened.start)).unwrap_or(usize::MAX);
                // memory is aligned, and direct reads are whole sectors
                let place = end..end.saturating_add(length);
                end = place.end;
                ReadAt { offset: widened.start, place }
            })
            .collect();
        let (mut failed, mut flow) = (None, ControlFlow::Continue(()));
        let file = self.direct.as_ref().map_or(self.positioned.as_fd(), AsFd::as_fd);
        let result = ring.read(file, &reads, &mut |number, result| {
            let (Some(range), Some(read)) = (ranges.get(number), reads.get(number)) else {
                return ControlFlow::Continue(());
            };
            let range_number = first.saturating_add(number);
            // what the kernel did not read by io_uring is read by position
            let delivered = self.deliver(range, read, result.unwrap_or(&[]), range_number, arrived);
            flow = delivered.unwrap_or_else(|error| {
                failed = Some(RangeError { range: range_number, error });
                ControlFlow::Break(())
            });
            flow
        });
        match (failed, result) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(RangeError { range: first, error }),
            (None, Ok(())) => Ok(flow),
        }
    }

    /// Hands the bytes of a range over, and reads those that a read has left out.
    fn deliver(
        &self,
        range: &Range<u64>,
        read: &ReadAt,
        bytes: &[u8],
        number: usize,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let before = usize::try_from(range.start.saturating_sub(read.offset)).unwrap_or(usize::MAX);
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        if let Some(bytes) = bytes.get(before..).and_then(|bytes| bytes.get(..length)) {
            return Ok(arrived(Fragment { range: number, offset: 0, bytes }));
        }
        let mut whole = Vec::new();
        whole.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        whole.resize(length, 0);
        self.positioned.read_exact_at(range.start, &mut whole)?;
        Ok(arrived(Fragment { range: number, offset: 0, bytes: &whole }))
    }
}

impl Source for UringFile {
    fn byte_count(&self) -> u64 {
        self.positioned.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.positioned.read_exact_at(offset, out)
    }

    fn will_need(&self, range: Range<u64>) {
        if self.direct.is_none() {
            self.positioned.will_need(range);
        }
    }

    fn gap_bytes(&self) -> u64 {
        self.positioned.gap_bytes()
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        scratch: &mut Vec<u8>,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> Result<(), RangeError> {
        if ranges.iter().any(|range| range.end.saturating_sub(range.start) > LONGEST) {
            return self.positioned.read_ranges(ranges, scratch, arrived);
        }
        let done = with_ring(|ring| {
            let mut first = 0;
            while let Some(rest) = ranges.get(first..).filter(|rest| !rest.is_empty()) {
                let count = self.wave(rest);
                let wave = rest.get(..count).unwrap_or(rest);
                if self.read_wave(ring, wave, first, arrived)?.is_break() {
                    break;
                }
                first = first.saturating_add(count);
            }
            Ok(())
        });
        // without io_uring
        done.unwrap_or_else(|| self.positioned.read_ranges(ranges, scratch, arrived))
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.positioned.identity()
    }
}

/// The ring of a thread.
#[derive(Default)]
struct ThreadRing {
    /// The process that has made the ring.
    process: u32,
    ring: Option<Box<Ring>>,
    /// The kernel has no io_uring, or forbids it.
    is_refused: bool,
}

impl Drop for ThreadRing {
    fn drop(&mut self) {
        self.forget_of_parent();
    }
}

impl ThreadRing {
    /// Forgets a ring of the process that this one was forked from: its memory is not here.
    fn forget_of_parent(&mut self) {
        if self.process != process::id() {
            std::mem::forget(self.ring.take());
        }
    }

    /// Returns the ring, made anew if there is none; `None` if there is no io_uring.
    fn get(&mut self) -> Option<&mut Ring> {
        self.forget_of_parent();
        if self.ring.as_ref().is_some_and(|ring| ring.is_broken()) {
            // the kernel may still write to what it has
            std::mem::forget(self.ring.take());
            self.is_refused = true;
        }
        if self.ring.is_none() && !self.is_refused {
            self.process = process::id();
            self.ring = Ring::new(DEPTH).ok().map(Box::new);
            self.is_refused = self.ring.is_none();
        }
        self.ring.as_deref_mut()
    }
}

/// Does some work with the ring of this thread; `None` if there is no io_uring.
fn with_ring<R>(work: impl FnOnce(&mut Ring) -> R) -> Option<R> {
    thread_local! {
        static RING: RefCell<ThreadRing> = RefCell::default();
    }
    RING.with(|ring| ring.try_borrow_mut().ok()?.get().map(work))
}
