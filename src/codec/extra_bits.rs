//! The number of extra bits (chapter 5.9).

/// Returns the number of extra bits of integers of these bit lengths.
pub(super) fn sum_extra_bits(lengths: &[u8]) -> u64 {
    // sums of 16 bits are faster, and hold 256 lengths of at most 255
    let sums = lengths.chunks(256).map(|part| part.iter().map(|&length| u16::from(length.saturating_sub(1))).sum());
    sums.map(|sum: u16| u64::from(sum)).sum()
}
