//! Encodes chunks: chooses an encoding for each part, and lays out the parts as a body.

use super::blocked::{LEAST_IN_BLOCKS, block_ends, most_front_bytes, seal};
use super::encoding::{Codec, Encoder};
use super::geometry::Geometry;
use super::part_spec::PartSpec;
use super::profile::{Candidates, Profile, WeightedEncoder};
use super::registry::{RAW, RAW_BLOCKS, codec};
use super::scratch::{DecodeScratch, EncodeScratch};
use super::zstandard::EncodingDictionary;
use crate::format::chunk::{ChunkEntry, ChunkHead, PARTS};
use crate::format::content::Content;
use crate::format::part_table::{PART_TABLE_BYTES, Part, PartTable};
use crate::format::region::HEAD_BYTES;
use crate::format::schema::Layout;
use crate::{Error, ErrorKind, Result, limits, memory};
use std::sync::Arc;

/// The decoded parts of a chunk that is to be written, in the byte order of the file.
#[derive(Debug, Default)]
pub(crate) struct RawChunk {
    pub column: usize,
    pub first_sample: u64,
    pub sample_count: u32,
    /// Null samples.
    pub null_count: u64,
    /// The validity, if any entry is null.
    pub validity: Option<Vec<u8>>,
    /// The shape part; empty if the column is neither ragged nor nested.
    pub shape: Vec<u8>,
    pub values: Vec<u8>,
}

impl RawChunk {
    pub(crate) fn raw_bytes(&self) -> usize {
        let validity = self.validity.as_ref().map_or(0, Vec::len);
        validity.saturating_add(self.shape.len()).saturating_add(self.values.len())
    }
}

/// An encoded chunk, whose offset in the file is not known yet.
#[derive(Debug)]
pub(crate) struct EncodedChunk {
    pub head: ChunkHead,
    pub body: Vec<u8>,
    /// The encodings of validity and shape, if they are present.
    pub side_encodings: [Option<u16>; 2],
}

/// A short chunk is written without blocks if that saves one in this many of its bytes.
const WHOLE_SAVES_ONE_IN: u64 = 20;

/// Estimates are trusted to one in this many bytes: an encoding that is estimated to save less than
/// that, compared with one that was tried, is not tried.
const TRUSTED_TO_ONE_IN: u64 = 16;

/// An encoding is not tried in any case if another one took less than is estimated of it, by one in
/// this many bytes.
const DOUBTED_ONE_IN: u64 = 10;
/// The same unless the other one takes fewer than one in this many of the decoded bytes: what is
/// estimated of so few is mostly the heads of windows.
const FEW_ARE_ONE_IN: usize = 8;

/// The bytes of an encoding, compared with those of the best before it.
#[derive(Clone, Copy)]
enum Expected {
    Any,
    /// Fewer bytes than others are possible.
    MayBeLess,
    /// Fewer bytes than others are likely.
    ToBeLess,
}

/// Encodes chunks one after the other, and reuses its memory.
pub(crate) struct ChunkEncoder {
    profile: Profile,
    /// The decoded bytes of a block; `None` to write chunks without blocks.
    block_bytes: Option<usize>,
    scratch: EncodeScratch,
    candidate: Vec<u8>,
    best: Vec<u8>,
    /// The ends of blocks; one if the chunk is not to be in blocks.
    ends: Vec<u32>,
    /// Memory to decode each part again and compare; `None` if parts are not checked.
    check: Option<Check>,
}

#[derive(Default)]
struct Check {
    scratch: DecodeScratch,
    decoded: Vec<u8>,
}

impl ChunkEncoder {
    /// Makes an encoder. If `check`, it decodes each part again and compares.
    pub(crate) fn new(profile: Profile, block_bytes: Option<usize>, check: bool) -> Self {
        Self {
            profile,
            block_bytes,
            scratch: EncodeScratch::default(),
            candidate: Vec::new(),
            best: Vec::new(),
            ends: Vec::new(),
            check: check.then(Check::default),
        }
    }

