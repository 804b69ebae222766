//! The stored bytes of a chunk: its header, checked against the index, and its body, verified
//! according to the reader's policy.
//!
//! A chunk is read in one of three ways. If it is short, or if its values are not divided into
//! blocks, it is read whole. If its values are divided into blocks and the file is read with
//! positional reads (`pread`), its *block index* is read first, and then individual blocks. (In
//! this module, *block index* includes everything before the first block: part table, nulls,
//! extents, lists and the index itself.) If the chunk has raw samples of a fixed shape and was
//! verified before, its samples are read individually, without a block index.
//!
//! The length of the block index is known only after its first bytes are read. To save a round
//! trip, the first read has the length [`first_read_bytes`], which usually suffices. The position
//! of a sample's block is guessed from the block size of the previously opened chunk, and the block
//! is prefetched at the same time.
//!
//! Damage to one block must not make samples in another block unreadable. So the block index is
//! verified when a chunk is opened, and each block is verified when its bytes are first used.
//! Verified chunks and blocks are recorded for the whole file, so that no byte is verified twice,
//! unless the policy is [`Verification::Always`].

use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::{
    BLOCK_INDEX_HEADER_BYTES, Body, MIN_BLOCKED_BYTES, StoredPart, block_index_bytes, check_block_index, encoding,
    first_block_elements, parts, values_in_blocks,
};
use crate::format::chunk::{ChunkEntry, ChunkHeader};
use crate::format::content::Content;
use crate::format::region::{HEADER_BYTES, RegionHeader, RegionKind};
use crate::open::source::{check_inside, read, slice};
use crate::read::file::column_inner::{ColumnInner, index_mismatch};
use crate::read::file::state::{ChunkBlockIndex, ChunkLocation, Verification, in_chunk};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reads a chunk and verifies it according to the reader's policy. If the file is not in memory,
/// the bytes are read into `buffer`.
pub(in crate::read) fn load_chunk<'a>(
    column: &'a ColumnInner,
    location: &ChunkLocation,
    buffer: &'a mut Vec<u8>,
) -> Result<(ChunkHeader, &'a [u8])> {
    let bytes = fetch_bytes(column, &location.entry, buffer)?;
    check_chunk_bytes(column, location, bytes)
}

/// Verifies a chunk of a file in memory according to the reader's policy. A header that was
/// verified before is not verified again, because the bytes are the same.
pub(in crate::read) fn chunk_in_memory<'a>(
    column: &ColumnInner,
    location: &ChunkLocation,
    file: &'a [u8],
) -> Result<(ChunkHeader, &'a [u8])> {
    let bytes = slice(file, location.entry.offset, chunk_bytes(&location.entry)?)?;
    if !column.is_open(location.chunk) {
        return check_chunk_bytes(column, location, bytes);
    }
    let (header, body) = split_header(bytes)?;
    let chunk = ChunkHeader::of_checked(column.index().number, location.entry, header);
    column.file.check_decoded_bytes(chunk.raw_bytes.into())?;
    Ok((chunk, body))
}

/// Verifies the header and the body of a chunk according to the reader's policy, and records that
/// they are verified. If the values are divided into blocks, verifies only the block index;
/// [`check_blocks`] verifies the blocks when they are used.
pub(in crate::read) fn check_chunk_bytes<'a>(
    column: &ColumnInner,
    location: &ChunkLocation,
    bytes: &'a [u8],
) -> Result<(ChunkHeader, &'a [u8])> {
    let (header, chunk, body) = split_chunk(column, &location.entry, bytes)?;
    if column.is_checked(location.chunk) {
        return Ok((chunk, body));
    }
    let is_never = column.file.verification == Verification::Never;
    if !is_never && is_in_blocks(&location.entry)? {
        if !column.checked(location.chunk).has_block_index() {
            let before = bytes_before_values(column, &chunk, bytes)?;
            check_block_index(block_index_in(bytes, before)?)?;
            check_raw_blocks(column, &chunk, body)?;
            check_raw_bytes(column, &chunk, body)?;
            column.index().checked_blocks.set_block_index(location.chunk);
        }
        return Ok((chunk, body));
    }
    match is_never {
        true => check_raw_blocks(column, &chunk, body)?,
        false => header.check_body(body)?,
    }
    check_raw_bytes(column, &chunk, body)?;
    column.index().checked_chunks.set(location.chunk);
    Ok((chunk, body))
}

