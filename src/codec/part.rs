//! Chunks to parts: finds the parts of a chunk's body and decodes them.

use super::{Codec, DecodeScratch, PartSpec, codec};
use crate::format::chunk::{ChunkHead, Part, PartTable};
use crate::format::content::{Content, validity_bytes};
use crate::format::schema::Layout;
use crate::le::{FILE_ORDER_IS_NATIVE, swap_to_native, u32_in};
use crate::pod::AlignedBytes;
use crate::{Error, Result};
use std::ops::Range;

/// Where a part's decoded bytes are.
#[derive(Clone, Debug)]
enum Place {
    Absent,
    /// In the body, as stored.
    Body(Range<usize>),
    /// In the decoder's own buffer for this part.
    Buffer,
}

/// Decodes chunks, one after the other, in memory that it reuses.
pub(crate) struct ChunkDecoder {
    scratch: DecodeScratch,
    places: [Place; 3],
    buffers: [AlignedBytes; 3],
    sample_count: usize,
}

const VALIDITY: usize = 0;
const SHAPE: usize = 1;
const VALUES: usize = 2;

impl ChunkDecoder {
    pub(crate) fn new() -> Self {
        Self {
            scratch: DecodeScratch::default(),
            places: [Place::Absent, Place::Absent, Place::Absent],
            buffers: Default::default(),
            sample_count: 0,
        }
    }

    /// Decodes the parts of `body`: and chapter 5. What the parts mean is not checked.
    pub(crate) fn load(&mut self, layout: &Layout, head: &ChunkHead, body: &[u8]) -> Result<()> {
        self.sample_count = usize::try_from(head.entry.sample_count).unwrap_or(0); // at most 2^24
        let n = self.sample_count;
        let parts = parts(layout, head, body)?;
        let ranges = if head.entry.has_parts() {
            parts.ranges().ok_or_else(|| Error::corrupt("R-4.4", "parts outside the chunk"))?
        } else {
            [0..0, 0..0, 0..body.len()]
        };
        let [validity, shape, values] = ranges;
        let validity_due = if parts.validity.is_absent() { 0 } else { validity_bytes(n) };
        self.part::<VALIDITY>(parts.validity, 1, validity_due, validity, body)?;
        let shape_due = n.checked_mul(layout.shape_bytes()).ok_or_else(wrong_length)?;
        self.part::<SHAPE>(parts.shape, 4, shape_due, shape, body)?;
        let count = if layout.is_ragged() { self.last_end(body)? } else { n };
        let values_due = count.checked_mul(layout.inner_bytes).ok_or_else(wrong_length)?;
        self.part::<VALUES>(parts.values, layout.element_bytes, values_due, values, body)
    }

    /// The last of `ends`: the counts of all samples of the chunk.
    fn last_end(&self, body: &[u8]) -> Result<usize> {
        let last = self.sample_count.checked_sub(1).ok_or_else(wrong_length)?;
        let end = u32_in(self.bytes::<SHAPE>(body), last).ok_or_else(wrong_length)?;
        usize::try_from(end).map_err(|_| wrong_length())
    }

    fn part<const PART: usize>(
        &mut self,
        part: Part,
        element_bytes: usize,
        due: usize,
        range: Range<usize>,
        body: &[u8],
    ) -> Result<()> {
        let raw_bytes = usize::try_from(part.raw_bytes).map_err(|_| wrong_length())?;
        if raw_bytes != due {
            return Err(wrong_length());
        }
        let stored = body.get(range.clone()).ok_or_else(wrong_length)?;
        let codec = codec(part.encoding)?;
        let spec = PartSpec { element_bytes, raw_bytes };
        self.places[PART] = if raw_bytes == 0 {
            check_empty(codec, stored)?;
            Place::Absent
        } else {
            codec.check(spec, stored)?;
            if codec.is_identity() && (PART != VALUES || FILE_ORDER_IS_NATIVE) {
                Place::Body(range)
            } else {
                let buffer = &mut self.buffers[PART]; // in bounds: PART is one of the constants above
                buffer.resize(raw_bytes);
                codec.decode(spec, stored, buffer.as_mut_slice(), &mut self.scratch)?;
                if PART == VALUES {
                    swap_to_native(element_bytes, buffer.as_mut_slice());
                }
                Place::Buffer
            }
        };
        Ok(())
    }

    fn bytes<'a, const PART: usize>(&'a self, body: &'a [u8]) -> &'a [u8] {
        match &self.places[PART] {
            Place::Absent => &[],
            Place::Body(range) => body.get(range.clone()).unwrap_or(&[]), // the body that was loaded
            Place::Buffer => self.buffers[PART].as_slice(),
        }
    }

    /// The parts decoded last; `body` is the one that was given to [`ChunkDecoder::load`].
    pub(crate) fn content<'a>(&'a self, body: &'a [u8]) -> Content<'a> {
        let validity = match self.places[VALIDITY] {
            Place::Absent => None,
            _ => Some(self.bytes::<VALIDITY>(body)),
        };
        Content {
            sample_count: self.sample_count,
            validity,
            shape: self.bytes::<SHAPE>(body),
            values: self.bytes::<VALUES>(body),
        }
    }
}

///
fn check_empty(codec: &dyn Codec, stored: &[u8]) -> Result<()> {
    if stored.is_empty() && codec.id() == 0 {
        return Ok(());
    }
    let message = "a part without decoded bytes has stored ones, or is not raw";
    Err(Error::corrupt("R-5.2", message))
}

fn wrong_length() -> Error {
    Error::corrupt("R-4.5", "a part of the chunk does not have the length its samples need")
}

/// The parts of a body, which are there exactly as the column allows.
pub(crate) fn parts(layout: &Layout, head: &ChunkHead, body: &[u8]) -> Result<PartTable> {
    if !head.entry.has_parts() {
        if layout.is_ragged() {
            return Err(Error::corrupt("R-4.3", "a chunk of a ragged column has no table of parts"));
        }
        return Ok(PartTable::values_only(&head.entry, head.raw_bytes));
    }
    let parts = PartTable::parse(body, head)?;
    if !parts.shape.is_absent() && !layout.is_ragged() {
        return Err(Error::corrupt("R-4.4", "a chunk of a fixed column has a shape part"));
    }
    if parts.validity.is_absent() && !layout.is_ragged() {
        return Err(Error::corrupt("R-4.3", "a chunk has a table of parts and does not need it"));
    }
    if !parts.validity.is_absent() && !layout.nullable {
        return Err(Error::corrupt("R-4.6", "a chunk of a column that is not nullable has nulls"));
    }
    Ok(parts)
}
