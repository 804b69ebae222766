//! The keys of an archive. The files of a key must belong to one sample.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

/// The keys so far, as hashes: about 40 bytes each. Among 10^6 keys, two hashes are equal with a
/// probability of 10^-7; then an archive may be refused without need.
#[derive(Default)]
pub(crate) struct Keys {
    seen: HashMap<u64, Seen>,
    hasher: RandomState,
    count: u64,
}

struct Seen {
    sample: u64,
    /// The hash of the suffixes, in any order.
    suffixes: u64,
}

impl Keys {
    /// Takes the next sample into account. If an earlier sample has its key and other suffixes,
    /// returns the number of that sample: both are parts of one whose files were separated.
    ///
    /// Samples with the same key and the same suffixes are complete: archives were joined.
    pub(crate) fn part_of<'a>(&mut self, key: &str, suffixes: impl Iterator<Item = &'a str>) -> Option<u64> {
        let suffixes = suffixes.fold(0_u64, |sum, suffix| sum.wrapping_add(self.hasher.hash_one(suffix)));
        let (sample, next) = (self.count, self.count.saturating_add(1));
        self.count = next;
        match self.seen.entry(self.hasher.hash_one(key)) {
            Entry::Occupied(entry) if entry.get().suffixes != suffixes => Some(entry.get().sample),
            entry => {
                entry.insert_entry(Seen { sample, suffixes });
                None
            }
        }
    }
}