/// Checks the decoded length in the header of a chunk against the part table or the number
/// of samples. Decoding repeats this check, but raw values are not decoded. `body` contains
/// the part table.
fn check_raw_bytes(column: &ColumnInner, header: &ChunkHeader, body: &[u8]) -> Result<()> {
    let values = parts(column.layout(), header, body)?.values;
    let expected = u64::from(header.entry.sample_count).checked_mul(u64_of(column.layout().inner_bytes));
    if header.entry.has_parts() || expected == Some(values.raw_bytes.into()) {
        return Ok(());
    }
    let message = format!(
        "the header of the chunk states {} decoded bytes, which does not match its number of samples",
        header.raw_bytes
    );
    Err(Error::corrupt("R-4.5", message))
}

/// Checks the block index if the values are in raw blocks, because no decoder checks it.
fn check_raw_blocks(column: &ColumnInner, header: &ChunkHeader, body: &[u8]) -> Result<()> {
    let encoding = encoding(header.entry.encoding)?;
    let is_raw = encoding.is_in_blocks() && encoding.is_identity();
    if !is_raw || parts(column.layout(), header, body)?.values.raw_bytes == 0 {
        return Ok(());
    }
    values_in_blocks(column.layout(), header, Body::whole(body))?.check_raw()
}

/// Verifies, according to the reader's policy, the blocks that contain these bytes of the values,
/// and records that they are verified. The error for a damaged block names the samples that are
/// lost with it. `content` is needed to find them.
pub(in crate::read) fn check_blocks(
    column: &ColumnInner,
    location: &ChunkLocation,
    part: &StoredPart<'_>,
    content: &Content<'_>,
    bytes: &Range<usize>,
) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let (blocks, count) = (part.blocks_at(bytes), part.block_index.block_count());
    let missing = column.checked(location.chunk).missing(&blocks, count);
    if missing.is_empty() {
        return Ok(());
    }
    // a chunk with many blocks has one bit for several consecutive blocks (a unit); the bit can be
    // set only if all of these blocks were read and verified
    let expected = if part.has_blocks(&missing)? { missing } else { blocks.clone() };
    if part.check_crcs_of(&expected).is_err() {
        // only damage to a block that contains these bytes matters
        return blocks.into_iter().try_for_each(|block| {
            // `block` is below the block count
            part.check_crcs_of(&(block..block + 1))
                .map_err(|error| with_lost_samples(column, error, location, part, content, block))
        });
    }
    if column.index().checked_blocks.set_blocks(location.chunk, &expected, count) {
        column.index().checked_chunks.set(location.chunk);
    }
    Ok(())
}

/// Adds to the error for a damaged block all samples with a byte in it, even if they were not
/// requested.
#[cold]
fn with_lost_samples(
    column: &ColumnInner,
    error: Error,
    location: &ChunkLocation,
    part: &StoredPart<'_>,
    content: &Content<'_>,
    block: usize,
) -> Error {
    let bytes = part.decoded_range(block);
    let lost = bytes.and_then(|bytes| content.samples_with(column.layout(), &bytes, part.raw_bytes()));
    let Ok(lost) = lost else { return error }; // then the error names the whole chunk
    let sample = |at: usize| location.entry.first_sample.saturating_add(u64_of(at));
    error.with_samples(sample(lost.start)..sample(lost.end))
}

/// Reads a chunk and checks its header, but not its body.
pub(in crate::read) fn fetch_chunk<'a>(
    column: &'a ColumnInner,
    entry: &ChunkEntry,
    buffer: &'a mut Vec<u8>,
) -> Result<(RegionHeader, ChunkHeader, &'a [u8])> {
    let bytes = fetch_bytes(column, entry, buffer)?;
    split_chunk(column, entry, bytes)
}

/// Reads the header and the body of a chunk, and checks neither.
pub(in crate::read) fn fetch_bytes<'a>(
    column: &'a ColumnInner,
    entry: &ChunkEntry,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8]> {
    column.file.bytes().get(entry.offset, chunk_bytes(entry)?, buffer)
}

