//! Finds the parts of a chunk in its body, and decodes them.
//!
//! The part table of a body is checked against the column and the header of the chunk before any
//! part is trusted. Validity and shape are decoded when a chunk is opened, because the length of
//! the values follows from them. The values are decoded on request, completely or only a range of
//! them. Stored bytes that need no decoding are used in place.
//!
//! A decoder reuses its memory for each chunk. Callers pass the body to each call, and the decoder
//! never stores it, so the body can lie in a buffer that is reused.

use crate::bytes::le::{FILE_ORDER_IS_NATIVE, swap_to_native, u32_in, u64_of};
use crate::bytes::pod::AlignedBytes;
use crate::codec::{
    RAW,
    blocked::{Encoding, StoredBlock, StoredPart},
    encoding,
    part::{Body, PartSpec, Tables},
    scratch::DecodeScratch,
    zstandard::ZstdDictionary,
};
use crate::format::{
    chunk::{ChunkEntry, ChunkHeader, Part, PartTable},
    content::{self, Content, validity_bytes},
    schema::Layout,
};
use crate::{Error, Result, limits};
use std::ops::Range;
use std::sync::Arc;

/// A stored chunk, and the properties of its column that decoding needs.
#[derive(Clone, Copy)]
pub(crate) struct StoredChunk<'a> {
    pub layout: &'a Layout,
    pub tables: &'a dyn Tables,
    pub header: &'a ChunkHeader,
    pub body: Body<'a>,
}

impl StoredChunk<'_> {
    pub(crate) fn parts(&self) -> Result<PartTable> {
        parts(self.layout, self.header, self.body.start())
    }

    /// Returns the ranges of validity, shape and values in the body; `parts` is the part table of
    /// the chunk.
    pub(crate) fn ranges(&self, parts: &PartTable) -> Result<[Range<usize>; 3]> {
        ranges(self.header, parts)
    }

    /// Checks that the column has the tables that the parts refer to.
    pub(crate) fn check_tables(&self, parts: &PartTable) -> Result<()> {
        let all = [parts.validity, parts.shape, parts.values];
        for (part, range) in all.into_iter().zip(self.ranges(parts)?) {
            let encoding = encoding(part.encoding)?;
            if encoding.needs_table()
                && part.raw_bytes > 0
                && let Some(table) = encoding.table(self.body.start().get(range.start..).ok_or_else(outside)?)
            {
                self.tables.zstd_dictionary(table)?;
            }
        }
        Ok(())
    }
}

fn ranges(header: &ChunkHeader, parts: &PartTable) -> Result<[Range<usize>; 3]> {
    if header.entry.has_parts() {
        return parts.ranges().ok_or_else(outside);
    }
    // a chunk longer than the address space cannot have been read
    Ok([0..0, 0..0, 0..usize::try_from(header.entry.stored_bytes).unwrap_or(usize::MAX)])
}

/// Checks the parts of a chunk as [`parts`] does, and returns its values, which must be divided
/// into blocks.
pub(crate) fn values_in_blocks<'a>(layout: &Layout, header: &ChunkHeader, body: Body<'a>) -> Result<StoredPart<'a>> {
    let table = parts(layout, header, body.start())?;
    let [.., range] = ranges(header, &table)?;
    let raw_bytes = usize::try_from(table.values.raw_bytes).map_err(|_| outside())?;
    let encoding = encoding(table.values.encoding)?;
    if !encoding.is_in_blocks() {
        return Err(outside());
    }
    encoding.parse(PartSpec::new(layout.element_bytes, raw_bytes), body, &range)
}

