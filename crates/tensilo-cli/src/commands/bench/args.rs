//! The arguments of `tensilo bench`, and the code that both measurements share: percentiles of read
//! times, and dropping a file from the page cache.
//!
//! Each thread records the times of its first million reads only. This bounds the memory, and more
//! times would hardly change the percentiles. Cold reads need an operating system that can drop a
//! file from its page cache.

use crate::failure::{Failure, Outcome};
use crate::options::{Names, WindowArgs};
use crate::text::divide;
use clap::{Args, ValueEnum};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tensilo::error::display_path;

const BENCH: &str = "\
Examples:
  tensilo bench train.tsl                        random samples, one at a time
  tensilo bench train.tsl -c mel --batch 256     gathers of 256 samples
  tensilo bench train.tsl --access shuffled --threads 8
  tensilo bench train.tsl --cold --access sequential
  tensilo bench train.tsl --io mmap              from a memory map
  tensilo bench train.tsl --json | jq .ns_per_sample_p99
  tensilo bench train/ --loader --gpus 8 --step-ms 200
  tensilo bench train/ --loader --order shuffled

Samples with a fixed shape are read into preallocated memory; ragged samples and
lists are gathered into a buffer that grows. A batch is one gather.

--io mmap maps files into memory. Map a file only if no process changes or
truncates it while it is mapped: truncating it kills this program (SIGBUS), and
changing it causes wrong values or undefined behavior. Use pread on network file
systems.

Warm: every chunk is read once before the measurement, unless that takes more
than five times --seconds.
Cold: the file is dropped from the page cache first, and no more samples are
measured than the column has. Files in memory (tmpfs) cannot be dropped.

decoded       the decoded size of what is delivered, per second
p50, p99      percentiles of the time per sample; for batches, the time of a
              batch divided by its number of samples. They cover the first
              million reads of each thread, and include the time to read the
              clock.

With --loader, and always for a dataset, batches of several columns are taken as
fast as the decode threads deliver them. \"required\" is how much the GPUs
consume per second: the number of GPUs times the size of a batch, divided by the
time of a step. If less is delivered, the GPUs are idle for the rest of the
time. p50 and p99 are percentiles of the time to take a batch.

JSON, schema tensilo.bench/1 (these members are stable, and more may be added;
an unknown number is null):
  schema, file, column, dtype, sample_count, access, batch, threads, cold
  io           pread or mmap; object for an object store
  warmed_up    whether all chunks were read first
  read_samples, seconds, samples_per_s, decoded_gb_per_s (10^9)
  ns_per_sample_p50, ns_per_sample_p99
  decoded_bytes_per_sample

JSON with --loader, schema tensilo.bench-loader/1:
  schema, file, sample_count, file_count, file_bytes, order, batch, io, cold
  gpus, step_s, sample_bytes, required_gb_per_s, verdict
  runs         one entry for each number of decode threads: decode_threads,
               io_depth, read_samples, seconds, samples_per_s,
               delivered_gb_per_s,
               ns_per_batch_p50, ns_per_batch_p99, waiting_share,
               first_batch_s, read_bytes, planning_s, fetching_s, decoding_s";

#[derive(Args, Debug)]
#[command(after_help = BENCH)]
pub(crate) struct BenchArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(super) file: PathBuf,
    /// The column [default: the first tensor with a fixed shape, else the first scalar, else the
    /// first column]
    #[arg(short, long, value_name = "COLUMN")]
    pub(super) column: Option<String>,
    /// The order in which the samples of a column are read
    #[arg(long, value_enum, default_value_t)]
    pub(super) access: Access,
    /// Samples per read [default: 1; with --loader, 256, or all samples if there are fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) batch: Option<u32>,
    /// The number of reading threads, each with its own cursor; at most one per sample
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) threads: u32,
    /// Drop the file from the page cache first (Linux, Android, FreeBSD)
    #[arg(long)]
    pub(super) cold: bool,
    /// The I/O method
    #[arg(long, value_enum, default_value_t)]
    pub(super) io: IoName,
    /// The duration of the measurement
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "1")]
    pub(super) seconds: Duration,
    /// Print a JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) loader: LoaderArgs,
}

