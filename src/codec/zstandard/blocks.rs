//! The encodings that use Zstandard: *zstd* (chapter 5.5), *bitshuffle-zstd* (5.4) and
//! *planes-zstd* (5.10).
//!
//! The first two store each block as a single frame. *zstd* compresses text and bytes directly,
//! with or without the Zstandard dictionary of the column. *bitshuffle-zstd* first transposes
//! numbers to bit planes, which places equal bits next to each other. A frame is checked before
//! memory is allocated for its content; see `frame.rs`.
//!
//! *planes-zstd* compresses best. It splits elements into byte planes, or their residuals into byte
//! planes or bit planes, and packs each plane separately: raw, as one repeated byte, or as a frame.
//! A plane of noise then takes no time to decode, and planes with repetitions are still compressed.
//! Writers try all three splits and keep the smallest result. Estimates use the fastest level, and
//! assume that the strongest level makes the output smaller by a fixed fraction.

use super::frame::{FrameEncodeScratch, FrameScratch, MAX_BYTES, Split, check_frame};
use crate::bytes::le::structure;
use crate::bytes::memory;
use crate::codec::{
    bits::{join, planes, split},
    blocked::{Block, BlockCodec, BlockEncoder, NO_TABLE, VisitPlan, table_number},
    choice::{SampledPart, SampledRanges, Technique, transform_blocks, transforms},
    part::{Description, Geometry, PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
    transform::{TRANSFORM_BYTES, Transform},
};
use crate::kernel::{Width, bitshuffle};
use crate::{Error, Result};
use std::ops::Range;

// ---- zstd

pub(crate) struct ZstdBlocks;

impl BlockCodec for ZstdBlocks {
    /// The number of the column's table, if the part needs one.
    type Tables = Option<u32>;

    const ID: u16 = 2;
    const NAME: &'static str = "zstd";
    const TABLE_BYTES: usize = size_of::<u32>();
    const NEEDS_TABLE: bool = true;
    const TABLES_RULE: &'static str = "R-5.13";

    fn table(&self, tables: &[u8]) -> Option<u32> {
        table_number(tables)
    }

    fn parse_tables(&self, _: PartSpec<'_>, tables: &[u8]) -> Result<Option<u32>> {
        Ok(table_number(tables))
    }

    fn check(&self, block: &Block<'_, Option<u32>>) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)
    }

    fn decode(&self, block: &Block<'_, Option<u32>>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)?;
        match (block.spec.zstd_dictionary, block.tables) {
            (Some(zstd_dictionary), Some(_)) => {
                scratch.frames.zstd.decode_with(zstd_dictionary.prepared(), block.stored, out)
            }
            (_, None) => scratch.frames.zstd.decode(block.stored, out),
            (None, Some(_)) => Err(Error::internal("a part was decoded without its table")),
        }
    }
}

impl BlockEncoder for ZstdBlocks {
    /// If the part is one block, encodes it both with and without the dictionary. Short blocks
    /// benefit most from a dictionary, so a part with several blocks is encoded only with the
    /// dictionary, if there is one.
    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        let RawPart { geometry, raw } = part;
        let search = scratch.search;
        let zstd_dictionary = scratch.zstd_dictionary.take().filter(|_| search.has(Technique::ZstdDictionary));
        let is_long = !geometry.is_in_blocks() && raw.len() > MAX_BYTES;
        let zstd_dictionary = zstd_dictionary.filter(|_| !is_long);
        let mut visited = Ok(false);
        if search.has(Technique::Zstd) && !(geometry.is_in_blocks() && zstd_dictionary.is_some()) {
            visited = visit(&NO_TABLE.to_le_bytes(), &|bytes| bytes, scratch);
        }
        if let Some(table) = zstd_dictionary.as_ref().map(|zstd_dictionary| zstd_dictionary.table) {
            scratch.zstd_dictionary = zstd_dictionary;
            visited = visited.and_then(|_| visit(&table.to_le_bytes(), &|bytes| bytes, scratch));
        }
        visited.map(drop)
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let raw = part.bytes_of(elements);
        let EncodeScratch { frames, zstd_dictionary, .. } = scratch;
        match zstd_dictionary {
            Some(zstd_dictionary) => {
                frames.dictionary_encoder.encode(&zstd_dictionary.prepared, raw, &mut frames.frame)?
            }
            None => frames.zstd.encode(raw, &mut frames.frame)?,
        }
        stored.extend_from_slice(&frames.frame);
        Ok(())
    }
}

// ---- bitshuffle-zstd

pub(crate) struct BitshuffleBlocks;

