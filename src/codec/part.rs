//! Chunks to parts: finds the parts of a chunk's body and decodes them.

use super::{Codec, DecodeScratch, PartSpec, codec};
use crate::format::chunk::{ChunkEntry, ChunkHead, Part, PartTable};
use crate::format::content::{Content, validity_bytes};
use crate::format::schema::Layout;
use crate::le::{FILE_ORDER_IS_NATIVE, swap_to_native, u32_in};
use crate::pod::AlignedBytes;
use crate::{Error, Result};
use std::ops::Range;

/// Where a part's decoded bytes are.
enum Place {
    Absent,
    /// In the body, as stored.
    Body(Range<usize>),
    /// In the body, to be decoded.
    Encoded(Encoded),
    /// In the decoder's own buffer for this part.
    Buffer,
}

/// A part that was not decoded yet.
struct Encoded {
    codec: &'static dyn Codec,
    spec: PartSpec,
    /// In the body.
    range: Range<usize>,
}

/// Decodes chunks, one after the other, in memory that it reuses.
pub(crate) struct ChunkDecoder {
    scratch: DecodeScratch,
    places: [Place; 3],
    buffers: [AlignedBytes; 3],
    sample_count: usize,
    /// Samples whose shapes are decoded.
    shape_count: usize,
}

