//! The cache of small structures that were read and checked: index pages of a file, block indexes
//! of a column.
//!
//! Reading such a structure by position costs a system call or a round trip, and the next request
//! probably needs it again. A cache has a fixed number of slots, and a structure replaces whatever
//! is in its slot, so that it is bounded without a list of what was used last. No thread waits for
//! another: if a slot is locked, the structure is read again. A slot that was locked when the
//! process forked is never used in the child. A file in memory needs no cache; the structures are
//! there.

use std::sync::{Arc, Mutex, OnceLock};

/// Structures by number. Memory for the slots is taken when the first one is cached.
pub(in crate::read) struct SlotCache<T> {
    slot_count: usize,
    slots: OnceLock<Box<[Slot<T>]>>,
}

/// The structure in a slot, and its number.
type Slot<T> = Mutex<Option<(u64, Arc<T>)>>;

impl<T> SlotCache<T> {
    /// Returns a cache of at most `slot_count` structures, if there are `count` in all.
    pub(in crate::read) fn new(slot_count: usize, count: u64) -> Self {
        let slot_count = usize::try_from(count).map_or(slot_count, |count| count.min(slot_count));
        Self { slot_count, slots: OnceLock::new() }
    }

    pub(in crate::read) fn get(&self, number: u64) -> Option<Arc<T>> {
        let slot = slot(self.slots.get()?, number)?.try_lock().ok()?;
        slot.as_ref().filter(|(found, _)| *found == number).map(|(_, structure)| structure.clone())
    }

    pub(in crate::read) fn insert(&self, number: u64, structure: &Arc<T>) {
        let slots = self.slots.get_or_init(|| (0..self.slot_count).map(|_| Mutex::new(None)).collect());
        if let Some(mut slot) = slot(slots, number).and_then(|slot| slot.try_lock().ok()) {
            *slot = Some((number, structure.clone()));
        }
    }
}

fn slot<T>(slots: &[Slot<T>], number: u64) -> Option<&Slot<T>> {
    slots.get(usize::try_from(number).ok()?.checked_rem(slots.len())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_replaces_the_one_in_its_slot() {
        let cache = SlotCache::new(4, 100);
        assert!(cache.get(1).is_none());
        for number in [1, 2, 5] {
            cache.insert(number, &Arc::new(number * 10));
        }
        let found = |number| cache.get(number).map(|structure| *structure);
        assert_eq!([1, 2, 5, 9].map(found), [None, Some(20), Some(50), None]);
    }

    #[test]
    fn a_slot_that_another_thread_has_is_not_waited_for() {
        let cache = SlotCache::new(4, 2);
        cache.insert(1, &Arc::new("one"));
        let _locked = cache.slots.get().unwrap()[1].lock().unwrap();
        cache.insert(1, &Arc::new("other"));
        assert!(cache.get(1).is_none());
        assert_eq!(cache.slots.get().unwrap().len(), 2, "no more slots than structures");
    }
}
