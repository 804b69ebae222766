//! Chapters 5.3 to 5.5: Zstandard frames, alone and behind a bit-shuffle.

use super::transform::{TRANSFORM_BYTES, Transform};
use super::{Codec, DecodeScratch, Encoder, PartSpec};
use crate::kernel::{self, Width};
use crate::le::{array_at, u32_at};
use crate::{Error, Result};
use std::io;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe;

/// The level of the classic recipe: beyond it, time grows faster than ratio.
const LEVEL: i32 = 9;
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// Memory and contexts that encoders reuse.
#[derive(Default)]
pub(crate) struct EncodeScratch {
    zstd: ZstdEncoder,
    bytes: Vec<u8>,
}

/// Memory and contexts that decoding frames reuses.
#[derive(Default)]
pub(super) struct FrameScratch {
    zstd: ZstdDecoder,
    bytes: Vec<u8>,
}

/// A compression context, made when first used.
#[derive(Default)]
struct ZstdEncoder(Option<Compressor<'static>>);

impl ZstdEncoder {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let failed = |error: io::Error| Error::io("compressing with Zstandard", error);
        let compressor = match &mut self.0 {
            Some(compressor) => compressor,
            empty => empty.insert(Compressor::new(LEVEL).map_err(failed)?),
        };
        stored.clear();
        stored.reserve(zstd_safe::compress_bound(raw.len()));
        compressor.compress_to_buffer(raw, stored).map_err(failed)?;
        Ok(())
    }
}

/// A decompression context, made when first used.
#[derive(Default)]
struct ZstdDecoder(Option<Decompressor<'static>>);

impl ZstdDecoder {
    fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            empty => {
                let failed = |error| Error::io("making a Zstandard context", error);
                empty.insert(Decompressor::new().map_err(failed)?)
            }
        };
        let expected = out.len();
        match decompressor.decompress_to_buffer(stored, out) {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => Err(malformed(&format!("it decodes to {found} bytes, not {expected}"))),
            Err(error) => Err(malformed(&error.to_string())),
        }
    }
}

fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.5", format!("malformed Zstandard frame: {what}"))
}

/// but for the decoding.
fn check_frame(spec: PartSpec, stored: &[u8]) -> Result<()> {
    if !stored.starts_with(&MAGIC) {
        return Err(malformed("it does not begin with the magic number"));
    }
    if zstd_safe::find_frame_compressed_size(stored) != Ok(stored.len()) {
        return Err(malformed("it does not end where the stored bytes end"));
    }
    if zstd_safe::get_dict_id_from_frame(stored).is_some() {
        return Err(malformed("it names a dictionary"));
    }
    // a block takes at least 4 stored bytes and gives at most 128 KiB
    if spec.raw_bytes.div_ceil(128 << 10) > stored.len() / 4 {
        return Err(malformed(&format!("{} bytes cannot decode to {}", stored.len(), spec.raw_bytes)));
    }
    let due = u64::try_from(spec.raw_bytes).ok();
    match zstd_safe::get_frame_content_size(stored) {
        Ok(found) if found.is_some() && found == due => Ok(()),
        found => Err(malformed(&format!("it states a length of {found:?}, not {}", spec.raw_bytes))),
    }
}

pub(super) struct Zstd;

impl Codec for Zstd {
    fn id(&self) -> u16 {
        3
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        check_frame(spec, stored)
    }

    fn decode(&self, _: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        scratch.frames.zstd.decode(stored, out)
    }
}

impl Encoder for Zstd {
    fn encode(&self, _: usize, raw: &[u8], stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        scratch.zstd.encode(raw, stored)?;
        Ok(true)
    }
}

pub(super) struct BitshuffleZstd;

impl Codec for BitshuffleZstd {
    fn id(&self) -> u16 {
        2
    }

    fn name(&self) -> &'static str {
        "bitshuffle-zstd"
    }

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        if whole_elements(spec.element_bytes, spec.raw_bytes).is_none() {
            let message = format!("{} bytes of elements of {}", spec.raw_bytes, spec.element_bytes);
            return Err(Error::corrupt("R-5.6", message));
        }
        check_frame(spec, stored)
    }

    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let Some(width) = whole_elements(spec.element_bytes, spec.raw_bytes) else {
            return self.check(spec, stored);
        };
        let scratch = &mut scratch.frames;
        scratch.bytes.resize(spec.raw_bytes, 0);
        scratch.zstd.decode(stored, &mut scratch.bytes)?;
        kernel::best().unshuffle(width, &scratch.bytes, out);
        Ok(())
    }
}

