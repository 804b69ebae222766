//! Measures reads of one column by several threads, each with its own cursor.
//!
//! Only reads are timed. The indices of the next samples are generated while the clock is stopped,
//! and buffers reach their final size in the warm-up. An access order selects the same samples in
//! every measurement. A shuffled pass uses the [`EpochOrder`] of the loader; its positions are
//! divided among the threads.
//!
//! How many bytes are read for a cold sample is not measured here; `tensilo inspect --wide` shows
//! it.

use super::args::{Access, BenchArgs, IoName, Times, WARM_UP_FACTOR, drop_from_cache, name, per_second};
use crate::failure::{Failure, Outcome};
use crate::open::{self, warn};
use crate::output::{Output, print_json};
use crate::sys;
use crate::text::{self, divide, or_dash, write_facts};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};
use tensilo::error::display_path;
use tensilo::source::Source;
use tensilo::{Column, ColumnBuffer, ColumnSchema, Cursor, OpenOptions, Reader, Result};
use tensilo_data::{EpochOrder, Io, Order};
use tensilo_object::Address;

/// Measures how fast one column is read.
pub(super) fn run(args: &BenchArgs, quiet: bool) -> Outcome {
    match args.io {
        IoName::Mmap if Address::is_url_path(&args.file) => {
            let path = display_path(&args.file);
            Err(Failure::Usage(format!("{path}: --io mmap maps files, not objects in a store")))
        }
        IoName::Mmap => {
            let mapped = sys::map(&args.file).map_err(|error| Failure::about(&args.file, error))?;
            run_on(args, quiet, mapped)
        }
        IoName::Auto | IoName::Pread => run_on(args, quiet, open::source(&args.file)?),
        IoName::IoUring | IoName::Direct => Err(Failure::Usage(
            "--io: io_uring and direct are only for batches; add --loader, or use pread or mmap".to_owned(),
        )),
    }
}

fn run_on(args: &BenchArgs, quiet: bool, source: impl Source + 'static) -> Outcome {
    let reader = OpenOptions::new().open_source(source).map_err(|error| Failure::about(&args.file, error))?;
    if !quiet {
        warn(&args.file, &reader);
    }
    let column = column(args, &reader)?;
    let mut report = measure(args, &column)?;
    if args.json {
        return print_json(&report.document());
    }
    let mut output = Output::stdout();
    report.write_text(&mut output)?;
    output.finish()
}

/// Returns the column that the user named. By default, returns the first tensor with a fixed shape,
/// else the first scalar, else the first column.
fn column(args: &BenchArgs, reader: &Reader) -> Outcome<Column> {
    if let Some(name) = &args.column {
        return reader.column(name).map_err(|error| Failure::about(&args.file, error));
    }
    let rank = |column: &Column| match &column.schema().shape {
        _ if column.schema().is_struct_nulls() => 3,
        shape if shape.is_ragged() => 2,
        shape => u8::from(shape.ndim() == 0),
    };
    let found = reader.columns().min_by_key(rank);
    found.ok_or_else(|| Failure::Usage(format!("{}: the file has no columns", display_path(&args.file))))
}

fn measure<'a>(args: &'a BenchArgs, column: &'a Column) -> Outcome<Report<'a>> {
    let about = |error| Failure::about(&args.file, error);
    let (sample_count, batch) = (column.sample_count(), args.batch.unwrap_or(1));
    let threads = u32::try_from(sample_count).unwrap_or(u32::MAX).min(args.threads);
    let worker = |thread| Worker::new(column, Sequence::new(args.access, sample_count, thread, threads), batch);
    let mut workers = (0..threads).map(worker).collect::<Outcome<Vec<Worker>>>()?;
    let warmed_up = match args.cold {
        true => drop_from_cache(&args.file).map(|()| false)?,
        false => {
            let time = args.seconds.saturating_mul(WARM_UP_FACTOR);
            let covered = on_threads(&mut workers, |worker| worker.warm_up(column, time))?;
            covered.into_iter().collect::<Result<Vec<bool>>>().map_err(about)?.into_iter().all(|covered| covered)
        }
    };
    let results = on_threads(&mut workers, |worker| worker.measure(args.seconds, args.cold))?;
    results.into_iter().collect::<Result<()>>().map_err(about)?;
    let mut counts = Counts::default();
    for worker in workers {
        counts.samples = counts.samples.saturating_add(worker.counts.samples);
        counts.decoded_bytes = counts.decoded_bytes.saturating_add(worker.counts.decoded_bytes);
        counts.busy = counts.busy.max(worker.counts.busy);
        counts.times.0.extend(worker.counts.times.0);
    }
    Ok(Report { args, column: column.schema(), sample_count, batch, threads, warmed_up, counts })
}