impl BlockCodec for BitshuffleBlocks {
    type Tables = ();

    const ID: u16 = 3;
    const NAME: &'static str = "bitshuffle-zstd";

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn check(&self, block: &Block<'_, ()>) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)
    }

    fn decode(&self, block: &Block<'_, ()>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (width, _) = block.spec.width_and_count()?;
        check_frame(block.spec.raw_bytes, block.stored)?;
        let scratch = &mut scratch.frames;
        memory::resize(&mut scratch.bytes, block.spec.raw_bytes, 0)?;
        scratch.zstd.decode(block.stored, &mut scratch.bytes)?;
        bitshuffle::best().unshuffle(width, &scratch.bytes, out);
        Ok(())
    }
}

/// The output of the level that writers use is about 1/N smaller than the output of the fastest
/// level.
const QUICK_EXCESS_DIVISOR: usize = 8;

impl BlockEncoder for BitshuffleBlocks {
    /// Compresses half of the sample with the fastest level, and assumes that the level of the
    /// profile saves a fixed fraction of the result.
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let FrameEncodeScratch { quick, bytes, frame, .. } = &mut scratch.frames;
        let SampledRanges { bytes: sample, ends } = &part.sample.blocks;
        let half = ends.get(ends.len().div_ceil(2).wrapping_sub(1)).map_or(0, |&end| end as usize);
        let elements = sample.get(..half * width.bytes()).unwrap_or(&[]);
        bytes.resize(elements.len(), 0);
        bitshuffle::best().shuffle(width, elements, bytes);
        quick.encode(bytes, frame).ok()?;
        let sample_scale = part.raw.len() as f64 / elements.len().max(1) as f64;
        let estimate = (frame.len() as f64 * sample_scale) as usize; // the cast can saturate
        Some(estimate - estimate / QUICK_EXCESS_DIVISOR)
    }

    fn each_plan(&self, _: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        visit(&[], &|bytes| bytes, scratch).map(drop)
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let raw = part.bytes_of(elements);
        let width = Width::from_bytes(part.geometry.element_bytes);
        let width = width.ok_or_else(|| Error::internal("elements of this size have no bit planes"))?;
        let scratch = &mut scratch.frames;
        scratch.bytes.resize(raw.len(), 0);
        bitshuffle::best().shuffle(width, raw, &mut scratch.bytes);
        scratch.zstd.encode(&scratch.bytes, &mut scratch.frame)?;
        stored.extend_from_slice(&scratch.frame);
        Ok(())
    }
}

// ---- planes-zstd

structure! {
    /// Chapter 5.10: the fields of the tables after the transform.
    mod split_table: 8 bytes {
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

const TABLE_BYTES: usize = TRANSFORM_BYTES + split_table::SIZE;

pub(crate) struct PlaneBlocks;

/// The output of the strongest level is at most about 1/N smaller than the output of the fastest
/// level.
const STRONG_SAVING_DIVISOR: usize = 6;

/// If the output of the fastest level is 1/N smaller than with entropy coding only, it has found
/// repetitions.
const MATCH_SAVING_DIVISOR: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Raw = 0,
    Constant = 1,
    Zstd = 2,
}

impl Packing {
    fn describe(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Constant => "one byte, repeated",
            Self::Zstd => "zstd",
        }
    }
}

pub(crate) struct PlaneTables {
    transform: Transform,
    /// Whether the streams are bit planes instead of byte planes.
    bits: bool,
}

impl PlaneTables {
    /// Parses the tables.
    fn parse(tables: &[u8]) -> Result<Self> {
        let split = || {
            let (transform, rest) = tables.split_first_chunk::<TRANSFORM_BYTES>()?;
            Some((transform, rest.first_chunk()?))
        };
        let (transform, split) =
            split().ok_or_else(|| Error::internal("the tables of planes-zstd were not split off"))?;
        let transform = Transform::parse(transform)?;
        if split_table::RESERVED.get(split) != [0; 7] {
            return Err(malformed_planes("reserved bytes after the transform are not zero"));
        }
        let bits = match split_table::SPLIT.get(split) {
            BIT_PLANES => true,
            BYTE_PLANES => false,
            _ => return Err(malformed_planes("split is neither 1 (bits) nor 8 (bytes)")),
        };
        Ok(Self { transform, bits })
    }

