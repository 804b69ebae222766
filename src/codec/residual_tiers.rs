//! Chapter 5.9: the bit length of each residual in tiers, its lower bits one by one.

use super::explain::Anatomy;
use super::exponent_tiers::{heads, heads_anatomy};
use super::predict::{best_transform, bit_lengths, extra_bits};
use super::tier_plan::{TierPlan, histogram};
use super::tiers::{TierScratch, TierStream};
use super::transform::Transform;
use super::{Codec, DecodeScratch, EncodeScratch, Encoder, Geometry, PartSpec};
use crate::kernel::Width;
use crate::kernel::tiers::{GROUP, best};
use crate::{Error, Result, memory};
use std::ops::Range;

pub(super) struct ResidualTiers {
    /// The distance of the checkpoints it writes, see [`TierHead::spacing`](super::tiers::TierHead::spacing).
    pub spacing: u8,
}

struct Stored<'a> {
    width: Width,
    transform: Transform,
    lengths: TierStream<'a>,
    /// Zeros, up to a multiple of 8.
    filling: &'a [u8],
    /// Whole words of 64 bits.
    extra_bits: &'a [u8],
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.11", format!("residual-tiers: {what}"))
}

#[cold]
fn wrong_length() -> Error {
    malformed("the stored bytes do not end where the extra bits end")
}

#[cold]
fn beyond() -> Error {
    Error::corrupt("R-5.9", "a checkpoint of residual-tiers leads beyond the extra bits")
}

impl<'a> Stored<'a> {
    /// but for the literals and what stands after the extra bits.
    fn take_apart(spec: PartSpec, stored: &'a [u8]) -> Result<Self> {
        let (width, count) = super::whole_elements(spec)?;
        let (transform, head, rest) = heads(stored).ok_or_else(wrong_length)??;
        if transform == Transform::Rotate {
            return Err(malformed("it cannot rotate"));
        }
        check_lengths(width, &head.ranks)?;
        let (lengths, rest) = TierStream::split(head, count, 20, rest).ok_or_else(wrong_length)?;
        let (filling, extra_bits) = rest.split_at_checked(rest.len() % 8).ok_or_else(wrong_length)?;
        // stored bytes and their multiple of 8 are counted from the start
        if !stored.len().is_multiple_of(8) || extra_bits.is_empty() {
            return Err(wrong_length());
        }
        if filling.iter().any(|&byte| byte != 0) {
            return Err(malformed("filling bytes are not zero"));
        }
        Ok(Self { width, transform, lengths, filling, extra_bits })
    }

    /// The coded integers of elements `group` (the start of a group) to `end`, to `out`, which is as long.
    fn coded_from(&self, group: usize, end: usize, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let from = self.lengths.checkpoint_before(group)?;
        let mut at = from.extra_bits;
        // without the word after them
        let most = self.extra_bits.len().saturating_sub(8).saturating_mul(8);
        let mut out = out;
        self.lengths.decode_from(&from, end, scratch, |first, lengths| {
            check_lengths(self.width, lengths)?; // instead of all literals
            let (skipped, lengths) = lengths.split_at(group.saturating_sub(first).min(lengths.len())); // at most all
            at = at.saturating_add(sum_extra_bits(skipped));
            let bits = usize::try_from(at).ok().filter(|&bits| bits <= most).ok_or_else(beyond)?;
            let block = out.split_off_mut(..lengths.len() * self.width.bytes()).ok_or_else(wrong_length)?; // never: one for each element
            let next = best().deposit(self.width, lengths, self.extra_bits, bits, block);
            at = next as u64; // exact: usize has at most 64 bits
            if next <= most { Ok(()) } else { Err(beyond()) }
        })
    }

    /// the extra bits end one word before the stored bytes do, and the rest is zero.
    fn check_end(&self, at: usize) -> Result<()> {
        if at.div_ceil(64).checked_add(1).and_then(|words| words.checked_mul(8)) != Some(self.extra_bits.len()) {
            return Err(wrong_length());
        }
        let (last, after) = self.extra_bits.get(at / 8..).and_then(<[u8]>::split_first).ok_or_else(wrong_length)?;
        if last >> (at % 8) != 0 || after.iter().any(|&byte| byte != 0) {
            return Err(malformed("filling bits are not zero"));
        }
        Ok(())
    }
}

/// of some symbols.
fn check_lengths(width: Width, lengths: &[u8]) -> Result<()> {
    if lengths.iter().copied().max().is_some_and(|longest| usize::from(longest) > 8 * width.bytes()) {
        return Err(malformed("a rank or literal is no bit length of an element"));
    }
    Ok(())
}