/// Parses the part table of a body, and checks that the column allows its parts (R-4.3, R-4.6,
///
pub(crate) fn parts(layout: &Layout, header: &ChunkHeader, body: &[u8]) -> Result<PartTable> {
    if !header.entry.has_parts() {
        if layout.has_shape() {
            return Err(Error::corrupt("R-4.3", "a chunk of a ragged or nested column has no part table"));
        }
        let ChunkEntry { stored_bytes, encoding, .. } = header.entry;
        return Ok(PartTable::values_only(Part { stored_bytes, raw_bytes: header.raw_bytes, encoding }));
    }
    let parts = PartTable::parse(body, header.entry.stored_bytes, header.entry.encoding, header.raw_bytes)?;
    if !parts.shape.is_absent() && !layout.has_shape() {
        return Err(Error::corrupt("R-4.4", "a chunk of a fixed column has a shape part"));
    }
    if parts.validity.is_absent() && !layout.has_shape() {
        return Err(Error::corrupt("R-4.3", "a chunk has a part table that it does not need"));
    }
    if !parts.validity.is_absent() && !layout.may_have_nulls() {
        return Err(Error::corrupt("R-4.6", "a chunk of a column that is not nullable has nulls"));
    }
    if layout.is_nested() {
        check_validity_and_shape(&parts)?;
    }
    Ok(parts)
}

/// Checks for validity and shape of a nested column.
fn check_validity_and_shape(parts: &PartTable) -> Result<()> {
    // no overflow: below 2^33
    let bytes = u64::from(parts.validity.raw_bytes) + u64::from(parts.shape.raw_bytes);
    if bytes <= u64::from(limits::VALIDITY_AND_SHAPE_BYTES) {
        return Ok(());
    }
    let message = format!(
        "validity and shape of a chunk have {bytes} bytes in total, but at most {} bytes are allowed",
        limits::VALIDITY_AND_SHAPE_BYTES
    );
    Err(Error::corrupt("R-4.12", message))
}

fn outside() -> Error {
    Error::internal("the parts of a checked chunk lie outside it")
}

/// Where the bytes of a part of the current chunk are, and whether they are decoded.
enum PartBytes {
    Absent,
    /// The decoded bytes are this range of the body.
    Stored(EncodedPart, Range<usize>),
    Encoded(EncodedPart),
    /// The decoded bytes are in the decoder's buffer for this part.
    Decoded,
}

struct EncodedPart {
    encoding: Encoding,
    element_bytes: usize,
    raw_bytes: usize,
    zstd_dictionary: Option<Arc<ZstdDictionary>>,
    /// The range of the stored bytes in the body.
    range: Range<usize>,
}

impl EncodedPart {
    fn spec(&self) -> PartSpec<'_> {
        PartSpec::new(self.element_bytes, self.raw_bytes).with_zstd_dictionary(self.zstd_dictionary.as_deref())
    }

    fn stored<'a>(&'a self, body: Body<'a>) -> Result<StoredPart<'a>> {
        self.encoding.parse(self.spec(), body, &self.range)
    }

    /// Converts a range of decoded bytes to a range of elements.
    fn elements(&self, bytes: &Range<usize>) -> Range<usize> {
        // the divisor is at least 1
        bytes.start / self.element_bytes..bytes.end / self.element_bytes
    }
}

/// Decodes chunks one after another, reusing its memory.
pub(crate) struct ChunkDecoder {
    scratch: DecodeScratch,
    parts: [PartBytes; 3],
    buffers: [AlignedBytes; 3],
    sample_count: usize,
    /// The number of samples whose shapes are decoded; in a nested column, all of them.
    shape_count: usize,
}

/// The facts about a chunk that its header does not contain.
pub(crate) struct SideFacts {
    /// The encodings of validity and shape, if they are present.
    pub encodings: [Option<u16>; 2],
    pub null_count: u64,
}

impl SideFacts {
    fn new(parts: &PartTable, null_count: usize) -> Self {
        let encoding = |part: Part| (!part.is_absent()).then_some(part.encoding);
        Self { encodings: [parts.validity, parts.shape].map(encoding), null_count: u64_of(null_count) }
    }
}

const VALIDITY: usize = 0;
const SHAPE: usize = 1;
const VALUES: usize = 2;

