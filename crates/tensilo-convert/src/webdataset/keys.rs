//! The keys of an archive, each of which has to be one sample.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

/// The keys so far, by their hashes: 40 bytes or so for each. Two hashes are equal by
/// chance in one of 10^7 archives of 10^6 samples, and mostly nothing follows from that.
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
    /// Takes the next sample into account. If its key was there before, with other suffixes,
    /// returns the number of that sample: both are halves of one, of which a file is elsewhere.
    ///
    /// Samples with one key and the same suffixes are complete, as archives have that were joined.
    pub(crate) fn half_of<'a>(&mut self, key: &str, suffixes: impl Iterator<Item = &'a str>) -> Option<u64> {
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