/// The counts and times of reads.
#[derive(Debug, Default)]
struct Counts {
    samples: u64,
    /// The size of all elements in bytes.
    decoded_bytes: u64,
    /// The time spent in reads. With several threads, the longest of their times.
    busy: Duration,
    /// The times of the reads, one for each batch.
    times: Times,
}

/// The state of a reading thread.
struct Worker {
    cursor: Cursor,
    /// The memory for a batch of samples with a fixed shape. Other samples are gathered into
    /// `buffer`.
    fixed: Option<Vec<u8>>,
    buffer: ColumnBuffer,
    sequence: Sequence,
    /// The next samples to read, in whole batches.
    next_samples: Vec<u64>,
    batch: usize,
    counts: Counts,
}

impl Worker {
    fn new(column: &Column, sequence: Sequence, batch: u32) -> Outcome<Self> {
        /// The number of samples whose indices are generated at a time, before it is rounded up to
        /// whole batches.
        const QUEUED_SAMPLES: usize = 1024;
        let schema = column.schema();
        let batch = usize::try_from(batch).unwrap_or(usize::MAX);
        let fixed = if schema.levels.is_empty() && !schema.shape.is_ragged() {
            let elements = schema.shape.inner_elements().and_then(|elements| usize::try_from(elements).ok());
            let bytes = elements.and_then(|count| count.checked_mul(batch)?.checked_mul(schema.dtype.element_bytes()));
            let mut fixed = Vec::new();
            let bytes = bytes.filter(|&bytes| fixed.try_reserve_exact(bytes).is_ok());
            let message = || format!("{batch} samples of this column do not fit in memory");
            fixed.resize(bytes.ok_or_else(|| Failure::Usage(message()))?, 0);
            Some(fixed)
        } else {
            None
        };
        let (cursor, buffer) = (column.cursor(), ColumnBuffer::new());
        let next_samples = vec![0; QUEUED_SAMPLES.next_multiple_of(batch)];
        Ok(Self { cursor, fixed, buffer, sequence, next_samples, batch, counts: Counts::default() })
    }

    /// Reads the samples at these positions of `next_samples`, and returns the size of their
    /// elements in bytes.
    fn read(&mut self, indices: Range<usize>) -> Result<usize> {
        let indices = self.next_samples.get(indices).unwrap_or(&[]);
        match (&mut self.fixed, indices) {
            (Some(out), [i]) => self.cursor.read_bytes(*i, out).map(|_| ())?,
            (Some(out), _) => self.cursor.gather_bytes(indices, out).map(|_| ())?,
            (None, _) => self.cursor.gather_into(indices, &mut self.buffer)?,
        }
        Ok(black_box(self.fixed.as_deref().unwrap_or_else(|| self.buffer.bytes())).len())
    }

    /// Reads a batch, which gives buffers their final size, and then one sample of each chunk.
    /// Stops after `time`. Returns whether all chunks were read.
    fn warm_up(&mut self, column: &Column, time: Duration) -> Result<bool> {
        let started = Instant::now();
        self.sequence.clone().fill(&mut self.next_samples);
        self.read(0..self.batch)?;
        for chunk in 0..column.facts().chunk_count {
            if started.elapsed() > time {
                return Ok(false);
            }
            if let (Some(chunk), Some(first)) = (column.chunk(chunk)?, self.next_samples.first_mut()) {
                *first = chunk.samples.start;
                self.read(0..1)?;
            }
        }
        Ok(true)
    }