impl ChunkDecoder {
    pub(crate) fn new() -> Self {
        Self {
            scratch: DecodeScratch::default(),
            parts: [PartBytes::Absent, PartBytes::Absent, PartBytes::Absent],
            buffers: Default::default(),
            sample_count: 0,
            shape_count: 0,
        }
    }

    /// Checks a chunk: and chapter 5. A part that stores only one element,
    /// because all its elements are equal, is not expanded. Otherwise, a file of a few bytes could
    /// claim 4 GiB of elements, or millions of empty samples.
    ///
    /// Cost: validity and shape of a nested column are always expanded, because the levels depend
    /// on each other. Even for a chunk of a few hundred bytes, this can mean expanding 64 MiB, and
    /// checking 2^24 items without elements.
    pub(crate) fn check(&mut self, chunk: &StoredChunk<'_>) -> Result<SideFacts> {
        let StoredChunk { layout, header, body, .. } = *chunk;
        let table = self.open_parts(chunk, true)?;
        let widths = [1, 4, layout.element_bytes];
        let parts = [table.validity, table.shape, table.values].into_iter().zip(chunk.ranges(&table)?).zip(widths);
        for ((part, range), element_bytes) in parts.filter(|((part, _), _)| part.raw_bytes > 0) {
            let encoding = encoding(part.encoding)?;
            if !encoding.is_in_blocks() {
                continue;
            }
            let raw_bytes = usize::try_from(part.raw_bytes).map_err(|_| wrong_length())?;
            let part = encoding.parse(PartSpec::new(element_bytes, raw_bytes), body, &range)?;
            part.check().and_then(|()| part.check_crcs())?;
        }
        let element = self.constant::<VALUES>(body)?;
        if element.is_none() {
            self.decode_values(body)?;
        }
        if header.entry.has_parts() && !table.padding_is_zero(body.start()) {
            return Err(Error::corrupt("R-4.4", "the bytes between the parts of the chunk are not zero"));
        }
        let content = self.content(body);
        let items = content.check_lists(layout)?;
        let shape_count = if layout.is_nested() { items.sample_count } else { self.shape_count };
        let shapes = Content { sample_count: shape_count, ..items };
        shapes.check_shapes(layout)?;
        match element {
            Some(element) => items.check_constant(layout, element)?,
            None => shapes.check_values(layout)?,
        }
        Ok(SideFacts::new(&table, content.null_sample_count()))
    }

    /// Decodes the parts of a chunk: and chapter 5. The meaning of the decoded bytes
    /// is not checked.
    pub(crate) fn load(&mut self, chunk: &StoredChunk<'_>) -> Result<()> {
        self.open(chunk)?;
        self.decode_values(chunk.body)
    }

    /// Decodes validity and shape of a chunk, and finds the values. Call
    /// [`ChunkDecoder::decode_values`] or [`ChunkDecoder::decode_range`] to decode the values.
    /// Values that are stored raw need neither.
    pub(crate) fn open(&mut self, chunk: &StoredChunk<'_>) -> Result<()> {
        self.open_parts(chunk, false).map(|_| ())
    }

