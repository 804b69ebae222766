//! Chapters 5.3 to 5.5: Zstandard frames, alone and behind a bit-shuffle.

mod planes;
#[cfg(test)]
mod tests;

pub(super) use planes::PlanesZstd;

use super::sampling::windows;
use super::{Codec, DecodeScratch, EncodeScratch, Encoder, Geometry, PartSpec};
use crate::kernel::{self, Width};
use crate::{Error, Result, memory};
use std::io;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{self, CParameter, Strategy};

/// The level of the classic recipe: beyond it, time grows faster than ratio.
const LEVEL: i32 = 9;
/// The level of planes, which only those ask for who want the fewest bytes: f0 4.36 instead of 4.05 (residuals by bytes).
const PLANES_LEVEL: i32 = 19;
/// The level of estimates.
const QUICK_LEVEL: i32 = 1;
/// Elements of a window that is compressed for an estimate.
const WINDOW: usize = 2048;
/// Stands for entropy coding without matches: the fastest strategy, made to find next to none. Noise-like planes become smaller so, since
/// matches found in noise cost more than they save.
const LITERALS: i32 = 0;
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// Memory and contexts that encoding frames reuses.
#[derive(Default)]
pub(super) struct FrameEncodeScratch {
    zstd: ZstdEncoder<LEVEL>,
    strong: ZstdEncoder<PLANES_LEVEL>,
    quick: ZstdEncoder<QUICK_LEVEL>,
    literals: ZstdEncoder<LITERALS>,
    bytes: Vec<u8>,
    frame: Vec<u8>,
    other: Vec<u8>,
    candidate: Vec<u8>,
}

/// Memory and contexts that decoding frames reuses.
#[derive(Default)]
pub(super) struct FrameScratch {
    zstd: ZstdDecoder,
    bytes: Vec<u8>,
}

/// A compression context, made when first used.
#[derive(Default)]
struct ZstdEncoder<const LEVEL: i32>(Option<Compressor<'static>>);

impl<const LEVEL: i32> ZstdEncoder<LEVEL> {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let failed = |error: io::Error| Error::io("compressing with Zstandard", error);
        let compressor = match &mut self.0 {
            Some(compressor) => compressor,
            empty => empty.insert(compressor::<LEVEL>().map_err(failed)?),
        };
        stored.clear();
        stored.reserve(zstd_safe::compress_bound(raw.len()));
        compressor.compress_to_buffer(raw, stored).map_err(failed)?;
        Ok(())
    }
}

fn compressor<const LEVEL: i32>() -> io::Result<Compressor<'static>> {
    if LEVEL != LITERALS {
        return Compressor::new(LEVEL);
    }
    let mut compressor = Compressor::new(1)?;
    compressor.set_parameter(CParameter::Strategy(Strategy::ZSTD_fast))?;
    compressor.set_parameter(CParameter::MinMatch(7))?;
    compressor.set_parameter(CParameter::HashLog(6))?;
    compressor.set_parameter(CParameter::TargetLength(0))?;
    Ok(compressor)
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
    if stated_window(stored).is_some_and(|window| window > MAX_WINDOW) {
        return Err(malformed("it states a window of more than 2^31 bytes"));
    }
    // a block takes at least 4 stored bytes and gives at most 128 KiB
    if spec.raw_bytes.div_ceil(128 << 10) > stored.len() / 4 {
        return Err(malformed(&format!("{} bytes cannot decode to {}", stored.len(), spec.raw_bytes)));
    }
    let due = u64::try_from(spec.raw_bytes).ok();
    match zstd_safe::get_frame_content_size(stored) {
        Ok(Some(found)) if Some(found) == due => Ok(()),
        Ok(Some(found)) => Err(malformed(&format!("it states a length of {found}, not {}", spec.raw_bytes))),
        _ => Err(malformed("it does not state its length")),
    }
}

const MAX_WINDOW: u64 = 1 << 31;

/// The window that a frame states (RFC 8878, 3.1.1.1.2); `None` if it is to be decoded in one segment.
fn stated_window(frame: &[u8]) -> Option<u64> {
    let &[descriptor, window] = frame.get(MAGIC.len()..)?.first_chunk::<2>()?;
    let base = 1_u64 << (10 + (window >> 3)); // at most 2^41
    (descriptor & 0x20 == 0).then_some(base + base / 8 * u64::from(window & 7))
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
    fn encode(&self, _: &Geometry, raw: &[u8], stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        scratch.frames.zstd.encode(raw, stored)?;
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
            return Err(Error::corrupt("R-4.5", message));
        }
        check_frame(spec, stored)
    }

    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let Some(width) = whole_elements(spec.element_bytes, spec.raw_bytes) else {
            return self.check(spec, stored);
        };
        let scratch = &mut scratch.frames;
        memory::resize(&mut scratch.bytes, spec.raw_bytes, 0)?;
        scratch.zstd.decode(stored, &mut scratch.bytes)?;
        kernel::best().unshuffle(width, &scratch.bytes, out);
        Ok(())
    }
}

impl Encoder for BitshuffleZstd {
    /// By compressing some windows with the quickest level.
    fn estimate(&self, geometry: &Geometry, raw: &[u8], scratch: &mut EncodeScratch) -> Option<usize> {
        let width = whole_elements(geometry.element_bytes, raw.len())?;
        let count = raw.len() / width.bytes();
        let FrameEncodeScratch { quick, bytes, frame, .. } = &mut scratch.frames;
        let (mut sampled, mut stored) = (0, 0);
        for window in windows(count, WINDOW) {
            let elements = raw.get(window.start * width.bytes()..window.end * width.bytes())?;
            bytes.resize(elements.len(), 0);
            kernel::best().shuffle(width, elements, bytes);
            quick.encode(bytes, frame).ok()?;
            sampled += window.len();
            stored += frame.len();
        }
        stored.checked_mul(count)?.checked_div(sampled)
    }

    fn encode(
        &self,
        geometry: &Geometry,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let Some(width) = whole_elements(geometry.element_bytes, raw.len()) else {
            return Ok(false);
        };
        let scratch = &mut scratch.frames;
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
