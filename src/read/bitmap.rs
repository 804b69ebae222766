//! What has been checked before: one bit for each chunk and each index page, set by any thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits that go from 0 to 1.
pub(super) struct Bitmap(Box<[AtomicU64]>);

impl Bitmap {
    /// `bits` zeros. Large ones come from the system as zero pages, so that opening a file stays independent of its size.
    pub(super) fn new(bits: u64) -> Self {
        let words = usize::try_from(bits.div_ceil(64)).unwrap_or(0); // bounded by the file: its index has 32 bytes a bit
        Self(bytemuck::zeroed_slice_box(words))
    }

    /// Relaxed order suffices: a bit says that bytes that never change were once right.
    #[inline]
    pub(super) fn get(&self, bit: u64) -> bool {
        self.word(bit).is_some_and(|word| word.load(Ordering::Relaxed) >> (bit % 64) & 1 == 1)
    }

    pub(super) fn set(&self, bit: u64) {
        if let Some(word) = self.word(bit) {
            word.fetch_or(1 << (bit % 64), Ordering::Relaxed);
        }
    }

    fn word(&self, bit: u64) -> Option<&AtomicU64> {
        self.0.get(usize::try_from(bit / 64).ok()?)
    }
}