    /// Encodes a chunk of a column with this layout and this dictionary.
    pub(crate) fn encode(
        &mut self,
        layout: &Layout,
        dictionary: Option<&Arc<EncodingDictionary>>,
        chunk: &RawChunk,
    ) -> Result<EncodedChunk> {
        self.scratch.dictionary = dictionary.cloned();
        let has_parts = layout.has_shape() || chunk.validity.is_some();
        let mut body = Vec::new();
        let mut parts = PartTable::default();
        if has_parts {
            body.resize(PART_TABLE_BYTES, 0);
            if let Some(validity) = &chunk.validity {
                parts.validity = self.part(&Geometry::of_numbers(1), false, validity, &mut body)?;
                pad(&mut body);
            }
            if layout.has_shape() {
                parts.shape = self.part(&Geometry::of_numbers(4), false, &chunk.shape, &mut body)?;
                pad(&mut body);
            }
        }
        let is_string = layout.dtype.is_string();
        let values_at = body.len();
        let mut ends = std::mem::take(&mut self.ends);
        self.plan_blocks(layout, chunk, &mut ends)?;
        if ends.is_empty() {
            ends.push(field(chunk.values.len() / layout.element_bytes.max(1))?);
        }
        let geometry = Geometry::of_values(layout).in_blocks(&ends);
        parts.values = self.part(&geometry, is_string, &chunk.values, &mut body)?;
        self.ends = ends;
        if has_parts && let Some(table) = body.first_chunk_mut::<PART_TABLE_BYTES>() {
            *table = parts.to_bytes();
        }
        if codec(parts.values.encoding)?.blocks().is_some() {
            let (before, values) = body.split_at_mut(values_at);
            seal(before, values);
        }
        Ok(EncodedChunk {
            head: ChunkHead {
                column: field(chunk.column)?,
                raw_bytes: field(chunk.raw_bytes())?,
                entry: ChunkEntry {
                    offset: 0,
                    first_sample: chunk.first_sample,
                    stored_bytes: field(body.len())?,
                    sample_count: chunk.sample_count,
                    body_crc: 0,
                    encoding: parts.values.encoding,
                    flags: if has_parts { PARTS } else { 0 },
                },
            },
            body,
            side_encodings: [
                chunk.validity.as_ref().map(|_| parts.validity.encoding),
                layout.has_shape().then_some(parts.shape.encoding),
            ],
        })
    }

    /// Sets `ends` to the ends of the blocks of a chunk.
    fn plan_blocks(&self, layout: &Layout, chunk: &RawChunk, ends: &mut Vec<u32>) -> Result<()> {
        ends.clear();
        let Some(block_bytes) = self.block_bytes else { return Ok(()) };
        let content = Content {
            sample_count: usize::try_from(chunk.sample_count).unwrap_or(0), // at most 2^24
            validity: chunk.validity.as_deref(),
            shape: &chunk.shape,
            values: &chunk.values,
        };
        block_ends(layout, &content, block_bytes, ends)
    }

    /// Encodes `raw` and appends it to `body`.
    fn part(&mut self, geometry: &Geometry<'_>, is_string: bool, raw: &[u8], body: &mut Vec<u8>) -> Result<Part> {
        let codec = self.choose(geometry, is_string, raw)?;
        if let Some(codec) = codec {
            self.compare(codec, geometry, raw)?;
        }
        let start = body.len();
        let codec: &dyn Codec = match codec {
            Some(codec) => {
                match start {
                    0 => std::mem::swap(body, &mut self.best), // saves a copy
                    _ => body.extend_from_slice(&self.best),
                }
                codec
            }
            // straight to the body: a sample may have gigabytes
            None if self.append_raw_blocks(geometry, raw, body)? => RAW_BLOCKS,
            None => {
                body.extend_from_slice(raw);
                RAW
            }
        };
        Ok(Part { stored_bytes: field(body.len() - start)?, raw_bytes: field(raw.len())?, encoding: codec.id() })
    }

    /// Appends `raw` in blocks to `body`. Returns `false`, and appends nothing, if it is not to be
    /// in blocks.
    fn append_raw_blocks(&mut self, geometry: &Geometry<'_>, raw: &[u8], body: &mut Vec<u8>) -> Result<bool> {
        if !geometry.is_in_blocks() {
            return Ok(false);
        }
        let start = body.len();
        // not the double of it
        memory::reserve(body, raw.len().saturating_add(most_front_bytes(geometry.blocks.len())))?;
        let appended = RAW_BLOCKS.append(geometry, raw, &[], body, &mut self.scratch)?;
        if !appended {
            body.truncate(start);
        }
        Ok(appended)
    }