    /// Reads and measures batches for `time`. If `once`, stops when it has read as many samples as
    /// this thread's share has.
    fn measure(&mut self, time: Duration, once: bool) -> Result<()> {
        let share = &self.sequence.share;
        let max = if once { share.end.saturating_sub(share.start) } else { u64::MAX };
        while self.counts.busy < time && self.counts.samples < max {
            self.sequence.fill(&mut self.next_samples);
            let mut last = Instant::now();
            for start in (0..self.next_samples.len()).step_by(self.batch) {
                let bytes = self.read(start..start.saturating_add(self.batch))?;
                let now = Instant::now();
                let counts = &mut self.counts;
                counts.times.add(now.duration_since(last));
                counts.busy += now.duration_since(last);
                last = now;
                // exact: usize has at most 64 bits
                counts.decoded_bytes = counts.decoded_bytes.saturating_add(bytes as u64);
                // exact: usize has at most 64 bits
                counts.samples = counts.samples.saturating_add(self.batch as u64);
                if counts.busy >= time || counts.samples >= max {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Runs `work` for each worker on a separate thread, and returns the results.
fn on_threads<W: Send, R: Send>(workers: &mut [W], work: impl Fn(&mut W) -> R + Sync) -> Outcome<Vec<R>> {
    let work = &work;
    thread::scope(|scope| {
        let mut running = Vec::with_capacity(workers.len());
        for worker in workers {
            let thread = thread::Builder::new().spawn_scoped(scope, move || work(worker));
            running.push(thread.map_err(|error| Failure::Usage(format!("cannot start a thread: {error}")))?);
        }
        Ok(running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect())
    })
}

/// An endless sequence of sample indices, the same in every measurement.
#[derive(Clone, Debug)]
struct Sequence {
    mode: Order,
    /// The state of the generator, if samples are random with replacement.
    random: Option<u64>,
    count: u64,
    /// The positions that this thread reads.
    share: Range<u64>,
    next: u64,
    epoch: u64,
    order: EpochOrder,
}

impl Sequence {
    /// Creates the sequence of thread `thread` of `threads`. `count` is at least 1 and at least
    /// `threads`.
    fn new(access: Access, count: u64, thread: u32, threads: u32) -> Self {
        let mode = if access == Access::Shuffled { Order::Shuffled } else { Order::Sequential };
        let random = (access == Access::Random).then(|| u64::from(thread).wrapping_mul(0x9E6C_63D0_876A_3F35));
        let at = |thread: u32| {
            let at = u128::from(count) * u128::from(thread) / u128::from(threads.max(1)); // < 2^96
            u64::try_from(at).unwrap_or(count) // at most `count`
        };
        let share = at(thread)..at(thread.saturating_add(1));
        Self { mode, random, count, next: share.start, share, epoch: 0, order: EpochOrder::new(mode, count, 0, 0) }
    }

    /// Writes the next samples to `out`.
    fn fill(&mut self, out: &mut [u64]) {
        out.iter_mut().for_each(|sample| *sample = self.sample());
    }

    fn sample(&mut self) -> u64 {
        if let Some(state) = &mut self.random {
            return below(state, self.count);
        }
        if self.next >= self.share.end {
            self.next = self.share.start;
            self.epoch = self.epoch.wrapping_add(1);
            self.order = EpochOrder::new(self.mode, self.count, 0, self.epoch);
        }
        let position = self.next;
        self.next = position.saturating_add(1);
        self.order.sample_at(position).unwrap_or(0) // the position is below the number of samples
    }
}

/// Returns a uniformly random number below `end`, from the SplitMix64 generator. The bias is less
/// than `end` x 2^-64.
fn below(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let scaled = (u128::from(bits ^ (bits >> 31)) * u128::from(end)) >> 64;
    u64::try_from(scaled).unwrap_or(0) // below `end`
}

/// The results of a measurement.
struct Report<'a> {
    args: &'a BenchArgs,
    column: &'a ColumnSchema,
    /// The number of samples in the column.
    sample_count: u64,
    batch: u32,
    threads: u32,
    /// Whether all chunks were read in the warm-up.
    warmed_up: bool,
    counts: Counts,
}

impl Report<'_> {
    fn io(&self) -> &'static str {
        let io = match self.args.io {
            IoName::Mmap => Io::Mmap,
            _ if Address::is_url_path(&self.args.file) => Io::Object,
            _ => Io::Pread,
        };
        io.name()
    }

    /// Returns the 50th and the 99th percentile of the time of a batch, divided by its number of
    /// samples.
    fn percentiles(&mut self) -> [Option<f64>; 2] {
        let batch = f64::from(self.batch);
        [50, 99].map(|percent| Some(self.counts.times.percentile(percent)? / batch))
    }

    /// Returns the JSON document of schema `tensilo.bench/1`.
    fn document(&mut self) -> Value {
        let [p50, p99] = self.percentiles();
        let (args, counts) = (self.args, &self.counts);
        json!({
            "schema": "tensilo.bench/1",
            "file": args.file.to_string_lossy(),
            "column": self.column.name,
            "dtype": self.column.dtype.name(),
            "sample_count": self.sample_count,
            "access": name(args.access),
            "batch": self.batch,
            "threads": self.threads,
            "io": self.io(),
            "cold": args.cold,
            "warmed_up": self.warmed_up,
            "read_samples": counts.samples,
            "seconds": counts.busy.as_secs_f64(),
            "samples_per_s": per_second(counts.samples, counts.busy),
            "decoded_gb_per_s": per_second(counts.decoded_bytes, counts.busy).map(|rate| rate / 1e9),
            "ns_per_sample_p50": p50,
            "ns_per_sample_p99": p99,
            // an approximation
            "decoded_bytes_per_sample": divide(counts.decoded_bytes, counts.samples as f64),
        })
    }

    /// Writes the results as text.
    fn write_text(&mut self, output: &mut impl io::Write) -> io::Result<()> {
        let [p50, p99] = self.percentiles();
        let (args, column, counts) = (self.args, self.column, &self.counts);
        let cache = match (args.cold, self.warmed_up) {
            (true, _) => "cold",
            (false, true) => "warm",
            (false, false) => "partly warm",
        };
        let (file, name_of_column) = (text::excerpt(&args.file.to_string_lossy()), text::excerpt(&column.name));
        let rate = |rate: Option<f64>| or_dash(rate, |rate| format!("{rate:.0}"));
        let decoded = per_second(counts.decoded_bytes, counts.busy);
        write_facts(
            output,
            &[
                ("file", file),
                (
                    "column",
                    format!("{name_of_column}, {} {}, {} samples", column.dtype, column.shape, self.sample_count),
                ),
                ("io", self.io().to_owned()),
                ("reads", format!("{}, batch {}, threads {}, {cache}", name(args.access), self.batch, self.threads)),
                ("measured", format!("{} samples in {:.2} s", counts.samples, counts.busy.as_secs_f64())),
                ("samples/s", rate(per_second(counts.samples, counts.busy))),
                ("decoded", or_dash(decoded, |rate| format!("{:.3} GB/s", rate / 1e9))),
                ("p50", or_dash(p50, text::nanoseconds)),
                ("p99", or_dash(p99, text::nanoseconds)),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(access: Access, count: u64, threads: u32) -> Vec<u64> {
        let mut all = Vec::new();
        for thread in 0..threads {
            let mut sequence = Sequence::new(access, count, thread, threads);
            let mut out = vec![0; usize::try_from(sequence.share.end - sequence.share.start).unwrap()];
            sequence.fill(&mut out);
            all.extend(out);
        }
        all
    }

    #[test]
    fn a_pass_has_each_sample_once() {
        for count in [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097] {
            for threads in [1, 2, 7] {
                let in_order: Vec<u64> = (0..count).collect();
                assert_eq!(pass(Access::Sequential, count, threads), in_order);
                let mut samples = pass(Access::Shuffled, count, threads);
                assert!(count < 63 || samples != in_order);
                samples.sort_unstable();
                assert_eq!(samples, in_order, "{count} samples, {threads} threads");
            }
        }
        let mut out = [0; 200];
        Sequence::new(Access::Shuffled, 100, 0, 1).fill(&mut out);
        assert_ne!(out[..100], out[100..], "the next pass has a different order");
        let mut counts = [0_u32; 10];
        let samples = pass(Access::Random, 10_000, 2);
        samples.iter().for_each(|&i| counts[usize::try_from(i / 1000).unwrap()] += 1);
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_eq!(samples, pass(Access::Random, 10_000, 2));
    }
}
