//! Recovers the intact samples of a damaged chunk that is divided into blocks.
//!
//! If the checksum of a body is wrong, the block index shows which blocks are damaged, provided
//! that it is intact and belongs to the chunk. A sample is lost if any of its bytes lies in a
//! damaged block. Lost samples are stored as ranges. The number of ranges is limited by the size of
//! the chunk.

use super::decoder::{ChunkDecoder, StoredChunk, values_in_blocks};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::blocked::StoredPart;
use crate::format::content::Content;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;

/// At most one range of lost samples is recorded per this many stored bytes of a chunk. Empty
/// samples are never lost, so without this limit, millions of them between lost samples could make
/// the list of ranges huge.
const CHUNK_BYTES_PER_LOST_RANGE: usize = 8;

/// The findings about a chunk that has an intact block index and some damaged blocks.
pub(crate) struct DamagedChunk {
    /// The total number of blocks.
    pub block_count: usize,
    /// Ranges of adjacent damaged blocks, in ascending order.
    pub block_ranges: Vec<DamagedBlocks>,
    /// The samples that have a byte in a damaged block, as ranges of indices in the chunk. The
    /// ranges are in ascending order and do not touch. If there are too many, the last range covers
    /// all remaining lost samples and the intact samples between them.
    pub lost: Vec<Range<usize>>,
    /// The number of nulls among the lost samples.
    pub lost_nulls: u64,
}

/// Adjacent damaged blocks.
pub(crate) struct DamagedBlocks {
    blocks: Range<usize>,
    /// The range of these blocks in the body.
    pub bytes: Range<usize>,
    /// The range from the first to the last sample that has a byte in these blocks.
    pub samples: Range<usize>,
    /// The number of samples that have a byte in these blocks.
    lost_count: usize,
    error: Error,
}

impl DamagedChunk {
    /// Finds the damaged blocks of a chunk whose checksum is wrong, and the samples that
    /// are lost with them. If `decode`, a block that cannot be decoded also counts as damaged, and
    /// the meaning of the remaining values is checked.
    ///
    /// Fails if nothing can be recovered: the chunk is not divided into blocks, its block index is
    /// damaged or belongs to another chunk, or no sample is intact.
    ///
    /// Cost: decodes validity and shape and, if `decode`, also the values.
    pub(crate) fn examine(chunk: &StoredChunk<'_>, decode: bool, decoder: &mut ChunkDecoder) -> Result<Self> {
        let part = open(chunk, decoder)?;
        part.block_index.check()?;
        part.check_belongs(chunk.header.entry.body_crc)?;
        let block_count = part.block_index.block_count();
        let mut examined = Self { block_count, block_ranges: Vec::new(), lost: Vec::new(), lost_nulls: 0 };
        let mut scratch = Vec::new();
        for block in 0..block_count {
            let checked = part.check_crcs_of(&(block..block + 1)); // below the block count
            let checked = checked.and_then(|()| match decode {
                true => decode_block(chunk, &part, block, decoder, &mut scratch),
                false => Ok(()),
            });
            match checked {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Corrupt => examined.add_block(&part, block, error)?,
                Err(error) => return Err(error),
            }
        }
        examined.find_lost_samples(chunk, &part, decoder)?;
        if decode {
            examined.check_rest(chunk, decoder)?;
        }
        Ok(examined)
    }

    fn add_block(&mut self, part: &StoredPart<'_>, block: usize, error: Error) -> Result<()> {
        let bytes = part.range_of(&(block..block + 1))?;
        let end = block + 1; // at most the block count
        match self.block_ranges.last_mut().filter(|last| last.blocks.end == block) {
            Some(last) => (last.blocks.end, last.bytes.end) = (end, bytes.end),
            None => {
                memory::reserve(&mut self.block_ranges, 1)?;
                self.block_ranges.push(DamagedBlocks {
                    blocks: block..end,
                    bytes,
                    samples: 0..0,
                    lost_count: 0,
                    error,
                });
            }
        }
        Ok(())
    }

    /// Finds the samples that have a byte in a damaged block. Fails if all samples are lost, or
    /// none.
    fn find_lost_samples(
        &mut self,
        chunk: &StoredChunk<'_>,
        part: &StoredPart<'_>,
        decoder: &ChunkDecoder,
    ) -> Result<()> {
        let content = decoder.content(chunk.body);
        let value_bytes = value_bytes(&content, decoder);
        let max_ranges = usize::try_from(chunk.header.entry.stored_bytes).unwrap_or(0) / CHUNK_BYTES_PER_LOST_RANGE;
        let mut ended = 0; // the number of ranges of damaged blocks that end before the sample
        for i in 0..content.sample_count {
            // no overflow: below the chunk's sample count
            let bytes = content.range_within(chunk.layout, &(i..i + 1), value_bytes)?;
            if bytes.is_empty() {
                continue;
            }
            let blocks = part.blocks_at(&bytes);
            let block_ranges = self.block_ranges.get_mut(ended..).unwrap_or(&mut []);
            ended += block_ranges.iter().take_while(|range| range.blocks.end <= blocks.start).count();
            let block_ranges = self.block_ranges.get_mut(ended..).unwrap_or(&mut []).iter_mut();
            if block_ranges.take_while(|range| range.blocks.start < blocks.end).map(|range| range.mark_lost(i)).count()
                > 0
            {
                self.mark_lost(i, max_ranges)?;
            }
        }
        let lost = self.lost.iter().cloned().flatten();
        self.lost_nulls = u64_of(lost.filter(|&i| content.is_null(i)).count());
        if self.lost.is_empty() || self.lost.first() == Some(&(0..content.sample_count)) {
            return Err(Error::corrupt("R-2.6", "the damage to the chunk cannot be attributed to particular samples"));
        }
        Ok(())
    }

