//! Records the chunks and index pages that were checked: one bit for each, set by any thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits that go from 0 to 1. Memory is taken when the first one does, so that opening a file costs
/// the same for any number of chunks.
pub(in crate::read) struct Bitmap {
    bits: u64,
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Bitmap {
    /// `bits` zeros; there is a bit for at least 32 bytes of the file.
    pub(in crate::read) fn new(bits: u64) -> Self {
        Self { bits, words: OnceLock::new() }
    }

    /// Relaxed order suffices: a bit says that bytes that never change were once right.
    #[inline]
    pub(in crate::read) fn get(&self, bit: u64) -> bool {
        let word = self.words.get().and_then(|words| word(words, bit));
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
    }

    pub(in crate::read) fn set(&self, bit: u64) {
        if let Some(word) = word(self.words(), bit) {
            word.fetch_or(1 << (bit % 64), Ordering::Relaxed);
        }
    }

    /// Sets the bits that are set in `earlier`, which has no more of them.
    pub(in crate::read) fn set_all_of(&self, earlier: &Self) {
        for (word, earlier) in earlier.words.get().into_iter().flat_map(|words| self.words().iter().zip(words)) {
            word.fetch_or(earlier.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn words(&self) -> &[AtomicU64] {
        self.words.get_or_init(|| {
            // bounded by the file
            let count = usize::try_from(self.bits.div_ceil(64)).unwrap_or(0);
            // without memory, nothing counts as checked
            bytemuck::try_zeroed_slice_box(count).unwrap_or_default()
        })
    }
}

fn word(words: &[AtomicU64], bit: u64) -> Option<&AtomicU64> {
    words.get(usize::try_from(bit / 64).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    /// The first touch, by several threads at once: Miri and the thread sanitizer look at every
    /// access.
    #[test]
    fn bits_set_by_several_threads_are_all_set_and_no_others() {
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
}
