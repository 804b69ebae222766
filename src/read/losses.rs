//! The lost samples of a damaged file, and what a training job reads instead.
//!
//! Losses are ascending ranges, each with the number of intact samples before it. So the queries of
//! a training job take logarithmic time: whether a sample is lost, how many samples are intact, and
//! which sample is the n-th intact one. A lost sample is refused, skipped or substituted. The
//! substitute depends only on the index of the lost sample, so all ranks of a job choose the same
//! one without communicating.

use crate::{Error, Result};
use std::ops::Range;

/// For each column, either its lost samples or its unconfirmed samples.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The name of each column and its samples, in order.
    pub columns: Vec<(String, LostSamples)>,
}

impl Losses {
    /// Returns whether the list of samples is empty for every column.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(|(_, lost)| lost.is_empty())
    }

    /// Returns the samples that at least one of these columns has lost. Fails if a column does not
    /// exist.
    pub fn of(&self, columns: &[&str]) -> Result<LostSamples> {
        let lost = columns.iter().map(|&name| {
            let found = self.columns.iter().find(|(column, _)| column == name);
            let names = self.columns.iter().map(|(column, _)| column.as_str());
            found.map(|(_, lost)| lost).ok_or_else(|| Error::unknown_column(name, names))
        });
        let lost: Vec<&LostSamples> = lost.collect::<Result<_>>()?;
        Ok(LostSamples::union(&lost))
    }

    /// Returns the samples that at least one column has lost.
    pub fn of_all(&self) -> LostSamples {
        LostSamples::union(&self.columns.iter().map(|(_, lost)| lost).collect::<Vec<_>>())
    }
}

/// What to do with a requested sample that is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLoss {
    /// Return an error that names the lost samples.
    #[default]
    Error,
    /// Omit the lost sample.
    Skip,
    /// Read another sample instead. The choice is the same each time and in every process, so that
    /// all ranks of a job stay in sync.
    Substitute,
}

/// The lost samples of a file, or its unconfirmed samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostSamples {
    sample_count: u64,
    /// In ascending order; they neither overlap nor touch.
    ranges: Vec<Range<u64>>,
    /// For each range, the number of intact samples before it.
    intact: Vec<u64>,
}