/// The extra bits of integers of these lengths.
fn sum_extra_bits(lengths: &[u8]) -> u64 {
    // sums of 16 bits are quicker, and hold that many: a length is at most 255
    let sums = lengths.chunks(256).map(|part| part.iter().map(|&length| u16::from(length.saturating_sub(1))).sum());
    sums.map(|sum: u16| u64::from(sum)).sum()
}

impl Codec for ResidualTiers {
    fn id(&self) -> u16 {
        5
    }

    fn name(&self) -> &'static str {
        "residual-tiers"
    }

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        let parts = Stored::take_apart(spec, stored)?;
        check_lengths(parts.width, parts.lengths.literals())
    }

    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let parts = Stored::take_apart(spec, stored)?;
        let mut at = 0;
        let mut rest = &mut *out;
        parts.lengths.decode(&mut scratch.tiers, |first, lengths| {
            parts.lengths.check_extra_bits(first, at as u64)?; // exact: usize has at most 64 bits
            let block = rest.split_off_mut(..lengths.len() * spec.element_bytes).ok_or_else(wrong_length)?; // never: one for each element
            at = best().deposit(parts.width, lengths, parts.extra_bits, at, block);
            Ok(())
        })?;
        parts.check_end(at)?;
        parts.transform.undo(parts.width, out);
        Ok(())
    }

    fn decode_range(
        &self,
        spec: PartSpec,
        stored: &[u8],
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let parts = Stored::take_apart(spec, stored)?;
        let restart = parts.transform.start_of(range.start);
        if range.start - restart > spec.raw_bytes / spec.element_bytes / 3 {
            return Ok(false); // prediction began so long before that all elements cost little more
        }
        let group = restart - restart % GROUP;
        // the extra bits of a group stand plane by plane: to place any of them, all its lengths must be known
        let end = range.end.next_multiple_of(GROUP).min(spec.raw_bytes / parts.width.bytes());
        let DecodeScratch { tiers, coded, .. } = scratch;
        if (group..end) == *range {
            parts.coded_from(group, end, out, tiers)?;
            parts.transform.undo(parts.width, out);
            return Ok(true);
        }
        memory::resize(coded, (end - group) * spec.element_bytes, 0)?;
        parts.coded_from(group, end, coded, tiers)?;
        let bytes = |from: usize, to: usize| (from - group) * spec.element_bytes..(to - group) * spec.element_bytes;
        parts.transform.undo(parts.width, coded.get_mut(bytes(restart, range.end)).ok_or_else(wrong_length)?);
        out.copy_from_slice(coded.get(bytes(range.start, range.end)).ok_or_else(wrong_length)?); // equal lengths
        Ok(true)
    }

    fn anatomy(&self, spec: PartSpec, stored: &[u8]) -> Result<Anatomy> {
        let Stored { transform, lengths, filling, extra_bits, .. } = Stored::take_apart(spec, stored)?;
        let mut anatomy = heads_anatomy(transform, stored);
        lengths.describe(&mut anatomy);
        anatomy.add("filling", "", filling);
        anatomy.add("extra bits", "the bits of residuals below their highest", extra_bits);
        Ok(anatomy)
    }
}

impl Encoder for ResidualTiers {
    fn estimate(&self, geometry: &Geometry, raw: &[u8], scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(geometry.element_bytes)?;
        Some(best_transform(width, geometry, raw, scratch).1)
    }

    fn encode(
        &self,
        geometry: &Geometry,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        stored.clear();
        let spec = PartSpec { element_bytes: geometry.element_bytes, raw_bytes: raw.len() };
        let Ok((width, count)) = super::whole_elements(spec) else { return Ok(false) };
        let (transform, _) = best_transform(width, geometry, raw, scratch);
        bit_lengths(transform, width, raw, scratch);
        let EncodeScratch { symbols, coded, tiers, words, .. } = scratch;
        let counts = histogram(symbols);
        let head = TierPlan::new(&counts, geometry.spacing(count, self.spacing)).head;
        stored.extend_from_slice(&transform.to_bytes());
        stored.extend_from_slice(&head.to_bytes());
        head.write(symbols, Some(sum_extra_bits), stored, tiers)?;
        stored.resize(stored.len().next_multiple_of(8), 0);
        let Ok(bits) = usize::try_from(extra_bits(&counts)) else { return Ok(false) };
        words.clear();
        words.resize(bits.div_ceil(64) + 1, 0);
        best().extract(width, symbols, coded, words, 0);
        let start = stored.len();
        stored.resize(start + 8 * words.len(), 0);
        let bytes = stored.get_mut(start..).unwrap_or(&mut []).as_chunks_mut().0;
        bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        Ok(true)
    }
}
