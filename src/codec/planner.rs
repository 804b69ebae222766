//! Parts to chunks: picks an encoding for each part, and lays the parts out as a body.

use super::{BITSHUFFLE_ZSTD, CONSTANT, EncodeScratch, Encoder, RAW, ZSTD};
use crate::format::chunk::{ChunkEntry, ChunkHead, PART_TABLE_BYTES, PARTS, Part, PartTable};
use crate::format::region::HEAD_BYTES;
use crate::format::schema::Layout;
use crate::{Error, Result, limits};

static CLASSIC_ELEMENTS: [&dyn Encoder; 2] = [CONSTANT, BITSHUFFLE_ZSTD];
static CLASSIC_STRINGS: [&dyn Encoder; 2] = [CONSTANT, ZSTD];

/// What a writer trades for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Everything as it is: any sample is a zero-copy view of the file.
    Raw,
    /// The classic: bit-shuffle and Zstandard 9; Zstandard 9 alone for bytes and text.
    #[default]
    BitshuffleZstd,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 2] = [Self::Raw, Self::BitshuffleZstd];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::BitshuffleZstd => "bitshuffle-zstd",
        }
    }

    /// Encodings to try on a part, in this order; the first that saves enough is taken, else raw.
    fn candidates(self, is_string: bool) -> &'static [&'static dyn Encoder] {
        match (self, is_string) {
            (Self::Raw, _) => &[],
            (Self::BitshuffleZstd, false) => &CLASSIC_ELEMENTS,
            (Self::BitshuffleZstd, true) => &CLASSIC_STRINGS,
        }
    }

    /// Whether this build can write it.
    pub(crate) fn check_built(self) -> Result<()> {
        let mut candidates = [false, true].into_iter().flat_map(|string| self.candidates(string));
        candidates.try_for_each(|codec| codec.check_built())
    }
}

/// The samples of a chunk to be written, in file order.
#[derive(Debug, Default)]
pub(crate) struct RawChunk {
    pub column: usize,
    pub first_sample: u64,
    pub sample_count: u32,
    /// A bitmap, if any sample is null.
    pub validity: Option<Vec<u8>>,
    /// The shape part; empty in a fixed column.
    pub shape: Vec<u8>,
    pub values: Vec<u8>,
}

impl RawChunk {
    pub(crate) fn raw_bytes(&self) -> usize {
        let validity = self.validity.as_ref().map_or(0, Vec::len);
        validity.saturating_add(self.shape.len()).saturating_add(self.values.len())
    }
}

/// A chunk ready to be placed in the file.
#[derive(Debug)]
pub(crate) struct EncodedChunk {
    pub head: ChunkHead,
    pub body: Vec<u8>,
    /// Encodings of validity and shape, where they are present.
    pub side_encodings: [Option<u16>; 2],
}

/// Encodes chunks, one after the other, in memory that it reuses.
pub(crate) struct ChunkEncoder {
    profile: Profile,
    scratch: EncodeScratch,
    candidate: Vec<u8>,
}

impl ChunkEncoder {
    pub(crate) fn new(profile: Profile) -> Self {
        Self { profile, scratch: EncodeScratch::default(), candidate: Vec::new() }
    }

    /// Encodes a chunk of a column with this layout.
    pub(crate) fn encode(&mut self, layout: &Layout, chunk: &RawChunk) -> Result<EncodedChunk> {
        let has_parts = layout.is_ragged() || chunk.validity.is_some();
        let mut body = Vec::new();
        let mut parts = PartTable::default();
        if has_parts {
            body.resize(PART_TABLE_BYTES, 0);
            if let Some(validity) = &chunk.validity {
                parts.validity = self.part(1, false, validity, &mut body)?;
                pad(&mut body);
            }
            if layout.is_ragged() {
                parts.shape = self.part(4, false, &chunk.shape, &mut body)?;
                pad(&mut body);
            }
        }
        let is_string = layout.dtype.is_string();
        parts.values = self.part(layout.element_bytes, is_string, &chunk.values, &mut body)?;
        if has_parts && let Some(table) = body.first_chunk_mut::<PART_TABLE_BYTES>() {
            *table = parts.to_bytes();
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
                layout.is_ragged().then_some(parts.shape.encoding),
            ],
        })
    }

    /// Appends `raw` to `body`, encoded.
    fn part(&mut self, element_bytes: usize, is_string: bool, raw: &[u8], body: &mut Vec<u8>) -> Result<Part> {
        let codec = self.choose(element_bytes, is_string, raw)?;
        let stored = match codec {
            Some(_) => self.candidate.as_slice(),
            None => raw,
        };
        body.extend_from_slice(stored);
        Ok(Part {
            stored_bytes: field(stored.len())?,
            raw_bytes: field(raw.len())?,
            encoding: codec.map_or(RAW.id(), |codec| codec.id()),
        })
    }

    /// The encoding for `raw`, whose result is then in `self.candidate`; `None` for raw.
    fn choose(&mut self, element_bytes: usize, is_string: bool, raw: &[u8]) -> Result<Option<&'static dyn Encoder>> {
        if raw.is_empty() {
            return Ok(None);
        }
        for &codec in self.profile.candidates(is_string) {
            let done = codec.encode(element_bytes, raw, &mut self.candidate, &mut self.scratch)?;
            if done && saves_enough(self.candidate.len(), raw.len()) {
                return Ok(Some(codec));
            }
        }
        Ok(None)
    }
}

/// A part is kept raw where encoding would save less than 5 %: decoding would cost more than that.
fn saves_enough(stored_bytes: usize, raw_bytes: usize) -> bool {
    stored_bytes < raw_bytes - raw_bytes / 20
}

/// Parts start at multiples of 64 of a body that itself starts at one.
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
