//! The samples of a request, in ascending order.

use crate::le::u64_of;
use crate::{Error, Result, memory};
use std::ops::Range;

/// The samples of a request, in ascending order, each with its position in the request. The number
/// of a sample in this order is its *rank*.
#[derive(Default)]
pub(in crate::read) struct Selection {
    /// Sample and position, unless the request is a range.
    order: Vec<(u64, usize)>,
    range: Option<Range<u64>>,
}

impl Selection {
    /// Takes samples in any order, repeated or not.
    pub(in crate::read) fn set_samples(&mut self, indices: &[u64]) -> Result<()> {
        self.range = None;
        self.order.clear();
        memory::reserve(&mut self.order, indices.len())?;
        self.order.extend(indices.iter().copied().zip(0..));
        self.order.sort_unstable();
        Ok(())
    }

    /// Takes all samples of a range, in order. Refuses one that ends before it begins.
    pub(in crate::read) fn set_range(&mut self, range: Range<u64>) -> Result<()> {
        self.order.clear();
        self.range = None;
        if range.end < range.start {
            let message = format!("the range {}..{} ends before it begins", range.start, range.end);
            return Err(Error::bad_argument(message));
        }
        self.range = Some(range);
        Ok(())
    }

    pub(in crate::read) fn is_range(&self) -> bool {
        self.range.is_some()
    }

    /// Returns the samples, if the request is a range.
    pub(in crate::read) fn range(&self) -> Option<&Range<u64>> {
        self.range.as_ref()
    }

    pub(in crate::read) fn sample_count(&self) -> usize {
        match &self.range {
            Some(range) => usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX),
            None => self.order.len(),
        }
    }

    /// Returns the last sample.
    pub(in crate::read) fn last(&self) -> Option<u64> {
        match &self.range {
            Some(range) => range.end.checked_sub(1).filter(|last| *last >= range.start),
            None => self.order.last().map(|(sample, _)| *sample),
        }
    }

    /// Returns the sample of a rank, and its position in the request.
    #[inline]
    pub(in crate::read) fn get(&self, rank: usize) -> (u64, usize) {
        match &self.range {
            Some(range) => (range.start.saturating_add(u64_of(rank)), rank),
            // never: ranks are below the count (no chunk has this sample, so it would be an error)
            None => self.order.get(rank).copied().unwrap_or((u64::MAX, 0)),
        }
    }

    /// Returns the sample at a position of the request.
    pub(in crate::read) fn at_position(&self, position: usize) -> Option<u64> {
        (0..self.sample_count()).map(|rank| self.get(rank)).find(|(_, at)| *at == position).map(|(sample, _)| sample)
    }

    /// Returns the end of the ranks from `rank` on whose samples are below `end`.
    pub(in crate::read) fn rank_of_end(&self, rank: usize, end: u64) -> usize {
        match &self.range {
            Some(range) => {
                let count = end.min(range.end).saturating_sub(range.start);
                usize::try_from(count).unwrap_or(usize::MAX)
            }
            None => {
                let rest = self.order.get(rank..).unwrap_or(&[]);
                rank + rest.iter().take_while(|(sample, _)| *sample < end).count()
            }
        }
    }

    /// Returns the number of ranks from `rank` on, before `end`, whose samples follow each other
    /// and whose positions do, too.
    #[inline]
    pub(in crate::read) fn run(&self, rank: usize, end: usize) -> usize {
        if self.range.is_some() {
            return end.saturating_sub(rank);
        }
        let mut ranks = self.order.get(rank..end).unwrap_or(&[]).iter();
        let Some(&(mut sample, mut position)) = ranks.next() else { return 0 };
        let mut count = 1;
        for &(next, next_position) in ranks {
            if next != sample.saturating_add(1) || next_position != position + 1 {
                break;
            }
            (sample, position, count) = (next, next_position, count + 1);
        }
        count
    }

    /// Returns the number of ranks from `rank` on, before `end`, without a gap between their
    /// samples.
    pub(in crate::read) fn dense(&self, rank: usize, end: usize) -> usize {
        if self.range.is_some() {
            return end.saturating_sub(rank);
        }
        let ranks = self.order.get(rank..end).unwrap_or(&[]);
        // pairs
        let gap = ranks.windows(2).position(|pair| pair[1].0 > pair[0].0.saturating_add(1));
        gap.map_or(ranks.len(), |at| at + 1)
    }
}
