//! The class codes of chapter 5.13, and the filter codes of 5.15.

/// The codes of a number of classes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassCodes {
    class_count: usize,
    /// The bits of a code.
    bits: usize,
}

impl ClassCodes {
    pub(super) fn new(class_count: usize) -> Self {
        let bits = match class_count {
            0..=1 => 0,
            2 => 1,
            3..=4 => 2,
            _ => 4,
        };
        Self { class_count, bits }
    }

    /// Returns the bytes of `count` codes; `None` if this machine cannot address them.
    pub(super) fn bytes(self, count: usize) -> Option<usize> {
        Some(self.bits.checked_mul(count)?.div_ceil(8))
    }

    /// Returns code `i`, which lies inside `codes`.
    pub(super) fn get(self, codes: &[u8], i: usize) -> u8 {
        let at = self.bits * i; // below 8 times the length of `codes`
        let byte = codes.get(at / 8).copied().unwrap_or(0);
        byte >> (at % 8) & ((1 << self.bits) - 1)
    }

    /// Returns whether the first `count` codes name classes.
    pub(super) fn are_valid(self, codes: &[u8], count: usize) -> bool {
        (0..count).all(|i| usize::from(self.get(codes, i)) < self.class_count)
    }

    /// Returns whether zero bits fill up the last byte of `count` codes.
    pub(super) fn end_in_zeros(self, codes: &[u8], count: usize) -> bool {
        match (codes.last(), self.bits * count % 8) {
            (Some(last), used @ 1..) => last >> used == 0,
            _ => true,
        }
    }

    /// Appends codes.
    pub(super) fn write(self, classes: &[u8], stored: &mut Vec<u8>) {
        let Some(codes_in_byte) = 8_usize.checked_div(self.bits) else { return };
        let byte = |codes: &[u8]| codes.iter().rev().fold(0, |byte, code| byte << self.bits | code);
        stored.extend(classes.chunks(codes_in_byte).map(byte));
    }
}
