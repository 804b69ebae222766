//! What `tensilo bench` can be asked for.

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
  tensilo bench train.tsl --map                  out of a memory map
  tensilo bench train.tsl --json | jq .ns_per_sample_p99

A sample of a fixed shape is read into memory that is there, a ragged one is
read and copied; a batch is one gather.

The file is read by position, or out of a memory map with --map. Only map a
file that no process changes or truncates before the end: a truncated one
kills this program (SIGBUS), a changed one gives wrong values or worse. A file
that is replaced by renaming, as tensilo does, is safe. Of a network file
system that cannot be said; read those by position.

Warm: every chunk is read before, at most for five times --seconds. Cold: the
file's pages are dropped from the page cache, and the reads of a new reader
are measured, at most as many as there are samples. What it reads is cached
again: in a small file only the first samples are cold. Nothing can be dropped
from a file system that lives in memory.

decoded       bytes of the elements that were delivered
memcpy        copies of as many bytes for each sample, out of a buffer of
              256 MiB, in the same pattern, batches and threads
p50, p99      of the time of a sample; of a batch, its time divided by its
              samples. They are right to 2 %, and include reading the clock.
from the file what the measured reads took from the file: chunks, their heads
              (64 bytes) and entries of the index (32 bytes). A chunk counts
              each time it is read. Read amplification is this, divided by
              the decoded bytes. Of a map it cannot be told.

JSON, schema tensilo.bench/1 (members may be added, those named here stay; a
number that cannot be told is null):
  schema, file, column, dtype, sample_count, pattern, batch, threads, cold
  access       by-position or mapped
  warmed_up    whether all chunks were read before
  verification first-touch, always or never
  samples, seconds, samples_per_s, decoded_gb_per_s, memcpy_gb_per_s (10^9)
  ns_per_sample_p50, ns_per_sample_p99
  decoded_bytes_per_sample, stored_bytes_per_sample, read_amplification";

/// `tensilo bench`
#[derive(Args, Debug)]
#[command(after_help = BENCH)]
pub(crate) struct BenchArgs {
    /// A tensilo file
    pub(crate) file: PathBuf,
    /// The column [default: the first of a fixed shape that is not scalar, else the first scalar, else the first]
    #[arg(short, long, value_name = "COLUMN")]
    pub(crate) column: Option<String>,
    /// In which order samples are read
    #[arg(long, value_enum, default_value_t)]
    pub(crate) pattern: Pattern,
    /// Samples of one read
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) batch: u32,
    /// Threads that read, each with its own cursor; not more than there are samples
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Drop the file from the page cache first (Linux, Android, FreeBSD)
    #[arg(long)]
    pub(crate) cold: bool,
    /// Map the file instead of reading it by position; nothing may change or truncate it meanwhile
    #[arg(long)]
    pub(crate) map: bool,
    /// How long to measure
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "1")]
    pub(crate) seconds: Duration,
    /// When the checksum of a chunk is checked
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) verification: Check,
    /// Print a JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `--pattern`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// Uniform, with replacement, the same in every run
    #[default]
    Random,
    /// As they stand in the file, each thread its own part of it
    Sequential,
    /// Each sample once, in an order that is the same in every run, then again in another
    Shuffled,
}

impl Pattern {
    /// As on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sequential => "sequential",
            Self::Shuffled => "shuffled",
        }
    }
}

/// `--verification`
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
    /// As on the command line.
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

/// `1`, `0.5`: above 0, at most an hour.
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
