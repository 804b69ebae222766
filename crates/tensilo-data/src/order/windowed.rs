//! The windowed order: runs are dealt to streams, and shuffled within each stream (chapter 3 of
//! `ORDER.md`).
//!
//! A full shuffle reads each sample individually. Here, the samples are divided into runs of `K`
//! consecutive samples, and files are read in whole runs. Runs are dealt to `S` streams in turn.
//! Each stream permutes its runs, and the samples within each window of `W` runs. The order takes
//! one sample from each stream in turn, so any stretch of it has samples of all streams, while a
//! machine that takes the samples of a few streams reads the runs of these streams only.
//!
//! If all streams had equally many samples, a lookup would be a few divisions:
//!
//! ```text
//! sample_at(p):
//!     i, t = p % S, p / S                              the stream, and an index in it
//!     w = t / (K * W)                                  the window
//!     j = permutation of window w, at t % (K * W)      an index in the list of its samples
//!     q = w * W + j / K                                the run, by its rank in the stream's order
//!     return (permutation of the stream's runs, at q) * S * K + i * K + j % K
//! ```
//!
//! There are two irregularities. Streams differ by up to one run, so at the end of an epoch only
//! the longer streams have samples. They have lower numbers, so [`Windowed::turn_at`] and its
//! inverses handle this end by dividing by a smaller number of streams. And the run with the last
//! samples is `shortfall` samples short. It is in the last of the longer streams, but it can be
//! anywhere in its order, at rank `short_run`, and everything after it starts `shortfall` earlier.
//! [`Windowed::begin`] moves the windows after the short run, [`Windowed::window_of`] undoes this,
//! and [`Windowed::run_of`] skips the missing samples in the window of the short run. So no list of
//! runs, windows or streams is needed, and the inverse works the same way.

use super::kind::WindowSizes;
use super::permutation::{Permutation, Purpose, absorb, key, permute_each};
use std::ops::Range;

/// The maximum number of samples that are looked up together, in a buffer on the stack.
const LOOKUP_BATCH: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Windowed {
    n: u64,
    /// The number of samples in a run and the number of runs in a window. [`Windowed::new`] clamps
    /// them to the numbers that exist.
    run: u64,
    window: u64,
    /// The number of streams is `1 << stream_bits`.
    stream_bits: u32,
    /// The number of runs of the longest streams, and the number of these streams.
    max_runs: u64,
    longest: u64,
    /// The keys of the permutations without their last words: stream, or stream and window.
    runs_key: u64,
    window_key: u64,
    /// The rank of the short run in the order of its stream, its window, and the number of samples
    /// that it lacks.
    short_run: u64,
    short_window: u64,
    shortfall: u64,
}

/// A stream, and the index of a sample in the order of this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    stream: u64,
    index: u64,
}

impl Windowed {
    pub(super) fn new(sizes: WindowSizes, n: u64, seed: u64, epoch: u64) -> Self {
        // larger sizes would produce the same order
        let run = u64::from(sizes.run.get()).min(n.max(1));
        let run_count = n.div_ceil(run);
        let stream_bits = sizes.stream_bits;
        let max_runs = (run_count.saturating_sub(1) >> stream_bits) + 1; // at most 2^63
        let longest = run_count.saturating_sub((max_runs - 1) << stream_bits);
        let window = u64::from(sizes.window.get()).min(max_runs);
        let shortfall = (run - n % run) % run; // no underflow: run > n % run
        let [runs_key, window_key] = [Purpose::Runs, Purpose::Window].map(|purpose| key(purpose, [seed, epoch]));
        let mut order = Self {
            n,
            run,
            window,
            stream_bits,
            max_runs,
            longest,
            runs_key,
            window_key,
            short_run: 0,
            short_window: 0,
            shortfall,
        };
        let runs = order.runs_of(order.short_stream());
        order.short_run = runs.member_count().checked_sub(1).and_then(|last| runs.position_of(last)).unwrap_or(0);
        order.short_window = order.short_run / window;
        order
    }

    pub(super) fn sample_at(&self, p: u64) -> Option<u64> {
        if p >= self.n {
            return None;
        }
        let Turn { stream, index } = self.turn_at(p);
        let window = self.window_of(stream, index);
        let (key, samples) = self.window_key(stream, window);
        let j = Permutation::new(key, samples).at(index.checked_sub(self.begin(stream, window))?)?;
        let (rank, in_run) = self.run_of(stream, window, j);
        Some(self.first_sample(stream, self.runs_of(stream).at(rank)?) + in_run) // below n
    }

