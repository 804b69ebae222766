//! The orders that samples can have, and the sizes of runs, windows and streams.
//!
//! A sequential order reads fastest and shuffles nothing. A full shuffle reads each sample
//! individually. A windowed order is the compromise: it reads runs of about 1 MiB, and mixes the
//! samples of all windows, which hold up to 2 GiB together.

use crate::error::{DataError, Result};
use std::fmt;
use std::num::NonZeroU32;

/// How the samples of an epoch are shuffled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// No shuffle: position `p` has sample `p`.
    Sequential,
    /// Shuffles all samples at once: any sample can follow any other.
    Shuffled,
    /// Deals runs of consecutive samples to streams, and shuffles the runs of each stream, and the
    /// samples within windows of runs. Files are read run by run, and each rank reads the runs of
    /// its own streams.
    Windowed(WindowSizes),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("sequential"),
            Self::Shuffled => f.write_str("shuffled"),
            Self::Windowed(sizes) => write!(f, "windowed ({sizes})"),
        }
    }
}

/// The sizes of [`Order::Windowed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowSizes {
    /// The number of consecutive samples in a run.
    pub(crate) run: NonZeroU32,
    /// The number of runs in a window.
    pub(crate) window: NonZeroU32,
    /// The number of streams is `1 << stream_bits`.
    pub(crate) stream_bits: u32,
}

/// The default maximum size of the windows of all streams together, in stored bytes.
const WINDOWS_BYTES: u64 = 2 << 30;
/// The number of runs that each stream has at least, with the default number of streams.
const MIN_STREAM_RUNS: u64 = 16;

impl WindowSizes {
    /// The maximum number of streams.
    pub const MAX_STREAMS: u32 = 1024;
    /// The default size of a run of a file, in stored bytes.
    pub const FILE_RUN_BYTES: u64 = 1 << 20;
    /// The default size of a run in an object store, in stored bytes. It is larger, because a
    /// request has a high latency.
    pub const OBJECT_RUN_BYTES: u64 = 4 << 20;

    /// Returns the sizes for runs of `run_samples` samples and windows of `window_runs` runs, with
    /// one stream. Fails if either number is 0.
    pub fn new(run_samples: u32, window_runs: u32) -> Result<Self> {
        match (NonZeroU32::new(run_samples), NonZeroU32::new(window_runs)) {
            (Some(run), Some(window)) => Ok(Self { run, window, stream_bits: 0 }),
            _ => Err(DataError::BadArgument(format!(
                "runs of {run_samples} samples in windows of {window_runs} runs: expected at least 1 of each"
            ))),
        }
    }

    /// Sets the number of streams. Fails unless it is a power of two of at most
    /// [`WindowSizes::MAX_STREAMS`].
    ///
    /// With at least as many streams as ranks, each rank reads its own runs only. Each stream has
    /// its own windows of `window_runs` runs, so all windows together hold `streams` times as many
    /// samples.
    pub fn with_streams(mut self, streams: u32) -> Result<Self> {
        if !streams.is_power_of_two() || streams > Self::MAX_STREAMS {
            let message = format!("{streams} streams: expected a power of two, at most {}", Self::MAX_STREAMS);
            return Err(DataError::BadArgument(message));
        }
        self.stream_bits = streams.trailing_zeros();
        Ok(self)
    }

    /// Returns the default sizes for `sample_count` samples that take `stored_bytes`: runs of about
    /// `run_bytes`, such as [`WindowSizes::FILE_RUN_BYTES`]; as many streams as leave 16 runs for
    /// each, so small datasets have one; and the largest windows that take at most 2 GiB together.
    /// The number of streams is low enough that a window has at least two runs.
    pub fn for_dataset(sample_count: u64, stored_bytes: u64, run_bytes: u64) -> Self {
        let of = |count: u64| u32::try_from(count).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
        let sample_bytes = stored_bytes.checked_div(sample_count).unwrap_or(0).max(1);
        let run = of((run_bytes / sample_bytes).max(1));
        let run_bytes = sample_bytes.saturating_mul(u64::from(run.get()));
        let runs = sample_count.div_ceil(run.get().into());
        let max_streams = (runs / MIN_STREAM_RUNS).min(WINDOWS_BYTES / 2 / run_bytes);
        let stream_bits = max_streams.clamp(1, Self::MAX_STREAMS.into()).ilog2();
        let window = of(((WINDOWS_BYTES / run_bytes) >> stream_bits).max(2));
        Self { run, window, stream_bits }
    }

    /// Returns the number of samples in a run, `K`.
    pub fn run_samples(self) -> u32 {
        self.run.get()
    }

    /// Returns the number of runs in a window of a stream, `W`.
    pub fn window_runs(self) -> u32 {
        self.window.get()
    }

    /// Returns the number of streams, `S`.
    pub fn streams(self) -> u32 {
        1 << self.stream_bits // at most 1,024
    }
}

impl fmt::Display for WindowSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (run, window, streams) = (self.run, self.window, self.streams());
        write!(
            f,
            "windows of {window} runs of {run} samples, in {streams} stream{}",
            if streams == 1 { "" } else { "s" }
        )
    }
}
