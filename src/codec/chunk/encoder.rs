//! Encodes chunks: chooses an encoding for each part, and lays out the parts as a body.
//!
//! `choice/mod.rs` describes how one part is encoded. All candidates of the profile are estimated
//! from a sample of its elements, and tried in the order of their estimates as long as they can
//! still beat the best result so far. This module adds three things.
//!
//! *Blocks or one block.* Values are first encoded as several blocks. A single block is also tried
//! in two cases. Either the blocks are so small that readers fetch all of them in one request, or
//! the profile has encodings that benefit from a single block. An example is `planes-zstd`, which
//! then finds repetitions more than a block apart. A single block wins if it saves 5 % or, for
//! text, at least one byte.
//!
//! *The last choice.* Consecutive chunks of a column are similar, so the choice for the values of a
//! chunk, with its transform and bins, is tried first for the next chunk. For the second chunk, the
//! choice is compared with the other candidates, and is confirmed if none of them saves 1/64. Once
//! confirmed, it is compared again only if the cost per byte changes by more than 1/16.
//!
//! *Checking.* If checking is on, the writer decodes each part and compares it with the input
//! before it writes the chunk. A bug in an encoder then causes an error instead of wrong values.

use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::{
    RAW, RAW_BLOCKS, RAW_IN_BLOCKS,
    bins::BinChoice,
    blocked::{BlockEncoder, Encoding, MIN_BLOCKED_BYTES, max_block_index_bytes, seal},
    choice::{Candidates, Profile, SKIP_MARGIN_DIVISOR, SampledPart, Search, Technique, WeightedEncoder},
    encoding, encoding_of,
    part::{Body, Geometry, PartSpec, RawPart, SCALAR_RESTART, block_ends, number_ends},
    scratch::{DecodeScratch, EncodeScratch},
    transform::Transform,
    zstandard::ZstdEncoderDictionary,
};
use crate::format::{
    chunk::{ChunkEntry, ChunkHeader, PART_TABLE_BYTES, PARTS, Part, PartTable},
    content::Content,
    region::HEADER_BYTES,
    schema::Layout,
};
use crate::{Error, ErrorKind, Result, limits};
use std::sync::Arc;

/// The decoded parts of a chunk to be written, in the byte order of the file.
#[derive(Debug, Default)]
pub(crate) struct RawChunk {
    pub column: usize,
    pub first_sample: u64,
    pub sample_count: u32,
    /// The number of null samples.
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
    pub header: ChunkHeader,
    pub body: Vec<u8>,
    /// The encodings of validity and shape, if they are present.
    pub side_encodings: [Option<u16>; 2],
}

/// Values that could have several blocks are written as one block if that saves 1/N of the cost.
const WHOLE_MIN_SAVING_DIVISOR: u64 = 20;

/// [`SKIP_MARGIN_DIVISOR`] for estimates that encode the sampled elements.
const ENCODED_SKIP_MARGIN_DIVISOR: u64 = 128;

/// [`SKIP_MARGIN_DIVISOR`] for values as one block, which take the longest to encode.
const WHOLE_SKIP_MARGIN_DIVISOR: u64 = 32;

/// A choice is compared with the other candidates again if the cost per byte changes by more than
/// 1/N.
const COST_CHANGE_DIVISOR: f64 = 16.0;
/// A choice is confirmed if no other candidate saves 1/N of its cost.
const CONFIRM_MARGIN_DIVISOR: u64 = 64;

/// The choice for the values of a chunk. The next chunk tries it first.
#[derive(Clone)]
pub(crate) struct ValueChoice {
    candidate: &'static WeightedEncoder,
    /// Whether the values are one block although they could have several.
    is_whole: bool,
    tier_transform: Option<Transform>,
    bin_choice: Option<BinChoice>,
    cost: f64,
    /// Whether the choice was compared with the other candidates for a second chunk.
    is_confirmed: bool,
}

impl ValueChoice {
    /// Returns this choice, marked to be compared with the other candidates again.
    pub(crate) fn unconfirmed(self) -> Self {
        Self { is_confirmed: false, ..self }
    }
}

/// The bounds of a search for an encoding.
#[derive(Clone, Copy)]
struct Limit<'a> {
    max_cost: u64,
    /// The choice for the previous chunk. If the estimates rank it first, nothing is encoded.
    previous: Option<&'a ValueChoice>,
    /// If this is `Some(n)`, candidates whose estimate exceeds the best cost so far by more than
    /// 1/n are skipped. If it is `None`, all candidates are tried.
    skip_margin_divisor: Option<u64>,
}

