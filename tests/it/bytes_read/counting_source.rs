//! A source that counts, and that can decay.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tensilo::source::{CoalesceConfig, InMemory, Source};

/// A file that is read by position, counts requests and bytes, and can decay.
pub struct CountingSource {
    pub file: InMemory<Vec<u8>>,
    pub bytes: AtomicU64,
    pub requests: AtomicU64,
    /// The offset of a byte with a flipped bit.
    pub flipped_byte: AtomicU64,
    /// The ranges that were prefetched.
    pub prefetched: Mutex<Vec<Range<u64>>>,
    /// The gap that is read rather than skipped. Unless it is 0, long runs are read straight to
    /// their destination.
    pub gap_bytes: AtomicU64,
    /// A range that cannot be read.
    pub broken: Mutex<Range<u64>>,
}

impl CountingSource {
    pub fn new(file: Vec<u8>) -> Self {
        Self {
            file: InMemory(file),
            bytes: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            flipped_byte: AtomicU64::new(u64::MAX),
            prefetched: Mutex::default(),
            gap_bytes: AtomicU64::new(0),
            broken: Mutex::default(),
        }
    }
}

impl Source for CountingSource {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        let broken = self.broken.lock().unwrap();
        if offset < broken.end && broken.start < offset + out.len() as u64 {
            return Err(io::Error::other("a bad sector"));
        }
        self.file.read_exact_at(offset, out)?;
        let flipped_byte = self.flipped_byte.load(Ordering::Relaxed).checked_sub(offset);
        if let Some(byte) = flipped_byte.and_then(|at| out.get_mut(usize::try_from(at).ok()?)) {
            *byte ^= 1;
        }
        Ok(())
    }

    fn coalesce(&self) -> CoalesceConfig {
        let mut config = CoalesceConfig::MEMORY;
        config.gap_bytes = self.gap_bytes.load(Ordering::Relaxed);
        config.max_in_flight = if config.gap_bytes > 0 { 1 } else { 2 };
        config
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        self.prefetched.lock().unwrap().extend_from_slice(ranges);
    }
}