/// What a chunk's head does not say of it.
pub(crate) struct SideFacts {
    /// Encodings of validity and shape, where they are present.
    pub encodings: [Option<u16>; 2],
    pub null_count: u64,
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
            shape_count: 0,
        }
    }

    /// Checks a chunk: and chapter 5. Elements that are all equal are not expanded: a file of some bytes can say that it
    /// has 4 GiB of them, or millions of empty samples.
    pub(crate) fn check(&mut self, layout: &Layout, head: &ChunkHead, body: &[u8]) -> Result<SideFacts> {
        let table = self.open_parts(layout, head, body, true)?;
        let element = self.constant::<VALUES>(body)?;
        if element.is_none() {
            self.decode_values(body)?;
        }
        if head.entry.has_parts() && !table.padding_is_zero(body) {
            return Err(Error::corrupt("R-4.4", "the bytes between the parts of the chunk are not zero"));
        }
        let content = self.content(body);
        content.check_validity()?;
        let shapes = Content { sample_count: self.shape_count, ..content };
        shapes.check_shapes(layout)?;
        match element {
            Some(element) => content.check_constant(layout, element)?,
            None => shapes.check_values(layout)?,
        }
        Ok(SideFacts {
            null_count: content.null_count() as u64, // exact: usize has at most 64 bits
            encodings: [table.validity, table.shape].map(|part| (!part.is_absent()).then_some(part.encoding)),
        })
    }

    /// Decodes the parts of `body`: and chapter 5. What the parts mean is not checked.
    pub(crate) fn load(&mut self, layout: &Layout, head: &ChunkHead, body: &[u8]) -> Result<()> {
        self.open(layout, head, body)?;
        self.decode_values(body)
    }

    /// As [`ChunkDecoder::load`], but the values are not decoded yet, unless they are used as they are stored.
    pub(crate) fn open(&mut self, layout: &Layout, head: &ChunkHead, body: &[u8]) -> Result<()> {
        self.open_parts(layout, head, body, false).map(|_| ())
    }

    /// As [`ChunkDecoder::open`]. `brief`: of shapes that are all the same, and so of empty samples but for the first, only two are decoded.
    fn open_parts(&mut self, layout: &Layout, head: &ChunkHead, body: &[u8], brief: bool) -> Result<PartTable> {
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
        self.places[VALIDITY] = place(parts.validity, 1, true, validity_due, validity, body)?;
        self.decode::<VALIDITY>(body)?;
        let shape_due = n.checked_mul(layout.shape_bytes()).ok_or_else(wrong_length)?;
        self.places[SHAPE] = place(parts.shape, 4, true, shape_due, shape, body)?;
        let all_same = brief && self.constant::<SHAPE>(body)?.is_some();
        self.shape_count = if all_same { n.min(2) } else { n };
        if let Place::Encoded(shape) = &mut self.places[SHAPE] {
            shape.spec.raw_bytes = self.shape_count * layout.shape_bytes(); // at most `shape_due`
        }
        self.decode::<SHAPE>(body)?;
        let count = if layout.is_ragged() { self.last_end(body)? } else { n };
        let values_due = count.checked_mul(layout.inner_bytes).ok_or_else(wrong_length)?;
        self.places[VALUES] =
            place(parts.values, layout.element_bytes, FILE_ORDER_IS_NATIVE, values_due, values, body)?;
        Ok(parts)
    }

    /// The element that all of a part equal, if they are stored so.
    fn constant<'a, const PART: usize>(&self, body: &'a [u8]) -> Result<Option<&'a [u8]>> {
        let Place::Encoded(Encoded { codec, spec, range }) = &self.places[PART] else { return Ok(None) };
        let stored = body.get(range.clone()).ok_or_else(wrong_length)?;
        match codec.constant(stored) {
            Some(element) => codec.check(*spec, stored).map(|()| Some(element)),
            None => Ok(None),
        }
    }

    /// Encodings of the parts beside the values, and the number of nulls. The values are not decoded; of a chunk without parts, `body` is not looked at.
    pub(crate) fn side_facts(&mut self, layout: &Layout, head: &ChunkHead, body: &[u8]) -> Result<SideFacts> {
        let parts = parts(layout, head, body)?;
        let encoding = |part: &Part| (!part.is_absent()).then_some(part.encoding);
        let mut null_count = 0;
        if !parts.validity.is_absent() {
            self.open(layout, head, body)?;
            null_count = self.content(body).null_count() as u64; // exact: usize has at most 64 bits
        }
        Ok(SideFacts { encodings: [encoding(&parts.validity), encoding(&parts.shape)], null_count })
    }

    /// The length of the values, if they are not decoded yet.
    pub(crate) fn encoded_bytes(&self) -> Option<usize> {
        match &self.places[VALUES] {
            Place::Encoded(values) => Some(values.spec.raw_bytes),
            _ => None,
        }
    }

    /// Decodes the values, unless that was done before; `body` is the one that was given to [`ChunkDecoder::open`].
    pub(crate) fn decode_values(&mut self, body: &[u8]) -> Result<()> {
        self.decode::<VALUES>(body)
    }

    /// Decodes some bytes of the values, whole elements of them, to `out`, which is as long. `false`: their encoding cannot but all of them at once, or they are
    /// decoded already; `out` may then have been written to. `body` is the one that was given to [`ChunkDecoder::open`].
    pub(crate) fn decode_range(&mut self, body: &[u8], bytes: &Range<usize>, out: &mut [u8]) -> Result<bool> {
        let Place::Encoded(Encoded { codec, spec, range }) = &self.places[VALUES] else { return Ok(false) };
        let stored = body.get(range.clone()).ok_or_else(wrong_length)?;
        if bytes.end > spec.raw_bytes || bytes.len() != out.len() {
            return Err(wrong_length());
        }
        let elements = bytes.start / spec.element_bytes..bytes.end / spec.element_bytes; // never 0
        if *bytes == (0..spec.raw_bytes) {
            codec.check(*spec, stored)?;
            codec.decode(*spec, stored, out, &mut self.scratch)?;
        } else if !elements.is_empty() && !codec.decode_range(*spec, stored, &elements, out, &mut self.scratch)? {
            return Ok(false);
        }
        swap_to_native(spec.element_bytes, out);
        Ok(true)
    }

    /// The last of `ends`: the counts of all samples of the chunk.
    fn last_end(&self, body: &[u8]) -> Result<usize> {
        let last = self.shape_count.checked_sub(1).ok_or_else(wrong_length)?;
        let end = u32_in(self.bytes::<SHAPE>(body), last).ok_or_else(wrong_length)?;
        usize::try_from(end).map_err(|_| wrong_length())
    }

    fn decode<const PART: usize>(&mut self, body: &[u8]) -> Result<()> {
        // in bounds, here and below: PART is one of the constants above
        let Place::Encoded(Encoded { codec, spec, range }) = &self.places[PART] else { return Ok(()) };
        let stored = body.get(range.clone()).ok_or_else(wrong_length)?;
        codec.check(*spec, stored)?;
        let buffer = &mut self.buffers[PART];
        buffer.resize(spec.raw_bytes)?;
        codec.decode(*spec, stored, buffer.as_mut_slice(), &mut self.scratch)?;
        if PART == VALUES {
            swap_to_native(spec.element_bytes, buffer.as_mut_slice());
        }
        self.places[PART] = Place::Buffer;
        Ok(())
    }

    fn bytes<'a, const PART: usize>(&'a self, body: &'a [u8]) -> &'a [u8] {
        match &self.places[PART] {
            Place::Absent | Place::Encoded(_) => &[],
            Place::Body(range) => body.get(range.clone()).unwrap_or(&[]), // the body that was loaded
            Place::Buffer => self.buffers[PART].as_slice(),
        }
    }

    /// The parts decoded last, without the values if they were not decoded; `body` is the one that was given to [`ChunkDecoder::open`].
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

/// Where a part is, which must decode to `due` bytes. With `in_place`, stored bytes that need no decoding are used where they are.
fn place(
    part: Part,
    element_bytes: usize,
    in_place: bool,
    due: usize,
    range: Range<usize>,
    body: &[u8],
) -> Result<Place> {
    let raw_bytes = usize::try_from(part.raw_bytes).map_err(|_| wrong_length())?;
    if raw_bytes != due {
        return Err(wrong_length());
    }
    let stored = body.get(range.clone()).ok_or_else(wrong_length)?;
    let codec = codec(part.encoding)?;
    let spec = PartSpec { element_bytes, raw_bytes };
    if raw_bytes == 0 {
        check_empty(codec, stored)?;
        return Ok(Place::Absent);
    }
    if codec.is_identity() && in_place {
        codec.check(spec, stored)?;
        return Ok(Place::Body(range));
    }
    Ok(Place::Encoded(Encoded { codec, spec, range }))
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
        let ChunkEntry { stored_bytes, encoding, .. } = head.entry;
        return Ok(PartTable::values_only(Part { stored_bytes, raw_bytes: head.raw_bytes, encoding }));
    }
    let parts = PartTable::parse(body, head.entry.encoding, head.raw_bytes)?;
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
