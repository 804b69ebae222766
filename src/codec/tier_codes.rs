//! Chapter 5.7: the codes of one tier.

use crate::kernel::tiers::{GROUP, GROUP_BYTES, best, code_bytes};
use std::ops::Range;

/// The words of a tier begin at a multiple of this in their block, and so in the file.
pub(super) const WORD_BYTES: usize = size_of::<u64>();

/// The codes of one tier.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierCodes<'a> {
    width: usize,
    count: usize,
    stored: &'a [u8],
    /// The bytes before the codes.
    padding: &'a [u8],
    /// The group after all full ones, as a whole: it may be cut in `stored`.
    last: [u8; GROUP_BYTES],
}

impl<'a> TierCodes<'a> {
    /// Splits `count` codes of `width` bits from a block, whose words begin at the first multiple
    /// of [`WORD_BYTES`] from `from` on. The words of the last group are cut to the bytes that have
    /// codes. Returns them and where they end; `None` if the block is too short.
    #[inline]
    pub(super) fn split(width: usize, count: usize, block: &'a [u8], from: usize) -> Option<(Self, usize)> {
        let start = from.checked_next_multiple_of(WORD_BYTES)?;
        let end = start.checked_add(cut_bytes(width, count))?;
        let (padding, stored) = (block.get(from..start)?, block.get(start..end)?);
        let group = stored.get(full_bytes(width, count)..)?;
        let mut last = [0; GROUP_BYTES];
        if let Some(word_bytes) = group.len().checked_div(width).filter(|&bytes| bytes > 0) {
            for (to, word) in last.as_chunks_mut().0.iter_mut().zip(group.chunks_exact(word_bytes)) {
                *to = word_of(word).to_le_bytes();
            }
        }
        Some((Self { width, count, stored, padding, last }, end))
    }

    /// Returns the stored bytes.
    pub(super) fn stored(&self) -> &'a [u8] {
        self.stored
    }

    /// Returns the bytes before the codes.
    pub(super) fn padding(&self) -> &'a [u8] {
        self.padding
    }

    /// Decodes the codes from `start` on, which is the start of a group, to `out`: see
    /// [`merge`](crate::kernel::tiers::Tiers::merge). There are as many. Returns the number of
    /// escapes.
    pub(super) fn merge(&self, start: usize, table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
        let codes = self.stored.get(code_bytes(self.width, start)..).unwrap_or(&[]);
        let end = start.saturating_add(out.len());
        if end.is_multiple_of(GROUP) || end / GROUP == self.count / GROUP {
            return best().merge(self.width, codes, &self.last, table, escaped, out);
        }
        let mut last = [0; GROUP_BYTES];
        let group = codes.get(full_bytes(self.width, out.len())..).unwrap_or(&[]);
        last.iter_mut().zip(group).for_each(|(to, from)| *to = *from);
        best().merge(self.width, codes, &last, table, escaped, out)
    }

    /// Counts the escapes among a range of the codes.
    pub(super) fn escapes(&self, range: Range<usize>) -> usize {
        let full = self.count - self.count % GROUP;
        let escapes = best().escapes(self.width, self.stored, range.start.min(full)..range.end.min(full));
        if range.end <= full {
            return escapes;
        }
        let last = self.last.get(..8 * self.width).unwrap_or(&[]);
        escapes + best().escapes(self.width, last, range.start.saturating_sub(full)..range.end - full)
    }

    /// Returns whether the codes that fill up the last group, and the padding, are zero.
    #[inline]
    pub(super) fn filling_is_zero(&self) -> bool {
        let words = self.last.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        words.fold(0, |any, word| any | word) >> (self.count % GROUP) == 0 && self.padding.iter().all(|&byte| byte == 0)
    }
}

/// Returns the number in one to eight bytes, by loads that overlap.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    let of = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    match (bytes.first_chunk(), bytes.len()) {
        (Some(bytes), _) => u64::from_le_bytes(*bytes),
        (None, 4..) => of(bytes.first_chunk()) | of(bytes.last_chunk()) << (8 * (bytes.len() - 4)),
        (None, _) => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Returns the bytes of the full groups among `count` codes of `width` bits.
fn full_bytes(width: usize, count: usize) -> usize {
    code_bytes(width, count - count % GROUP)
}

/// Returns the bytes of `count` codes of `width` bits, the last group of which is cut.
fn cut_bytes(width: usize, count: usize) -> usize {
    // fewer than the bytes of whole groups
    full_bytes(width, count).saturating_add(width * (count % GROUP).div_ceil(8))
}

/// Cuts the words of the last group of `count` codes, with which `stored` ends, to the bytes that
/// have codes.
pub(super) fn cut(width: usize, count: usize, stored: &mut Vec<u8>) {
    let kept = (count % GROUP).div_ceil(8);
    let Some(start) = stored.len().checked_sub(8 * width).filter(|_| kept > 0) else { return };
    for word in 1..width {
        // within the group
        stored.copy_within(start + 8 * word..start + 8 * word + kept, start + kept * word);
    }
    stored.truncate(start + kept * width);
}
