//! Chapter 3 of `ORDER.md`: runs of consecutive samples are permuted, then the samples inside of
//! windows of runs.

use super::kind::WindowSizes;
use super::permutation::{Permutation, Purpose, key};
use std::ops::Range;

/// Samples that are found together, with memory on the stack.
const LOOKUP_BATCH: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Windowed {
    n: u64,
    seed: u64,
    epoch: u64,
    /// Samples of a run, and runs of a window; at most those that there are.
    run: u64,
    window: u64,
    runs: Permutation,
    /// The place of the short run in the order, the number of its window, and the samples that it
    /// lacks. All that lies after it is moved by these.
    short_run: u64,
    short_window: u64,
    shortfall: u64,
}

impl Windowed {
    pub(super) fn new(sizes: WindowSizes, n: u64, seed: u64, epoch: u64) -> Self {
        // with larger ones the order would be the same
        let run = u64::from(sizes.run.get()).min(n.max(1));
        let count = n.div_ceil(run);
        let window = u64::from(sizes.window.get()).min(count.max(1));
        let runs = Permutation::new(key(Purpose::Runs, [seed, epoch]), count);
        let short_run = count.checked_sub(1).and_then(|last| runs.position_of(last)).unwrap_or(0);
        let shortfall = (run - n % run) % run; // at least 1 minus less than that
        Self { n, seed, epoch, run, window, runs, short_run, short_window: short_run / window, shortfall }
    }

    pub(super) fn sample_at(&self, p: u64) -> Option<u64> {
        let window = self.window_of(p).filter(|_| p < self.n)?;
        let j = self.permutation_of(window).at(p.checked_sub(self.begin(window))?)?;
        let (run, in_run) = self.run_of(window, j);
        Some(self.runs.at(run)? * self.run + in_run) // below n
    }

    /// Replaces positions, all of which are below `n`, by the samples there.
    pub(super) fn replace(&self, mut positions: &mut [u64]) {
        while let Some(window) = positions.first().and_then(|&p| self.window_of(p)) {
            let in_window = self.begin(window)..self.begin(window.saturating_add(1));
            let count = positions.iter().take_while(|position| in_window.contains(position)).count();
            let (some, rest) = positions.split_at_mut(count.clamp(1, LOOKUP_BATCH));
            some.iter_mut().for_each(|position| *position -= in_window.start); // inside of it
            self.replace_in(window, some);
            positions = rest;
        }
    }

    /// Replaces positions in a window, at most [`LOOKUP_BATCH`], by samples.
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

    /// Returns the window of a position; `None` without samples.
    fn window_of(&self, p: u64) -> Option<u64> {
        let full = self.run * self.window; // at most twice n: see `new`
        let short_end = self.begin(self.short_window.saturating_add(1));
        if p < short_end { p.checked_div(full) } else { p.saturating_add(self.shortfall).checked_div(full) }
    }

    /// Returns the run in the order that number `j` of a window's samples is in, and its place in
    /// that.
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
        // below the samples of a window
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
        self.runs.n()
    }

    /// Returns the samples of run `q` of the order.
    pub(super) fn run_at(&self, q: u64) -> Option<Range<u64>> {
        let start = self.runs.at(q)?.saturating_mul(self.run); // below n
        Some(start..start.saturating_add(self.run).min(self.n))
    }

    /// Returns how many runs are in the window of a position and in those before.
    pub(super) fn runs_begun(&self, p: u64) -> u64 {
        let full = self.run.saturating_mul(self.window).max(1);
        // exact enough: the short run is one of many
        (p / full).saturating_add(1).saturating_mul(self.window)
    }

    /// Returns how many runs, from the first on, an epoch should have announced when it is at a
    /// position: all of its window, and as much of the next one as is done of this one.
    pub(super) fn runs_to_prefetch(&self, p: u64) -> u64 {
        let full = self.run.saturating_mul(self.window).max(1);
        self.runs_begun(p).saturating_add(p % full / self.run.max(1))
    }

    /// Returns the position at which a window begins; `n` of those after the last.
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
