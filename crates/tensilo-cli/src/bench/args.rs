//! The arguments of `tensilo bench`.

use super::loader::LoaderArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use tensilo::Verification;

const BENCH: &str = "\
Examples:
  tensilo bench train.tsl                        random samples, one at a time
  tensilo bench train.tsl -c mel --batch 256     gathers of 256 samples
  tensilo bench train.tsl --pattern shuffled --threads 8
  tensilo bench train.tsl --cold --pattern sequential
  tensilo bench train.tsl --io mmap              from a memory map
  tensilo bench train.tsl --json | jq .ns_per_sample_p99
  tensilo bench train/ --loader --gpus 8 --step-ms 200
  tensilo bench train/ --loader --order shuffled --svg loader.svg

A sample of a fixed shape is read into allocated memory. A ragged sample is read
and copied. A batch is one gather.

One column is read with pread, or from a memory map with --io mmap. Only map a
file that no process changes or truncates meanwhile: a truncated file kills this
program (SIGBUS), a changed file gives wrong values or undefined behaviour. A
file that is replaced by renaming, as tensilo does, is safe. Network file
systems give no such guarantee; read their files with pread.

Warm: every chunk is read once before, for at most five times --seconds.
Cold: the pages of the file are dropped from the page cache, and a new reader is
measured for at most as many reads as the column has samples. Its reads fill the
cache again: in a small file only the first samples are cold. Files in memory
(tmpfs) cannot be dropped.

decoded       bytes of the delivered elements
memcpy        copies of as many bytes for each sample, from a buffer of
              256 MiB, in the same pattern, batches and threads
p50, p99      of the time of a sample; of a batch, its time divided by its
              samples. Precise to 2 %, including the time to read the clock.
from the file bytes and requests of the measured reads, single samples or
              batches: entries of the index (32 bytes); whole chunks and their
              heads (64 bytes), or fronts and blocks; raw samples alone. A block
              counts each time it is read. Read amplification is the bytes
              divided by the decoded bytes. For a map all are unknown.

With --loader, and always of a dataset, batches of several columns are taken as
fast as threads deliver them. Required is what the GPUs take: their number times
the bytes of a batch, divided by the time of a step. If less is delivered, they
wait for the rest of the time. With --order, the order is compared with a true
shuffle. p50 and p99 are of the time until a batch is taken: little, if it is
ready. A program reads files in the same way if it has the feature io-uring of
tensilo-data.

JSON, schema tensilo.bench/1 (members may be added; those named here stay; an
unknown number is null):
  schema, file, column, dtype, sample_count, pattern, batch, threads, cold
  io           pread or mmap
  warmed_up    whether all chunks were read before
  verification first-touch, always or never
  samples, seconds, samples_per_s, decoded_gb_per_s, memcpy_gb_per_s (10^9)
  ns_per_sample_p50, ns_per_sample_p99
  decoded_bytes_per_sample, stored_bytes_per_sample, read_amplification
  requests_per_sample  of the file; also of a batch, divided by its samples

JSON with --loader, schema tensilo.bench-loader/1:
  schema, file, sample_count, files, stored_bytes, order, batch, io, cold
  gpus, step_s, sample_bytes, required_gb_per_s, verdict
  runs         for each number of decode threads: decode_threads, io_depth,
               samples, seconds, samples_per_s, delivered_gb_per_s,
               ns_per_batch_p50, ns_per_batch_p99, waiting_share,
               first_batch_s, read_bytes, planning_s, fetching_s, decoding_s
  quality      null, or order and true_shuffle, each with neighbours, distance,
               run_distance, labels_per_batch";

/// The limit of the warm-up, as a multiple of the measuring time.
pub(super) const WARM_UP: u32 = 5;

/// The arguments of `tensilo bench`.
#[derive(Args, Debug)]
#[command(after_help = BENCH)]
pub(crate) struct BenchArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(crate) file: PathBuf,
    /// The column [default: the first of a fixed shape that is not scalar, else the first scalar,
    /// else the first column]
    #[arg(short, long, value_name = "COLUMN")]
    pub(crate) column: Option<String>,
    /// The order in which samples are read
    #[arg(long, value_enum, default_value_t)]
    pub(crate) pattern: Pattern,
    /// Samples per read [default: 1; with --loader 256, or all if they are fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) batch: Option<u32>,
    /// Threads that read, each with its own cursor; at most one per sample
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Drop the file from the page cache first (Linux, Android, FreeBSD)
    #[arg(long)]
    pub(crate) cold: bool,
    /// How files are read
    #[arg(long, value_enum, default_value_t)]
    pub(crate) io: IoName,
    /// The duration of the measurement
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "1")]
    pub(crate) seconds: Duration,
    /// When the checksum of a chunk is checked
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) verification: Check,
    /// Print a JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}

impl BenchArgs {
    /// Returns whether any option asks for the reads of one column.
    pub(super) fn is_about_a_column(&self) -> bool {
        let is_usual = self.pattern == Pattern::default() && self.verification == Check::default() && self.threads == 1;
        self.column.is_some() || !is_usual
    }

    /// Returns whether one column is read from a memory map.
    pub(super) fn is_mapped(&self) -> bool {
        self.io == IoName::Mmap
    }

    /// Returns the samples per read, without a loader.
    pub(crate) fn batch(&self) -> u32 {
        self.batch.unwrap_or(1)
    }
}

/// The values of `--io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoName {
    /// As suits the file system and the size of the files; the report says why
    #[default]
    Auto,
    /// Memory maps; no process may change or truncate the files meanwhile
    Mmap,
    /// One range after the other
    Pread,
    /// All ranges of a batch at the same time (Linux, with --loader)
    #[value(name = "io_uring")]
    IoUring,
    /// The same with direct I/O (O_DIRECT), for datasets larger than memory
    Direct,
}

/// The values of `--pattern`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// Uniform, with replacement, the same in every run
    #[default]
    Random,
    /// File order; each thread reads its own part
    Sequential,
    /// Each sample once, in an order that is the same in every run, then again in another order
    Shuffled,
}

impl Pattern {
    /// Returns the name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sequential => "sequential",
            Self::Shuffled => "shuffled",
        }
    }
}

/// The values of `--verification`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Check {
    /// When a chunk is read for the first time
    #[default]
    FirstTouch,
    /// Each time a chunk is read
    Always,
    /// Never
    Never,
}

impl Check {
    /// Returns the name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FirstTouch => "first-touch",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

impl From<Check> for Verification {
    fn from(check: Check) -> Self {
        match check {
            Check::FirstTouch => Self::FirstTouch,
            Check::Always => Self::Always,
            Check::Never => Self::Never,
        }
    }
}

/// Parses seconds: `1`, `0.5`; above 0, at most an hour.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write seconds, 0.001 to 3600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "0", "-1", "NaN", "inf", "3601", "1s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        let on_line = |value: clap::builder::PossibleValue| value.get_name().to_owned();
        for pattern in Pattern::value_variants() {
            assert_eq!(pattern.to_possible_value().map(on_line).as_deref(), Some(pattern.name()));
        }
        for check in Check::value_variants() {
            assert_eq!(check.to_possible_value().map(on_line).as_deref(), Some(check.name()));
        }
    }
}