    /// Like [`ChunkDecoder::open`], but if `brief` and all integers of the shape are equal, decodes
    /// the shapes of only two samples. Equal ends mean that all samples after the first are empty,
    /// so the second sample stands for all of them.
    fn open_parts(&mut self, chunk: &StoredChunk<'_>, brief: bool) -> Result<PartTable> {
        let StoredChunk { layout, tables, header, body } = *chunk;
        self.sample_count = usize::try_from(header.entry.sample_count).unwrap_or(0); // at most 2^24
        let n = self.sample_count;
        let parts = chunk.parts()?;
        let [validity, shape, values] = chunk.ranges(&parts)?;
        let [expected_validity, expected_shape] = self.expected_validity_and_shape(layout, &parts)?;
        check_raw_bytes("validity", parts.validity, expected_validity, n)?;
        self.parts[VALIDITY] = locate(parts.validity, tables, 1, true, expected_validity, validity, body)?;
        self.decode::<VALIDITY>(body)?;
        check_raw_bytes("shape", parts.shape, expected_shape, n)?;
        self.parts[SHAPE] = locate(parts.shape, tables, 4, true, expected_shape, shape, body)?;
        let all_same = brief && !layout.is_nested() && self.constant::<SHAPE>(body)?.is_some();
        self.shape_count = if all_same { n.min(2) } else { n };
        if let PartBytes::Encoded(shape) = &mut self.parts[SHAPE]
            && all_same
        {
            shape.raw_bytes = self.shape_count * layout.shape_bytes(); // at most `expected_shape`
        }
        self.decode::<SHAPE>(body)?;
        self.parts[VALUES] = PartBytes::Absent;
        let expected_values = self.value_bytes(layout, body)?;
        check_raw_bytes("values", parts.values, expected_values, n)?;
        self.parts[VALUES] =
            locate(parts.values, tables, layout.element_bytes, FILE_ORDER_IS_NATIVE, expected_values, values, body)?;
        Ok(parts)
    }

    /// Returns the decoded lengths that validity and shape must have. In a nested column, these
    /// depend on the contents of the shape, so the lengths in the part table are returned if they
    /// are possible.
    fn expected_validity_and_shape(&self, layout: &Layout, parts: &PartTable) -> Result<[usize; 2]> {
        if !layout.is_nested() {
            let validity = if parts.validity.is_absent() { 0 } else { validity_bytes(self.sample_count) };
            let shape = self.sample_count.checked_mul(layout.shape_bytes()).ok_or_else(wrong_length)?;
            return Ok([validity, shape]);
        }
        if !parts.shape.raw_bytes.is_multiple_of(4) {
            let message = format!("the shape part has {} bytes, expected a multiple of 4", parts.shape.raw_bytes);
            return Err(Error::corrupt("R-4.5", message));
        }
        let [validity, shape] = [parts.validity, parts.shape].map(|part| usize::try_from(part.raw_bytes));
        Ok([validity.map_err(|_| wrong_length())?, shape.map_err(|_| wrong_length())?])
    }

    /// Returns the decoded length that the values must have. In a nested column, also
    /// checks for validity and shape.
    fn value_bytes(&self, layout: &Layout, body: Body<'_>) -> Result<usize> {
        let count = if layout.is_nested() {
            let items = self.content(body).items(layout, |_| Ok(()))?;
            items.count_sum(layout)?
        } else if layout.is_ragged() {
            // the last of `ends` is the sum of the counts of all samples
            let last = self.shape_count.checked_sub(1).ok_or_else(wrong_length)?;
            let end = u32_in(self.bytes::<SHAPE>(body), last).ok_or_else(wrong_length)?;
            usize::try_from(end).map_err(|_| wrong_length())?
        } else {
            self.sample_count
        };
        count.checked_mul(layout.inner_bytes).ok_or_else(wrong_length)
    }

