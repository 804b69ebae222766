//! Dictionaries for frames: tables of a column (chapters 4.5 and 5.5).

use super::frame::{DICTIONARY_LEVEL, LEVEL};
use crate::codec::dictionary_body::{self, no_dictionary};
use crate::{Error, Result};
use std::sync::Arc;
use zstd::zstd_safe::{self, CDict, DDict, SafeResult};

/// The bytes of its id, which has no meaning here: the format names a table instead.
const ID: std::ops::Range<usize> = 4..8;

/// A dictionary, prepared for decoding.
pub(crate) struct Dictionary {
    body: Vec<u8>,
    prepared: DDict<'static>,
}

impl Dictionary {
    /// Prepares the body of a table.
    pub(crate) fn new(body: Vec<u8>) -> Result<Self> {
        dictionary_body::check(&body)?;
        let prepared = DDict::try_create(&body).ok_or_else(|| {
            // libzstd does not tell whether memory lacks
            let has_memory = Vec::<u8>::new().try_reserve_exact(body.len().saturating_add(DECODING_BYTES)).is_ok();
            if has_memory { no_dictionary("its entropy tables are malformed") } else { no_memory() }
        })?;
        Ok(Self { body, prepared })
    }

    pub(super) fn prepared(&self) -> &DDict<'static> {
        &self.prepared
    }
}

/// A dictionary, prepared for encoding and decoding.
pub(crate) struct EncodingDictionary {
    /// The number of the table.
    pub(super) table: u32,
    pub(super) prepared: CDict<'static>,
    /// The same, for decoding.
    pub(in crate::codec) decoding: Arc<Dictionary>,
}

impl EncodingDictionary {
    /// Prepares table number `table` of a column.
    pub(crate) fn new(table: u32, decoding: Arc<Dictionary>) -> Result<Self> {
        let mut without_id = decoding.body.clone();
        // so that frames name no dictionary
        without_id.get_mut(ID).into_iter().for_each(|id| id.fill(0));
        let prepared = CDict::try_create(&without_id, DICTIONARY_LEVEL);
        let prepared = prepared.ok_or_else(no_memory)?;
        Ok(Self { table, prepared, decoding })
    }
}

/// About the bytes that libzstd takes to decode with a dictionary, besides its own.
const DECODING_BYTES: usize = 32 << 10;

fn no_memory() -> Error {
    Error::over_limit("memory for a dictionary cannot be allocated")
}

/// The most bytes of a part that is encoded with a dictionary. Longer ones hardly gain.
pub(super) const MOST_BYTES: usize = 256 << 10;
/// The length of the pieces that the trainer chooses from.
const PIECE_BYTES: usize = 2048;
/// A piece in this many is not trained with, and tells what a dictionary saves.
const HELD_OUT: usize = 8;

/// Trains a dictionary of at most `most_bytes` with the first `training_bytes` of the parts that
/// would be encoded with it. Returns `None` if these are less than half of that, or if it would
/// save too little.
///
/// The trainer is that of libzstd, `ZDICT_trainFromBuffer`.
pub(crate) fn train(parts: &[&[u8]], training_bytes: usize, most_bytes: usize) -> Option<Vec<u8>> {
    let (mut trained, mut held_out) = (Vec::new(), Vec::new());
    let parts = parts.iter().filter(|part| part.len() <= MOST_BYTES);
    let mut lengths = Vec::new();
    for (i, piece) in parts.flat_map(|part| part.chunks(PIECE_BYTES)).enumerate() {
        if trained.len() + held_out.len() >= training_bytes {
            break;
        }
        if i % HELD_OUT == HELD_OUT - 1 {
            held_out.extend_from_slice(piece);
        } else {
            trained.extend_from_slice(piece);
            lengths.push(piece.len());
        }
    }
    if trained.len() < training_bytes / 2 {
        return None;
    }
    let (mut context, mut frame) = (zstd_safe::CCtx::try_create()?, Vec::new());
    let alone = stored_bytes(&held_out, 64 << 10, &mut frame, |frame, piece| context.compress(frame, piece, LEVEL))?;
    if alone > held_out.len() - held_out.len() / 8 {
        return None; // noise, such as images
    }
    if alone < held_out.len() / 32 {
        return None; // repetitions within each chunk, which leave nothing to save
    }
    let mut body = Vec::with_capacity(most_bytes);
    zstd_safe::train_from_buffer(&mut body, &trained, &lengths).ok()?;
    let decoding = Dictionary::new(body.clone()).ok()?;
    let dictionary = EncodingDictionary::new(0, Arc::new(decoding)).ok()?;
    let with = stored_bytes(&held_out, 32 << 10, &mut frame, |frame, piece| {
        context.compress_using_cdict(frame, piece, &dictionary.prepared)
    })?;
    (with < alone - alone / 20).then_some(body)
}

/// Returns the sum of the lengths of the frames of pieces of `length` bytes.
fn stored_bytes(
    bytes: &[u8],
    length: usize,
    frame: &mut Vec<u8>,
    mut compress: impl FnMut(&mut Vec<u8>, &[u8]) -> SafeResult,
) -> Option<usize> {
    frame.reserve(zstd_safe::compress_bound(length));
    bytes.chunks(length).try_fold(0, |sum: usize, piece| {
        frame.clear();
        sum.checked_add(compress(frame, piece).ok()?)
    })
}
