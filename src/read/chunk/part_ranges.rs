//! Zero-copy access to chunks whose parts are all stored raw in memory.
//!
//! Samples of such chunks are borrowed or copied straight from the file. That is correct if no part
//! is encoded, if this machine has the byte order of the file, and if the lengths of the parts
//! agree with each other. Decoding would check the lengths, so they are checked here instead. Raw
//! blocks follow each other without gaps, so values in raw blocks are used in the same way; they
//! start after the block index.
//!
//! Most viewed and gathered samples take this path, so it must be short. Once a chunk is verified,
//! the check tests a single bit, and a chunk that has only values does not need a part table.

use crate::bytes::le;
use crate::codec::{Body, PartSpec, StoredPart, block_index_bytes, encoding, parts};
use crate::format::chunk::{ChunkHeader, Part};
use crate::format::content::Content;
use crate::format::region::HEADER_LEN;
use crate::open::source::slice;
use crate::read::chunk::chunk_bytes::{check_blocks, chunk_in_memory};
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::ChunkLocation;
use crate::{Error, Result};
use std::ops::Range;

/// The parts of a chunk as ranges of its body.
#[derive(Clone, Debug)]
pub(in crate::read) struct PartRanges {
    sample_count: usize,
    validity: Option<Range<usize>>,
    shape: Range<usize>,
    values: Range<usize>,
    /// The start of the stored values. If the values are divided into blocks, their block index
    /// starts here.
    stored_start: usize,
}

impl PartRanges {
    /// Returns the parts of a chunk that has only raw values.
    #[inline]
    fn values_only(location: &ChunkLocation, body: &[u8]) -> Result<Self> {
        let values = values_in(location, body, 0..body.len())?;
        Ok(Self { sample_count: location.sample_count(), validity: None, shape: 0..0, values, stored_start: 0 })
    }

    /// Returns the parts as slices of `body`, from which the ranges were computed.
    #[inline]
    pub(in crate::read) fn content<'a>(&self, body: &'a [u8]) -> Content<'a> {
        let part = |range: &Range<usize>| body.get(range.clone()).unwrap_or(&[]);
        Content {
            sample_count: self.sample_count,
            validity: self.validity.as_ref().map(part),
            shape: part(&self.shape),
            values: part(&self.values),
        }
    }

    /// Returns the offset of the values in the body.
    pub(in crate::read) fn values_start(&self) -> usize {
        self.values.start
    }
}

/// Returns the verified parts of a chunk of a file in memory; `None` if a part is encoded, or if
/// this machine does not have the byte order of the file.
#[inline]
pub(in crate::read) fn part_ranges(
    column: &ColumnInner,
    file: &[u8],
    location: &ChunkLocation,
) -> Result<Option<PartRanges>> {
    if !has_raw_values(column, location)? {
        return Ok(None);
    }
    ensure_checked(column, location)?;
    parts_of_body(column, location, body_in(file, location)?)
}

/// Returns the parts of a chunk like [`part_ranges`]; also `None` if it has parts other than
/// values.
#[inline]
pub(in crate::read) fn values_only_chunk(
    column: &ColumnInner,
    file: &[u8],
    location: &ChunkLocation,
) -> Result<Option<PartRanges>> {
    let layout = column.layout();
    if location.entry.has_parts() || layout.has_shape() || !has_raw_values(column, location)? {
        return Ok(None);
    }
    ensure_checked(column, location)?;
    let body = body_in(file, location)?;
    let parts = PartRanges::values_only(location, body)?;
    parts.content(body).check_lengths(layout).map(|()| Some(parts))
}

/// Verifies, according to the reader's policy, the blocks that contain these bytes of the values. A
/// chunk without blocks was already verified completely.
#[inline]
pub(in crate::read) fn check_raw_values(
    column: &ColumnInner,
    location: &ChunkLocation,
    parts: &PartRanges,
    body: &[u8],
    bytes: &Range<usize>,
) -> Result<()> {
    if column.is_checked(location.chunk) {
        return Ok(());
    }
    let part = stored_blocks(column, location, parts, Body::whole(body))?;
    part.map_or(Ok(()), |part| check_blocks(column, location, &part, &parts.content(body), bytes))
}

