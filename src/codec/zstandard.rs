//! Chapters 5.3 to 5.5: Zstandard frames, alone and behind a bit-shuffle.

use super::{Codec, PartSpec};
use crate::kernel::{self, Width};
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

/// Memory and contexts that decoders reuse.
#[derive(Default)]
pub(crate) struct DecodeScratch {
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

    fn encode(&self, _: usize, raw: &[u8], stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        scratch.zstd.encode(raw, stored)?;
        Ok(true)
    }

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        check_frame(spec, stored)
    }

    fn decode(&self, _: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        scratch.zstd.decode(stored, out)
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
        scratch.bytes.resize(spec.raw_bytes, 0);
        scratch.zstd.decode(stored, &mut scratch.bytes)?;
        kernel::best().unshuffle(width, &scratch.bytes, out);
        Ok(())
    }
}

fn whole_elements(element_bytes: usize, raw_bytes: usize) -> Option<Width> {
    let width = Width::from_bytes(element_bytes)?;
    raw_bytes.is_multiple_of(element_bytes).then_some(width)
}