    /// Splits a block into stream entries, streams and tail.
    fn split<'a>(block: &Block<'a, Self>) -> Result<Planes<'a>> {
        let bits = block.tables.bits;
        let (_, count) = block.spec.width_and_count()?;
        let element_bytes = block.spec.element_bytes;
        let (streams, stream_bytes) = if bits { (8 * element_bytes, count / 8) } else { (element_bytes, count) };
        let split = block.stored.split_at_checked(stream_entry::SIZE * streams);
        let (entries, streams) = split.ok_or_else(|| malformed_planes("a block is too short"))?;
        let tail_bytes = if bits { block.spec.raw_bytes % (8 * element_bytes) } else { 0 };
        Ok(Planes { stream_bytes, tail_bytes, entries: entries.as_chunks().0, streams })
    }
}

struct Planes<'a> {
    /// The decoded length of a stream.
    stream_bytes: usize,
    tail_bytes: usize,
    entries: &'a [[u8; stream_entry::SIZE]],
    /// The streams, followed by the tail.
    streams: &'a [u8],
}

#[cold]
fn malformed_planes(what: &str) -> Error {
    Error::corrupt("R-5.12", format!("planes-zstd: {what}"))
}

impl<'a> Planes<'a> {
    /// Calls `each` with the packing and the stored bytes of each stream. Returns the tail.
    fn each(&self, mut each: impl FnMut(Packing, &'a [u8]) -> Result<()>) -> Result<&'a [u8]> {
        let mut rest = self.streams;
        for entry in self.entries {
            if stream_entry::RESERVED.get(entry) != [0; 3] {
                return Err(malformed_planes("reserved bytes of a stream are not zero"));
            }
            let packing = match stream_entry::PACKING.get(entry) {
                0 => Packing::Raw,
                1 if self.stream_bytes > 0 => Packing::Constant,
                2 if self.stream_bytes > 0 => Packing::Zstd,
                _ => return Err(malformed_planes("a stream has an unknown packing, or is empty and not raw")),
            };
            let length = usize::try_from(stream_entry::STORED_BYTES.get(entry)).ok();
            let split = length.and_then(|length| rest.split_at_checked(length));
            let (stream, after) = split.ok_or_else(|| malformed_planes("a stream extends beyond the stored bytes"))?;
            let expected = match packing {
                Packing::Raw => self.stream_bytes,
                Packing::Constant => 1,
                Packing::Zstd => stream.len(),
            };
            if stream.len() != expected {
                return Err(malformed_planes("the length of a stream does not match its packing"));
            }
            each(packing, stream)?;
            rest = after;
        }
        if rest.len() == self.tail_bytes {
            Ok(rest)
        } else {
            Err(malformed_planes("the tail of a block has the wrong length"))
        }
    }
}

impl BlockCodec for PlaneBlocks {
    type Tables = PlaneTables;

    const ID: u16 = 7;
    const NAME: &'static str = "planes-zstd";
    const TABLE_BYTES: usize = TABLE_BYTES;
    const TABLES_RULE: &'static str = "R-5.12";

    fn parse_tables(&self, _: PartSpec<'_>, tables: &[u8]) -> Result<PlaneTables> {
        PlaneTables::parse(tables)
    }

    fn check(&self, block: &Block<'_, PlaneTables>) -> Result<()> {
        let planes = PlaneTables::split(block)?;
        let check = |packing, stored: &[u8]| match packing {
            Packing::Zstd => check_frame(planes.stream_bytes, stored),
            _ => Ok(()),
        };
        planes.each(check).map(drop)
    }

    fn decode(&self, block: &Block<'_, PlaneTables>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        self.check(block)?;
        let planes = PlaneTables::split(block)?;
        let FrameScratch { zstd, bytes } = &mut scratch.frames;
        memory::resize(bytes, block.spec.raw_bytes, 0)?;
        let split = bytes.split_at_mut_checked(planes.stream_bytes.saturating_mul(planes.entries.len()));
        let (streams, tail_out) =
            split.ok_or_else(|| Error::internal("the streams of a block are longer than the block"))?;
        let mut streams = streams.chunks_exact_mut(planes.stream_bytes.max(1));
        let tail = planes.each(|packing, stored| {
            let Some(stream) = streams.next() else { return Ok(()) }; // all streams are empty
            match packing {
                Packing::Raw => stream.copy_from_slice(stored), // equal lengths: checked by `each`
                Packing::Constant => stream.fill(stored.first().copied().unwrap_or(0)),
                Packing::Zstd => zstd.decode(stored, stream)?,
            }
            Ok(())
        })?;
        tail_out.copy_from_slice(tail); // equal lengths: both are the remaining bytes of the block
        let (width, count) = block.spec.width_and_count()?;
        match bytes.split_at_checked(count * (width.bytes() - 1)) {
            Some((low, top)) if !block.tables.bits => join(width, false, low.chunks_exact(count.max(1)), top, out),
            _ => bitshuffle::best().unshuffle(width, bytes, out),
        }
        block.tables.transform.undo(width, out);
        Ok(())
    }

    fn transform(&self, tables: &PlaneTables) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, block: &Block<'_, PlaneTables>, description: &mut Description) -> Result<()> {
        let planes = PlaneTables::split(block)?;
        let headers = block.stored.len().saturating_sub(planes.streams.len());
        description.add(
            "block headers",
            "packings and lengths of the streams",
            block.stored.get(..headers).unwrap_or(&[]),
        );
        let kind = if block.tables.bits { "bit plane" } else { "byte" };
        let mut number = 0;
        let tail = planes.each(|packing, stream| {
            description.add(format!("{kind} {number}"), packing.describe(), stream);
            number += 1;
            Ok(())
        })?;
        description.add("tail", "the last elements", tail);
        Ok(())
    }
}

impl BlockEncoder for PlaneBlocks {
    /// Compresses the streams with the fastest level, and assumes that the strongest level saves a
    /// fixed fraction of the result.
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let residuals = likely_transform(width, part.raw_part(), scratch);
        let mut min_bytes = part.raw.len(); // a longer result is not written
        let mut packed = std::mem::take(&mut scratch.frames.candidate);
        // not `Bits`: bit planes are hardly ever much smaller than both of these
        for split in [Split::Plain, Split::Bytes] {
            packed.clear();
            let transform = split.transform(residuals, part.geometry.float);
            let is_packed = pack_block(split, transform, width, part.raw, scratch, estimate_stream, &mut packed);
            min_bytes = is_packed.map_or(min_bytes, |()| min_bytes.min(TABLE_BYTES + packed.len()));
        }
        scratch.frames.candidate = packed;
        Some(min_bytes)
    }

    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        let geometry = part.geometry;
        let Some(width) = Width::from_bytes(geometry.element_bytes) else { return Ok(()) };
        let residuals = likely_transform(width, part, scratch);
        for split in [Split::Plain, Split::Bits, Split::Bytes] {
            let transform = split.transform(residuals, geometry.float);
            let mut tables = [0; TABLE_BYTES];
            if let Some((to, rest)) = tables.split_first_chunk_mut()
                && let Some(of_split) = rest.first_chunk_mut()
            {
                *to = transform.to_bytes();
                split_table::SPLIT.put(of_split, if let Split::Bits = split { BIT_PLANES } else { BYTE_PLANES });
            }
            scratch.frames.planned = Some((split, transform));
            visit(&tables, &|bytes| bytes, scratch)?;
        }
        Ok(())
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let planned = scratch.frames.planned.zip(Width::from_bytes(part.geometry.element_bytes));
        let ((split, transform), width) =
            planned.ok_or_else(|| Error::internal("the planes of a part were not planned"))?;
        pack_block(split, transform, width, part.bytes_of(elements), scratch, pack_stream, stored)
    }
}

