//! The caches of a machine in the model: lines of files that are in memory or on a local disk.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Range;

/// A bounded map that evicts the least recently used entry.
pub(super) struct Lru<K, V> {
    capacity: usize,
    clock: u64,
    entries: HashMap<K, (u64, V)>,
    by_use: BTreeMap<u64, K>,
}

impl<K: Copy + Eq + Hash, V: Default> Lru<K, V> {
    /// Returns an empty map of at most `capacity` entries, at least 1.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), clock: 0, entries: HashMap::new(), by_use: BTreeMap::new() }
    }

    /// Makes an entry the most recently used one. Returns its value, and whether it is new.
    pub(super) fn touch(&mut self, key: K) -> (&mut V, bool) {
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let used = self.entries.get(&key).map(|(used, _)| *used);
        match used {
            Some(used) => drop(self.by_use.remove(&used)),
            None if self.entries.len() >= self.capacity => {
                if let Some((_, oldest)) = self.by_use.pop_first() {
                    self.entries.remove(&oldest);
                }
            }
            None => {}
        }
        self.by_use.insert(clock, key);
        let (time, value) = self.entries.entry(key).or_default();
        *time = clock;
        (value, used.is_none())
    }
}

/// The lines that are cached, by file and number.
pub(super) struct LineCache {
    line_bytes: u64,
    lines: Lru<(u64, u64), ()>,
}

impl LineCache {
    pub(super) fn new(line_bytes: u64, max_bytes: u64) -> Self {
        let line_bytes = line_bytes.max(1);
        let capacity = usize::try_from(max_bytes / line_bytes).unwrap_or(usize::MAX);
        Self { line_bytes, lines: Lru::new(capacity) }
    }

    /// Adds a range of a file of `file_bytes` bytes. Returns the lengths of the stretches that were
    /// missing. The last line of the file may be shorter.
    pub(super) fn add(&mut self, file: u64, bytes: &Range<u64>, file_bytes: u64) -> Vec<u64> {
        let mut missing: Vec<u64> = Vec::new();
        let mut follows_missing = false;
        for line in bytes.start / self.line_bytes..bytes.end.div_ceil(self.line_bytes) {
            let is_missing = self.lines.touch((file, line)).1;
            let line_bytes = self.line_bytes.min(file_bytes.saturating_sub(line.saturating_mul(self.line_bytes)));
            match missing.last_mut() {
                Some(length) if is_missing && follows_missing => *length = length.saturating_add(line_bytes),
                _ if is_missing => missing.push(line_bytes),
                _ => {}
            }
            follows_missing = is_missing;
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut lru = Lru::<u32, u32>::new(2);
        *lru.touch(1).0 = 10;
        assert!(lru.touch(2).1);
        assert_eq!(lru.touch(1), (&mut 10, false));
        assert!(lru.touch(3).1, "evicts 2");
        assert_eq!(lru.touch(1), (&mut 10, false));
        assert_eq!(lru.touch(2), (&mut 0, true));
    }

    #[test]
    fn only_missing_lines_are_read() {
        let mut cache = LineCache::new(10, 1000);
        assert_eq!(cache.add(1, &(15..31), 57), [30]);
        assert_eq!(cache.add(1, &(0..57), 57), [10, 17], "the last line is shorter");
        assert!(cache.add(1, &(0..57), 57).is_empty());
        assert_eq!(cache.add(2, &(15..16), 57), [10]);
    }
}