impl Limit<'_> {
    const NONE: Self = Self { max_cost: u64::MAX, previous: None, skip_margin_divisor: None };
}

/// Encodes chunks one after another, reusing its memory.
pub(crate) struct ChunkEncoder {
    profile: Profile,
    /// The requested block size in decoded bytes; see [`Profile::block_bytes_of`].
    block_bytes: Option<usize>,
    scratch: EncodeScratch,
    candidate: Vec<u8>,
    best: Vec<u8>,
    /// The ends of blocks; a single entry if the values are one block.
    ends: Vec<u32>,
    /// Memory for decoding and comparing each part; `None` if parts are not checked.
    check: Option<Check>,
}

#[derive(Default)]
struct Check {
    scratch: DecodeScratch,
    decoded: Vec<u8>,
}

impl ChunkEncoder {
    /// Creates an encoder. If `check`, the encoder decodes each part and compares it with its
    /// input.
    pub(crate) fn new(profile: Profile, block_bytes: Option<usize>, check: bool, search: Search) -> Self {
        Self {
            profile,
            block_bytes,
            scratch: EncodeScratch { search, ..EncodeScratch::default() },
            candidate: Vec::new(),
            best: Vec::new(),
            ends: Vec::new(),
            check: check.then(Check::default),
        }
    }

    /// Sets the profile and the block size of the chunks that follow.
    pub(crate) fn set_profile(&mut self, profile: Profile, block_bytes: Option<usize>) {
        (self.profile, self.block_bytes) = (profile, block_bytes);
    }