/// The values of `--io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum IoName {
    /// With --loader, choose by file system (and by size, if shuffled) and report why; for one
    /// column, pread
    #[default]
    Auto,
    /// Memory maps; no process may change or truncate the files while they are mapped
    Mmap,
    /// Positional reads, one range at a time
    Pread,
    /// Read all ranges of a batch at the same time (Linux, with --loader)
    #[value(name = "io_uring")]
    IoUring,
    /// io_uring with direct I/O (O_DIRECT), for datasets larger than memory
    Direct,
}

/// The values of `--access`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Access {
    /// Uniformly random with replacement; the same samples in every measurement
    #[default]
    Random,
    /// File order; each thread reads its own range
    Sequential,
    /// Every sample once per pass, each pass in a different order; the same in every measurement
    Shuffled,
}

/// The default of `--gpus`.
const DEFAULT_GPUS: u32 = 8;

#[derive(Args, Debug)]
#[command(next_help_heading = "Loader")]
pub(super) struct LoaderArgs {
    /// Measure the batches of a loader, which prefetches from a file or a dataset
    #[arg(long, conflicts_with_all = ["column", "access", "threads"])]
    pub(super) loader: bool,
    /// The columns of a batch [default: all]
    #[arg(long, value_name = "a,b")]
    pub(super) columns: Vec<Names>,
    /// The number of decode threads; auto tries larger and larger numbers until one is enough for
    /// the GPUs
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = decode_threads)]
    pub(super) decode_threads: DecodeThreads,
    /// The number of batches that are fetched at the same time; raise it for high-latency
    /// storage [default: the number of decode threads, but at least 4 for an object store]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) io_depth: Option<u32>,
    /// Decode on an NVIDIA GPU, such as cuda or cuda:1
    #[arg(long, value_name = "cuda[:N]", value_parser = device)]
    pub(super) device: Option<usize>,
    /// The order of samples
    #[arg(long, value_enum, default_value_t)]
    pub(super) order: OrderName,
    #[command(flatten)]
    pub(super) windows: WindowArgs,
    /// The number of GPUs of the training job; each GPU consumes one batch per step
    #[arg(long, value_name = "N", default_value_t = DEFAULT_GPUS, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) gpus: u32,
    /// The duration of a training step, in milliseconds
    #[arg(long, value_name = "MS", default_value = "200", value_parser = step)]
    pub(super) step_ms: Duration,
}

/// The values of `--order`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum OrderName {
    /// The stored order
    Sequential,
    /// A full shuffle: any sample can follow any other
    Shuffled,
    /// Runs of samples are shuffled, then the samples within windows of runs
    #[default]
    Windowed,
}

impl BenchArgs {
    /// Returns whether any option for reads of one column is set.
    pub(super) fn has_column_options(&self) -> bool {
        self.column.is_some() || self.access != Access::default() || self.threads != 1
    }

    /// Returns whether any option for batches of a loader is set.
    pub(super) fn has_loader_options(&self) -> bool {
        let LoaderArgs { columns, decode_threads, io_depth, device, order, windows, gpus, step_ms, .. } = &self.loader;
        let numbers = [*decode_threads, *io_depth];
        let is_set = !columns.is_empty() || device.is_some() || numbers.iter().any(Option::is_some);
        is_set
            || windows.is_set()
            || *order != OrderName::default()
            || *gpus != DEFAULT_GPUS
            || *step_ms != Duration::from_millis(200)
    }
}

/// Returns the command-line name of a choice.
pub(in crate::commands) fn name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The number of decode threads. `None` tries increasing numbers until one is enough.
type DecodeThreads = Option<u32>;

