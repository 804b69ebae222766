//! Files read with io_uring: all ranges of a batch are in flight at the same time.
//!
//! Each thread has its own ring, so reading takes no lock. A thread reads in waves, which bounds
//! the memory that it needs. The kernel writes to memory that the ring owns, and the bytes are
//! copied to the caller from there. If the ring cannot wait for its reads, it leaks that memory,
//! because the kernel may still write to it. The caller's memory is never at risk.
//!
//! io_uring is never required. Positional reads (`pread`) replace it where it is missing or
//! forbidden, for ranges above 1 GiB, and for each read that fails or is short.

use crate::sys::{AlignedMemory, ReadAt, Ring};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use tensilo::source::{CoalesceConfig, FileIdentity, PositionedFile, RangeError, ReadMemory, Source, range_length};

/// The maximum number of reads in flight for each thread.
const DEPTH: u32 = 64;
/// The offsets and lengths of direct reads are multiples of this.
const SECTOR: u64 = 4096;
/// The alignment of memory for direct reads.
const ALIGNMENT: usize = 4096;
/// Longer ranges are read with `pread`.
const MAX_RANGE_BYTES: u64 = 1 << 30;
/// The maximum size of a wave in bytes. A longer range is a wave of its own.
const WAVE_BYTES: usize = 8 << 20;

/// A file whose ranges are read with io_uring: all ranges of a batch at the same time, with one
/// system call for many of them. Single reads use `pread`.
///
/// Each thread that reads has its own ring. Where the kernel has no io_uring, or forbids it, ranges
/// are read with `pread`, one after another.
#[derive(Debug)]
pub struct UringFile {
    positioned: PositionedFile,
    /// The same file, opened for direct I/O.
    direct: Option<File>,
}

impl UringFile {
    /// Opens a file for buffered I/O: bytes stay in the page cache after they are read. Suits
    /// datasets that fit in memory.
    pub fn open(path: impl AsRef<Path>) -> tensilo::Result<Self> {
        Ok(Self { positioned: PositionedFile::open(path)?, direct: None })
    }

    /// Opens a file for direct I/O (`O_DIRECT`): chunks bypass the page cache. Suits datasets
    /// larger than memory: the page cache would evict each chunk before it is read again. The index
    /// and the block indexes of chunks still go through the page cache. Fails if the file system
    /// refuses direct I/O.
    pub fn open_direct(path: impl AsRef<Path>) -> tensilo::Result<Self> {
        let path = path.as_ref();
        let positioned = PositionedFile::open(path)?;
        // opens the same file, even if the path now names a different one
        let same = format!("/proc/self/fd/{}", positioned.as_fd().as_raw_fd());
        let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(same);
        let operation = "opening the file for direct I/O";
        let direct = opened.map_err(|error| tensilo::Error::io(operation, error).with_path(path))?;
        Ok(Self { positioned, direct: Some(direct) })
    }

    /// Returns why this process cannot use io_uring, or `None` if it can. Cost: creates a ring.
    pub fn unavailable() -> Option<io::Error> {
        Ring::new(1).err()
    }

    /// Returns the range of the file that is read for a requested range.
    fn aligned_range(&self, range: &Range<u64>) -> Range<u64> {
        match self.direct {
            None => range.clone(),
            Some(_) => {
                let end = range.end.checked_next_multiple_of(SECTOR).unwrap_or(range.end);
                range.start / SECTOR * SECTOR..end
            }
        }
    }

    /// Returns how many ranges the next wave has, at least one.
    fn wave(&self, ranges: &[Range<u64>]) -> usize {
        let mut bytes = 0_usize;
        let fits = |range: &&Range<u64>| {
            bytes = bytes.saturating_add(range_length(&self.aligned_range(range)));
            bytes <= WAVE_BYTES
        };
        ranges.iter().take_while(fits).count().max(1)
    }