    /// Encodes a chunk of a column with this layout and Zstandard dictionary. First tries `choice`,
    /// which was made for the previous chunk, and then sets it to the choice for this chunk.
    pub(crate) fn encode(
        &mut self,
        layout: &Layout,
        zstd_dictionary: Option<&Arc<ZstdEncoderDictionary>>,
        chunk: &RawChunk,
        choice: &mut Option<ValueChoice>,
    ) -> Result<EncodedChunk> {
        self.scratch.zstd_dictionary = zstd_dictionary.cloned();
        let has_parts = layout.has_shape() || chunk.validity.is_some();
        let mut body = Vec::new();
        let mut parts = PartTable::default();
        if has_parts {
            body.resize(PART_TABLE_BYTES, 0);
            if let Some(validity) = &chunk.validity {
                parts.validity = self.side(1, validity, &mut body)?;
            }
            if layout.has_shape() {
                parts.shape = self.side(4, &chunk.shape, &mut body)?;
            }
        }
        let is_string = layout.dtype.is_string();
        let mut ends = std::mem::take(&mut self.ends);
        self.plan_blocks(layout, chunk, &mut ends)?;
        if ends.is_empty() {
            ends.push(field(chunk.values.len() / layout.element_bytes.max(1))?);
        }
        let geometry = Geometry::of_values(layout).in_blocks(&ends);
        parts.values = self.part(RawPart { geometry: &geometry, raw: &chunk.values }, is_string, choice, &mut body)?;
        self.ends = ends;
        if has_parts && let Some(table) = body.first_chunk_mut::<PART_TABLE_BYTES>() {
            *table = parts.to_bytes();
        }
        // the checksum of a block index covers the part table
        let ranges = if has_parts { parts.ranges() } else { Some([0..0, 0..0, 0..body.len()]) };
        for (part, range) in [parts.validity, parts.shape, parts.values].iter().zip(ranges.into_iter().flatten()) {
            if part.raw_bytes > 0
                && encoding(part.encoding)?.is_in_blocks()
                && let Some((before, stored)) = body.split_at_mut_checked(range.start)
            {
                seal(before, stored);
            }
        }
        Ok(EncodedChunk {
            header: ChunkHeader {
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

    fn plan_blocks(&self, layout: &Layout, chunk: &RawChunk, ends: &mut Vec<u32>) -> Result<()> {
        ends.clear();
        let block_bytes = self.profile.block_bytes_of(layout.dtype.is_string(), self.block_bytes);
        let Some(block_bytes) = block_bytes else { return Ok(()) };
        let content = Content {
            sample_count: usize::try_from(chunk.sample_count).unwrap_or(0), // at most 2^24
            validity: chunk.validity.as_deref(),
            shape: &chunk.shape,
            values: &chunk.values,
        };
        block_ends(layout, &content, block_bytes, ends)
    }

    /// Encodes validity or a shape and appends it to `body`. Opening a chunk decodes the whole
    /// part, so blocks are as long as possible, and bins are not tried because they decode slowly.
    fn side(&mut self, element_bytes: usize, raw: &[u8], body: &mut Vec<u8>) -> Result<Part> {
        let count = raw.len() / element_bytes; // no division by zero: at least 1 byte
        let ends = match self.profile {
            Profile::Raw | Profile::BitshuffleZstd => vec![field(count)?],
            _ => number_ends(count),
        };
        let search = self.scratch.search;
        self.scratch.search = search.without(Technique::Bins);
        let part = self.part(
            RawPart { geometry: &Geometry::of_numbers(element_bytes).in_blocks(&ends), raw },
            false,
            &mut None,
            body,
        );
        self.scratch.search = search;
        pad(body);
        part
    }

    fn part(
        &mut self,
        part: RawPart<'_>,
        is_string: bool,
        choice: &mut Option<ValueChoice>,
        body: &mut Vec<u8>,
    ) -> Result<Part> {
        let encoding = self.choose(part, is_string, choice)?;
        if let Some(encoding) = encoding {
            self.compare(encoding, part)?;
        }
        let start = body.len();
        let encoding = match encoding {
            Some(encoding) => {
                match start {
                    0 => std::mem::swap(body, &mut self.best), // saves a copy
                    _ => body.extend_from_slice(&self.best),
                }
                encoding
            }
            // directly into the body, because a sample can be several gigabytes
            None if self.append_raw_blocks(part, body)? => RAW_IN_BLOCKS,
            None => {
                body.extend_from_slice(part.raw);
                RAW
            }
        };
        let (stored_bytes, raw_bytes) = (field(body.len() - start)?, field(part.raw.len())?);
        Ok(Part { stored_bytes, raw_bytes, encoding: encoding.field() })
    }

    /// Appends the part to `body` as raw blocks. If the part is one block, appends nothing and
    /// returns `false`.
    fn append_raw_blocks(&mut self, part: RawPart<'_>, body: &mut Vec<u8>) -> Result<bool> {
        let RawPart { geometry, raw } = part;
        if !geometry.is_in_blocks() {
            return Ok(false);
        }
        let start = body.len();
        // reserved once: growing by doubling could take twice the memory
        memory::reserve(body, raw.len().saturating_add(max_block_index_bytes(geometry.blocks.len())))?;
        let appended = RAW_BLOCKS.0.append(part, &[], body, &mut self.scratch)?;
        if !appended {
            body.truncate(start);
        }
        Ok(appended)
    }

    /// Chooses an encoding for a part, and returns it with the stored bytes. Does not check the
    /// stored bytes by decoding them.
    pub(crate) fn encode_standalone<'a>(
        &'a mut self,
        part: RawPart<'a>,
        is_string: bool,
        zstd_dictionary: Option<&Arc<ZstdEncoderDictionary>>,
    ) -> Result<(Encoding, &'a [u8])> {
        self.scratch.zstd_dictionary = zstd_dictionary.cloned();
        if let Some(encoding) = self.choose(part, is_string, &mut None)? {
            return Ok((encoding, &self.best));
        }
        let mut stored = std::mem::take(&mut self.best);
        stored.clear();
        let in_blocks = self.append_raw_blocks(part, &mut stored);
        self.best = stored;
        if in_blocks? { Ok((RAW_IN_BLOCKS, &self.best)) } else { Ok((RAW, part.raw)) }
    }

    /// Chooses an encoding for a part and leaves the stored bytes in `self.best`. Returns `None` if
    /// the part should be stored raw.
    fn choose(
        &mut self,
        part: RawPart<'_>,
        is_string: bool,
        choice: &mut Option<ValueChoice>,
    ) -> Result<Option<Encoding>> {
        let RawPart { geometry, raw } = part;
        let encoding_for = |choice: &ValueChoice| {
            encoding_of(choice.candidate.encoder, geometry.is_in_blocks() && !choice.is_whole).map(Some)
        };
        if let Some(previous) = choice
            && self.encode_with_choice(previous, part)?
        {
            let cost = previous.candidate.cost(self.best.len());
            let cost_of_byte = cost as f64 / raw.len().max(1) as f64;
            if !previous.is_confirmed || (cost_of_byte - previous.cost).abs() > previous.cost / COST_CHANGE_DIVISOR {
                let limit = Limit {
                    max_cost: cost - cost / CONFIRM_MARGIN_DIVISOR,
                    previous: Some(previous),
                    skip_margin_divisor: Some(SKIP_MARGIN_DIVISOR),
                };
                match self.best_choice(part, is_string, limit)? {
                    Some(better) => *previous = better,
                    None => (previous.is_confirmed, previous.cost) = (true, cost_of_byte),
                }
            }
            return encoding_for(previous);
        }
        *choice = None;
        let Some(found) = self.best_choice(part, is_string, Limit::NONE)? else { return Ok(None) };
        let encoding = encoding_for(&found);
        // not for text: a Zstandard dictionary can be added before the next chunk
        let is_reusable = !self.is_short(geometry) && !is_string && !self.scratch.search.is_exhaustive;
        *choice = Some(found).filter(|_| is_reusable);
        encoding
    }

    /// Returns whether `self.best` has blocks, and these are so small that readers fetch all of
    /// them in one request.
    fn is_short(&self, geometry: &Geometry<'_>) -> bool {
        geometry.is_in_blocks() && self.best.len() < MIN_BLOCKED_BYTES
    }

    /// Returns whether to try all values as one block. Scalars such as ids are looked up one at a
    /// time, so a single block is tried for them only with [`Profile::Small`].
    fn may_be_whole(&self, geometry: &Geometry<'_>) -> bool {
        self.profile == Profile::Small || geometry.restart != SCALAR_RESTART
    }

    /// Encodes a part to `self.best` with an earlier choice. Returns whether this is possible and
    /// saves enough.
    fn encode_with_choice(&mut self, choice: &ValueChoice, part: RawPart<'_>) -> Result<bool> {
        let RawPart { geometry, raw } = part;
        let Self { scratch, best: stored, .. } = self;
        scratch.tier_transform = choice.tier_transform;
        scratch.bin_choice = choice.bin_choice.clone();
        let whole = [geometry.end()];
        let previous_geometry = if choice.is_whole { geometry.in_blocks(&whole) } else { *geometry };
        let is_encoded = !raw.is_empty()
            && choice.candidate.encoder.encode(RawPart { geometry: &previous_geometry, raw }, stored, scratch)?;
        Ok(is_encoded && saves_enough(stored.len(), raw.len()) && !self.is_short(geometry))
    }

    /// Finds the cheapest encoding of a part within the limit, with several blocks or as one block,
    /// and leaves the stored bytes in `self.best`. If no encoding is within the limit, `self.best`
    /// is unchanged.
    fn best_choice(&mut self, part: RawPart<'_>, is_string: bool, limit: Limit<'_>) -> Result<Option<ValueChoice>> {
        let RawPart { geometry, raw } = part;
        let found = self.cheapest(part, self.profile.candidates(is_string, geometry.is_in_blocks()), limit)?;
        let is_short = found.is_some() && self.is_short(geometry);
        let whole = [geometry.end()];
        let whole = geometry.in_blocks(&whole);
        let candidates = match geometry.is_in_blocks() {
            true if is_short && self.may_be_whole(geometry) => self.profile.candidates(is_string, false),
            true if !is_short => self.profile.candidates_for_whole(is_string),
            _ => &[],
        };
        let max_cost = match &found {
            Some(found) => found.candidate.cost(self.best.len()),
            None => limit.max_cost.min(100 * u64_of(raw.len())),
        };
        let skip_margin_divisor = (!is_short).then_some(WHOLE_SKIP_MARGIN_DIVISOR);
        let margin = if is_string { 0 } else { max_cost / WHOLE_MIN_SAVING_DIVISOR };
        let limit = Limit { max_cost: max_cost - margin, previous: None, skip_margin_divisor };
        let whole_choice = self.cheapest(RawPart { geometry: &whole, raw }, candidates, limit)?;
        Ok(whole_choice.map(|choice| ValueChoice { is_whole: true, ..choice }).or(found))
    }

    /// Finds the cheapest candidate within the limit and leaves the stored bytes in `self.best`. If
    /// no candidate is within the limit, `self.best` is unchanged.
    fn cheapest(&mut self, part: RawPart<'_>, candidates: Candidates, limit: Limit<'_>) -> Result<Option<ValueChoice>> {
        let RawPart { geometry, raw } = part;
        if raw.is_empty() || candidates.is_empty() {
            return Ok(None);
        }
        let Self { scratch, candidate: stored, best, .. } = self;
        let search = scratch.search;
        let may_use = |candidate: &&'static WeightedEncoder| {
            Technique::of_encoding(candidate.encoder.id(), geometry.element_bytes)
                .all(|technique| search.has(technique))
        };
        let candidates = candidates.iter().filter(may_use);
        let mut sampled = SampledPart::new(part, std::mem::take(&mut scratch.sample));
        (scratch.tier_transform, scratch.bin_choice) = (None, None);
        let mut estimates: Vec<(u64, &'static WeightedEncoder)> = Vec::new();
        for candidate in candidates {
            let bytes = match search.is_exhaustive {
                true => None,
                false => candidate.encoder.estimate(&mut sampled, scratch),
            };
            // candidates without an estimate come first and are always tried
            estimates.push((candidate.cost(bytes.unwrap_or(0)), candidate));
        }
        estimates.sort_by_key(|(estimate, _)| *estimate);
        let tier_transform = scratch.tier_transform;
        // whether the previous choice would be tried first again; if so, it is confirmed
        let is_reusable = |previous: &ValueChoice| {
            let is_first =
                estimates.first().is_some_and(|(_, first)| first.encoder.id() == previous.candidate.encoder.id());
            let is_same_choice = match &previous.bin_choice {
                Some(previous) => scratch.bin_choice.as_ref().is_some_and(|found| found.is_similar(previous)),
                None => tier_transform == previous.tier_transform,
            };
            is_first && !previous.is_whole && is_same_choice
        };
        if limit.previous.is_some_and(is_reusable) {
            estimates.clear();
        }
        let (mut min_cost, mut found) = (limit.max_cost, None);
        for (estimate, candidate) in estimates {
            let is_above = |divisor: u64| estimate - estimate / divisor >= min_cost;
            let is_too_expensive = found.is_some() && is_above(candidate.skip_margin_divisor);
            if is_too_expensive || limit.skip_margin_divisor.is_some_and(is_above) {
                continue;
            }
            if !search.is_exhaustive
                && let Some(bytes) = candidate.encoder.estimate_by_encoding(&mut sampled, scratch)?
            {
                let estimate = candidate.cost(bytes);
                if estimate - estimate / ENCODED_SKIP_MARGIN_DIVISOR >= min_cost {
                    continue;
                }
            }
            scratch.last_bin_choice = None;
            if !candidate.encoder.encode(part, stored, scratch)? {
                continue;
            }
            let cost = candidate.cost(stored.len());
            if saves_enough(stored.len(), raw.len()) && cost < min_cost {
                min_cost = cost;
                let cost = cost as f64 / raw.len() as f64; // `raw` is not empty
                let bin_choice = scratch.last_bin_choice.take();
                found = Some(ValueChoice {
                    candidate,
                    is_whole: false,
                    tier_transform,
                    bin_choice,
                    cost,
                    is_confirmed: false,
                });
                std::mem::swap(stored, best);
            }
        }
        scratch.sample = sampled.sample;
        Ok(found)
    }

    /// Decodes `self.best` and compares it with `raw`.
    pub(crate) fn compare(&mut self, encoding: Encoding, RawPart { geometry, raw }: RawPart<'_>) -> Result<()> {
        let Some(Check { scratch, decoded }) = &mut self.check else { return Ok(()) };
        let zstd_dictionary = self.scratch.zstd_dictionary.as_ref().map(|zstd_dictionary| &*zstd_dictionary.decoding);
        let spec = PartSpec::new(geometry.element_bytes, raw.len()).with_zstd_dictionary(zstd_dictionary);
        decoded.resize(raw.len(), 0);
        let checked = encoding.parse(spec, Body::whole(&self.best), &(0..self.best.len())).and_then(|part| {
            part.check()?;
            part.decode(&(0..raw.len() / geometry.element_bytes), decoded, scratch) // elements of at least 1 byte
        });
        let reason = match checked {
            Ok(_) if decoded == raw => return Ok(()),
            Ok(_) => "the values differ".to_owned(),
            Err(error) if error.kind() == ErrorKind::Corrupt => error.to_string(),
            Err(error) => return Err(error),
        };
        let message = format!(
            "a chunk encoded as {} does not decode to the original values, so it was not written ({reason})",
            encoding.name()
        );
        Err(Error::internal(message))
    }
}

/// Returns whether an encoding saves more than 5 %. Otherwise, the part is stored raw.
pub(crate) fn saves_enough(stored_bytes: usize, raw_bytes: usize) -> bool {
    stored_bytes < raw_bytes - raw_bytes / 20
}

/// Pads `body` to a multiple of 64 bytes, where the next part begins.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(HEADER_BYTES), 0);
}

fn field(length: usize) -> Result<u32> {
    let limit = limits::CHUNK_BYTES;
    let field = u32::try_from(length).ok().filter(|&bytes| bytes <= limit);
    field.ok_or_else(|| {
        let message = format!("a chunk would take {length} bytes, but the format allows {limit}; split the sample");
        Error::over_limit(message)
    })
}
