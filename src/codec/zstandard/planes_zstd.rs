//! Chapter 5.10: planes-zstd packs each bit plane or byte plane on its own.

use super::frame::{FrameEncodeScratch, FrameScratch, check_frame};
use crate::codec::anatomy::Anatomy;
use crate::codec::encoding::{Codec, Encoder};
use crate::codec::exponent_tiers::split;
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::predict::{bit_lengths, transforms};
use crate::codec::sample::SampledPart;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::transform::{TRANSFORM_BYTES, Transform};
use crate::kernel::{Width, bitshuffle, byte_planes};
use crate::le::structure;
use crate::{Error, Result, memory};

structure! {
    /// Chapter 5.10: the bytes after the transform.
    mod split_head: 8 bytes {
        0 => SPLIT: u8,
        1 => RESERVED: [u8; 7],
    }
}

structure! {
    /// Chapter 5.10: the entry of a stream.
    mod stream_entry: 8 bytes {
        0 => STORED_BYTES: u32,
        4 => PACKING: u8,
        5 => RESERVED: [u8; 3],
    }
}

// The values of `split`.
const BIT_PLANES: u8 = 1;
const BYTE_PLANES: u8 = 8;

pub(in crate::codec) struct PlanesZstd;

/// About what the strongest level saves of what the quickest one leaves, at most: one byte in this
/// many.
const STRONG_SAVES_ONE_IN: usize = 6;

/// Few repetitions that the quickest level finds: they save one byte in this many.
const FEW_SAVE_ONE_IN: usize = 64;

/// The packing of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Raw = 0,
    Constant = 1,
    Zstd = 2,
}

impl Packing {
    fn describe(self) -> &'static str {
        match self {
            Self::Raw => "as it is",
            Self::Constant => "one byte, repeated",
            Self::Zstd => "zstd",
        }
    }
}

/// The stored bytes: their heads, and the streams after them.
struct PlanesHead<'a> {
    transform: Transform,
    /// Whether the streams are bit planes; otherwise they are byte planes.
    bits: bool,
    /// The decoded length of a stream.
    stream_bytes: usize,
    /// The entries of the streams.
    entries: &'a [[u8; stream_entry::SIZE]],
    /// The streams, and the tail.
    streams: &'a [u8],
}

#[cold]
fn malformed_planes(what: &str) -> Error {
    Error::corrupt("R-5.12", format!("planes-zstd: {what}"))
}

impl<'a> PlanesHead<'a> {
    fn parse(spec: PartSpec<'_>, stored: &'a [u8]) -> Result<Self> {
        let (_, count) = spec.width_and_count()?;
        let short = || malformed_planes("the stored bytes are too short");
        let (transform, rest) = stored.split_first_chunk::<TRANSFORM_BYTES>().ok_or_else(short)?;
        let transform = Transform::parse(transform)?;
        let (split, rest) = rest.split_first_chunk().ok_or_else(short)?;
        if split_head::RESERVED.get(split) != [0; 7] {
            return Err(malformed_planes("reserved bytes after the transform are set"));
        }
        let (bits, streams, stream_bytes) = match split_head::SPLIT.get(split) {
            BIT_PLANES => (true, 8 * spec.element_bytes, count / 8),
            BYTE_PLANES => (false, spec.element_bytes, count),
            _ => return Err(malformed_planes("it is split in neither bits nor bytes")),
        };
        let (entries, streams) = rest.split_at_checked(stream_entry::SIZE * streams).ok_or_else(short)?;
        Ok(Self { transform, bits, stream_bytes, entries: entries.as_chunks().0, streams })
    }

