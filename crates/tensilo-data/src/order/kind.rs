//! The orders that samples can have, and the sizes of runs and windows.
//!
//! A sequential order reads fastest and shuffles nothing. A full shuffle reads each sample
//! individually. A windowed order is the compromise: it reads runs of about 1 MiB, and mixes the
//! samples of up to 512 runs.

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
    /// Shuffles runs of consecutive samples, and then the samples within windows of runs. Files are
    /// read run by run.
    Windowed(WindowSizes),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("sequential"),
            Self::Shuffled => f.write_str("shuffled"),
            Self::Windowed(WindowSizes { run, window }) => {
                write!(f, "windowed (windows of {window} runs of {run} samples)")
            }
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
}

/// The default size of a run, and the maximum default size of a window, in bytes.
const RUN_BYTES: u64 = 1 << 20;
const WINDOW_BYTES: u64 = 256 << 20;
/// The maximum number of runs in a default window.
const MAX_WINDOW_RUNS: u64 = 512;

impl WindowSizes {
    /// Returns the sizes for runs of `run` samples and windows of `window` runs. Fails if either
    /// number is 0.
    pub fn new(run: u32, window: u32) -> Result<Self> {
        match (NonZeroU32::new(run), NonZeroU32::new(window)) {
            (Some(run), Some(window)) => Ok(Self { run, window }),
            _ => Err(DataError::BadArgument(format!(
                "runs of {run} samples in windows of {window} runs: expected at least 1 of each"
            ))),
        }
    }

    /// Returns the default sizes for samples with an average raw size of `bytes` bytes: runs of
    /// about 1 MiB, and windows of at most 512 runs and 256 MiB.
    pub fn for_sample_bytes(bytes: u64) -> Self {
        let of = |count: u64| u32::try_from(count).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
        let bytes = bytes.max(1);
        let run = (RUN_BYTES / bytes).max(1);
        let window = (WINDOW_BYTES / run.saturating_mul(bytes)).clamp(1, MAX_WINDOW_RUNS);
        Self { run: of(run), window: of(window) }
    }

    /// Returns the number of samples in a run, `K`.
    pub fn run(self) -> u32 {
        self.run.get()
    }

    /// Returns the number of runs in a window, `W`.
    pub fn window(self) -> u32 {
        self.window.get()
    }
}
