//! What has been checked before: one bit for each chunk and each index page, set by any thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits that go from 0 to 1. Memory is taken when the first one does, so that opening a file costs the same for any
/// number of chunks.
pub(super) struct Bitmap {
    bits: u64,
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Bitmap {
    /// `bits` zeros; there is a bit for at least 32 bytes of the file.
    pub(super) fn new(bits: u64) -> Self {
        Self { bits, words: OnceLock::new() }
    }

    /// Relaxed order suffices: a bit says that bytes that never change were once right.
    #[inline]
    pub(super) fn get(&self, bit: u64) -> bool {
        let word = self.words.get().and_then(|words| word(words, bit));
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
    }

    pub(super) fn set(&self, bit: u64) {
        let words = self.words.get_or_init(|| {
            let count = usize::try_from(self.bits.div_ceil(64)).unwrap_or(0); // bounded by the file
            bytemuck::try_zeroed_slice_box(count).unwrap_or_default() // without memory, nothing counts as checked
        });
        if let Some(word) = word(words, bit) {
            word.fetch_or(1 << (bit % 64), Ordering::Relaxed);
        }
    }
}

fn word(words: &[AtomicU64], bit: u64) -> Option<&AtomicU64> {
    words.get(usize::try_from(bit / 64).ok()?)
}
