//! The windowed order: runs are permuted, then the samples of each window (chapter 3 of
//! `ORDER.md`).
//!
//! A full shuffle reads each sample individually. Here, the samples are divided into runs of `K`
//! consecutive samples, and the runs are permuted. Every `W` consecutive runs form a window, and
//! the samples of a window are permuted among themselves. So files are read in whole runs.
//!
//! If `K` divided `n`, all windows but the last would have `K * W` samples, and a lookup would be a
//! few divisions:
//!
//! ```text
//! sample_at(p):
//!     w = p / (K * W)                                  the window
//!     j = permutation of window w, at p % (K * W)      an index in the list of its samples
//!     q = w * W + j / K                                the run, by its rank in the order
//!     return (permutation of runs, at q) * K + j % K
//! ```
//!
//! In general, the run with the last samples is `shortfall` samples short. It can be anywhere in
//! the order, at rank `short_run`, and everything after it starts `shortfall` positions earlier.
//! This is the only irregularity, and a few comparisons handle it. [`Windowed::begin`] moves the
//! windows after the short run, and [`Windowed::window_of`] undoes this for a position. In the
//! window of the short run, [`Windowed::run_of`] skips the missing samples. So no list of runs or
//! windows is needed, and the inverse works the same way.

use super::kind::WindowSizes;
use super::permutation::{Permutation, Purpose, key};
use std::ops::Range;

/// The maximum number of samples that are looked up together, in a buffer on the stack.
const LOOKUP_BATCH: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Windowed {
    n: u64,
    seed: u64,
    epoch: u64,
    /// The number of samples in a run and the number of runs in a window. [`Windowed::new`] clamps
    /// them to the numbers that exist.
    run: u64,
    window: u64,
    runs: Permutation,
    /// The rank of the short run in the order, its window, and the number of samples that it lacks.
    /// All positions after the short run are lower by `shortfall`.
    short_run: u64,
    short_window: u64,
    shortfall: u64,
}

impl Windowed {
    pub(super) fn new(sizes: WindowSizes, n: u64, seed: u64, epoch: u64) -> Self {
        // larger sizes would produce the same order
        let run = u64::from(sizes.run.get()).min(n.max(1));
        let count = n.div_ceil(run);
        let window = u64::from(sizes.window.get()).min(count.max(1));
        let runs = Permutation::new(key(Purpose::Runs, [seed, epoch]), count);
        let short_run = count.checked_sub(1).and_then(|last| runs.position_of(last)).unwrap_or(0);
        let shortfall = (run - n % run) % run; // no underflow: run > n % run
        Self { n, seed, epoch, run, window, runs, short_run, short_window: short_run / window, shortfall }
    }

    pub(super) fn sample_at(&self, p: u64) -> Option<u64> {
        let window = self.window_of(p).filter(|_| p < self.n)?;
        let j = self.permutation_of(window).at(p.checked_sub(self.begin(window))?)?;
        let (run, in_run) = self.run_of(window, j);
        Some(self.runs.at(run)? * self.run + in_run) // below n
    }

    /// Replaces each position with its sample. All positions must be below `n`.
    pub(super) fn replace(&self, mut positions: &mut [u64]) {
        while let Some(window) = positions.first().and_then(|&p| self.window_of(p)) {
            let in_window = self.begin(window)..self.begin(window.saturating_add(1));
            let count = positions.iter().take_while(|position| in_window.contains(position)).count();
            let (some, rest) = positions.split_at_mut(count.clamp(1, LOOKUP_BATCH));
            some.iter_mut().for_each(|position| *position -= in_window.start); // no underflow: it is in the window
            self.replace_in(window, some);
            positions = rest;
        }
    }

    /// Replaces at most [`LOOKUP_BATCH`] positions within a window with their samples.
    fn replace_in(&self, window: u64, positions: &mut [u64]) {
        self.permutation_of(window).replace(positions);
        let mut runs = [0; LOOKUP_BATCH];
        let runs = runs.get_mut(..positions.len()).unwrap_or(&mut []);
        for (number, run) in positions.iter_mut().zip(runs.iter_mut()) {
            (*run, *number) = self.run_of(window, *number);
        }
        self.runs.replace(runs);
        let starts = runs.iter().map(|run| run * self.run); // below n
        positions.iter_mut().zip(starts).for_each(|(number, start)| *number += start);
    }

    /// Returns the window of a position, or `None` if there are no samples.
    fn window_of(&self, p: u64) -> Option<u64> {
        let full = self.run * self.window; // at most twice n: see `new`
        let short_end = self.begin(self.short_window.saturating_add(1));
        if p < short_end { p.checked_div(full) } else { p.saturating_add(self.shortfall).checked_div(full) }
    }

    /// Returns the rank of the run that has sample `j` of a window, and the index of the sample in
    /// the run.
    fn run_of(&self, window: u64, mut j: u64) -> (u64, u64) {
        let first = window * self.window; // at most the number of runs
        let short_end = self.short_run.saturating_sub(first) * self.run + self.run - self.shortfall;
        if window == self.short_window && j >= short_end {
            j += self.shortfall;
        }
        (first + j / self.run, j % self.run)
    }

    pub(super) fn position_of(&self, sample: u64) -> Option<u64> {
        if sample >= self.n {
            return None;
        }
        let run = self.runs.position_of(sample / self.run)?;
        let window = run / self.window;
        // below the number of samples of the window
        let mut j = run % self.window * self.run + sample % self.run;
        if window == self.short_window && run > self.short_run {
            j = j.checked_sub(self.shortfall)?;
        }
        Some(self.begin(window) + self.permutation_of(window).position_of(j)?) // below n
    }

    pub(super) fn sample_count(&self) -> u64 {
        self.n
    }

    /// Returns the number of runs.
    pub(super) fn run_count(&self) -> u64 {
        self.runs.member_count()
    }

    /// Returns the samples of the run with rank `q` in the order.
    pub(super) fn run_at(&self, q: u64) -> Option<Range<u64>> {
        let start = self.runs.at(q)?.saturating_mul(self.run); // below n
        Some(start..start.saturating_add(self.run).min(self.n))
    }

    /// Returns the number of runs in the window of a position and in all windows before it.
    pub(super) fn runs_begun(&self, p: u64) -> u64 {
        let full = self.run.saturating_mul(self.window).max(1);
        // ignores the shortfall, which is less than one run
        (p / full).saturating_add(1).saturating_mul(self.window)
    }

    /// Returns the number of runs, counted from the first, that should have been prefetched by the
    /// time the epoch reaches a position. These are all runs up to the end of its window, and as
    /// large a share of the next window as has been read of this window.
    pub(super) fn runs_to_prefetch(&self, p: u64) -> u64 {
        let full = self.run.saturating_mul(self.window).max(1);
        self.runs_begun(p).saturating_add(p % full / self.run.max(1))
    }

    /// Returns the position at which a window starts, or `n` for windows after the last.
    fn begin(&self, window: u64) -> u64 {
        let shortfall = if window > self.short_window { self.shortfall } else { 0 };
        let full = self.run * self.window; // at most twice n: see `new`
        window.saturating_mul(full).saturating_sub(shortfall).min(self.n)
    }

    fn permutation_of(&self, window: u64) -> Permutation {
        let samples = self.begin(window.saturating_add(1)) - self.begin(window); // ascending
        Permutation::new(key(Purpose::Window, [self.seed, self.epoch, window]), samples)
    }
}
