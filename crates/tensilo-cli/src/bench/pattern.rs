//! The order in which samples are read, in constant memory.

use super::args::Pattern;
use std::ops::Range;

/// An endless sequence of sample numbers, the same in every run.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pattern: Pattern,
    count: u64,
    /// The part of the order that belongs to this thread.
    share: Range<u64>,
    next: u64,
    random: Random,
    shuffle: Permutation,
}

impl Sequence {
    /// Creates the sequence of thread `thread` of `threads`. `count` is at least 1 and at least
    /// `threads`.
    pub(super) fn new(pattern: Pattern, count: u64, thread: u32, threads: u32) -> Self {
        let share = share(count, thread, threads);
        let random = Random(u64::from(thread).wrapping_mul(0x9E6C_63D0_876A_3F35));
        Self { pattern, count, next: share.start, share, random, shuffle: Permutation::new(count, 0) }
    }

    /// Returns the number of samples that this thread reads in one pass.
    pub(super) fn share_count(&self) -> u64 {
        self.share.end.saturating_sub(self.share.start)
    }

    /// Writes the next samples to `out`.
    pub(super) fn fill(&mut self, out: &mut [u64]) {
        for i in out {
            *i = match self.pattern {
                Pattern::Random => self.random.below(self.count),
                Pattern::Sequential => self.position(),
                Pattern::Shuffled => {
                    let position = self.position();
                    self.shuffle.at(position)
                }
            };
        }
    }

    /// Returns the next position of the order. Each pass has another permutation.
    fn position(&mut self) -> u64 {
        if self.next >= self.share.end {
            self.next = self.share.start;
            self.shuffle = Permutation::new(self.count, self.shuffle.key.wrapping_add(1));
        }
        let position = self.next;
        self.next = position.saturating_add(1);
        position
    }
}

/// Returns part `thread` of `0..count`, divided as evenly as possible.
pub(super) fn share(count: u64, thread: u32, threads: u32) -> Range<u64> {
    let at = |thread: u32| {
        let at = u128::from(count) * u128::from(thread) / u128::from(threads.max(1)); // below 2^96
        u64::try_from(at).unwrap_or(count) // at most `count`
    };
    at(thread)..at(thread.saturating_add(1))
}

/// The random number generator SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Returns a uniform number below `end`, with a bias below 2^-64 x `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let scaled = (u128::from(mix(self.0)) * u128::from(end)) >> 64;
        u64::try_from(scaled).unwrap_or(0) // below `end`
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// A pseudo-random permutation of `0..count`: a Feistel network over the next larger power of 4,
/// applied again while the result is out of range.
#[derive(Clone, Debug)]
struct Permutation {
    count: u64,
    key: u64,
    /// The bits of one half, at most 32.
    half: u32,
}

impl Permutation {
    fn new(count: u64, key: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, key, half: bits.div_ceil(2).max(1) }
    }

    /// Returns the image of `i`, which is below `count`.
    fn at(&self, i: u64) -> u64 {
        let mut i = self.round_trip(i);
        while i >= self.count {
            i = self.round_trip(i); // ends: the cycle of `i` returns to a number below `count`
        }
        i
    }

    fn round_trip(&self, i: u64) -> u64 {
        const ROUNDS: u64 = 4;
        let mask = (1_u64 << self.half) - 1;
        let (mut left, mut right) = (i >> self.half, i & mask);
        for round in 0..ROUNDS {
            let key = mix(self.key.wrapping_mul(ROUNDS).wrapping_add(round).wrapping_add(1));
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(pattern: Pattern, count: u64, threads: u32) -> Vec<u64> {
        let mut all = Vec::new();
        for thread in 0..threads {
            let mut sequence = Sequence::new(pattern, count, thread, threads);
            let mut out = vec![0; usize::try_from(sequence.share_count()).unwrap()];
            sequence.fill(&mut out);
            all.extend(out);
        }
        all
    }

    #[test]
    fn a_shuffled_pass_has_each_sample_once() {
        for count in [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097] {
            for threads in [1, 2, 7] {
                let mut samples = pass(Pattern::Shuffled, count, threads);
                let in_order: Vec<u64> = (0..count).collect();
                assert!(count < 63 || samples != in_order);
                samples.sort_unstable();
                assert_eq!(samples, in_order, "{count} samples, {threads} threads");
            }
        }
    }

    #[test]
    fn passes_differ() {
        let mut sequence = Sequence::new(Pattern::Shuffled, 100, 0, 1);
        let mut out = [0; 200];
        sequence.fill(&mut out);
        assert_ne!(out[..100], out[100..]);
        out[100..].sort_unstable();
        assert_eq!(out[100..], (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn sequential_is_in_order_and_starts_again() {
        let mut out = [0; 5];
        Sequence::new(Pattern::Sequential, 3, 0, 1).fill(&mut out);
        assert_eq!(out, [0, 1, 2, 0, 1]);
        assert_eq!(pass(Pattern::Sequential, 10, 3), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn random_is_uniform_enough_and_the_same_again() {
        let mut counts = [0_u32; 10];
        let samples = pass(Pattern::Random, 10_000, 2);
        samples.iter().for_each(|&i| counts[usize::try_from(i / 1000).unwrap()] += 1);
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_eq!(samples, pass(Pattern::Random, 10_000, 2));
    }

    #[test]
    fn the_largest_count_does_not_overflow() {
        let mut out = [0; 100];
        for pattern in [Pattern::Random, Pattern::Shuffled, Pattern::Sequential] {
            Sequence::new(pattern, u64::MAX, 1023, 1024).fill(&mut out);
            assert!(out.iter().all(|&i| i < u64::MAX));
        }
        assert_eq!(share(u64::MAX, 1023, 1024).end, u64::MAX);
    }
}