    /// Returns the value that all elements of a part have, if its encoding stores only that value.
    fn constant<'a, const PART: usize>(&self, body: Body<'a>) -> Result<Option<&'a [u8]>> {
        let PartBytes::Encoded(part) = &self.parts[PART] else { return Ok(None) };
        if !part.encoding.is_constant() {
            return Ok(None);
        }
        part.stored(body)?.check()?;
        Ok(body.get(part.range.clone()))
    }

    /// Returns the encodings of validity and shape, and the number of nulls, without decoding the
    /// values. If the chunk has no part table and needs no table of the column, its body is not
    /// used.
    pub(crate) fn side_facts(&mut self, chunk: &StoredChunk<'_>) -> Result<SideFacts> {
        let parts = chunk.parts()?;
        chunk.check_tables(&parts)?;
        if parts.validity.is_absent() {
            return Ok(SideFacts::new(&parts, 0));
        }
        self.open(chunk)?;
        Ok(SideFacts::new(&parts, self.content(chunk.body).null_sample_count()))
    }

    /// Returns the decoded length of the values, if they have not been decoded yet.
    pub(crate) fn encoded_bytes(&self) -> Option<usize> {
        match &self.parts[VALUES] {
            PartBytes::Encoded(values) => Some(values.raw_bytes),
            _ => None,
        }
    }

    /// If `bytes` covers all values and they have not been decoded, runs the checks that bound
    /// their length. Call this before memory is allocated for the values. `body` must be the body
    /// that was passed to [`ChunkDecoder::open`].
    ///
    /// Values that are divided into blocks are left to [`ChunkDecoder::decode_range`]: the
    /// checksums of their blocks have not been checked yet, and nothing in a block is trusted
    /// before that.
    pub(crate) fn check_length(&self, body: Body<'_>, bytes: &Range<usize>) -> Result<()> {
        match &self.parts[VALUES] {
            PartBytes::Encoded(part) if !part.encoding.is_in_blocks() && *bytes == (0..part.raw_bytes) => {
                part.stored(body)?.check()
            }
            _ => Ok(()),
        }
    }

    /// Decodes the values, if they have not been decoded yet. `body` must be the body that was
    /// passed to [`ChunkDecoder::open`].
    pub(crate) fn decode_values(&mut self, body: Body<'_>) -> Result<()> {
        self.decode::<VALUES>(body)
    }

    /// Decodes a byte range of the values to `out`, which must have the same length. The range must
    /// consist of whole elements. `body` must be the body that was passed to
    /// [`ChunkDecoder::open`]. If the values are divided into blocks, calls `check` before any
    /// block is decoded.
    ///
    /// Returns `false` if the encoding cannot decode a range without the rest, or if the values
    /// have already been decoded. The contents of `out` may have changed even then.
    pub(crate) fn decode_range(
        &mut self,
        body: Body<'_>,
        bytes: &Range<usize>,
        out: &mut [u8],
        check: impl FnOnce(&StoredPart<'_>, &Content<'_>) -> Result<()>,
    ) -> Result<bool> {
        let PartBytes::Encoded(part) = &self.parts[VALUES] else { return Ok(false) };
        if bytes.end > part.raw_bytes || bytes.len() != out.len() {
            return Err(wrong_length());
        }
        let (stored, elements) = (part.stored(body)?, part.elements(bytes));
        if part.encoding.is_in_blocks() {
            check(&stored, &self.content(body))?;
        }
        if *bytes == (0..part.raw_bytes) {
            stored.check()?;
        }
        if !elements.is_empty() && !stored.decode(&elements, out, &mut self.scratch)? {
            return Ok(false);
        }
        swap_to_native(part.element_bytes, out);
        Ok(true)
    }

    /// Calls `visit` with each block that overlaps a byte range of the values, and with the range
    /// of elements in the overlap. The byte range must consist of whole elements. Returns `false`
    /// if devices do not decode the encoding, or if the values have already been decoded. For
    /// `body` and `check`, see [`ChunkDecoder::decode_range`].
    pub(crate) fn visit_blocks(
        &self,
        body: Body<'_>,
        bytes: &Range<usize>,
        check: impl FnOnce(&StoredPart<'_>, &Content<'_>) -> Result<()>,
        visit: &mut dyn FnMut(StoredBlock<'_>, Range<usize>) -> Result<()>,
    ) -> Result<bool> {
        let PartBytes::Encoded(part) = &self.parts[VALUES] else { return Ok(false) };
        if bytes.end > part.raw_bytes {
            return Err(wrong_length());
        }
        if !part.encoding.is_device_decodable() {
            return Ok(false);
        }
        let stored = part.stored(body)?;
        if part.encoding.is_in_blocks() {
            check(&stored, &self.content(body))?;
        }
        match bytes.is_empty() {
            true => Ok(true),
            false => stored.visit_blocks(&part.elements(bytes), visit).map(|()| true),
        }
    }

    /// Returns the stored values, if they are divided into blocks and have not been decoded. `body`
    /// must be the body that was passed to [`ChunkDecoder::open`].
    pub(crate) fn blocks<'a>(&'a self, body: Body<'a>) -> Result<Option<StoredPart<'a>>> {
        let (PartBytes::Encoded(part) | PartBytes::Stored(part, _)) = &self.parts[VALUES] else { return Ok(None) };
        part.encoding.is_in_blocks().then(|| part.stored(body)).transpose()
    }

    fn decode<const PART: usize>(&mut self, body: Body<'_>) -> Result<()> {
        // in bounds, here and below: PART is one of the constants above
        let PartBytes::Encoded(part) = &self.parts[PART] else { return Ok(()) };
        let stored = part.stored(body)?;
        stored.check()?;
        let buffer = &mut self.buffers[PART];
        buffer.resize(part.raw_bytes)?;
        stored.decode(&part.elements(&(0..part.raw_bytes)), buffer.as_mut_slice(), &mut self.scratch)?;
        if PART == VALUES {
            swap_to_native(part.element_bytes, buffer.as_mut_slice());
        }
        self.parts[PART] = PartBytes::Decoded;
        Ok(())
    }

    fn bytes<'a, const PART: usize>(&'a self, body: Body<'a>) -> &'a [u8] {
        match &self.parts[PART] {
            PartBytes::Absent | PartBytes::Encoded(_) => &[],
            // in bounds: `body` is the body that was opened
            PartBytes::Stored(_, range) => body.get(range.clone()).unwrap_or(&[]),
            PartBytes::Decoded => self.buffers[PART].as_slice(),
        }
    }

    /// Returns the decoded parts. The values are empty if they have not been decoded. `body` must
    /// be the body that was passed to [`ChunkDecoder::open`].
    pub(crate) fn content<'a>(&'a self, body: Body<'a>) -> Content<'a> {
        let validity = match self.parts[VALIDITY] {
            PartBytes::Absent => None,
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

/// Checks that a part decodes to `expected` bytes, which is the length for its samples.
fn check_raw_bytes(name: &str, part: Part, expected: usize, sample_count: usize) -> Result<()> {
    let (found, expected) = (u64::from(part.raw_bytes), u64_of(expected));
    if found == expected { Ok(()) } else { Err(content::wrong_length(name, found, expected, sample_count)) }
}

/// Finds the bytes of a part that decodes to `raw_bytes` bytes. If `in_place`, stored bytes that
/// need no decoding are used in place.
fn locate(
    part: Part,
    tables: &dyn Tables,
    element_bytes: usize,
    in_place: bool,
    raw_bytes: usize,
    range: Range<usize>,
    body: Body<'_>,
) -> Result<PartBytes> {
    let encoding = encoding(part.encoding)?;
    if raw_bytes == 0 {
        return match range.is_empty() && encoding.field() == RAW.field() {
            true => Ok(PartBytes::Absent),
            false => Err(Error::corrupt("R-5.2", "a part that decodes to 0 bytes has stored bytes, or is not raw")),
        };
    }
    // the part is parsed here only if it needs a table or is raw; any other part is parsed when
    // elements are decoded
    let stored = || encoding.parse(PartSpec::new(element_bytes, raw_bytes), body, &range);
    let table = if encoding.needs_table() { stored()?.table() } else { None };
    let zstd_dictionary = table.map(|table| tables.zstd_dictionary(table)).transpose()?;
    let raw = if encoding.is_identity() { Some(stored()?.raw()?) } else { None };
    // if the blocks of a raw part are read individually, it is decoded like an encoded part
    let raw = raw.filter(|_| in_place && body.get(range.clone()).is_some());
    let part = EncodedPart { encoding, element_bytes, raw_bytes, zstd_dictionary, range };
    Ok(match raw {
        Some(raw) => PartBytes::Stored(part, raw),
        None => PartBytes::Encoded(part),
    })
}

/// Returns the error for lengths that overflow, or that earlier checks exclude.
fn wrong_length() -> Error {
    Error::corrupt("R-4.5", "a part of the chunk has the wrong length for its samples")
}
