//! Zstandard frames and their dictionaries (chapters 4.5, 5.3 and 5.5).
//!
//! A frame is checked before memory is allocated for its content. It must state its length, end
//! where the stored bytes end, have a window of at most 8 MiB, and be long enough for the stated
//! length. Contexts are created on first use, one for each level, and reused.
//!
//! A dictionary is a table of a column. A frame that needs a dictionary does not name it by its id,
//! because the part that contains the frame states the number of the table.

use super::{check_zstd_dictionary, malformed_zstd_dictionary};
use crate::codec::transform::Transform;
use crate::{Error, Result};
use std::io;
use std::sync::Arc;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{self, CCtx, CDict, CParameter, DCtx, DDict, SafeResult, Strategy};

/// The level of the profile `bitshuffle-zstd`, and of text without a dictionary. At higher levels,
/// the time grows faster than the ratio.
pub(super) const LEVEL: i32 = 9;
/// The level for text with a dictionary. With level 5, text is 3 % larger and takes a fifth less
/// time to compress. With level 7, it is 1 % smaller and takes a tenth longer.
pub(super) const DICTIONARY_LEVEL: i32 = 6;
/// The level for planes, which only the profile `small` uses. This level raises the ratio of the
/// benchmark column `f0`, as byte planes of residuals, from 4.05 to 4.36.
const PLANES_LEVEL: i32 = 19;
const QUICK_LEVEL: i32 = 1;
/// Selects entropy coding without matches: the fastest strategy, with parameters that find almost
/// no matches. This makes planes of noise smaller, because matches in noise cost more than they
/// save.
const LITERALS: i32 = 0;
/// The magic number of a frame.
pub(crate) const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// How elements are divided into the streams of planes.
#[derive(Clone, Copy)]
pub(super) enum Split {
    /// Into byte planes of the elements; floats are rotated.
    Plain,
    /// Into bit planes of residuals.
    Bits,
    /// Into byte planes of residuals.
    Bytes,
}

impl Split {
    /// Returns the transform of the elements. `residuals` is the transform for the splits that use
    /// residuals.
    pub(super) fn transform(self, residuals: Transform, is_float: bool) -> Transform {
        match self {
            Self::Plain if is_float => Transform::Rotate,
            Self::Plain => Transform::None,
            Self::Bits | Self::Bytes => residuals,
        }
    }
}

/// Memory and contexts that are reused when frames are encoded.
#[derive(Default)]
pub(crate) struct FrameEncodeScratch {
    pub(super) zstd: ZstdEncoder<LEVEL>,
    pub(super) strong: ZstdEncoder<PLANES_LEVEL>,
    pub(super) quick: ZstdEncoder<QUICK_LEVEL>,
    pub(super) literals: ZstdEncoder<LITERALS>,
    pub(super) dictionary_encoder: ZstdDictionaryEncoder,
    pub(super) bytes: Vec<u8>,
    pub(super) frame: Vec<u8>,
    pub(super) other: Vec<u8>,
    pub(super) candidate: Vec<u8>,
    /// The split and the transform with which blocks are encoded as planes.
    pub(super) planned: Option<(Split, Transform)>,
}

/// Memory and contexts that are reused when frames are decoded.
#[derive(Default)]
pub(crate) struct FrameScratch {
    pub(super) zstd: ZstdDecoder,
    pub(super) bytes: Vec<u8>,
}

/// A compression context, created on first use.
#[derive(Default)]
pub(super) struct ZstdEncoder<const LEVEL: i32>(Option<Compressor<'static>>);

impl<const LEVEL: i32> ZstdEncoder<LEVEL> {
    pub(super) fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let compressor = match &mut self.0 {
            Some(compressor) => compressor,
            empty => empty.insert(compressor::<LEVEL>().map_err(|_| no_context())?),
        };
        stored.clear();
        stored.reserve(zstd_safe::compress_bound(raw.len()));
        compressor.compress_to_buffer(raw, stored).map_err(|error| failed(&error.to_string()))?;
        Ok(())
    }
}