    pub(super) fn position_of(&self, sample: u64) -> Option<u64> {
        if sample >= self.n {
            return None;
        }
        let run = sample / self.run;
        let stream = run & (self.stream_count() - 1);
        let rank = self.runs_of(stream).position_of(run >> self.stream_bits)?;
        let window = rank / self.window;
        // below the number of samples of the window
        let mut j = rank % self.window * self.run + sample % self.run;
        if self.is_short_window(stream, window) && rank > self.short_run {
            j = j.checked_sub(self.shortfall)?;
        }
        let (key, samples) = self.window_key(stream, window);
        let index = self.begin(stream, window) + Permutation::new(key, samples).position_of(j)?; // below n
        Some(self.position_at(Turn { stream, index }))
    }

    /// Replaces each position with its sample. All positions must be below `n`.
    pub(super) fn replace(&self, positions: &mut [u64]) {
        for positions in positions.chunks_mut(LOOKUP_BATCH) {
            // for each position, the key of a permutation, its length, and an index
            let mut lookups = [(0, 0, 0); LOOKUP_BATCH];
            let mut turns = [(0, 0); LOOKUP_BATCH];
            let (lookups, turns) = match (lookups.get_mut(..positions.len()), turns.get_mut(..positions.len())) {
                (Some(lookups), Some(turns)) => (lookups, turns),
                _ => return, // a chunk is not longer than the buffers
            };
            for ((&mut p, lookup), turn) in positions.iter_mut().zip(&mut *lookups).zip(&mut *turns) {
                let Turn { stream, index } = self.turn_at(p);
                let window = self.window_of(stream, index);
                let (key, samples) = self.window_key(stream, window);
                *lookup = (key, samples, index.saturating_sub(self.begin(stream, window)));
                *turn = (stream, window);
            }
            permute_each(lookups);
            for ((position, lookup), &(stream, window)) in positions.iter_mut().zip(&mut *lookups).zip(&*turns) {
                let (rank, in_run) = self.run_of(stream, window, lookup.2);
                *position = in_run;
                *lookup = (absorb(self.runs_key, stream), self.run_count_of(stream), rank);
            }
            permute_each(lookups);
            for ((position, lookup), &(stream, _)) in positions.iter_mut().zip(&*lookups).zip(&*turns) {
                *position += self.first_sample(stream, lookup.2); // below n
            }
        }
    }

    pub(super) fn sample_count(&self) -> u64 {
        self.n
    }

    pub(super) fn stream_count(&self) -> u64 {
        1 << self.stream_bits
    }

    /// Returns the number of samples of a stream.
    pub(super) fn sample_count_of(&self, stream: u64) -> u64 {
        (self.run_count_of(stream) * self.run).saturating_sub(self.shortfall_of(stream)) // at most 2n
    }

    /// Returns the number of samples of a stream at positions below `p`, which is at most `n`.
    pub(super) fn taken(&self, stream: u64, p: u64) -> u64 {
        let shared = (self.max_runs - 1) * self.run; // turns that all streams take
        let turns_before = |p: u64, streams: u64| p / streams.max(1) + u64::from(stream < p % streams.max(1));
        let Some(after) = p.checked_sub(shared << self.stream_bits) else {
            let mask = self.stream_count() - 1;
            return (p >> self.stream_bits) + u64::from(stream < p & mask);
        };
        if stream >= self.longest {
            return shared;
        }
        let long_turns = self.run - self.shortfall; // turns of all longest streams
        match after.checked_sub(long_turns * self.longest) {
            None => shared + turns_before(after, self.longest),
            Some(_) if stream == self.short_stream() => shared + long_turns,
            Some(after) => shared + long_turns + turns_before(after, self.longest.saturating_sub(1)),
        }
    }

    /// Returns the position of the sample with this index in a stream.
    pub(super) fn position_in(&self, stream: u64, index: u64) -> u64 {
        self.position_at(Turn { stream, index })
    }

    fn turn_at(&self, p: u64) -> Turn {
        let shared = (self.max_runs - 1) * self.run;
        let Some(after) = p.checked_sub(shared << self.stream_bits) else {
            return Turn { stream: p & (self.stream_count() - 1), index: p >> self.stream_bits };
        };
        let long_turns = self.run - self.shortfall;
        let (streams, turns, after) = match after.checked_sub(long_turns * self.longest) {
            None => (self.longest, shared, after),
            Some(after) => (self.longest.saturating_sub(1), shared + long_turns, after),
        };
        let streams = streams.max(1); // 0 only if there is no such position
        Turn { stream: after % streams, index: turns + after / streams }
    }

    fn position_at(&self, Turn { stream, index }: Turn) -> u64 {
        let shared = (self.max_runs - 1) * self.run;
        let Some(after) = index.checked_sub(shared) else {
            return (index << self.stream_bits) + stream;
        };
        let (first, long_turns) = (shared << self.stream_bits, self.run - self.shortfall);
        stream
            + match after.checked_sub(long_turns) {
                None => first + after * self.longest,
                Some(after) => first + long_turns * self.longest + after * (self.longest.saturating_sub(1)),
            }
    }