    /// Calls `each` with the packing and the stored bytes of each stream. Returns the tail.
    fn each(&self, mut each: impl FnMut(Packing, &'a [u8]) -> Result<()>) -> Result<&'a [u8]> {
        let mut rest = self.streams;
        for entry in self.entries {
            if stream_entry::RESERVED.get(entry) != [0; 3] {
                return Err(malformed_planes("reserved bytes of a stream are set"));
            }
            let packing = match stream_entry::PACKING.get(entry) {
                0 => Packing::Raw,
                1 if self.stream_bytes > 0 => Packing::Constant,
                2 if self.stream_bytes > 0 => Packing::Zstd,
                _ => return Err(malformed_planes("a stream has an unknown packing")),
            };
            let length = usize::try_from(stream_entry::STORED_BYTES.get(entry)).ok();
            let split = length.and_then(|length| rest.split_at_checked(length));
            let (stream, after) = split.ok_or_else(|| malformed_planes("a stream reaches beyond the stored bytes"))?;
            let due = match packing {
                Packing::Raw => self.stream_bytes,
                Packing::Constant => 1,
                Packing::Zstd => stream.len(),
            };
            if stream.len() != due {
                return Err(malformed_planes("a stream does not have the length of its packing"));
            }
            each(packing, stream)?;
            rest = after;
        }
        Ok(rest)
    }

    /// Returns the length of the tail.
    fn tail_bytes(&self, spec: PartSpec<'_>) -> usize {
        if self.bits { spec.raw_bytes % (8 * spec.element_bytes) } else { 0 }
    }
}

impl Codec for PlanesZstd {
    fn id(&self) -> u16 {
        6
    }

    fn name(&self) -> &'static str {
        "planes-zstd"
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        let head = PlanesHead::parse(spec, stored)?;
        let tail = head.each(|packing, stored| match packing {
            Packing::Zstd => check_frame(head.stream_bytes, stored),
            _ => Ok(()),
        })?;
        if tail.len() == head.tail_bytes(spec) {
            return Ok(());
        }
        Err(malformed_planes("the stored bytes do not end where the tail ends"))
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let head = PlanesHead::parse(spec, stored)?;
        let FrameScratch { zstd, bytes } = &mut scratch.frames;
        memory::resize(bytes, spec.raw_bytes, 0)?;
        let split = bytes.split_at_mut_checked(head.stream_bytes.saturating_mul(head.entries.len()));
        let (planes, tail_out) =
            split.ok_or_else(|| Error::internal("the streams of a checked part are longer than the part"))?;
        let mut planes = planes.chunks_exact_mut(head.stream_bytes.max(1));
        let tail = head.each(|packing, stored| {
            let Some(plane) = planes.next() else { return Ok(()) }; // a stream of no bytes
            match packing {
                Packing::Raw => plane.copy_from_slice(stored), // as long: `each` has checked
                Packing::Constant => plane.fill(stored.first().copied().unwrap_or(0)),
                Packing::Zstd => zstd.decode(stored, plane)?,
            }
            Ok(())
        })?;
        if tail.len() != tail_out.len() {
            return Err(malformed_planes("the stored bytes do not end where the tail ends"));
        }
        tail_out.copy_from_slice(tail);
        let (width, count) = spec.width_and_count()?;
        match bytes.split_at_checked(count * (width.bytes() - 1)) {
            Some((low, top)) if !head.bits => join_bytes(width, low, top, out),
            _ => bitshuffle::best().unshuffle(width, bytes, out),
        }
        head.transform.undo(width, out);
        Ok(())
    }

    fn anatomy(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<Anatomy> {
        let head = PlanesHead::parse(spec, stored)?;
        let mut anatomy = Anatomy { transform: Some(head.transform.describe()), ..Anatomy::default() };
        let heads = stored.len().saturating_sub(head.streams.len());
        anatomy.add("heads", "transform; packings and lengths of the streams", stored.get(..heads).unwrap_or(&[]));
        let kind = if head.bits { "bit plane" } else { "byte" };
        let mut number = 0;
        let tail = head.each(|packing, stream| {
            anatomy.add(format!("{kind} {number}"), packing.describe(), stream);
            number += 1;
            Ok(())
        })?;
        anatomy.add("tail", "the last elements", tail);
        Ok(anatomy)
    }
}

/// Joins byte planes to elements.
fn join_bytes(width: Width, low: &[u8], top: &[u8], out: &mut [u8]) {
    let mut planes: [&[u8]; 7] = [&[]; 7];
    planes.iter_mut().zip(low.chunks_exact(top.len().max(1))).for_each(|(plane, low)| *plane = low);
    // a width is 1 to 8
    byte_planes::best().join(width, false, planes.get(..width.bytes() - 1).unwrap_or(&[]), top, out);
}

impl Encoder for PlanesZstd {
    /// Compresses the streams with the quickest level, and assumes that the strongest one saves a
    /// part of what is left.
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let mut least = usize::MAX;
        let splits = &[Split::Plain, Split::Bytes]; // bits are hardly ever much smaller than both
        let is_split = each_split(splits, &part.geometry, part.raw, scratch, estimate_stream, |stored| {
            least = stored.len().min(least);
        });
        // one of more is not written
        is_split.is_ok_and(|is_split| is_split).then_some(least.min(part.raw.len()))
    }

    /// Tries all splits. Keeps the smallest.
    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        stored.clear();
        each_split(&Split::ALL, geometry, raw, scratch, pack_stream, |candidate| {
            if stored.is_empty() || candidate.len() < stored.len() {
                std::mem::swap(stored, candidate);
            }
        })
    }
}