    /// Returns the encoding for `raw` and the stored bytes, which are not compared.
    pub(super) fn encode_alone<'a>(
        &'a mut self,
        geometry: &Geometry<'_>,
        is_string: bool,
        dictionary: Option<&Arc<EncodingDictionary>>,
        raw: &'a [u8],
    ) -> Result<(&'static dyn Codec, &'a [u8])> {
        self.scratch.dictionary = dictionary.cloned();
        let codec = self.choose(geometry, is_string, raw)?;
        if let Some(codec) = codec {
            return Ok((codec, &self.best));
        }
        let mut stored = std::mem::take(&mut self.best);
        stored.clear();
        let in_blocks = self.append_raw_blocks(geometry, raw, &mut stored);
        self.best = stored;
        if in_blocks? { Ok((RAW_BLOCKS, &self.best)) } else { Ok((RAW, raw)) }
    }

    /// Chooses the encoding for `raw`, whose stored bytes are then in `self.best`; `None` for raw.
    fn choose(&mut self, geometry: &Geometry<'_>, is_string: bool, raw: &[u8]) -> Result<Option<&'static dyn Encoder>> {
        let Some((cost, encoder)) = self.cheapest(geometry, is_string, raw, u64::MAX)? else { return Ok(None) };
        if geometry.is_in_blocks() && self.best.len() < LEAST_IN_BLOCKS {
            let most = cost - cost / WHOLE_SAVES_ONE_IN;
            let end = geometry.blocks.last().copied().unwrap_or(0);
            if let Some((_, whole)) = self.cheapest(&geometry.in_blocks(&[end]), is_string, raw, most)? {
                return Ok(Some(whole));
            }
        }
        Ok(Some(encoder))
    }

    /// Returns the encoding for `raw` of the least cost, which is below `most`, and that cost. Its
    /// stored bytes are then in `self.best`, which is not changed if there is none.
    fn cheapest(
        &mut self,
        geometry: &Geometry<'_>,
        is_string: bool,
        raw: &[u8],
        most: u64,
    ) -> Result<Option<(u64, &'static dyn Encoder)>> {
        if raw.is_empty() {
            return Ok(None);
        }
        let Self { profile, scratch, candidate: stored, best, .. } = self;
        let Candidates { tried, unlikely, rivals } = profile.candidates(is_string, geometry.is_in_blocks());
        let mut estimated = |candidate: &'static WeightedEncoder| {
            let bytes = candidate.encoder.estimate(geometry, raw, scratch).unwrap_or(usize::MAX);
            (candidate.cost(bytes), candidate)
        };
        let unlikely: Vec<_> = unlikely.iter().map(&mut estimated).collect();
        let mut estimates: Vec<_> = rivals.iter().map(&mut estimated).collect();
        estimates.sort_by_key(|(estimate, _)| *estimate);
        // the first rival is tried if it may be better, the others if they are to be better
        let unlikely = unlikely.into_iter().map(|estimated| (Expected::MayBeLess, estimated));
        let rivals = estimates
            .into_iter()
            .enumerate()
            .map(|(place, estimated)| (if place == 0 { Expected::MayBeLess } else { Expected::ToBeLess }, estimated));
        let tried = tried.iter().map(|candidate| (Expected::Any, (0, candidate)));
        let mut found: Option<(u64, &'static dyn Encoder)> = None;
        for (expected, (estimate, candidate)) in tried.chain(unlikely).chain(rivals) {
            let least = found.map_or(most, |(least, _)| least);
            let are_few = least < candidate.cost(raw.len() / FEW_ARE_ONE_IN);
            let is_tried = match expected {
                Expected::Any => true,
                // only encoding tells: there is no other, or few bytes, or no estimate
                Expected::MayBeLess if found.is_none() || are_few || estimate == u64::MAX => true,
                Expected::MayBeLess => estimate - estimate / DOUBTED_ONE_IN < least,
                Expected::ToBeLess => estimate.saturating_add(estimate / TRUSTED_TO_ONE_IN) < least,
            };
            if !is_tried {
                continue;
            }
            if !candidate.encoder.encode(geometry, raw, stored, scratch)? {
                continue;
            }
            let cost = candidate.cost(stored.len());
            if saves_enough(stored.len(), raw.len()) && cost < least {
                found = Some((cost, candidate.encoder));
                std::mem::swap(stored, best);
            }
        }
        Ok(found)
    }

    /// Decodes `self.best` and compares it with `raw`.
    pub(super) fn compare(&mut self, codec: &dyn Encoder, geometry: &Geometry<'_>, raw: &[u8]) -> Result<()> {
        let Some(Check { scratch, decoded }) = &mut self.check else { return Ok(()) };
        let dictionary = self.scratch.dictionary.as_ref().map(|dictionary| &*dictionary.decoding);
        let spec = PartSpec::new(geometry.element_bytes, raw.len()).with(dictionary);
        decoded.resize(raw.len(), 0);
        let checked = codec.check(spec, &self.best).and_then(|()| codec.decode(spec, &self.best, decoded, scratch));
        let reason = match checked {
            Ok(()) if decoded == raw => return Ok(()),
            Ok(()) => "the values differ".to_owned(),
            Err(error) if error.kind() == ErrorKind::Corrupt => error.to_string(),
            Err(error) => return Err(error),
        };
        let message = format!(
            "a chunk that was encoded as {} does not decode to its values, and was not written ({reason})",
            codec.name()
        );
        Err(Error::internal(message))
    }
}

/// Returns whether an encoding saves at least 5 %. If it does not, a part is stored raw.
pub(super) fn saves_enough(stored_bytes: usize, raw_bytes: usize) -> bool {
    stored_bytes < raw_bytes - raw_bytes / 20
}

/// Fills `body` up to a multiple of 64, where the next part begins.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(HEAD_BYTES), 0);
}

fn field(length: usize) -> Result<u32> {
    let limit = limits::CHUNK_BYTES;
    let field = u32::try_from(length).ok().filter(|&bytes| bytes <= limit);
    field.ok_or_else(|| {
        let message = format!("a chunk would take {length} bytes; the format allows {limit}; split the sample");
        Error::over_limit(message)
    })
}
