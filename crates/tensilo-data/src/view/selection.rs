//! Views of some of the samples of a dataset, chosen by a hash or listed explicitly.
//!
//! A [`Split`] chooses each sample by a hash of its index. The usual alternative is to shuffle all
//! samples and cut the list, but then samples move from validation to training when new ones are
//! added. A split stores one bit for each sample. It finds its `n`-th sample by a binary search
//! over counts, followed by a scan of at most eight words. A [`SampleList`] stores sample indices,
//! in any order.

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
    // exact: the discriminant is below 4
    key(Purpose::View, std::iter::once(kind as u64).chain(words))
}

/// The number of words whose samples are counted together.
const GROUP_WORDS: usize = 8;

/// A view of the samples whose hash is in a range. This selects a share of a dataset, such as 95%
/// for training, or the other 5% for validation.
///
/// Whether a sample is in the view depends only on the seed and the index of the sample. Adding
/// samples later does not move existing ones from one split to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    identity: u64,
    /// A bit for each sample of the dataset.
    bits: Vec<u64>,
    /// For each group of words, the number of samples in the groups before it.
    before: Vec<u64>,
    n: u64,
    dataset_sample_count: u64,
}

impl Split {
    /// The end of the range of all hashes.
    pub const END: u64 = 1 << 32;

    /// Returns the view of those samples of `0..samples` whose hash is in `hashes`, a range within
    /// `0..Split::END`. Two splits with the same seed and disjoint ranges have no sample in common.
    ///
    /// Fails if the range is empty or not within `0..Split::END`, or if memory runs out. Cost: 10
    /// ns and 1.1 bits for each sample of the dataset.
    pub fn new(samples: u64, seed: u64, hashes: Range<u64>) -> Result<Self> {
        if hashes.is_empty() || hashes.end > Self::END {
            let message = format!(
                "a split needs a non-empty range of hashes within 0..2^32, not {}..{}",
                hashes.start, hashes.end
            );
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
        Ok(Self { identity, bits, before, n, dataset_sample_count: samples })
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.n
    }

    /// Returns the number of samples of the dataset that the split was made for.
    pub fn dataset_sample_count(&self) -> u64 {
        self.dataset_sample_count
    }

    /// Returns the identity of the view, for a [`State`](crate::State).
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns sample `v` of the view, or `None` if `v` is not below [`Split::sample_count`]. Cost:
    /// one binary search.
    pub fn sample(&self, v: u64) -> Option<u64> {
        if v >= self.n {
            return None;
        }
        let group = self.before.partition_point(|&before| before <= v).checked_sub(1)?;
        let mut left = v - self.before.get(group)?; // the group starts at or before it
        for (word, &bits) in self.bits.iter().enumerate().skip(group * GROUP_WORDS) {
            let ones = u64::from(bits.count_ones());
            if left < ones {
                return Some(word as u64 * 64 + u64::from(nth_one(bits, left))); // exact: it is a sample
            }
            left -= ones;
        }
        None
    }
}

/// Returns the index of set bit number `n`, counted from 0. More than `n` bits are set.
fn nth_one(mut bits: u64, n: u64) -> u32 {
    for _ in 0..n {
        bits &= bits.wrapping_sub(1); // clears the lowest set bit
    }
    bits.trailing_zeros()
}

/// A view of listed samples, in the order of the list. A sample may be listed several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleList {
    samples: Arc<[u64]>,
    identity: u64,
}

impl SampleList {
    /// Returns the view of these samples. Cost: 3 ns and 8 bytes for each sample.
    pub fn new(samples: impl Into<Arc<[u64]>>) -> Self {
        let samples = samples.into();
        // exact: no length is above 2^64
        let words = std::iter::once(samples.len() as u64).chain(samples.iter().copied());
        let identity = identity(ViewKind::List, words);
        Self { samples, identity }
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.samples.len() as u64 // exact
    }

    /// Returns the indices of the samples, in order.
    pub fn indices(&self) -> &[u64] {
        &self.samples
    }

    /// Returns the identity of the view, for a [`State`](crate::State).
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns sample `v` of the view, or `None` if `v` is not below [`SampleList::sample_count`].
    pub fn sample(&self, v: u64) -> Option<u64> {
        self.samples.get(usize::try_from(v).ok()?).copied()
    }
}
