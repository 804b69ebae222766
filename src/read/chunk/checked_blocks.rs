//! Records which blocks of chunks were checked: a word for each chunk, set by any thread.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bit of a front.
const FRONT: u64 = 1 << 63;
/// The units of a chunk: a bit says that all blocks of a unit were checked. A chunk of up to as
/// many blocks has one block in a unit.
const UNITS: usize = 63;

/// Bits that go from 0 to 1. Memory is taken when the first one does, so that opening a file costs
/// the same for any number of chunks.
pub(in crate::read) struct CheckedBlocks {
    chunks: u64,
    words: OnceLock<Box<[AtomicU64]>>,
}

/// The units of a chunk that were checked, and whether its front was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::read) struct CheckedUnits(u64);

impl CheckedUnits {
    pub(in crate::read) const NOTHING: Self = Self(0);

    pub(in crate::read) fn has_front(self) -> bool {
        self.0 & FRONT != 0
    }

    /// Returns the blocks of the units that some blocks are in, of `count` blocks in all, that were
    /// not checked: the first to the last of them.
    pub(in crate::read) fn missing(self, blocks: &Range<usize>, count: usize) -> Range<usize> {
        let size = count.div_ceil(UNITS).max(1);
        let units = blocks.start / size..blocks.end.div_ceil(size);
        let is_missing = |unit: &usize| self.0 >> unit & 1 == 0; // below 63
        let first = units.clone().find(is_missing);
        let last = units.rev().find(is_missing);
        match first.zip(last) {
            Some((first, last)) => first * size..count.min((last + 1) * size),
            None => 0..0,
        }
    }
}

impl CheckedBlocks {
    /// No blocks, of any of `chunks` chunks.
    pub(in crate::read) fn new(chunks: u64) -> Self {
        Self { chunks, words: OnceLock::new() }
    }

    /// Relaxed order suffices: a bit says that bytes that never change were once right.
    #[inline]
    pub(in crate::read) fn get(&self, chunk: u64) -> CheckedUnits {
        let word = self.words.get().and_then(|words| words.get(usize::try_from(chunk).ok()?));
        CheckedUnits(word.map_or(0, |word| word.load(Ordering::Relaxed)))
    }

    pub(in crate::read) fn set_front(&self, chunk: u64) {
        self.set(chunk, FRONT);
    }

    /// Notes that all blocks of a chunk were checked.
    pub(in crate::read) fn set_all(&self, chunk: u64) {
        self.set(chunk, u64::MAX);
    }

    /// Notes that some blocks were checked, of `count` in all. Returns whether all of them are now.
    pub(in crate::read) fn set_blocks(&self, chunk: u64, blocks: &Range<usize>, count: usize) -> bool {
        let size = count.div_ceil(UNITS).max(1);
        // the last unit may have fewer blocks
        let end = if blocks.end >= count { count.div_ceil(size) } else { blocks.end / size };
        // below 63
        let mask = (blocks.start.div_ceil(size)..end).fold(0, |mask, unit| mask | 1_u64 << unit);
        let all = (1_u64 << count.div_ceil(size)) - 1; // at most 63 units
        let is_all = self.set(chunk, mask) & all == all;
        if is_all {
            self.set_all(chunk);
        }
        is_all
    }

    /// Notes what `earlier` has noted, which has no more chunks.
    pub(in crate::read) fn set_all_of(&self, earlier: &Self) {
        for (word, earlier) in earlier.words.get().into_iter().flat_map(|words| self.words().iter().zip(words)) {
            word.fetch_or(earlier.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Returns the word after its bits were set.
    fn set(&self, chunk: u64, bits: u64) -> u64 {
        let word = self.words().get(usize::try_from(chunk).unwrap_or(usize::MAX));
        word.map_or(0, |word| word.fetch_or(bits, Ordering::Relaxed) | bits)
    }

    fn words(&self) -> &[AtomicU64] {
        self.words.get_or_init(|| {
            // bounded by the file
            let count = usize::try_from(self.chunks).unwrap_or(0);
            // without memory, nothing counts as checked
            bytemuck::try_zeroed_slice_box(count).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_counts_as_checked_once_all_of_its_blocks_are() {
        for count in [1_usize, 2, 62, 63, 64, 126, 127, 1000] {
            let checked = CheckedBlocks::new(3);
            assert!(!checked.get(1).has_front());
            checked.set_front(1);
            assert!(checked.get(1).has_front() && !checked.get(0).has_front());
            let size = count.div_ceil(UNITS);
            for block in (0..count).step_by(size) {
                let missing = checked.get(1).missing(&(block..block + 1), count);
                assert_eq!(missing, block..count.min(block + size), "{count}: {block}");
                assert_eq!(checked.set_blocks(1, &missing, count), missing.end == count, "{count}: {block}");
                assert_eq!(checked.get(1).missing(&(block..block + 1), count), 0..0, "{count}: {block}");
            }
            assert!(checked.get(0) == CheckedUnits::NOTHING);
        }
    }
}
