//! Views of some samples of a dataset: chosen by a hash, or listed.
//!
//! A [`Split`] keeps a bit for each sample, and finds the n-th of its samples by a binary search. A
//! [`SampleList`] keeps the numbers of its samples, in any order. The identity of a view,
//! here and of a mixture, is a hash of what it was made from.

use crate::error::{DataError, Result};
use crate::order::{Purpose, key};
use std::ops::Range;
use std::sync::Arc;

/// The kind of a view.
#[derive(Clone, Copy)]
pub(super) enum ViewKind {
    List = 1,
    Split = 2,
    Mixture = 3,
}

/// Returns the identity of a view.
pub(super) fn identity(kind: ViewKind, words: impl IntoIterator<Item = u64>) -> u64 {
    // a number below 4
    key(Purpose::View, std::iter::once(kind as u64).chain(words))
}

/// Words of a group whose samples are counted once.
const GROUP_WORDS: usize = 8;

/// A view that has the samples whose hash is in a range: a part of a dataset, such as 95 % for
/// training and the rest for validation.
///
/// Whether a sample is in it depends on seed and sample alone. Samples that are added later do not
/// move others from one part to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    identity: u64,
    /// A bit for each sample of the dataset.
    bits: Vec<u64>,
    /// For each group of words, the samples of the view in the groups before it.
    before: Vec<u64>,
    n: u64,
    sample_count: u64,
}

impl Split {
    /// The end of the hashes.
    pub const END: u64 = 1 << 32;

    /// Returns the view of those of `samples` samples whose hash is in `hashes`, a part of
    /// `0..Split::END`. Two splits with the same seed whose ranges do not touch have no sample in
    /// common.
    ///
    /// Fails if the range is empty or too long, or if there is no memory. Cost: 10 ns and 1.1 bits
    /// for each sample of the dataset.
    pub fn new(samples: u64, seed: u64, hashes: Range<u64>) -> Result<Self> {
        if hashes.is_empty() || hashes.end > Self::END {
            let message =
                format!("the hashes {} to {} of a split: expected a part of 0 to 2^32", hashes.start, hashes.end);
            return Err(DataError::BadArgument(message));
        }
        let words = usize::try_from(samples.div_ceil(64)).unwrap_or(usize::MAX);
        let (mut bits, mut before) = (Vec::new(), Vec::new());
        let reserved =
            bits.try_reserve_exact(words).and_then(|()| before.try_reserve_exact(words.div_ceil(GROUP_WORDS)));
        reserved.map_err(|_| DataError::BadArgument(format!("a split of {samples} samples does not fit in memory")))?;
        let mut n = 0;
        for word in 0..samples.div_ceil(64) {
            if bits.len() % GROUP_WORDS == 0 {
                before.push(n);
            }
            let first = word * 64; // at most `samples`
            let has = |bit: u64| hashes.contains(&(key(Purpose::Split, [seed, first + bit]) >> 32));
            let bits_of_word =
                (0..64.min(samples - first)).filter(|&bit| has(bit)).fold(0, |bits, bit| bits | 1 << bit);
            n += u64::from(u64::count_ones(bits_of_word));
            bits.push(bits_of_word);
        }
        let identity = identity(ViewKind::Split, [seed, hashes.start, hashes.end]);
        Ok(Self { identity, bits, before, n, sample_count: samples })
    }

    /// Returns the number of samples.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Returns the number of samples that it was made for, of which it has some.
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }

    /// Returns the identity of the view, for a [`State`](crate::State).
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns sample `v` of the view; `None` from their number on. Cost: a binary search.
    pub fn sample(&self, v: u64) -> Option<u64> {
        if v >= self.n {
            return None;
        }
        let group = self.before.partition_point(|&before| before <= v).checked_sub(1)?;
        let mut left = v - self.before.get(group)?; // the group begins at or before it
        for (word, &bits) in self.bits.iter().enumerate().skip(group * GROUP_WORDS) {
            let ones = u64::from(bits.count_ones());
            if left < ones {
                return Some(word as u64 * 64 + u64::from(nth_one(bits, left))); // a sample: exact
            }
            left -= ones;
        }
        None
    }
}

/// Returns the index of the `n`-th bit that is set, of more than `n`.
fn nth_one(mut bits: u64, n: u64) -> u32 {
    for _ in 0..n {
        bits &= bits.wrapping_sub(1); // without its lowest one
    }
    bits.trailing_zeros()
}

/// A view that has listed samples, in their order. A sample may be listed several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleList {
    samples: Arc<[u64]>,
    identity: u64,
}

impl SampleList {
    /// Returns the view of these samples. Cost: 3 ns for each, and 8 bytes.
    pub fn new(samples: impl Into<Arc<[u64]>>) -> Self {
        let samples = samples.into();
        // exact: no length is above 2^64
        let words = std::iter::once(samples.len() as u64).chain(samples.iter().copied());
        let identity = identity(ViewKind::List, words);
        Self { samples, identity }
    }

    /// Returns the number of samples.
    pub fn n(&self) -> u64 {
        self.samples.len() as u64 // exact
    }

    /// Returns the samples, in order.
    pub fn samples(&self) -> &[u64] {
        &self.samples
    }

    /// Returns the identity of the view, for a [`State`](crate::State).
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns sample `v` of the view; `None` from their number on.
    pub fn sample(&self, v: u64) -> Option<u64> {
        self.samples.get(usize::try_from(v).ok()?).copied()
    }
}
