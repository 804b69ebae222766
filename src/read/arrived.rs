//! A record of what has arrived of the bytes that were asked for.

use crate::{Error, Result, memory};
use std::ops::Range;

/// Numbers of bytes, or of ranges, that have arrived: each once, in any order.
#[derive(Default)]
pub(super) struct Arrived {
    /// Ascending, with gaps between them: one, if all arrive in order.
    runs: Vec<Range<usize>>,
    count: usize,
}

impl Arrived {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.count = 0;
    }

    /// Returns how many have arrived.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds numbers. Refuses those that have arrived before: counted twice, they would stand for
    /// others that are missing.
    pub(super) fn add(&mut self, new: Range<usize>) -> Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let at = self.runs.partition_point(|run| run.end < new.start);
        let touching = self.runs.iter().skip(at).take_while(|run| run.start <= new.end).count();
        let end = at.saturating_add(touching);
        let mut joined = new.clone();
        for run in self.runs.get(at..end).unwrap_or(&[]) {
            if run.start < new.end && new.start < run.end {
                return Err(Error::bad_argument("the source delivered the same bytes twice"));
            }
            joined = joined.start.min(run.start)..joined.end.max(run.end);
        }
        memory::reserve(&mut self.runs, 1)?;
        self.runs.splice(at..end, [joined]); // inside: they were counted
        self.count = self.count.saturating_add(new.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_arrives_once(ranges in prop::collection::vec((0_usize..64, 0_usize..9), 0..40)) {
            let (mut arrived, mut expected) = (Arrived::default(), [false; 80]);
            for (start, length) in ranges {
                let is_new = expected[start..start + length].iter().all(|arrived| !arrived);
                prop_assert_eq!(arrived.add(start..start + length).is_ok(), is_new);
                if is_new {
                    expected[start..start + length].fill(true);
                }
                prop_assert_eq!(arrived.count(), expected.iter().filter(|arrived| **arrived).count());
                prop_assert!(arrived.runs.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", arrived.runs);
            }
        }
    }
}
