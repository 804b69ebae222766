//! Chapter 5.9: residual-tiers codes the bit length of each residual in tiers and keeps its lower
//! bits.

use super::anatomy::Anatomy;
use super::blocked::wrong_length as wrong_block_length;
use super::encoding::{Codec, Encoder};
use super::extra_bits::sum_extra_bits;
use super::geometry::Geometry;
use super::part_spec::PartSpec;
use super::predict::{best_tier_transform, bit_lengths, count_extra_bits, transforms};
use super::sample::SampledPart;
use super::scratch::{DecodeScratch, EncodeScratch};
use super::tier_head::{heads, heads_anatomy};
use super::tier_plan::{TierPlan, histogram};
use super::tier_stream::{LONG_CHECKPOINT_BYTES, TierScratch, TierStream, overrun};
use super::transform::Transform;
use crate::kernel::tiers::GROUP;
use crate::kernel::{Width, extra_bits};
use crate::le::u64_of;
use crate::{Error, Result, memory};
use std::ops::Range;

pub(super) struct ResidualTiers {
    /// The spacing of the checkpoints that it writes, see
    /// [`TierHead::spacing`](super::tier_head::TierHead::spacing).
    pub spacing: u8,
}

/// The sections of stored bytes, of a part or of a block.
pub(super) struct StoredResiduals<'a> {
    pub width: Width,
    pub transform: Transform,
    pub lengths: TierStream<'a>,
    /// Zeros, up to a multiple of 8.
    pub filling: &'a [u8],
    /// The words of the extra bits, and in a part the zero word.
    pub extra_bits: &'a [u8],
    /// The bytes of the words without the zero word.
    pub extra_bytes: usize,
    /// The bytes of a word: 8 in a part, 1 in a block.
    pub word_bytes: usize,
}

#[cold]
pub(super) fn malformed(what: &str) -> Error {
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

impl<'a> StoredResiduals<'a> {
    /// Parses the sections, except for the literals and the bits after the extra bits.
    fn parse(spec: PartSpec<'_>, stored: &'a [u8]) -> Result<Self> {
        let (width, count) = spec.width_and_count()?;
        let (transform, head, rest) = heads(stored).ok_or_else(wrong_length)??;
        if transform == Transform::Rotate {
            return Err(malformed("it cannot rotate"));
        }
        check_lengths(width, &head.ranks)?;
        let (lengths, rest) = TierStream::split(head, count, LONG_CHECKPOINT_BYTES, rest).ok_or_else(wrong_length)?;
        let (filling, extra_bits) = rest.split_at_checked(rest.len() % 8).ok_or_else(wrong_length)?;
        // the filling ends at a multiple of 8 of the stored bytes, and so do these
        let extra_bytes = extra_bits.len().checked_sub(8).filter(|_| stored.len().is_multiple_of(8));
        if filling.iter().any(|&byte| byte != 0) {
            return Err(malformed("filling bytes are not zero"));
        }
        let extra_bytes = extra_bytes.ok_or_else(wrong_length)?;
        Ok(Self { width, transform, lengths, filling, extra_bits, extra_bytes, word_bytes: 8 })
    }

    /// Decodes the coded integers of elements `group` to `end`, to `out`, which has their length.
    /// `group` is the start of a group.
    fn coded_from(&self, group: usize, end: usize, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let from = self.lengths.checkpoint_before(group)?;
        let mut at = from.extra_bits;
        let most = self.extra_bytes.saturating_mul(8);
        let mut out = out;
        self.lengths.decode_range(&(from.codes[0]..end), scratch, |first, lengths| {
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
        if at.div_ceil(8 * self.word_bytes).checked_mul(self.word_bytes) != Some(self.extra_bytes) {
            return Err(if self.word_bytes == 1 { wrong_block_length() } else { wrong_length() });
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
        anatomy.add("filling", "", self.filling);
        anatomy.add("extra bits", "the bits of residuals below their highest", self.extra_bits);
    }

    /// Decodes all elements.
    pub(super) fn decode(&self, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut at = 0;
        let mut rest = &mut *out;
        self.lengths.decode(scratch, |first, lengths| {
            self.lengths.check_extra_bits(first, u64_of(at))?;
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

impl Codec for ResidualTiers {
    fn id(&self) -> u16 {
        5
    }

    fn name(&self) -> &'static str {
        "residual-tiers"
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        let parts = StoredResiduals::parse(spec, stored)?;
        check_lengths(parts.width, parts.lengths.literals())
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        StoredResiduals::parse(spec, stored)?.decode(out, &mut scratch.tiers)
    }

    fn decode_range(
        &self,
        spec: PartSpec<'_>,
        stored: &[u8],
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let (_, count) = spec.width_and_count()?;
        StoredResiduals::parse(spec, stored)?.decode_range(count, range, out, scratch)
    }

    fn anatomy(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<Anatomy> {
        let parts = StoredResiduals::parse(spec, stored)?;
        let mut anatomy = heads_anatomy(parts.transform, stored);
        parts.describe(&mut anatomy);
        Ok(anatomy)
    }
}

impl Encoder for ResidualTiers {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let (transform, bytes) = best_tier_transform(width, part, scratch);
        scratch.tier_transform = Some(transform);
        Some(bytes)
    }

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        stored.clear();
        let Some(width) = Width::from_bytes(geometry.element_bytes) else { return Ok(false) };
        let mut one = Vec::new();
        for transform in transforms(width, geometry, raw, scratch) {
            if self.encode_with(transform, geometry, raw, &mut one, scratch)?
                && (stored.is_empty() || one.len() < stored.len())
            {
                std::mem::swap(stored, &mut one);
            }
        }
        Ok(!stored.is_empty())
    }
}

impl ResidualTiers {
    fn encode_with(
        &self,
        transform: Transform,
        geometry: &Geometry<'_>,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        stored.clear();
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, count)) = spec.width_and_count() else { return Ok(false) };
        bit_lengths(transform, width, raw, scratch);
        let EncodeScratch { symbols, coded, tiers, words, search, .. } = scratch;
        let counts = histogram(symbols);
        let head = TierPlan::new(&counts, geometry.spacing(count, self.spacing), *search).head;
        stored.extend_from_slice(&transform.to_bytes());
        stored.extend_from_slice(&head.to_bytes());
        head.write(symbols, Some(sum_extra_bits), stored, tiers)?;
        stored.resize(stored.len().next_multiple_of(8), 0);
        let Ok(bits) = usize::try_from(count_extra_bits(&counts)) else { return Ok(false) };
        words.clear();
        words.resize(bits.div_ceil(64) + 1, 0);
        extra_bits::best().extract(width, symbols, coded, words, 0);
        let start = stored.len();
        stored.resize(start + 8 * words.len(), 0);
        let bytes = stored.get_mut(start..).unwrap_or(&mut []).as_chunks_mut().0;
        bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        Ok(true)
    }
}
