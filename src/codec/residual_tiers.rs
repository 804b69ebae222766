//! Chapter 5.9: residual-tiers codes the bit length of each residual in tiers and keeps its lower
//! bits.

use super::anatomy::Anatomy;
use super::blocked::wrong_length;
use super::extra_bits::sum_extra_bits;
use super::scratch::DecodeScratch;
use super::tier_stream::{TierScratch, TierStream, overrun};
use super::transform::Transform;
use crate::kernel::tiers::GROUP;
use crate::kernel::{Width, extra_bits};
use crate::le::u64_of;
use crate::{Error, Result, memory};
use std::ops::Range;

/// The sections of a block.
pub(super) struct StoredResiduals<'a> {
    pub width: Width,
    pub transform: Transform,
    pub lengths: TierStream<'a>,
    pub extra_bits: &'a [u8],
}

#[cold]
pub(super) fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.11", format!("residual-tiers: {what}"))
}

#[cold]
fn beyond() -> Error {
    Error::corrupt("R-5.9", "symbols of residual-tiers have more extra bits than the block")
}

impl StoredResiduals<'_> {
    /// Decodes the coded integers of elements `group` to `end`, to `out`, which has their length.
    /// `group` is the start of a group.
    fn coded_from(&self, group: usize, end: usize, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut at = 0_u64;
        let most = self.extra_bits.len().saturating_mul(8);
        let mut out = out;
        // from the start, as the extra bits of earlier elements are not counted anywhere
        self.lengths.decode_range(&(0..end), scratch, |first, lengths| {
            check_lengths(self.width, lengths)?; // a whole part checks all literals instead
            // at most all
            let (skipped, lengths) = lengths.split_at(group.saturating_sub(first).min(lengths.len()));
            at = at.saturating_add(sum_extra_bits(skipped));
            let bits = usize::try_from(at).ok().filter(|&bits| bits <= most).ok_or_else(beyond)?;
            let block = out.split_off_mut(..lengths.len() * self.width.bytes()).ok_or_else(overrun)?;
            let next = extra_bits::best().deposit(self.width, lengths, self.extra_bits, bits, block);
            at = u64_of(next);
            if next <= most { Ok(()) } else { Err(beyond()) }
        })
    }

    /// Checks where the extra bits end, and that the bits after them are zero.
    fn check_end(&self, at: usize) -> Result<()> {
        if at.div_ceil(8) != self.extra_bits.len() {
            return Err(wrong_length());
        }
        let mut after = self.extra_bits.iter().skip(at / 8);
        if after.next().is_some_and(|last| last >> (at % 8) != 0) || after.any(|&byte| byte != 0) {
            return Err(malformed("filling bits are not zero"));
        }
        Ok(())
    }

    /// Adds the sections to a description.
    pub(super) fn describe(&self, anatomy: &mut Anatomy) {
        self.lengths.describe(anatomy);
        anatomy.add("extra bits", "the bits of residuals below their highest", self.extra_bits);
    }

    /// Decodes all elements.
    pub(super) fn decode(&self, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut at = 0;
        let mut rest = &mut *out;
        self.lengths.decode(scratch, |_, lengths| {
            let block = rest.split_off_mut(..lengths.len() * self.width.bytes()).ok_or_else(overrun)?;
            at = extra_bits::best().deposit(self.width, lengths, self.extra_bits, at, block);
            Ok(())
        })?;
        self.check_end(at)?;
        self.transform.undo(self.width, out);
        Ok(())
    }

    /// Decodes the elements of a range, of `count` elements in all. Returns `false` if so many
    /// precede it that all cost little more.
    pub(super) fn decode_range(
        &self,
        count: usize,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let restart = self.transform.start_of(range.start);
        if range.start - restart > count / 3 {
            return Ok(false);
        }
        let group = restart - restart % GROUP;
        // the extra bits of a group are stored plane by plane, so one needs the lengths of all
        let end = range.end.next_multiple_of(GROUP).min(count);
        let DecodeScratch { tiers, coded, .. } = scratch;
        if (group..end) == *range {
            self.coded_from(group, end, out, tiers)?;
            self.transform.undo(self.width, out);
            return Ok(true);
        }
        let bytes = |from: usize, to: usize| (from - group) * self.width.bytes()..(to - group) * self.width.bytes();
        memory::resize(coded, bytes(group, end).end, 0)?;
        self.coded_from(group, end, coded, tiers)?;
        self.transform.undo(self.width, coded.get_mut(bytes(restart, range.end)).ok_or_else(wrong_length)?);
        // equal lengths
        out.copy_from_slice(coded.get(bytes(range.start, range.end)).ok_or_else(wrong_length)?);
        Ok(true)
    }
}

/// Checks of some symbols.
pub(super) fn check_lengths(width: Width, lengths: &[u8]) -> Result<()> {
    if lengths.iter().copied().max().is_some_and(|longest| usize::from(longest) > 8 * width.bytes()) {
        return Err(malformed("a rank or literal is no bit length of an element"));
    }
    Ok(())
}
