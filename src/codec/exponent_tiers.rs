//! Chapter 5.8: the top byte of each element in tiers, the bytes below it as they are.

use super::tiers::{self, TierHead, TierStream};
use super::transform::{TRANSFORM_BYTES, Transform};
use super::{Codec, DecodeScratch, PartSpec};
use crate::{Error, Result};

pub(super) struct ExponentTiers;

/// The stored bytes, taken apart.
struct Stored<'a> {
    transform: Transform,
    low_bytes: &'a [u8],
    symbols: TierStream<'a>,
}

#[cold]
fn wrong_length() -> Error {
    Error::corrupt("R-5.10", "the stored bytes of exponent-tiers do not end where their literals end")
}

/// Transform and head of the tier stream, at the start of the stored bytes, and what follows.
pub(super) fn heads(stored: &[u8]) -> Option<Result<(Transform, TierHead, &[u8])>> {
    let (transform, rest) = stored.split_first_chunk::<TRANSFORM_BYTES>()?;
    let (head, rest) = rest.split_first_chunk::<{ tiers::HEAD_BYTES }>()?;
    let parse = || Ok((Transform::parse(transform)?, TierHead::parse(head)?, rest));
    Some(parse())
}

fn take_apart(spec: PartSpec, stored: &[u8]) -> Result<Stored<'_>> {
    let count = super::whole_elements(spec)?;
    let (transform, head, rest) = heads(stored).ok_or_else(wrong_length)??;
    if matches!(transform, Transform::Predict(_)) {
        return Err(Error::corrupt("R-5.10", "exponent-tiers cannot predict"));
    }
    let low_bytes = count.saturating_mul(spec.element_bytes - 1); // `whole_elements`: at least 1
    let (low_bytes, rest) = rest.split_at_checked(low_bytes).ok_or_else(wrong_length)?;
    let split = TierStream::split(head, count, tiers::checkpoint_bytes(count), rest);
    match split {
        Some((symbols, [])) => Ok(Stored { transform, low_bytes, symbols }),
        _ => Err(wrong_length()),
    }
}

impl Codec for ExponentTiers {
    fn id(&self) -> u16 {
        4
    }

    fn name(&self) -> &'static str {
        "exponent-tiers"
    }

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        take_apart(spec, stored).map(|_| ())
    }

    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let parts = take_apart(spec, stored)?;
        let symbols = parts.symbols.decode_all(&mut scratch.tiers)?;
        parts.symbols.check_checkpoints()?;
        let width = spec.element_bytes;
        let count = symbols.len();
        for (i, (element, &symbol)) in out.chunks_exact_mut(width).zip(symbols).enumerate() {
            if let Some((top, low)) = element.split_last_mut() {
                *top = symbol;
                for (j, byte) in low.iter_mut().enumerate() {
                    *byte = parts.low_bytes.get(j * count + i).copied().unwrap_or(0); // there: see `take_apart`
                }
            }
        }
        parts.transform.undo(width, out);
        Ok(())
    }
}
