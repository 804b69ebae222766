//! A source that counts its reads, and answers as late as distant storage.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tensilo::OpenOptions;
use tensilo::source::{CoalesceConfig, PositionedFile, RangeError, Source};
use tensilo_data::DatasetOptions;
use tensilo_data::model::{Storage, Traffic};

/// How a source is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The maximum gap of a request.
    pub gap: u64,
    pub open_files: usize,
    /// If set, the source reads small structures in aligned lines of this many bytes, which it
    /// caches while the file is open.
    pub line: Option<u64>,
}

impl Reading {
    fn coalesce(&self) -> CoalesceConfig {
        let mut config = CoalesceConfig::OBJECT_STORE;
        config.gap_bytes = self.gap;
        config.max_request_bytes = (256 << 10).max(self.gap * 16);
        config
    }

    /// Returns the storage of the model that is read in this way.
    pub fn storage(&self) -> Storage {
        Storage {
            coalesce: self.coalesce(),
            max_open_files: self.open_files,
            small_read_bytes: self.line,
            reads_files_together: false,
            prefetches_runs: false,
            ..Storage::OBJECTS
        }
    }
}

/// The reads of all files of a dataset.
#[derive(Debug, Default)]
pub struct Counts {
    small: AtomicU64,
    small_bytes: AtomicU64,
    rounds: AtomicU64,
    ranges: AtomicU64,
    range_bytes: AtomicU64,
    prefetched: AtomicU64,
    prefetched_bytes: AtomicU64,
    pub opened: AtomicU64,
}

impl Counts {
    pub fn traffic(&self) -> Traffic {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            opened_files: of(&self.opened),
            small_reads: of(&self.small),
            small_bytes: of(&self.small_bytes),
            calls: of(&self.rounds),
            ranges: of(&self.ranges),
            range_bytes: of(&self.range_bytes),
            prefetches: of(&self.prefetched),
            prefetched_bytes: of(&self.prefetched_bytes),
            waits: 0,
        }
    }
}

/// A file that is read by position, as if it were on distant storage.
pub struct CountingSource {
    file: PositionedFile,
    counts: Arc<Counts>,
    latency: Duration,
    reading: Reading,
    /// The lines that were read, by number: a source for object storage should cache them.
    lines: Option<Lines>,
    /// The prefetched ranges. A source that gets a range twice reads it once.
    prefetched: Mutex<HashSet<Range<u64>>>,
}

struct Lines {
    bytes: u64,
    cached: Mutex<HashMap<u64, Vec<u8>>>,
}

/// Returns options that open files with such sources.
pub fn counted(reading: Reading, latency: Duration, counts: &Arc<Counts>) -> DatasetOptions {
    let counts = counts.clone();
    let open = move |path: &Path, options: OpenOptions| {
        counts.opened.fetch_add(1, Ordering::Relaxed);
        options.open_source(CountingSource::new(PositionedFile::open(path)?, reading, latency, &counts))
    };
    DatasetOptions::new().max_open_files(reading.open_files).open_with(open)
}

impl CountingSource {
    fn new(file: PositionedFile, reading: Reading, latency: Duration, counts: &Arc<Counts>) -> Self {
        let lines = reading.line.map(|bytes| Lines { bytes, cached: Mutex::default() });
        Self { file, counts: counts.clone(), latency, reading, lines, prefetched: Mutex::default() }
    }

    /// Reads a small structure with one request.
    fn request(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.counts.small.fetch_add(1, Ordering::Relaxed);
        self.counts.small_bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        std::thread::sleep(self.latency);
        self.file.read_exact_at(offset, out)
    }

    /// Reads the lines of a small structure that are not cached, with one request.
    fn fill(&self, lines: &Lines, cached: &mut HashMap<u64, Vec<u8>>, requested: Range<u64>) -> io::Result<()> {
        let missing: Vec<u64> = requested.filter(|line| !cached.contains_key(line)).collect();
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Ok(()) };
        let start = first * lines.bytes;
        let end = ((last + 1) * lines.bytes).min(self.file.byte_count());
        let mut bytes = vec![0; (end - start) as usize];
        self.request(start, &mut bytes)?;
        cached.extend((*first..).zip(bytes.chunks(lines.bytes as usize).map(<[u8]>::to_vec)));
        Ok(())
    }
}

impl Source for CountingSource {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let Some(lines) = &self.lines else { return self.request(offset, out) };
        let end = offset + out.len() as u64;
        if end > self.file.byte_count() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut cached = lines.cached.lock().unwrap_or_else(PoisonError::into_inner);
        self.fill(lines, &mut cached, offset / lines.bytes..end.div_ceil(lines.bytes))?;
        for (at, byte) in (offset..).zip(out) {
            let line = cached.get(&(at / lines.bytes)).ok_or(io::ErrorKind::UnexpectedEof)?;
            *byte = *line.get((at % lines.bytes) as usize).ok_or(io::ErrorKind::UnexpectedEof)?;
        }
        Ok(())
    }

    fn coalesce(&self) -> CoalesceConfig {
        self.reading.coalesce()
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RangeError> {
        if ranges.is_empty() {
            return Ok(());
        }
        self.counts.rounds.fetch_add(1, Ordering::Relaxed);
        self.counts.ranges.fetch_add(ranges.len() as u64, Ordering::Relaxed);
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        self.counts.range_bytes.fetch_add(bytes, Ordering::Relaxed);
        std::thread::sleep(self.latency);
        self.file.read_ranges(ranges, out)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        let mut prefetched = self.prefetched.lock().unwrap_or_else(PoisonError::into_inner);
        for range in ranges.iter().filter(|range| prefetched.insert((*range).clone())) {
            self.counts.prefetched.fetch_add(1, Ordering::Relaxed);
            self.counts.prefetched_bytes.fetch_add(range.end - range.start, Ordering::Relaxed);
        }
    }
}

/// Opens a file. Returns the offset and length of each read that this takes.
pub fn opening_reads(path: &Path) -> tensilo::Result<Vec<Range<u64>>> {
    struct RecordingSource(PositionedFile, Arc<Mutex<Vec<Range<u64>>>>);
    impl Source for RecordingSource {
        fn byte_count(&self) -> u64 {
            self.0.byte_count()
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let mut reads = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            reads.push(offset..offset + out.len() as u64);
            self.0.read_exact_at(offset, out)
        }
    }
    let reads = Arc::new(Mutex::new(Vec::new()));
    OpenOptions::new().open_source(RecordingSource(PositionedFile::open(path)?, reads.clone()))?;
    let reads = reads.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(reads)
}