    fn mark_lost(&mut self, i: usize, max_ranges: usize) -> Result<()> {
        let is_full = self.lost.len() >= max_ranges;
        match self.lost.last_mut().filter(|last| last.end == i || is_full) {
            Some(last) => last.end = i + 1, // at most the chunk's sample count
            None => {
                memory::reserve(&mut self.lost, 1)?;
                self.lost.push(i..i + 1); // as above
            }
        }
        Ok(())
    }

    fn check_rest(&self, chunk: &StoredChunk<'_>, decoder: &mut ChunkDecoder) -> Result<()> {
        let values = decode_intact(chunk, &self.lost, decoder)?;
        let content = Content { values: &values, ..decoder.content(chunk.body) };
        let items = content.check_lists(chunk.layout)?;
        items.check_shapes(chunk.layout)?;
        items.check_values(chunk.layout)
    }
}

impl DamagedBlocks {
    /// Records that sample `i` has a byte in these blocks.
    fn mark_lost(&mut self, i: usize) {
        let start = if self.lost_count == 0 { i } else { self.samples.start };
        self.samples = start..i + 1; // at most the chunk's sample count
        self.lost_count += 1; // as above
    }

    /// Returns the error that reports these blocks, and how many samples are lost with them.
    /// `sample_count` and `block_count` count all samples and blocks of the chunk.
    pub(crate) fn error(&self, sample_count: u32, block_count: usize) -> Error {
        let Range { start, end } = self.blocks;
        let blocks = match end.saturating_sub(start) {
            1 => format!("block {end}"), // counted from 1
            _ => format!("blocks {} to {end}", start.saturating_add(1)),
        };
        let Self { lost_count, error, .. } = self;
        let verb = if *lost_count == 1 { "is" } else { "are" };
        let message = format!(
            "{}; {lost_count} of {sample_count} samples of the chunk {verb} lost ({blocks} of {block_count})",
            error.message()
        );
        Error::corrupt(error.rule().unwrap_or("R-5.16"), message)
    }
}

/// Decodes the values of a chunk except for its `lost` samples, whose bytes are zero in the result.
/// The ranges in `lost` are in ascending order and do not touch. Afterwards, `decoder` has the
/// validity and the shape of the chunk.
///
/// Checks the block index, and all blocks that the remaining samples need.
pub(crate) fn decode_intact(
    chunk: &StoredChunk<'_>,
    lost: &[Range<usize>],
    decoder: &mut ChunkDecoder,
) -> Result<Vec<u8>> {
    let part = open(chunk, decoder)?;
    let content = decoder.content(chunk.body);
    let (value_bytes, sample_count) = (value_bytes(&content, decoder), content.sample_count);
    let mut values = Vec::new();
    memory::resize(&mut values, value_bytes, 0)?;
    let starts = std::iter::once(0).chain(lost.iter().map(|lost| lost.end));
    let ends = lost.iter().map(|lost| lost.start).chain(std::iter::once(sample_count));
    for samples in starts.zip(ends).map(|(start, end)| start..end).filter(|samples| !samples.is_empty()) {
        let bytes = decoder.content(chunk.body).range_within(chunk.layout, &samples, value_bytes)?;
        if bytes.is_empty() {
            continue;
        }
        part.check_crcs_of(&part.blocks_at(&bytes))?;
        let out = values.get_mut(bytes.clone()).ok_or_else(outside)?;
        if !decoder.decode_range(chunk.body, &bytes, out, |_, _| Ok(()))? {
            // equal lengths: the range is inside both
            out.copy_from_slice(decoder.content(chunk.body).values.get(bytes).ok_or_else(outside)?);
        }
    }
    Ok(values)
}

/// Opens a chunk that is divided into blocks: checks its block index, and decodes validity and
/// shape.
fn open<'a>(chunk: &StoredChunk<'a>, decoder: &mut ChunkDecoder) -> Result<StoredPart<'a>> {
    let part = values_in_blocks(chunk.layout, chunk.header, chunk.body)?;
    part.check_block_index()?;
    decoder.open(chunk)?;
    Ok(part)
}

fn value_bytes(content: &Content<'_>, decoder: &ChunkDecoder) -> usize {
    decoder.encoded_bytes().unwrap_or(content.values.len())
}

fn decode_block(
    chunk: &StoredChunk<'_>,
    part: &StoredPart<'_>,
    block: usize,
    decoder: &mut ChunkDecoder,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    let bytes = part.decoded_range(block)?;
    scratch.clear();
    memory::resize(scratch, bytes.len(), 0)?;
    // `false` means that the stored bytes are the decoded bytes
    decoder.decode_range(chunk.body, &bytes, scratch, |_, _| Ok(())).map(|_| ())
}

#[cold]
fn outside() -> Error {
    Error::internal("the samples of a damaged chunk lie outside its values")
}