/// Checks the header of a chunk, but not its body.
fn split_chunk<'a>(
    column: &ColumnInner,
    entry: &ChunkEntry,
    bytes: &'a [u8],
) -> Result<(RegionHeader, ChunkHeader, &'a [u8])> {
    let (header, body) = split_header(bytes)?;
    let (header, chunk) = parse_chunk_header(column, entry, header)?;
    column.file.check_decoded_bytes(chunk.raw_bytes.into())?;
    Ok((header, chunk, body))
}

/// Reads and checks the header of a chunk, without its body.
pub(in crate::read) fn chunk_header(column: &ColumnInner, entry: &ChunkEntry) -> Result<ChunkHeader> {
    let header = column.file.bytes().array(entry.offset)?;
    parse_chunk_header(column, entry, &header).map(|(_, chunk)| chunk)
}

/// Checks the header of a chunk, and that its decoded length is within the limit.
fn checked_header(column: &ColumnInner, entry: &ChunkEntry, bytes: &[u8; HEADER_BYTES]) -> Result<ChunkHeader> {
    let (_, chunk) = parse_chunk_header(column, entry, bytes)?;
    column.file.check_decoded_bytes(chunk.raw_bytes.into()).map(|()| chunk)
}

fn parse_chunk_header(
    column: &ColumnInner,
    entry: &ChunkEntry,
    bytes: &[u8; HEADER_BYTES],
) -> Result<(RegionHeader, ChunkHeader)> {
    let header = RegionHeader::parse(bytes, entry.offset)?;
    header.expect(RegionKind::Chunk, column.file.file_id)?;
    let chunk = ChunkHeader::parse(&header, column.file.columns.len())?;
    if chunk.column != column.index().number || chunk.entry != *entry {
        return Err(index_mismatch("the chunk's header"));
    }
    Ok((header, chunk))
}

/// Returns the length of the values of a chunk whose samples can be read individually; `None` for
/// any other chunk. Samples can be read individually if the file is not in memory, and the chunk
/// consists only of raw samples and was verified before. With [`Verification::Never`], only the
/// header of the chunk is checked.
pub(in crate::read) fn seekable_value_bytes(column: &ColumnInner, location: &ChunkLocation) -> Result<Option<usize>> {
    let entry = &location.entry;
    let layout = column.layout();
    // a chunk can pass its checksum and still fail to decode
    let expected = u64::from(entry.sample_count).checked_mul(u64_of(layout.inner_bytes));
    let encoding = encoding(entry.encoding)?;
    let whole = match encoding.is_in_blocks() {
        true => expected.is_some_and(|expected| expected < entry.stored_bytes.into()),
        false => expected == Some(entry.stored_bytes.into()),
    };
    let plain = encoding.is_identity() && whole && !layout.has_shape() && !entry.has_parts();
    if !plain || column.file.bytes().memory().is_some() {
        return Ok(None);
    }
    let checked = column.is_checked(location.chunk) || check_header_only(column, location)?;
    Ok(expected.and_then(|expected| usize::try_from(expected).ok()).filter(|_| checked))
}

/// Checks the header of a chunk if the policy is [`Verification::Never`]. Returns whether the
/// header is valid.
fn check_header_only(column: &ColumnInner, location: &ChunkLocation) -> Result<bool> {
    if column.file.verification != Verification::Never {
        return Ok(false);
    }
    let header = chunk_header(column, &location.entry)?;
    // if the lengths differ, the chunk violates, which is reported when it is loaded
    let expected = u64::from(location.entry.sample_count).saturating_mul(u64_of(column.layout().inner_bytes));
    let right = u64::from(header.raw_bytes) == expected;
    if right {
        column.index().checked_chunks.set(location.chunk);
    }
    Ok(right)
}

/// Returns whether the values of a chunk are divided into blocks.
#[inline]
pub(in crate::read) fn is_in_blocks(entry: &ChunkEntry) -> Result<bool> {
    Ok(encoding(entry.encoding)?.is_in_blocks())
}

/// Returns the body of a chunk up to its first block. The values start `before` bytes into the
/// chunk's `bytes`.
fn block_index_in(bytes: &[u8], before: usize) -> Result<&[u8]> {
    let end = bytes.get(before..).and_then(block_index_bytes).and_then(|block_index| before.checked_add(block_index));
    end.and_then(|end| bytes.get(HEADER_BYTES..end)).ok_or_else(beyond_chunk)
}