    /// Reads ranges into memory that the thread owns, and copies them to `out`. The kernel must not
    /// write to `out` directly: if the ring cannot wait for its reads, it leaks the memory that
    /// they write to, and borrowed memory cannot be leaked. Also, direct reads are longer than
    /// their ranges.
    fn read_wave(&self, thread: RingRef<'_>, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RangeError> {
        let RingRef { ring, memory } = thread;
        let (mut end, mut rest) = (0_usize, out);
        let mut reads = Vec::with_capacity(ranges.len());
        let mut destinations = Vec::with_capacity(ranges.len());
        for range in ranges {
            let aligned_range = self.aligned_range(range);
            // keeps the alignment: direct reads are whole sectors
            let buffer_range = end..end.saturating_add(range_length(&aligned_range));
            end = buffer_range.end;
            reads.push(ReadAt { offset: aligned_range.start, buffer_range });
            destinations.push(rest.split_off_mut(..range_length(range)).unwrap_or(&mut []));
        }
        let mut failed: Option<RangeError> = None;
        let mut taken = memory.take().unwrap_or_else(|| Box::new(AlignedMemory::default()));
        taken.reserve(0, end).map_err(|_| RangeError { range: 0, error: io::ErrorKind::OutOfMemory.into() })?;
        let (returned, result) = ring.read(self.ring_file(), &reads, taken, &mut |number, result| {
            let (Some(range), Some(read), Some(to)) =
                (ranges.get(number), reads.get(number), destinations.get_mut(number))
            else {
                return;
            };
            let before = usize::try_from(range.start.saturating_sub(read.offset)).unwrap_or(usize::MAX);
            let found = result.ok().and_then(|bytes| bytes.get(before..)?.get(..to.len()));
            let copied = match found {
                Some(bytes) => {
                    to.copy_from_slice(bytes); // equal lengths
                    Ok(())
                }
                // the read failed or was short
                None => self.positioned.read_exact_at(range.start, to),
            };
            if let Err(error) = copied
                && failed.as_ref().is_none_or(|first| number < first.range)
            {
                failed = Some(RangeError { range: number, error });
            }
        });
        *memory = returned;
        result.map_err(|error| RangeError { range: 0, error })?;
        failed.map_or(Ok(()), Err)
    }

    /// Returns the file that the ring reads.
    fn ring_file(&self) -> BorrowedFd<'_> {
        self.direct.as_ref().map_or(self.positioned.as_fd(), AsFd::as_fd)
    }

    /// Reads aligned ranges into `memory`, which the kernel writes to directly.
    fn read_aligned(
        &self,
        ring: &mut Ring,
        ranges: &[Range<u64>],
        memory: Box<dyn ReadMemory>,
    ) -> (Option<Box<dyn ReadMemory>>, Result<(), RangeError>) {
        let (mut end, mut reads, mut buffer_ranges) = (0_usize, Vec::new(), Vec::new());
        for range in ranges {
            let buffer_range = end..end.saturating_add(range_length(range));
            end = buffer_range.end;
            // a direct read of the last range may extend beyond the end of the file
            let read =
                end..end.saturating_add(range_length(&self.aligned_range(range)).saturating_sub(buffer_range.len()));
            reads.push(ReadAt { offset: range.start, buffer_range: buffer_range.start..read.end });
            buffer_ranges.push(buffer_range);
        }
        let mut missing = Vec::new();
        let (memory, result) = ring.read(self.ring_file(), &reads, memory, &mut |number, result| {
            let length = buffer_ranges.get(number).map_or(0, Range::len);
            if result.is_ok_and(|bytes| bytes.len() >= length) {
                return;
            }
            missing.push(number);
        });
        let Some(mut memory) = memory else {
            let error = result.err().unwrap_or_else(|| io::ErrorKind::Other.into());
            return (None, Err(RangeError { range: 0, error }));
        };
        // reads that failed or were short are repeated with `pread`
        missing.sort_unstable();
        let all = if result.is_ok() { missing } else { (0..ranges.len()).collect() };
        for number in all {
            let (Some(range), Some(buffer_range)) = (ranges.get(number), buffer_ranges.get(number)) else { continue };
            let to = memory.bytes_mut().get_mut(buffer_range.clone()).ok_or_else(|| io::ErrorKind::InvalidInput.into());
            if let Err(error) = to.and_then(|to| self.positioned.read_exact_at(range.start, to)) {
                return (Some(memory), Err(RangeError { range: number, error }));
            }
        }
        (Some(memory), Ok(()))
    }
}

impl Source for UringFile {
    fn byte_count(&self) -> u64 {
        self.positioned.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.positioned.read_exact_at(offset, out)
    }

