//! A bounded map that evicts the least recently used entry.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// At most `capacity` entries.
pub struct Lru<K, V> {
    capacity: usize,
    clock: u64,
    entries: HashMap<K, (u64, V)>,
    by_time: BTreeMap<u64, K>,
}

impl<K: Copy + Eq + Hash, V: Default> Lru<K, V> {
    /// Returns an empty map of at most `capacity` entries, at least 1.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), clock: 0, entries: HashMap::new(), by_time: BTreeMap::new() }
    }

    /// Marks an entry as used. Returns its value, and whether it is new.
    pub fn touch(&mut self, key: K) -> (&mut V, bool) {
        self.clock += 1;
        let clock = self.clock;
        let known = self.entries.get(&key).map(|(time, _)| *time);
        match known {
            Some(time) => drop(self.by_time.remove(&time)),
            None if self.entries.len() >= self.capacity => {
                if let Some((_, oldest)) = self.by_time.pop_first() {
                    self.entries.remove(&oldest);
                }
            }
            None => {}
        }
        self.by_time.insert(clock, key);
        let (time, value) = self.entries.entry(key).or_default();
        *time = clock;
        (value, known.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_goes_first() {
        let mut lru = Lru::<u32, u32>::new(2);
        *lru.touch(1).0 = 10;
        assert!(lru.touch(2).1);
        assert_eq!(lru.touch(1), (&mut 10, false));
        assert!(lru.touch(3).1, "instead of 2");
        assert_eq!(lru.touch(1), (&mut 10, false));
        assert_eq!(lru.touch(2), (&mut 0, true));
    }
}
