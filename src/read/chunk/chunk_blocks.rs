//! The blocks of a chunk, and the cost of one of its samples, for callers.

use super::chunk_bytes::{chunk_bytes, is_in_blocks};
use super::chunk_front::ChunkFront;
use super::front::first_read_bytes;
use super::open_chunk::in_chunk;
use crate::codec::{Body, ChunkDecoder, StoredChunk, values_in_blocks};
use crate::format::region::{HEAD, HEAD_BYTES};
use crate::le::u64_of;
use crate::read::file::opened_column::OpenedColumn;
use crate::read::locate::chunk_location::ChunkLocation;
use crate::{Result, memory};
use std::ops::Range;

/// The blocks of a chunk: its values are decoded and checked block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkBlocks {
    /// The range in the file of what precedes the first block: nulls, extents, lists, and the
    /// front, which lists the blocks. A reader by position reads it once.
    pub front: Range<u64>,
    /// At least one, in the order of the file. They follow each other without a gap.
    pub blocks: Vec<BlockInfo>,
}

/// Facts of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockInfo {
    /// The samples that have elements in it. A long sample is in several blocks.
    pub samples: Range<u64>,
    /// Its range in the file.
    pub file_range: Range<u64>,
    /// Its decoded bytes.
    pub raw_bytes: u64,
}

/// The bytes of a chunk that a reader by position fetches for one of its samples, if nothing of the
/// file is in a cache. Entries of the index are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColdRead {
    /// The bytes that are read once for many samples: head, nulls, extents and front. 0 if the
    /// chunk is read whole.
    pub front_bytes: u64,
    /// The bytes that are read for each sample, on average: its blocks, or head and body of the
    /// chunk.
    pub sample_bytes: u64,
}

impl ColdRead {
    /// Returns the bytes that are read for the first sample, on average.
    pub fn bytes(&self) -> u64 {
        self.front_bytes.saturating_add(self.sample_bytes)
    }
}

impl ChunkBlocks {
    /// Returns the sum over all samples of the stored bytes of the blocks that each needs.
    fn bytes_of_samples(&self) -> u128 {
        let of_block = |block: &BlockInfo| u128::from(length(&block.file_range)) * u128::from(length(&block.samples));
        self.blocks.iter().map(of_block).sum() // below 2^96
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

impl OpenedColumn {
    /// Returns the blocks of a chunk; `None` if its values are not in blocks.
    pub(in crate::read) fn chunk_blocks(&self, location: &ChunkLocation) -> Result<Option<ChunkBlocks>> {
        if !is_in_blocks(&location.entry)? {
            return Ok(None);
        }
        let front = self.read_front(location);
        front.and_then(|front| self.blocks_in(&front)).map(Some).map_err(|error| in_chunk(error, location))
    }

    fn blocks_in(&self, front: &ChunkFront) -> Result<ChunkBlocks> {
        let body = Body::whole(front.body());
        let mut decoder = ChunkDecoder::new();
        decoder.open(&StoredChunk { layout: self.layout(), tables: self, head: &front.head, body })?;
        let start = front.location.entry.offset.saturating_add(HEAD);
        let first_block = start.saturating_add(u64_of(front.body().len()));
        let part = values_in_blocks(self.layout(), &front.head, body)?;
        let mut blocks = memory::with_capacity(part.front.block_count())?;
        for entry in part.front.blocks() {
            let entry = entry?;
            // stored bytes begin with the front
            let offset = |stored: usize| first_block.saturating_add(u64_of(stored.saturating_sub(part.front.bytes)));
            blocks.push(BlockInfo {
                samples: 0..0,
                file_range: offset(entry.stored.start)..offset(entry.stored.end),
                raw_bytes: u64_of(entry.elements.len()).saturating_mul(u64_of(self.layout().element_bytes)),
            });
        }
        let (content, bytes) = (decoder.content(body), decoder.encoded_bytes().unwrap_or(0));
        for (i, sample) in (0..content.sample_count).zip(front.location.entry.samples()) {
            // below the chunk's sample count
            let values = content.range_within(self.layout(), &(i..i + 1), bytes)?;
            if values.is_empty() {
                continue;
            }
            for block in blocks.get_mut(part.blocks_at(&values)).unwrap_or(&mut []) {
                let first = if block.samples.is_empty() { sample } else { block.samples.start };
                block.samples = first..sample.saturating_add(1);
            }
        }
        Ok(ChunkBlocks { front: start..first_block, blocks })
    }

    /// Returns the cost of a sample of a chunk. `blocks` are those of the chunk.
    pub(in crate::read) fn cold_read(
        &self,
        location: &ChunkLocation,
        blocks: Option<&ChunkBlocks>,
    ) -> Result<ColdRead> {
        let whole = u64_of(chunk_bytes(&location.entry)?);
        let samples = u64::from(location.entry.sample_count);
        // a chunk of one sample is read whole
        let blocks = blocks.filter(|_| samples > 1 && self.reads_blocks(&location.entry));
        let Some(blocks) = blocks else { return Ok(ColdRead { front_bytes: 0, sample_bytes: whole }) };
        let front = usize::try_from(length(&blocks.front)).unwrap_or(usize::MAX).saturating_add(HEAD_BYTES);
        let sample_bytes = blocks.bytes_of_samples().div_ceil(samples.into()); // at least 2 samples
        Ok(ColdRead {
            front_bytes: u64_of(front.max(first_read_bytes(&location.entry))),
            sample_bytes: u64::try_from(sample_bytes).unwrap_or(u64::MAX),
        })
    }
}