/// Returns the transform that is likely to be the best for splits into planes of residuals.
fn likely_transform(width: Width, part: RawPart<'_>, scratch: &mut EncodeScratch) -> Transform {
    transforms(width, part, scratch).first().copied().unwrap_or(Transform::None)
}

fn pack_block(
    division: Split,
    transform: Transform,
    width: Width,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    packer: Packer,
    stored: &mut Vec<u8>,
) -> Result<()> {
    let EncodeScratch { coded, symbols, low_bytes, .. } = scratch;
    if let Split::Plain = division {
        split(width, transform == Transform::Rotate, raw, symbols, low_bytes);
        return pack_bytes(scratch, packer, stored);
    }
    // exact: a part has fewer than 2^32 bytes
    let end = [u32::try_from(raw.len() / width.bytes()).unwrap_or(u32::MAX)];
    let one_block = Geometry::of_numbers(width.bytes()).in_blocks(&end);
    transform_blocks(transform, width, &one_block, raw, coded);
    if let Split::Bits = division {
        return pack_bits(width, scratch, packer, stored);
    }
    split(width, false, coded, symbols, low_bytes);
    pack_bytes(scratch, packer, stored)
}

fn pack_bytes(scratch: &mut EncodeScratch, packer: Packer, stored: &mut Vec<u8>) -> Result<()> {
    let EncodeScratch { symbols, low_bytes, frames, .. } = scratch;
    pack(planes(low_bytes, symbols), &[], (packer, frames), stored)
}