/// How elements are divided into streams.
#[derive(Clone, Copy)]
enum Split {
    /// Bytes of elements; floats are rotated.
    Plain,
    /// Bits of residuals.
    Bits,
    /// Bytes of residuals.
    Bytes,
}

impl Split {
    const ALL: [Self; 3] = [Self::Plain, Self::Bits, Self::Bytes];
}

/// Packs elements with each of these splits, and calls `each` with the stored bytes. Returns
/// `false` if elements have no planes.
fn each_split(
    splits: &[Split],
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    packer: Packer,
    mut each: impl FnMut(&mut Vec<u8>),
) -> Result<bool> {
    let spec = PartSpec::new(geometry.element_bytes, raw.len());
    let Ok((width, _)) = spec.width_and_count() else { return Ok(false) };
    let mut candidate = std::mem::take(&mut scratch.frames.candidate);
    let transform = transforms(width, geometry, raw, scratch).first().copied().unwrap_or(Transform::None);
    bit_lengths(transform, width, raw, scratch);
    for of in splits {
        match of {
            Split::Plain => {
                let rotated = if geometry.float { Transform::Rotate } else { Transform::None };
                split(width, geometry.float, raw, &mut scratch.symbols, &mut scratch.low_bytes);
                pack_bytes(rotated, scratch, packer, &mut candidate)?;
            }
            Split::Bits => pack_bits(transform, width, scratch, packer, &mut candidate)?,
            Split::Bytes => {
                split(width, false, &scratch.coded, &mut scratch.symbols, &mut scratch.low_bytes);
                pack_bytes(transform, scratch, packer, &mut candidate)?;
            }
        }
        each(&mut candidate);
    }
    scratch.frames.candidate = candidate;
    Ok(true)
}

/// Packs the byte planes in `low_bytes` and `symbols`.
fn pack_bytes(transform: Transform, scratch: &mut EncodeScratch, packer: Packer, stored: &mut Vec<u8>) -> Result<()> {
    let EncodeScratch { symbols, low_bytes, frames, .. } = scratch;
    let low = low_bytes.chunks_exact(symbols.len().max(1));
    pack(transform, false, low.chain([symbols.as_slice()]), &[], (packer, frames), stored)
}

/// Packs the bit planes of the coded integers.
fn pack_bits(
    transform: Transform,
    width: Width,
    scratch: &mut EncodeScratch,
    packer: Packer,
    stored: &mut Vec<u8>,
) -> Result<()> {
    let EncodeScratch { coded, frames, .. } = scratch;
    let mut shuffled = std::mem::take(&mut frames.bytes);
    shuffled.resize(coded.len(), 0);
    bitshuffle::best().shuffle(width, coded, &mut shuffled);
    let plane = coded.len() / (8 * width.bytes());
    let (planes, tail) = shuffled.split_at(plane * 8 * width.bytes()); // at most all
    let empty = std::iter::repeat_n(&[][..], if plane == 0 { 8 * width.bytes() } else { 0 });
    let streams = planes.chunks_exact(plane.max(1)).chain(empty);
    let result = pack(transform, true, streams, tail, (packer, frames), stored);
    frames.bytes = shuffled;
    result
}