    fn coalesce(&self) -> CoalesceConfig {
        let mut config = self.positioned.coalesce();
        config.max_in_flight = usize::try_from(DEPTH).unwrap_or(1);
        config
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RangeError> {
        if ranges.iter().any(|range| range.end.saturating_sub(range.start) > MAX_RANGE_BYTES) {
            return self.positioned.read_ranges(ranges, out);
        }
        let done = with_ring(|mut thread| {
            let (mut first, mut rest) = (0, &mut *out);
            while let Some(left) = ranges.get(first..).filter(|left| !left.is_empty()) {
                let wave = left.get(..self.wave(left)).unwrap_or(left);
                let bytes = wave.iter().map(range_length).fold(0, usize::saturating_add);
                let to = rest.split_off_mut(..bytes).ok_or_else(|| too_short(first))?;
                self.read_wave(thread.reborrow(), wave, to)
                    .map_err(|error| RangeError { range: first.saturating_add(error.range), ..error })?;
                first = first.saturating_add(wave.len());
            }
            Ok(())
        });
        // there is no io_uring
        done.unwrap_or_else(|| self.positioned.read_ranges(ranges, out))
    }

    fn alignment(&self) -> Option<u64> {
        match self.direct {
            Some(_) => Some(SECTOR),
            None => self.positioned.alignment(),
        }
    }

    fn read_to_memory(
        &self,
        ranges: &[Range<u64>],
        memory: Box<dyn ReadMemory>,
    ) -> (Option<Box<dyn ReadMemory>>, Result<(), RangeError>) {
        let is_aligned = self.direct.is_none() || memory.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT);
        let is_short = ranges.iter().all(|range| range.end.saturating_sub(range.start) <= MAX_RANGE_BYTES);
        let mut memory = Some(memory);
        let read = |thread: RingRef<'_>| Some(self.read_aligned(thread.ring, ranges, memory.take()?));
        let done = if is_aligned && is_short { with_ring(read).flatten() } else { None };
        match (done, memory) {
            (Some(done), _) => done,
            (None, Some(memory)) => self.positioned.read_to_memory(ranges, memory),
            (None, None) => (None, Err(too_short(0))), // unreachable: only a ring takes the memory
        }
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        if self.direct.is_none() {
            self.positioned.prefetch(ranges);
        }
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.positioned.identity()
    }
}

#[cold]
fn too_short(range: usize) -> RangeError {
    RangeError { range, error: io::ErrorKind::InvalidInput.into() }
}

/// The ring of a thread.
#[derive(Default)]
struct ThreadRing {
    /// The process that created the ring.
    process: u32,
    ring: Option<Box<Ring>>,
    /// Memory reused for reads.
    memory: Option<Box<dyn ReadMemory>>,
    /// Whether io_uring cannot be used: the kernel does not have it or forbids it, or a ring is
    /// broken.
    is_unsupported: bool,
}

/// The ring of a thread, and its memory.
struct RingRef<'t> {
    ring: &'t mut Ring,
    memory: &'t mut Option<Box<dyn ReadMemory>>,
}

impl RingRef<'_> {
    fn reborrow(&mut self) -> RingRef<'_> {
        RingRef { ring: self.ring, memory: self.memory }
    }
}

impl Drop for ThreadRing {
    fn drop(&mut self) {
        self.forget_parent_ring();
    }
}

impl ThreadRing {
    /// Forgets a ring of the parent process: its memory was not inherited.
    fn forget_parent_ring(&mut self) {
        if self.process != process::id() {
            std::mem::forget((self.ring.take(), self.memory.take()));
        }
    }

    /// Returns the ring, and creates it if there is none. Returns `None` if there is no io_uring.
    fn get(&mut self) -> Option<RingRef<'_>> {
        self.forget_parent_ring();
        if self.ring.as_ref().is_some_and(|ring| ring.is_broken()) {
            // the kernel may still write to its memory
            std::mem::forget(self.ring.take());
            self.is_unsupported = true;
        }
        if self.ring.is_none() && !self.is_unsupported {
            self.process = process::id();
            self.ring = Ring::new(DEPTH).ok().map(Box::new);
            self.is_unsupported = self.ring.is_none();
        }
        let Self { ring, memory, .. } = self;
        ring.as_deref_mut().map(|ring| RingRef { ring, memory })
    }
}

/// Runs `work` with the ring of this thread. Returns `None` if there is no io_uring.
fn with_ring<R>(work: impl FnOnce(RingRef<'_>) -> R) -> Option<R> {
    thread_local! {
        static RING: RefCell<ThreadRing> = RefCell::default();
    }
    RING.with(|ring| ring.try_borrow_mut().ok()?.get().map(work))
}