fn split_header(bytes: &[u8]) -> Result<(&[u8; HEADER_BYTES], &[u8])> {
    bytes.split_first_chunk().ok_or_else(|| Error::internal("the bytes of a chunk are shorter than its header"))
}

/// Returns the total length of the header and the body.
pub(in crate::read) fn chunk_bytes(entry: &ChunkEntry) -> Result<usize> {
    let length = usize::try_from(entry.stored_bytes).ok().and_then(|bytes| bytes.checked_add(HEADER_BYTES));
    length.ok_or_else(|| Error::over_limit("the chunk is too large for this machine"))
}

#[cold]
fn beyond_chunk() -> Error {
    Error::corrupt("R-5.14", "the block index reaches beyond its chunk")
}

/// The maximum result of [`first_read_bytes`].
const FIRST_READ_BYTES: usize = 1024;
/// The number of bytes that are prefetched on each side of the guessed range of a block.
const GUESS_MARGIN_BYTES: u64 = 1 << 10;

/// Returns the block index of a chunk, cached or read; `None` if its blocks are not read
/// individually, because the file is in memory, or because the chunk is short or has no blocks.
pub(in crate::read) fn block_index_of(
    column: &ColumnInner,
    location: &ChunkLocation,
) -> Result<Option<Arc<ChunkBlockIndex>>> {
    if !has_block_index(column, &location.entry)? {
        return Ok(None);
    }
    if let Some(block_index) = column.index().block_indexes.get(location.chunk) {
        return Ok(Some(block_index));
    }
    let block_index = read_block_index(column, location).map_err(|error| in_chunk(error, location))?;
    let block_index = Arc::new(block_index);
    if block_index.is_cacheable() {
        column.index().block_indexes.insert(location.chunk, &block_index);
    }
    Ok(Some(block_index))
}

/// Returns whether the blocks of a chunk are read individually: the chunk has blocks and is long
/// enough, and the file is not in memory.
fn has_block_index(column: &ColumnInner, entry: &ChunkEntry) -> Result<bool> {
    Ok(reads_blocks(column, entry) && is_in_blocks(entry)? && column.file.bytes().memory().is_none())
}

/// Adds the range of the block index of a chunk and the range that probably contains the block of a
/// sample, if the blocks of the chunk are read individually.
pub(in crate::read) fn block_index_ranges(
    column: &ColumnInner,
    location: &ChunkLocation,
    sample: u64,
    out: &mut Vec<Range<u64>>,
) -> Result<()> {
    let entry = &location.entry;
    if !has_block_index(column, entry)? {
        return Ok(());
    }
    memory::reserve(out, 2)?;
    out.push(entry.offset..entry.offset.saturating_add(u64_of(first_read_bytes(entry))));
    out.extend(guessed_block(column, location, sample)?);
    Ok(())
}

/// Guesses the range of the block of a sample, so that it can be read together with the block index
/// instead of after it. Assumes that each block has as many samples as a block of the previously
/// opened chunk, and that all blocks have the same length. `None` if the blocks of the chunk are
/// not read individually, or if no chunk was opened before.
pub(in crate::read) fn guessed_block(
    column: &ColumnInner,
    location: &ChunkLocation,
    sample: u64,
) -> Result<Option<Range<u64>>> {
    let entry = &location.entry;
    if !has_block_index(column, entry)? {
        return Ok(None);
    }
    let block_samples = column.index().block_samples.load(Ordering::Relaxed);
    let Some(block) = u64_of(location.position_of(sample)).checked_div(block_samples) else { return Ok(None) };
    let (samples, bytes) = (u64::from(entry.sample_count).max(1), u64::from(entry.stored_bytes));
    // no overflow: fewer than 2^24 samples and 2^32 bytes
    let at = |block: u64| block.saturating_mul(block_samples).saturating_mul(bytes) / samples;
    let in_file = |byte: u64| entry.offset.saturating_add(byte.min(bytes));
    let start = in_file(at(block).saturating_sub(GUESS_MARGIN_BYTES));
    let end = in_file(at(block.saturating_add(1)).saturating_add(GUESS_MARGIN_BYTES));
    Ok(Some(start..end))
}