/// Parses `auto` or a number.
fn decode_threads(text: &str) -> Result<DecodeThreads, String> {
    match text.parse() {
        Ok(number @ 1..=1024) => Ok(Some(number)),
        _ if text == "auto" => Ok(None),
        _ => Err("expected auto, or a number from 1 to 1024".to_owned()),
    }
}

/// Parses a number in a range: `1`, `0.5`.
fn number(text: &str, range: RangeInclusive<f64>) -> Option<f64> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// Parses seconds: from 0.001 to 3600 (one hour).
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = number(text, 0.001..=3600.0).ok_or("expected seconds, from 0.001 to 3600")?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses milliseconds: from 0.001 to 3600000 (one hour).
pub(in crate::commands) fn step(text: &str) -> Result<Duration, String> {
    let milliseconds = number(text, 0.001..=3.6e6).ok_or("expected milliseconds, from 0.001 to 3600000")?;
    Ok(Duration::from_secs_f64(milliseconds / 1e3))
}

/// Parses the name of a GPU, and returns its number.
fn device(text: &str) -> Result<usize, String> {
    let number = match text {
        "cuda" => Some(0),
        _ => text.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
    };
    number.ok_or_else(|| "expected cuda, or cuda:N for GPU number N, such as cuda:1".to_owned())
}

/// The limit of the warm-up, as a multiple of the measuring time.
pub(super) const WARM_UP_FACTOR: u32 = 5;

/// The times of reads. Only the first million are recorded, which bounds the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(pub(super) Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        const MAX: usize = 1 << 20;
        if self.0.len() < MAX {
            self.0.push(time);
        }
    }

    /// Returns a percentile of the read times in nanoseconds, or `None` if there are no reads.
    pub(super) fn percentile(&mut self, percent: usize) -> Option<f64> {
        let rank = self.0.len().saturating_mul(percent).div_ceil(100).saturating_sub(1);
        self.0.sort_unstable();
        self.0.get(rank).map(|time| time.as_secs_f64() * 1e9)
    }
}

/// Returns an amount per second, or `None` if no time has passed.
pub(super) fn per_second(amount: u64, time: Duration) -> Option<f64> {
    divide(amount, time.as_secs_f64())
}

/// Drops the pages of a file from the page cache. Dirty pages are written back first, because the
/// operating system does not drop them.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(super) fn drop_from_cache(path: &Path) -> Outcome {
    use rustix::fs::{Advice, fadvise};
    let drop = || {
        let file = std::fs::File::open(path)?;
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(std::io::Error::from)
    };
    drop().map_err(|error| {
        Failure::Usage(format!("{}: --cold: cannot drop the file from the page cache: {error}", display_path(path)))
    })
}

/// Fails, because this operating system cannot drop a file from its page cache.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(super) fn drop_from_cache(_: &Path) -> Outcome {
    Err(Failure::Usage(
        "--cold: this system cannot drop a file from the page cache; Linux, Android and FreeBSD can".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(["", "0", "-1", "NaN", "inf", "3601", "1s"].iter().all(|text| seconds(text).is_err()));
        assert_eq!(step("200"), Ok(Duration::from_millis(200)));
        assert!(["0", "-1", "NaN", "", "3600001"].iter().all(|text| step(text).is_err()));
        assert_eq!((decode_threads("auto"), decode_threads("7")), (Ok(None), Ok(Some(7))));
        assert!(["0", "1025", "-1", "", "all"].iter().all(|text| decode_threads(text).is_err()));
        assert_eq!((device("cuda"), device("cuda:3")), (Ok(0), Ok(3)));
        assert!(["", "cpu", "cuda:", "cuda:-1", "1"].iter().all(|text| device(text).is_err()));
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut times = Times::default();
        assert_eq!(times.percentile(50), None);
        (1..=100).rev().for_each(|time| times.add(Duration::from_nanos(time)));
        for (percent, expected) in [(1, 1.0), (50, 50.0), (99, 99.0)] {
            assert!((times.percentile(percent).unwrap() - expected).abs() < 1e-3);
        }
    }
}