/// Packs each stream, and appends the tail.
fn pack<'a>(
    transform: Transform,
    bits: bool,
    streams: impl Iterator<Item = &'a [u8]> + Clone,
    tail: &[u8],
    (packer, frames): (Packer, &mut FrameEncodeScratch),
    stored: &mut Vec<u8>,
) -> Result<()> {
    stored.clear();
    stored.extend_from_slice(&transform.to_bytes());
    let mut split = [0; split_head::SIZE];
    split_head::SPLIT.put(&mut split, if bits { BIT_PLANES } else { BYTE_PLANES });
    stored.extend_from_slice(&split);
    let entries = stored.len();
    stored.resize(entries + stream_entry::SIZE * streams.clone().count(), 0);
    for (i, stream) in streams.enumerate() {
        let (packing, packed) = packer(stream, frames)?;
        let length = u32::try_from(packed.len()).map_err(|_| Error::over_limit("a stream of more than 4 GiB"))?;
        let mut entry = [0; stream_entry::SIZE];
        stream_entry::STORED_BYTES.put(&mut entry, length);
        stream_entry::PACKING.put(&mut entry, packing as u8); // exact: the values of the format
        stored.extend_from_slice(packed);
        let after = stored.get_mut(entries + stream_entry::SIZE * i..);
        if let Some(reserved) = after.and_then(<[u8]>::first_chunk_mut) {
            *reserved = entry;
        }
    }
    stored.extend_from_slice(tail);
    Ok(())
}

/// Returns the packing of a stream, and the stored bytes.
type Packer = for<'a> fn(&'a [u8], &'a mut FrameEncodeScratch) -> Result<(Packing, &'a [u8])>;

/// Returns the smallest form of a stream: constant, entropy-coded, compressed or raw.
fn pack_stream<'a>(stream: &'a [u8], frames: &'a mut FrameEncodeScratch) -> Result<(Packing, &'a [u8])> {
    if stream.is_empty() {
        return Ok((Packing::Raw, stream));
    }
    if let Some(constant) = constant(stream) {
        return Ok((Packing::Constant, constant));
    }
    let FrameEncodeScratch { strong, literals, frame, other, .. } = frames;
    literals.encode(stream, frame)?;
    if has_matches(stream, frame) {
        strong.encode(stream, other)?; // slow, and no smaller for noise
    } else {
        other.clone_from(frame);
    }
    let smaller = if other.len() < frame.len() { other } else { frame };
    // less than that is not worth the decoding
    let saves = smaller.len() < stream.len() - stream.len() / 64;
    Ok(if saves { (Packing::Zstd, smaller) } else { (Packing::Raw, stream) })
}

/// Returns bytes that are about as many as those of the smallest form, and mean nothing.
fn estimate_stream<'a>(stream: &'a [u8], frames: &'a mut FrameEncodeScratch) -> Result<(Packing, &'a [u8])> {
    if stream.is_empty() {
        return Ok((Packing::Raw, stream));
    }
    if let Some(constant) = constant(stream) {
        return Ok((Packing::Constant, constant));
    }
    let FrameEncodeScratch { quick, literals, frame, other, .. } = frames;
    literals.encode(stream, frame)?;
    if !has_matches(stream, frame) {
        return Ok((Packing::Raw, frame.get(..stream.len()).unwrap_or(frame)));
    }
    quick.encode(stream, other)?;
    // the strongest level finds no repetitions where the quickest finds none
    let has_found = other.len() < frame.len() - frame.len() / FEW_SAVE_ONE_IN;
    let least = if has_found { other.len() - other.len() / STRONG_SAVES_ONE_IN } else { frame.len() };
    Ok((Packing::Zstd, frame.get(..least).unwrap_or(frame)))
}

/// Returns the byte that a stream repeats, if it does.
fn constant(stream: &[u8]) -> Option<&[u8]> {
    let (first, rest) = stream.split_first()?;
    rest.iter().all(|byte| byte == first).then_some(std::slice::from_ref(first))
}

/// Returns whether matches may make a stream smaller, of which this is the frame without matches.
fn has_matches(stream: &[u8], frame: &[u8]) -> bool {
    frame.len() < stream.len() - stream.len() / 16
}