/// Records how many samples a block has, for [`guessed_block`]. For ragged samples, the number is
/// an estimate. `values` starts with the block index.
fn record_block_size(column: &ColumnInner, header: &ChunkHeader, values: &[u8]) -> Result<()> {
    let encoding = encoding(header.entry.encoding)?;
    let first = first_block_elements(values, |block_index| encoding.table_bytes(block_index));
    let elements = u64::from(first.filter(|_| encoding.is_in_blocks()).unwrap_or(0));
    let bytes = elements.saturating_mul(u64_of(column.layout().element_bytes)); // fewer than 2^20 bytes
    let sample_bytes = header.raw_bytes.checked_div(header.entry.sample_count).unwrap_or(0).max(1);
    column.index().block_samples.store((bytes / u64::from(sample_bytes)).max(1), Ordering::Relaxed);
    Ok(())
}

/// Returns whether a chunk is long enough to read its blocks individually if the file is read with
/// positional reads.
pub(in crate::read) fn reads_blocks(column: &ColumnInner, entry: &ChunkEntry) -> bool {
    let min_bytes = u64_of(MIN_BLOCKED_BYTES).max(column.file.source.coalesce().gap_bytes.saturating_mul(2));
    u64::from(entry.stored_bytes) >= min_bytes
}

/// Reads the block index of a chunk that has blocks, and verifies it according to the reader's
/// policy.
pub(in crate::read) fn read_block_index(column: &ColumnInner, location: &ChunkLocation) -> Result<ChunkBlockIndex> {
    let entry = &location.entry;
    let max_bytes = chunk_bytes(entry)?;
    check_inside(&*column.file.source, entry.offset, max_bytes)?;
    let mut bytes = Vec::new();
    read_up_to(column, location, first_read_bytes(entry), &mut bytes)?;
    let header = checked_header(column, entry, split_header(&bytes)?.0)?;
    let before = bytes_before_values(column, &header, &bytes)?;
    check_raw_bytes(column, &header, bytes.get(HEADER_BYTES..).unwrap_or(&[]))?;
    // the first bytes of the block index contain its length; a block index that extends beyond the
    // body is refused below
    read_up_to(column, location, before.saturating_add(BLOCK_INDEX_HEADER_BYTES).min(max_bytes), &mut bytes)?;
    let values = bytes.get(before..).unwrap_or(&[]);
    let stated = block_index_bytes(values).ok_or_else(beyond_chunk)?;
    record_block_size(column, &header, values)?;
    let end = before.checked_add(stated).filter(|&end| end <= max_bytes).ok_or_else(beyond_chunk)?;
    read_up_to(column, location, end, &mut bytes)?;
    bytes.truncate(end);
    bytes.drain(..HEADER_BYTES.min(bytes.len()));
    match column.file.verification {
        Verification::Never => column.index().checked_chunks.set(location.chunk),
        _ => check_block_index(&bytes)?,
    }
    Ok(ChunkBlockIndex::new(location, header, bytes))
}

/// Returns the total length of the header, the part table, the validity and the shape.
fn bytes_before_values(column: &ColumnInner, header: &ChunkHeader, bytes: &[u8]) -> Result<usize> {
    let parts = parts(column.layout(), header, bytes.get(HEADER_BYTES..).unwrap_or(&[]))?;
    if !header.entry.has_parts() {
        return Ok(HEADER_BYTES);
    }
    let [.., values] = parts.ranges().ok_or_else(beyond_chunk)?;
    Ok(values.start.saturating_add(HEADER_BYTES))
}

/// Extends `bytes`, the start of a chunk, to `length`. Reads only the missing bytes.
fn read_up_to(column: &ColumnInner, location: &ChunkLocation, length: usize, bytes: &mut Vec<u8>) -> Result<()> {
    let have = bytes.len();
    if have >= length {
        return Ok(());
    }
    memory::resize(bytes, length, 0)?;
    let at = location.entry.offset.saturating_add(have as u64); // exact: `usize` has at most 64 bits
    read(&*column.file.source, at, bytes.get_mut(have..).unwrap_or(&mut []))
}

/// Returns the length of the first read from a chunk. Most block indexes are shorter.
pub(in crate::read) fn first_read_bytes(entry: &ChunkEntry) -> usize {
    chunk_bytes(entry).map_or(FIRST_READ_BYTES, |bytes| bytes.min(FIRST_READ_BYTES))
}