impl LostSamples {
    /// Creates the set of these ranges, which are in ascending order and not empty. Merges ranges
    /// that overlap or touch.
    fn new(sample_count: u64, ranges: impl Iterator<Item = Range<u64>>) -> Self {
        let mut lost = Self { sample_count, ..Self::default() };
        for range in ranges {
            match lost.ranges.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => {
                    let intact = range.start.saturating_sub(lost.count());
                    lost.intact.push(intact);
                    lost.ranges.push(range);
                }
            }
        }
        lost
    }

    /// Creates the set of these ranges, given in any order. No range may be empty.
    pub(crate) fn of_ranges(sample_count: u64, mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_unstable_by_key(|range| range.start);
        Self::new(sample_count, ranges.into_iter())
    }

    fn union(sets: &[&Self]) -> Self {
        let sample_count = sets.iter().map(|set| set.sample_count).max().unwrap_or(0);
        Self::of_ranges(sample_count, sets.iter().flat_map(|set| set.ranges.iter().cloned()).collect())
    }

    /// Returns the samples that are not in `other`.
    pub(in crate::read) fn without(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        for range in &self.ranges {
            let mut start = range.start;
            let others = other.ranges.iter().skip(other.ended_before(start));
            for removed in others.take_while(|removed| removed.start < range.end) {
                left.push(start..removed.start.max(start));
                start = removed.end.min(range.end);
            }
            left.push(start..range.end);
        }
        Self::new(self.sample_count, left.into_iter().filter(|range| !range.is_empty()))
    }

    /// Returns the lost samples: ranges in ascending order, which neither overlap nor touch.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the number of lost samples.
    pub fn count(&self) -> u64 {
        self.count_in_first(self.ranges.len())
    }

    /// Returns the number of samples in the first `count` ranges.
    fn count_in_first(&self, count: usize) -> u64 {
        let last = count.checked_sub(1).and_then(|last| Some((self.ranges.get(last)?, self.intact.get(last)?)));
        last.map_or(0, |(range, intact)| range.end.saturating_sub(*intact))
    }

    /// Returns the number of samples that are not lost.
    pub fn intact_count(&self) -> u64 {
        self.sample_count.saturating_sub(self.count())
    }

    /// Returns whether no sample is lost.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns whether sample `i` is lost. Cost: logarithmic in the number of ranges, like the
    /// methods below.
    pub fn contains(&self, i: u64) -> bool {
        self.range_of(i).is_some()
    }

    fn range_of(&self, i: u64) -> Option<&Range<u64>> {
        self.ranges.get(self.ended_before(i)).filter(|range| range.contains(&i))
    }

    /// Returns the number of ranges that end at or before `i`.
    fn ended_before(&self, i: u64) -> usize {
        self.ranges.partition_point(|range| range.end <= i)
    }

    /// Returns whether any of these samples is lost.
    pub fn touches(&self, samples: &Range<u64>) -> bool {
        self.first_in(samples).is_some()
    }

    /// Returns the first range of lost samples that overlaps `samples`.
    pub(in crate::read) fn first_in(&self, samples: &Range<u64>) -> Option<&Range<u64>> {
        let next = self.ranges.get(self.ended_before(samples.start));
        next.filter(|range| range.start < samples.end && !samples.is_empty())
    }

    /// Returns the lost samples of a chunk that contains exactly `samples`, as positions in the
    /// chunk.
    pub(in crate::read) fn positions_in(&self, samples: &Range<u64>) -> Vec<Range<usize>> {
        let position = |i: u64| usize::try_from(i.saturating_sub(samples.start)).unwrap_or(usize::MAX);
        let ranges = self.ranges.iter().skip(self.ended_before(samples.start));
        let touching = ranges.take_while(|range| range.start < samples.end);
        touching.map(|range| position(range.start)..position(range.end.min(samples.end))).collect()
    }

    /// Returns the number of intact samples before `i`. This is the index of sample `i` if lost
    /// samples are omitted.
    pub fn intact_before(&self, i: u64) -> u64 {
        let lost = self.range_of(i).map_or(0, |range| i.saturating_sub(range.start));
        i.saturating_sub(lost).saturating_sub(self.count_in_first(self.ended_before(i)))
    }

    /// Returns the `n`-th intact sample, counted from 0.
    pub fn intact(&self, n: u64) -> Option<u64> {
        let before = self.intact.partition_point(|&intact| intact <= n);
        (n < self.intact_count()).then(|| n.saturating_add(self.count_in_first(before)))
    }

    /// Returns the sample to read for sample `i`, or `None` if all samples are lost.
    ///
    /// If `i` is intact, this is `i` itself. Otherwise it is intact sample number
    /// `SplitMix64(i) mod intact_count` (Steele, Lea, Flood 2014).
    pub fn substitute(&self, i: u64) -> Option<u64> {
        match self.contains(i) {
            false => Some(i),
            true => self.intact(split_mix(i).checked_rem(self.intact_count())?),
        }
    }

    /// Replaces `out` with the samples to read if `samples` are requested. On failure, `out` is
    /// unchanged. Allocates nothing once `out` is large enough.
    pub fn resolve(&self, samples: &[u64], on_loss: OnLoss, out: &mut Vec<u64>) -> Result<()> {
        let refuses = match on_loss {
            OnLoss::Error => true,
            OnLoss::Skip => false,
            OnLoss::Substitute => self.intact_count() == 0,
        };
        if refuses && let Some(range) = samples.iter().find_map(|&i| self.range_of(i)) {
            return Err(lost_error(range));
        }
        out.clear();
        match on_loss {
            OnLoss::Skip => out.extend(samples.iter().filter(|&&i| !self.contains(i))),
            OnLoss::Error | OnLoss::Substitute => out.extend(samples.iter().filter_map(|&i| self.substitute(i))),
        }
        Ok(())
    }
}

/// Returns the error for reading lost samples.
pub(in crate::read) fn lost_error(samples: &Range<u64>) -> Error {
    let message = "these samples are lost: their chunks are damaged, missing, or from another file";
    Error::corrupt("R-4.2", message).with_samples(samples.clone())
}

/// Returns the output of SplitMix64 for the state `i`, a bijection without a visible pattern.
fn split_mix(i: u64) -> u64 {
    let mut z = i.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