/// A compression context for frames that need a dictionary, created on first use.
#[derive(Default)]
pub(super) struct ZstdDictionaryEncoder(Option<CCtx<'static>>);

impl ZstdDictionaryEncoder {
    pub(super) fn encode(&mut self, zstd_dictionary: &CDict<'_>, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let context = match &mut self.0 {
            Some(context) => context,
            empty => empty.insert(CCtx::try_create().ok_or_else(no_context)?),
        };
        stored.clear();
        stored.reserve(zstd_safe::compress_bound(raw.len()));
        let encoded = context.compress_using_cdict(stored, raw, zstd_dictionary);
        encoded.map(|_| ()).map_err(|code| failed(zstd_safe::get_error_name(code)))
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

/// A decompression context, created on first use.
#[derive(Default)]
pub(super) struct ZstdDecoder(Option<DCtx<'static>>);

impl ZstdDecoder {
    pub(super) fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_by(out, |context, out| context.decompress(out, stored))
    }

    pub(super) fn decode_with(&mut self, zstd_dictionary: &DDict<'_>, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_by(out, |context, out| context.decompress_using_ddict(out, stored, zstd_dictionary))
    }

    fn decode_by(
        &mut self,
        out: &mut [u8],
        decode: impl FnOnce(&mut DCtx<'static>, &mut [u8]) -> SafeResult,
    ) -> Result<()> {
        let context = match &mut self.0 {
            Some(context) => context,
            empty => empty.insert(DCtx::try_create().ok_or_else(no_context)?),
        };
        let expected = out.len();
        match decode(context, out) {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => Err(malformed(&format!("it decodes to {found} bytes, not {expected}"))),
            Err(code) => Err(malformed(zstd_safe::get_error_name(code))),
        }
    }
}

/// Returns the error for a context that cannot be created. Only a lack of memory can cause this.
fn no_context() -> Error {
    Error::over_limit("memory for a Zstandard context cannot be allocated")
}

fn failed(reason: &str) -> Error {
    Error::internal(format!("compressing with Zstandard failed: {reason}"))
}

fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.5", format!("malformed Zstandard frame: {what}"))
}

/// Checks for a frame whose content has `raw_bytes` bytes, without decoding it.
pub(super) fn check_frame(raw_bytes: usize, stored: &[u8]) -> Result<()> {
    if !stored.starts_with(&MAGIC) {
        return Err(malformed("it does not begin with the magic number"));
    }
    if zstd_safe::find_frame_compressed_size(stored) != Ok(stored.len()) {
        return Err(malformed("it does not end where the stored bytes end"));
    }
    if zstd_safe::get_dict_id_from_frame(stored).is_some() {
        return Err(malformed("it names a dictionary"));
    }
    let window = stated_window(stored).unwrap_or(u64::try_from(raw_bytes).unwrap_or(u64::MAX));
    if window > MAX_WINDOW {
        return Err(malformed("it has a window of more than 8 MiB"));
    }
    // a block takes at least 4 stored bytes and decodes to at most 128 KiB
    if raw_bytes.div_ceil(128 << 10) > stored.len() / 4 {
        return Err(malformed(&format!("{} bytes cannot decode to {} bytes", stored.len(), raw_bytes)));
    }
    let expected = u64::try_from(raw_bytes).ok();
    match zstd_safe::get_frame_content_size(stored) {
        Ok(Some(found)) if Some(found) == expected => Ok(()),
        Ok(Some(found)) => Err(malformed(&format!("it states a length of {found}, not {}", raw_bytes))),
        _ => Err(malformed("it does not state its length")),
    }
}

/// The maximum window. RFC 8878 recommends that decoders support at least this size. The window of
/// a single-segment frame is its whole content.
const MAX_WINDOW: u64 = 8 << 20;

/// Returns the window that a frame states (RFC 8878, 3.1.1.1.2); `None` for a single-segment frame.
pub(crate) fn stated_window(frame: &[u8]) -> Option<u64> {
    let &[descriptor, window] = frame.get(MAGIC.len()..)?.first_chunk::<2>()?;
    let base = 1_u64 << (10 + (window >> 3)); // at most 2^41
    (descriptor & 0x20 == 0).then_some(base + base / 8 * u64::from(window & 7))
}

/// The range of a dictionary's id, which has no meaning here: the format identifies a dictionary by
/// the number of its table.
const ID: std::ops::Range<usize> = 4..8;

/// A dictionary, prepared for decoding.
pub(crate) struct ZstdDictionary {
    body: Vec<u8>,
    prepared: DDict<'static>,
}

impl ZstdDictionary {
    /// Prepares the dictionary in the body of a table, and checks.
    pub(crate) fn new(body: Vec<u8>) -> Result<Self> {
        check_zstd_dictionary(&body)?;
        let prepared = DDict::try_create(&body).ok_or_else(|| {
            // libzstd does not report whether a lack of memory was the reason
            let has_memory =
                Vec::<u8>::new().try_reserve_exact(body.len().saturating_add(DICTIONARY_DECODER_BYTES)).is_ok();
            if has_memory { malformed_zstd_dictionary("its entropy tables are malformed") } else { no_memory() }
        })?;
        Ok(Self { body, prepared })
    }

    pub(super) fn prepared(&self) -> &DDict<'static> {
        &self.prepared
    }
}

/// A dictionary, prepared for encoding and decoding.
pub(crate) struct ZstdEncoderDictionary {
    pub(super) table: u32,
    pub(super) prepared: CDict<'static>,
    /// The same dictionary, prepared for decoding.
    pub(crate) decoding: Arc<ZstdDictionary>,
}

impl ZstdEncoderDictionary {
    /// Prepares table number `table` of a column.
    pub(crate) fn new(table: u32, decoding: Arc<ZstdDictionary>) -> Result<Self> {
        let mut without_id = decoding.body.clone();
        // without an id, frames do not name a dictionary
        without_id.get_mut(ID).into_iter().for_each(|id| id.fill(0));
        let prepared = CDict::try_create(&without_id, DICTIONARY_LEVEL);
        let prepared = prepared.ok_or_else(no_memory)?;
        Ok(Self { table, prepared, decoding })
    }
}

/// The approximate memory, in bytes, that libzstd needs to decode with a dictionary, in addition to
/// the dictionary itself.
const DICTIONARY_DECODER_BYTES: usize = 32 << 10;

fn no_memory() -> Error {
    Error::over_limit("memory for a dictionary cannot be allocated")
}

/// The maximum size of a part that is encoded with a dictionary. Longer parts hardly benefit.
pub(super) const MAX_BYTES: usize = 256 << 10;
/// The length, in bytes, of the samples from which the trainer chooses the content of a dictionary.
const TRAINING_SAMPLE_BYTES: usize = 2048;
/// One sample in this many is held out from training, to measure how much a dictionary saves.
const HOLDOUT_INTERVAL: usize = 8;

/// Trains a dictionary of at most `max_bytes` bytes on the first `training_bytes` bytes of the
/// parts that would be encoded with it. Returns `None` if the parts have less than half of
/// `training_bytes` to train on, or if the dictionary would save too little.
///
/// The trainer is `ZDICT_trainFromBuffer` of libzstd.
pub(crate) fn train(parts: &[&[u8]], training_bytes: usize, max_bytes: usize) -> Option<Vec<u8>> {
    let (mut training, mut holdout) = (Vec::new(), Vec::new());
    let parts = parts.iter().filter(|part| part.len() <= MAX_BYTES);
    let mut lengths = Vec::new();
    for (i, sample) in parts.flat_map(|part| part.chunks(TRAINING_SAMPLE_BYTES)).enumerate() {
        if training.len() + holdout.len() >= training_bytes {
            break;
        }
        if i % HOLDOUT_INTERVAL == HOLDOUT_INTERVAL - 1 {
            holdout.extend_from_slice(sample);
        } else {
            training.extend_from_slice(sample);
            lengths.push(sample.len());
        }
    }
    if training.len() < training_bytes / 2 {
        return None;
    }
    let (mut context, mut frame) = (zstd_safe::CCtx::try_create()?, Vec::new());
    let bytes_without =
        stored_bytes(&holdout, 64 << 10, &mut frame, |frame, sample| context.compress(frame, sample, LEVEL))?;
    if bytes_without > holdout.len() - holdout.len() / 8 {
        return None; // noise, such as compressed images
    }
    if bytes_without < holdout.len() / 32 {
        return None; // repetitions within each chunk leave nothing to save
    }
    let mut body = Vec::with_capacity(max_bytes);
    zstd_safe::train_from_buffer(&mut body, &training, &lengths).ok()?;
    let decoding = ZstdDictionary::new(body.clone()).ok()?;
    let zstd_dictionary = ZstdEncoderDictionary::new(0, Arc::new(decoding)).ok()?;
    let bytes_with = stored_bytes(&holdout, 32 << 10, &mut frame, |frame, sample| {
        context.compress_using_cdict(frame, sample, &zstd_dictionary.prepared)
    })?;
    (bytes_with < bytes_without - bytes_without / 20).then_some(body)
}

/// Divides `bytes` into samples of `length` bytes, compresses each of them, and returns the total
/// size of the frames.
fn stored_bytes(
    bytes: &[u8],
    length: usize,
    frame: &mut Vec<u8>,
    mut compress: impl FnMut(&mut Vec<u8>, &[u8]) -> SafeResult,
) -> Option<usize> {
    frame.reserve(zstd_safe::compress_bound(length));
    bytes.chunks(length).try_fold(0, |sum: usize, sample| {
        frame.clear();
        sum.checked_add(compress(frame, sample).ok()?)
    })
}
