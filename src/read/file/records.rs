//! The mutable state of an open file: records of what was verified, and caches. Shared by all
//! threads.
//!
//! No thread waits for another. A record is a bit that any thread can change from 0 to 1, but never
//! back. A set bit means that immutable bytes were valid when checked, so relaxed ordering
//! suffices. Memory for records is allocated when the first bit is set, so that the cost of opening
//! a file does not depend on the number of chunks. If that allocation fails, nothing counts as
//! verified.
//!
//! Reading a small structure, such as an index page or a block index, costs a system call or a
//! round trip, and the next request probably needs it again. So these are cached ([`SlotCache`]). A
//! cache has a fixed number of slots, and a new structure replaces the one in its slot. This bounds
//! the cache without a list of recent uses. If a slot is locked, the structure is simply read
//! again. That also makes `fork` safe: a slot that was locked at that moment is never used in the
//! child process. A file in memory does not need a cache.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Words whose bits only change from 0 to 1.
struct Words {
    count: u64,
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Words {
    fn new(count: u64) -> Self {
        Self { count, words: OnceLock::new() }
    }

    /// Relaxed ordering suffices, because a set bit means that immutable bytes were valid when
    /// checked.
    #[inline]
    fn get(&self, number: u64) -> u64 {
        let word = self.words.get().and_then(|words| words.get(usize::try_from(number).ok()?));
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Sets bits of a word, and returns its new value; 0 if there is no such word.
    fn set(&self, number: u64, bits: u64) -> u64 {
        let word = self.all().get(usize::try_from(number).unwrap_or(usize::MAX));
        word.map_or(0, |word| word.fetch_or(bits, Ordering::Relaxed) | bits)
    }

    /// Sets the bits that are set in `earlier`, which must not have more words.
    fn set_all_from(&self, earlier: &Self) {
        for (word, earlier) in earlier.words.get().into_iter().flat_map(|words| self.all().iter().zip(words)) {
            word.fetch_or(earlier.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn all(&self) -> &[AtomicU64] {
        self.words.get_or_init(|| {
            // bounded by the length of the file
            let count = usize::try_from(self.count).unwrap_or(0);
            // if the allocation fails, nothing counts as verified
            bytemuck::try_zeroed_slice_box(count).unwrap_or_default()
        })
    }
}

/// A bit for each index page or chunk: whether it was verified.
pub(in crate::read) struct Bitmap(Words);

impl Bitmap {
    /// Creates a bitmap of `bits` zeros. It is short, because each bit represents at least 32 bytes
    /// of the file.
    pub(in crate::read) fn new(bits: u64) -> Self {
        Self(Words::new(bits.div_ceil(64)))
    }

    #[inline]
    pub(in crate::read) fn get(&self, bit: u64) -> bool {
        self.0.get(bit / 64) >> (bit % 64) & 1 == 1
    }

    pub(in crate::read) fn set(&self, bit: u64) {
        self.0.set(bit / 64, 1 << (bit % 64));
    }

    /// Sets the bits that are set in `earlier`, which must not have more bits.
    pub(in crate::read) fn set_all_from(&self, earlier: &Self) {
        self.0.set_all_from(&earlier.0);
    }
}

/// The bit that is set once the block index was verified.
const BLOCK_INDEX: u64 = 1 << 63;
/// The maximum number of units of a chunk. A unit consists of consecutive blocks and has one bit,
/// which is set once all of them were verified. In a chunk of at most this many blocks, each block
/// is a unit.
const UNITS: usize = 63;

/// A word for each chunk: which of its blocks were verified.
pub(in crate::read) struct CheckedBlocks(Words);

/// The verified units of a chunk, and whether its block index was verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::read) struct CheckedUnits(u64);

impl CheckedUnits {
    pub(in crate::read) const NONE: Self = Self(0);

    pub(in crate::read) fn has_block_index(self) -> bool {
        self.0 & BLOCK_INDEX != 0
    }

    /// Returns the unverified blocks in the units that contain `blocks`, as one range from the
    /// first to the last unverified unit. The chunk has `count` blocks.
    pub(in crate::read) fn missing(self, blocks: &Range<usize>, count: usize) -> Range<usize> {
        let size = count.div_ceil(UNITS).max(1);
        let units = blocks.start / size..blocks.end.div_ceil(size);
        let is_missing = |unit: &usize| self.0 >> unit & 1 == 0; // no overflow: below 63
        let first = units.clone().find(is_missing);
        let last = units.rev().find(is_missing);
        match first.zip(last) {
            Some((first, last)) => first * size..count.min((last + 1) * size),
            None => 0..0,
        }
    }
}

impl CheckedBlocks {
    /// Creates the records of `chunks` chunks, with no block verified.
    pub(in crate::read) fn new(chunks: u64) -> Self {
        Self(Words::new(chunks))
    }

    #[inline]
    pub(in crate::read) fn get(&self, chunk: u64) -> CheckedUnits {
        CheckedUnits(self.0.get(chunk))
    }

    pub(in crate::read) fn set_block_index(&self, chunk: u64) {
        self.0.set(chunk, BLOCK_INDEX);
    }

    /// Records that all blocks of a chunk were verified.
    fn set_all(&self, chunk: u64) {
        self.0.set(chunk, u64::MAX);
    }

    /// Records that some of the `count` blocks of a chunk were verified. Returns whether all of
    /// them are now verified.
    pub(in crate::read) fn set_blocks(&self, chunk: u64, blocks: &Range<usize>, count: usize) -> bool {
        let size = count.div_ceil(UNITS).max(1);
        // the last unit can have fewer blocks
        let end = if blocks.end >= count { count.div_ceil(size) } else { blocks.end / size };
        // no overflow: below 63
        let mask = (blocks.start.div_ceil(size)..end).fold(0, |mask, unit| mask | 1_u64 << unit);
        let all = (1_u64 << count.div_ceil(size)) - 1; // no overflow: at most 63 units
        let is_all = self.0.set(chunk, mask) & all == all;
        if is_all {
            self.set_all(chunk);
        }
        is_all
    }

    /// Takes over the records of `earlier`, which must not have more chunks.
    pub(in crate::read) fn set_all_from(&self, earlier: &Self) {
        self.0.set_all_from(&earlier.0);
    }
}

/// A cache of structures, with their numbers as keys. Memory for the slots is allocated when the
/// first structure is cached.
pub(in crate::read) struct SlotCache<T> {
    slot_count: usize,
    slots: OnceLock<Box<[Slot<T>]>>,
}

/// The structure in a slot, and its number.
type Slot<T> = Mutex<Option<(u64, Arc<T>)>>;

impl<T> SlotCache<T> {
    /// Returns a cache for `count` structures, which holds at most `slot_count` of them at a time.
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
    use std::sync::Barrier;
    use std::thread;

    /// Covers the first use by several threads at once. Miri and the thread sanitizer check every
    /// access.
    #[test]
    fn bits_of_a_bitmap_set_by_several_threads_are_all_set_and_no_others() {
        const THREADS: u64 = 4;
        for bits in [1, 64, 65, 200] {
            let bitmap = Bitmap::new(bits);
            let barrier = Barrier::new(4);
            assert!((0..bits).all(|bit| !bitmap.get(bit)));
            thread::scope(|scope| {
                for number in 0..THREADS {
                    let (bitmap, barrier) = (&bitmap, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        for bit in (0..bits).filter(|bit| bit % 3 != 2 && bit % THREADS == number) {
                            bitmap.set(bit);
                            assert!(bitmap.get(bit), "a thread sees its own bit");
                            assert!(bit == 0 || !bitmap.get(bit - 1) || (bit - 1) % 3 != 2);
                        }
                    });
                }
            });
            assert!((0..bits).all(|bit| bitmap.get(bit) == (bit % 3 != 2)));
            bitmap.set(bits + 1000);
            assert!(!bitmap.get(bits + 1000), "there is no such bit");
        }
    }

    #[test]
    fn a_unit_counts_as_checked_once_all_of_its_blocks_are() {
        for count in [1_usize, 2, 62, 63, 64, 126, 127, 1000] {
            let checked = CheckedBlocks::new(3);
            assert!(!checked.get(1).has_block_index());
            checked.set_block_index(1);
            assert!(checked.get(1).has_block_index() && !checked.get(0).has_block_index());
            let size = count.div_ceil(UNITS);
            for block in (0..count).step_by(size) {
                let missing = checked.get(1).missing(&(block..block + 1), count);
                assert_eq!(missing, block..count.min(block + size), "{count}: {block}");
                assert_eq!(checked.set_blocks(1, &missing, count), missing.end == count, "{count}: {block}");
                assert_eq!(checked.get(1).missing(&(block..block + 1), count), 0..0, "{count}: {block}");
            }
            assert!(checked.get(0) == CheckedUnits::NONE);
        }
    }

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