/// Returns the values as a part with blocks; `None` if they are not divided into blocks.
pub(in crate::read) fn stored_blocks<'a>(
    column: &'a ColumnInner,
    location: &ChunkLocation,
    parts: &PartRanges,
    body: Body<'a>,
) -> Result<Option<StoredPart<'a>>> {
    let encoding = encoding(location.entry.encoding)?;
    if !encoding.is_in_blocks() {
        return Ok(None);
    }
    let spec = PartSpec::new(column.layout().element_bytes, parts.values.len());
    encoding.parse(spec, body, &(parts.stored_start..parts.values.end)).map(Some)
}

/// Returns whether the values of a chunk are stored raw, in the byte order of this machine.
#[inline]
fn has_raw_values(column: &ColumnInner, location: &ChunkLocation) -> Result<bool> {
    let in_order = le::FILE_ORDER_IS_NATIVE || column.layout().element_bytes == 1;
    Ok(in_order && is_raw(location.entry.encoding)?)
}

/// Verifies a chunk of a file in memory according to the reader's policy, unless it was verified
/// before.
#[inline]
fn ensure_checked(column: &ColumnInner, location: &ChunkLocation) -> Result<()> {
    if column.is_open(location.chunk) { Ok(()) } else { check_chunk(column, location) }
}

#[cold]
fn check_chunk(column: &ColumnInner, location: &ChunkLocation) -> Result<()> {
    if let Some(file) = column.file.bytes().memory() {
        chunk_in_memory(column, location, file)?;
    }
    Ok(())
}

/// Returns the parts of a chunk whose values are raw; `None` if another part is encoded.
#[inline]
fn parts_of_body(column: &ColumnInner, location: &ChunkLocation, body: &[u8]) -> Result<Option<PartRanges>> {
    let (entry, layout) = (&location.entry, column.layout());
    let stored = if entry.has_parts() || layout.has_shape() {
        match parts_of_table(column, location, body)? {
            Some(stored) => stored,
            None => return Ok(None),
        }
    } else {
        PartRanges::values_only(location, body)?
    };
    stored.content(body).check_lengths(layout).map(|()| Some(stored))
}

fn parts_of_table(column: &ColumnInner, location: &ChunkLocation, body: &[u8]) -> Result<Option<PartRanges>> {
    // only values can be divided into blocks; decoding refuses any other part with blocks
    let is_raw = |part: &Part| {
        let encoding = encoding(part.encoding)?;
        Ok::<bool, Error>(part.is_absent() || encoding.is_identity() && !encoding.is_in_blocks())
    };
    let header = ChunkHeader::from_entry(column.index().number, location.entry, body);
    let parts = parts(column.layout(), &header, body)?;
    if !is_raw(&parts.validity)? || !is_raw(&parts.shape)? {
        return Ok(None);
    }
    let Some([validity, shape, values]) = parts.ranges() else { return Ok(None) };
    if [parts.validity, parts.shape].iter().any(|part| part.stored_bytes != part.raw_bytes) {
        return Err(wrong_length());
    }
    let stored_start = values.start;
    let values = values_in(location, body, values)?;
    if u32::try_from(values.len()) != Ok(parts.values.raw_bytes) {
        return Err(wrong_length());
    }
    let validity = (!parts.validity.is_absent()).then_some(validity);
    Ok(Some(PartRanges { sample_count: location.sample_count(), validity, shape, values, stored_start }))
}

/// Returns whether parts of this encoding are stored raw.
#[inline]
fn is_raw(field: u16) -> Result<bool> {
    Ok(encoding(field)?.is_identity())
}

/// Returns the range of the values in a body. The stored values are in `range`; if they are divided
/// into blocks, the block index comes first.
#[inline]
fn values_in(location: &ChunkLocation, body: &[u8], range: Range<usize>) -> Result<Range<usize>> {
    if !encoding(location.entry.encoding)?.is_in_blocks() {
        return Ok(range);
    }
    let block_index =
        body.get(range.clone()).and_then(block_index_bytes).filter(|&block_index| block_index <= range.len());
    let block_index =
        block_index.ok_or_else(|| Error::corrupt("R-5.14", "the block index reaches beyond its chunk"))?;
    Ok(range.start + block_index..range.end) // no overflow: at most the end
}

#[cold]
fn wrong_length() -> Error {
    Error::corrupt("R-5.3", "the stored and decoded lengths of a raw part differ")
}

/// Returns the body of a chunk of a file in memory.
#[inline]
pub(in crate::read) fn body_in<'a>(file: &'a [u8], location: &ChunkLocation) -> Result<&'a [u8]> {
    let length = usize::try_from(location.entry.stored_bytes).unwrap_or(usize::MAX);
    slice(file, location.entry.offset.saturating_add(HEADER_LEN), length)
}