fn pack_bits(width: Width, scratch: &mut EncodeScratch, packer: Packer, stored: &mut Vec<u8>) -> Result<()> {
    let EncodeScratch { coded, frames, .. } = scratch;
    let mut shuffled = std::mem::take(&mut frames.bytes);
    shuffled.resize(coded.len(), 0);
    bitshuffle::best().shuffle(width, coded, &mut shuffled);
    let plane = coded.len() / (8 * width.bytes());
    let (planes, tail) = shuffled.split_at(plane * 8 * width.bytes()); // at most the whole length
    let empty = std::iter::repeat_n(&[][..], if plane == 0 { 8 * width.bytes() } else { 0 });
    let streams = planes.chunks_exact(plane.max(1)).chain(empty);
    let result = pack(streams, tail, (packer, frames), stored);
    frames.bytes = shuffled;
    result
}

/// Appends the stream entries, the packed streams, and the tail.
fn pack<'a>(
    streams: impl Iterator<Item = &'a [u8]> + Clone,
    tail: &[u8],
    (packer, frames): (Packer, &mut FrameEncodeScratch),
    stored: &mut Vec<u8>,
) -> Result<()> {
    let entries = stored.len();
    stored.resize(entries + stream_entry::SIZE * streams.clone().count(), 0);
    for (i, stream) in streams.enumerate() {
        let (packing, packed) = packer(stream, frames)?;
        let length = u32::try_from(packed.len()).map_err(|_| Error::over_limit("a stream is larger than 4 GiB"))?;
        let mut entry = [0; stream_entry::SIZE];
        stream_entry::STORED_BYTES.put(&mut entry, length);
        stream_entry::PACKING.put(&mut entry, packing as u8); // the discriminants are those in the format
        stored.extend_from_slice(packed);
        let after = stored.get_mut(entries + stream_entry::SIZE * i..);
        if let Some(reserved) = after.and_then(<[u8]>::first_chunk_mut) {
            *reserved = entry;
        }
    }
    stored.extend_from_slice(tail);
    Ok(())
}

/// Returns the packing of a stream, and its stored bytes.
type Packer = for<'a> fn(&'a [u8], &'a mut FrameEncodeScratch) -> Result<(Packing, &'a [u8])>;

/// Returns the smallest form of a stream: constant, entropy-coded, compressed or raw.
fn pack_stream<'a>(stream: &'a [u8], frames: &'a mut FrameEncodeScratch) -> Result<(Packing, &'a [u8])> {
    if let Some(constant) = constant(stream) {
        return Ok(constant);
    }
    let FrameEncodeScratch { strong, literals, frame, other, .. } = frames;
    literals.encode(stream, frame)?;
    if has_matches(stream, frame) {
        strong.encode(stream, other)?; // not for noise: it is slow, and the result is not smaller
    } else {
        other.clone_from(frame);
    }
    let smaller = if other.len() < frame.len() { other } else { frame };
    // a smaller saving is not worth the time to decode
    let saves = smaller.len() < stream.len() - stream.len() / 64;
    Ok(if saves { (Packing::Zstd, smaller) } else { (Packing::Raw, stream) })
}

/// Returns meaningless bytes with approximately the length of the smallest form.
fn estimate_stream<'a>(stream: &'a [u8], frames: &'a mut FrameEncodeScratch) -> Result<(Packing, &'a [u8])> {
    if let Some(constant) = constant(stream) {
        return Ok(constant);
    }
    let FrameEncodeScratch { quick, literals, frame, other, .. } = frames;
    literals.encode(stream, frame)?;
    if !has_matches(stream, frame) {
        return Ok((Packing::Raw, frame.get(..stream.len()).unwrap_or(frame)));
    }
    quick.encode(stream, other)?;
    // if the fastest level finds no repetitions, the strongest level finds none either
    let has_found = other.len() < frame.len() - frame.len() / MATCH_SAVING_DIVISOR;
    let min_bytes = if has_found { other.len() - other.len() / STRONG_SAVING_DIVISOR } else { frame.len() };
    Ok((Packing::Zstd, frame.get(..min_bytes).unwrap_or(frame)))
}

/// Returns the packing of a stream that is empty or repeats one byte.
fn constant(stream: &[u8]) -> Option<(Packing, &[u8])> {
    let Some((first, rest)) = stream.split_first() else { return Some((Packing::Raw, stream)) };
    rest.iter().all(|byte| byte == first).then_some((Packing::Constant, std::slice::from_ref(first)))
}

/// Returns whether matches are likely to make a stream smaller. `frame` is the stream compressed
/// without matches.
fn has_matches(stream: &[u8], frame: &[u8]) -> bool {
    frame.len() < stream.len() - stream.len() / 16
}