    /// Returns the number of runs of a stream.
    fn run_count_of(&self, stream: u64) -> u64 {
        self.max_runs - u64::from(stream >= self.longest)
    }

    fn runs_of(&self, stream: u64) -> Permutation {
        Permutation::new(absorb(self.runs_key, stream), self.run_count_of(stream))
    }

    /// Returns the first sample of a run, given its index in the stream.
    fn first_sample(&self, stream: u64, run: u64) -> u64 {
        ((run << self.stream_bits) + stream) * self.run // below n
    }

    /// Returns the stream with the short run.
    fn short_stream(&self) -> u64 {
        self.longest.saturating_sub(1)
    }

    fn shortfall_of(&self, stream: u64) -> u64 {
        if stream == self.short_stream() { self.shortfall } else { 0 }
    }

    fn is_short_window(&self, stream: u64, window: u64) -> bool {
        window == self.short_window && stream == self.short_stream()
    }

    /// Returns the window of an index in a stream.
    fn window_of(&self, stream: u64, index: u64) -> u64 {
        let full = self.window_samples();
        let is_after_short =
            stream == self.short_stream() && index >= self.begin(stream, self.short_window.saturating_add(1));
        if is_after_short { (index + self.shortfall) / full } else { index / full }
    }

    /// Returns the rank of the run that has sample `j` of a window, and the index of the sample in
    /// the run.
    fn run_of(&self, stream: u64, window: u64, mut j: u64) -> (u64, u64) {
        let first = window * self.window; // at most the number of runs
        let short_end = self.short_run.saturating_sub(first) * self.run + self.run - self.shortfall;
        if self.is_short_window(stream, window) && j >= short_end {
            j += self.shortfall;
        }
        (first + j / self.run, j % self.run)
    }

    /// Returns the index in a stream at which a window starts, or the number of samples for windows
    /// after the last.
    fn begin(&self, stream: u64, window: u64) -> u64 {
        let shortfall = if window > self.short_window { self.shortfall_of(stream) } else { 0 };
        let full = self.window_samples();
        window.saturating_mul(full).saturating_sub(shortfall).min(self.sample_count_of(stream))
    }

    /// Returns the key of the permutation of a window, and its number of samples.
    fn window_key(&self, stream: u64, window: u64) -> (u64, u64) {
        let samples = self.begin(stream, window.saturating_add(1)) - self.begin(stream, window); // ascending
        (absorb(absorb(self.window_key, stream), window), samples)
    }

    /// Returns the number of samples of a full window.
    pub(super) fn window_samples(&self) -> u64 {
        self.run * self.window // at most twice n: see `new`
    }

    /// Returns the number of runs of a full window.
    pub(super) fn window_runs(&self) -> u64 {
        self.window
    }

    /// Returns the number of runs in the longest streams.
    pub(super) fn max_runs(&self) -> u64 {
        self.max_runs
    }

    /// Returns the samples of the run with rank `q` in the order of a stream.
    pub(super) fn run_at(&self, stream: u64, q: u64) -> Option<Range<u64>> {
        let start = self.first_sample(stream, self.runs_of(stream).at(q)?);
        Some(start..start.saturating_add(self.run).min(self.n))
    }

    /// Returns the number of runs of each stream in the window of a position and in all windows
    /// before it. Ignores that windows after the short run start earlier, by less than one run.
    pub(super) fn runs_begun(&self, p: u64) -> u64 {
        let full = self.window_samples().max(1);
        (self.turn_at(p).index / full).saturating_add(1).saturating_mul(self.window)
    }

    /// Returns the number of runs of each stream, counted from the first, that should have been
    /// prefetched by the time the epoch reaches a position. These are all runs up to the end of its
    /// window, as large a share of the next window as has been read of this window, and one run
    /// more, which has the time of a run to arrive.
    pub(super) fn runs_to_prefetch(&self, p: u64) -> u64 {
        let full = self.window_samples().max(1);
        let next = self.turn_at(p).index % full / self.run.max(1) + 1; // at most a window
        self.runs_begun(p).saturating_add(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_without_samples_has_no_runs() {
        for streams in [1, 8, 1024] {
            let sizes = WindowSizes::new(5, 3).and_then(|sizes| sizes.with_streams(streams)).unwrap();
            let order = Windowed::new(sizes, 0, 1, 2);
            assert_eq!((order.run_at(0, 0), order.sample_at(0), order.position_of(0)), (None, None, None));
            assert_eq!((order.sample_count_of(0), order.taken(0, 0), order.position_in(0, 0)), (0, 0, 0));
            assert!(order.runs_to_prefetch(0) >= order.runs_begun(0));
        }
    }
}
