//! Chapter 5.9: the bit length of each residual in tiers, its lower bits one by one.

use super::exponent_tiers::heads;
use super::tiers::TierStream;
use super::transform::{Transform, Word, for_width};
use super::{Codec, DecodeScratch, PartSpec};
use crate::{Error, Result};

pub(super) struct ResidualTiers;

/// Elements whose extra bits stand together.
const GROUP: usize = 64;

struct Stored<'a> {
    transform: Transform,
    lengths: TierStream<'a>,
    /// Whole words of 64 bits.
    extra_bits: &'a [u8],
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.11", format!("residual-tiers: {what}"))
}

fn take_apart(spec: PartSpec, stored: &[u8]) -> Result<Stored<'_>> {
    let count = super::whole_elements(spec)?;
    let short = || malformed("the stored bytes do not end where the extra bits end");
    let (transform, head, rest) = heads(stored).ok_or_else(short)??;
    if transform == Transform::Rotate {
        return Err(malformed("it cannot rotate"));
    }
    if head.ranks.iter().any(|&rank| usize::from(rank) > 8 * spec.element_bytes) {
        return Err(malformed("a rank is no bit length of an element"));
    }
    let (lengths, rest) = TierStream::split(head, count, 0, rest).ok_or_else(short)?;
    let (filling, extra_bits) = rest.split_at_checked(rest.len() % 8).ok_or_else(short)?;
    // stored bytes and their multiple of 8 are counted from the start
    if !stored.len().is_multiple_of(8) || extra_bits.is_empty() {
        return Err(short());
    }
    if filling.iter().any(|&byte| byte != 0) {
        return Err(malformed("filling bytes are not zero"));
    }
    Ok(Stored { transform, lengths, extra_bits })
}

/// Reads single bits.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn next(&mut self) -> u8 {
        let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
        let bit = byte >> (self.at % 8) & 1;
        self.at += 1;
        bit
    }

    /// the extra bits end one word before the stored bytes do, and the rest is zero.
    fn check_end(&mut self) -> Result<()> {
        if self.at.div_ceil(64).checked_add(1).and_then(|words| words.checked_mul(8)) != Some(self.bytes.len()) {
            return Err(malformed("the stored bytes do not end where the extra bits end"));
        }
        let left = self.bytes.len() * 8 - self.at; // at least the last word
        if (0..left).any(|_| self.next() != 0) {
            return Err(malformed("filling bits are not zero"));
        }
        Ok(())
    }
}

/// Puts the coded integers of a group of elements together.
fn join_group<W: Word>(lengths: &[u8], bits: &mut Bits<'_>, out: &mut [u8]) {
    out.fill(0);
    for (&length, element) in lengths.iter().zip(out.chunks_exact_mut(W::BYTES)) {
        if let Some(top) = length.checked_sub(1)
            && let Some(byte) = element.get_mut(usize::from(top / 8))
        {
            *byte |= 1 << (top % 8);
        }
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    for plane in 0..longest.saturating_sub(1) {
        for (&length, element) in lengths.iter().zip(out.chunks_exact_mut(W::BYTES)) {
            if length > plane + 1
                && let Some(byte) = element.get_mut(usize::from(plane / 8))
            {
                *byte |= bits.next() << (plane % 8);
            }
        }
    }
}

impl Codec for ResidualTiers {
    fn id(&self) -> u16 {
        5
    }

    fn name(&self) -> &'static str {
        "residual-tiers"
    }

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        take_apart(spec, stored).map(|_| ())
    }

    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let parts = take_apart(spec, stored)?;
        let lengths = parts.lengths.decode_all(&mut scratch.tiers)?;
        if lengths.iter().any(|&length| usize::from(length) > 8 * spec.element_bytes) {
            return Err(malformed("a literal is no bit length of an element"));
        }
        let mut bits = Bits { bytes: parts.extra_bits, at: 0 };
        for_width!(spec.element_bytes, W => {
            let groups = out.chunks_mut(GROUP * W::BYTES);
            lengths.chunks(GROUP).zip(groups).for_each(|(lengths, out)| join_group::<W>(lengths, &mut bits, out));
        });
        bits.check_end()?;
        parts.transform.undo(spec.element_bytes, out);
        Ok(())
    }
}