impl Encoder for BitshuffleZstd {
    fn encode(
        &self,
        element_bytes: usize,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let Some(width) = whole_elements(element_bytes, raw.len()) else {
            return Ok(false);
        };
        scratch.bytes.resize(raw.len(), 0);
        kernel::best().shuffle(width, raw, &mut scratch.bytes);
        scratch.zstd.encode(&scratch.bytes, stored)?;
        Ok(true)
    }
}

fn whole_elements(element_bytes: usize, raw_bytes: usize) -> Option<Width> {
    let width = Width::from_bytes(element_bytes)?;
    raw_bytes.is_multiple_of(element_bytes).then_some(width)
}

pub(super) struct PlanesZstd;

/// How a stream of [`PlanesZstd`] is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Raw,
    Constant,
    Zstd,
}

/// What stands before the streams of [`PlanesZstd`].
struct PlanesHead<'a> {
    transform: Transform,
    /// Bit planes, else byte planes.
    bits: bool,
    /// Decoded bytes of a stream.
    stream_bytes: usize,
    /// An entry for each stream.
    entries: &'a [[u8; 8]],
    /// The streams, and the tail.
    streams: &'a [u8],
}

#[cold]
fn malformed_planes(what: &str) -> Error {
    Error::corrupt("R-5.12", format!("planes-zstd: {what}"))
}

impl<'a> PlanesHead<'a> {
    fn parse(spec: PartSpec, stored: &'a [u8]) -> Result<Self> {
        let count = super::whole_elements(spec)?;
        let short = || malformed_planes("the stored bytes are too short");
        let (transform, rest) = stored.split_first_chunk::<TRANSFORM_BYTES>().ok_or_else(short)?;
        let transform = Transform::parse(transform)?;
        let (split, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        let (bits, streams, stream_bytes) = match split {
            [1, 0, 0, 0, 0, 0, 0, 0] => (true, 8 * spec.element_bytes, count / 8),
            [8, 0, 0, 0, 0, 0, 0, 0] => (false, spec.element_bytes, count),
            _ => return Err(malformed_planes("it is split in neither bits nor bytes")),
        };
        let (entries, streams) = rest.split_at_checked(8 * streams).ok_or_else(short)?;
        Ok(Self { transform, bits, stream_bytes, entries: entries.as_chunks().0, streams })
    }

    /// Calls `each` with the packing and the stored bytes of each stream; returns the tail.
    fn each(&self, mut each: impl FnMut(Packing, &'a [u8]) -> Result<()>) -> Result<&'a [u8]> {
        let mut rest = self.streams;
        for entry in self.entries {
            let packing = match array_at::<4, 4, 8>(entry) {
                [0, 0, 0, 0] => Packing::Raw,
                [1, 0, 0, 0] if self.stream_bytes > 0 => Packing::Constant,
                [2, 0, 0, 0] if self.stream_bytes > 0 => Packing::Zstd,
                _ => return Err(malformed_planes("a stream has an unknown packing")),
            };
            let length = usize::try_from(u32_at::<0, 8>(entry)).ok();
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

    /// Bytes of the elements after the last plane.
    fn tail_bytes(&self, spec: PartSpec) -> usize {
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

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        let head = PlanesHead::parse(spec, stored)?;
        let stream = PartSpec { element_bytes: 1, raw_bytes: head.stream_bytes };
        let tail = head.each(|packing, stored| match packing {
            Packing::Zstd => check_frame(stream, stored),
            _ => Ok(()),
        })?;
        if tail.len() == head.tail_bytes(spec) {
            return Ok(());
        }
        Err(malformed_planes("the stored bytes do not end where the tail ends"))
    }

    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let head = PlanesHead::parse(spec, stored)?;
        let FrameScratch { zstd, bytes } = &mut scratch.frames;
        bytes.resize(spec.raw_bytes, 0);
        let split = bytes.split_at_mut_checked(head.stream_bytes.saturating_mul(head.entries.len()));
        let (planes, tail_out) = split.ok_or_else(|| malformed_planes("the streams are too long"))?; // never: `parse`
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
        match Width::from_bytes(spec.element_bytes) {
            Some(width) if head.bits => kernel::best().unshuffle(width, bytes, out),
            _ => join_bytes(spec.element_bytes, bytes, out),
        }
        head.transform.undo(spec.element_bytes, out);
        Ok(())
    }
}

/// Byte planes to elements.
fn join_bytes(element_bytes: usize, planes: &[u8], out: &mut [u8]) {
    let count = planes.len() / element_bytes;
    for (j, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        for (element, &byte) in out.chunks_exact_mut(element_bytes).zip(plane) {
            if let Some(place) = element.get_mut(j) {
                *place = byte;
            }
        }
    }
}
