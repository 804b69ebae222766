//! Parses chunks in blocks as chapters 4 and 5.12 state, without the crate's decoder.

use super::damage::{ChunkLocation, chunks};
use std::ops::Range;
use tensilo::nested::List;
use tensilo::{Column, Reader, Result, Sample};

/// The encoding `bins in blocks`.
pub const BLOCKED_BINS: u16 = BLOCKS | 6;
/// The bit of an encoding that marks a part in several blocks.
const BLOCKS: u16 = 1 << 8;

/// A chunk in blocks of an intact file. Offsets count from the start of the file.
pub struct BlockedChunk {
    pub location: ChunkLocation,
    pub encoding: u16,
    /// The tables that all blocks share.
    pub tables: Range<usize>,
    pub blocks: Vec<Block>,
    /// The end of the block index.
    block_index_end: usize,
    /// The decoded length of the values.
    pub value_bytes: usize,
}

pub struct Block {
    pub bytes: Range<usize>,
    /// The samples that have a byte in this block.
    pub samples: Vec<u64>,
    /// The offset of its checksum.
    crc: usize,
}

impl BlockedChunk {
    /// Returns the samples that are left if the chunk is damaged, but its block index is intact and
    /// its end is in the file: all samples without a byte in a damaged block.
    pub fn samples_left(&self, intact: &[u8], damaged: &[u8]) -> Vec<u64> {
        let is_left = |bytes: Range<usize>| damaged.get(bytes.clone()) == Some(&intact[bytes]);
        let ChunkLocation { samples, bytes, .. } = &self.location;
        if !is_left(bytes.start..self.block_index_end) || damaged.len() < bytes.end {
            return Vec::new();
        }
        let lost = self.blocks.iter().filter(|block| !is_left(block.bytes.clone()));
        let lost: Vec<u64> = lost.flat_map(|block| block.samples.iter().copied()).collect();
        samples.clone().filter(|i| !lost.contains(i)).collect()
    }

    /// Corrects the checksums of a block and of the block index.
    pub fn seal_block(&self, file: &mut [u8], block: usize) {
        let Block { bytes, crc, .. } = &self.blocks[block];
        let sum = crc32fast::hash(&file[bytes.clone()]);
        file[*crc..*crc + 4].copy_from_slice(&sum.to_le_bytes());
        let index_crc = self.block_index_end - 4;
        let sum = crc32fast::hash(&file[self.location.bytes.start + 64..index_crc]);
        file[index_crc..self.block_index_end].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Returns all chunks in blocks of an intact file.
pub fn blocked_chunks(file: &[u8]) -> Vec<BlockedChunk> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let to_blocked = |location: ChunkLocation| {
        let column = reader.column_at(location.column).unwrap();
        blocked_chunk(file, location, &column)
    };
    chunks(file).into_iter().filter_map(to_blocked).collect()
}

fn blocked_chunk(file: &[u8], location: ChunkLocation, column: &Column) -> Option<BlockedChunk> {
    let header = location.bytes.start;
    let start = if file[header + 54] & 1 == 1 { values_start(file, header + 64) } else { header + 64 };
    let encoding = u16::from_le_bytes([file[header + 52], file[header + 53]]);
    if encoding & BLOCKS == 0 {
        return None;
    }
    let table_bytes = match encoding ^ BLOCKS {
        2 => 4,
        4 | 5 => 48,
        6 => u32_at(file, start + 8),
        7 => 24,
        _ => 0,
    };
    let (block_index_end, count) = (start + u32_at(file, start), u32_at(file, start + 4));
    let entries_start = start + 8 + table_bytes;
    let ends = value_ends(column, location.samples.clone());
    let block_starts = |field: usize| {
        let end = move |block: usize| u32_at(file, entries_start + 12 * block + field);
        [0].into_iter().chain((0..count).map(end)).collect::<Vec<_>>()
    };
    let (elements, stored) = (block_starts(0), block_starts(4));
    let align = if matches!(encoding ^ BLOCKS, 4..=6) { 16 } else { 1 };
    // blocks end with padding, except the last
    let bounds: Vec<usize> = stored.iter().map(|end| end.next_multiple_of(align).min(stored[count])).collect();
    let element_bytes = column.schema().dtype.element_bytes();
    let block = |block: usize| {
        let values = elements[block] * element_bytes..elements[block + 1] * element_bytes;
        let starts = [0].into_iter().chain(ends.iter().copied());
        let samples = location.samples.clone().zip(starts.zip(&ends));
        let has_byte = |&(_, (start, end)): &(u64, (usize, &usize))| start.max(values.start) < values.end.min(*end);
        Block {
            bytes: block_index_end + bounds[block]..block_index_end + bounds[block + 1],
            samples: samples.filter(has_byte).map(|(i, _)| i).collect(),
            crc: entries_start + 12 * block + 8,
        }
    };
    let blocks: Vec<Block> = (0..count).map(block).collect();
    assert_eq!(blocks.last().unwrap().bytes.end, location.bytes.end);
    let value_bytes = ends.last().copied().unwrap_or(0);
    Some(BlockedChunk { location, encoding, tables: start + 8..entries_start, blocks, block_index_end, value_bytes })
}

fn u32_at(file: &[u8], at: usize) -> usize {
    u32::from_le_bytes(file[at..][..4].try_into().unwrap()) as usize
}

/// Returns the number of chunks of a column whose values need a table, as chapter 5.5 states.
pub fn chunks_with_dictionary(file: &[u8], column: usize) -> usize {
    const ZSTD: u16 = 2;
    const NO_TABLE: usize = u32::MAX as usize;
    let needs_table = |location: &ChunkLocation| {
        let header = location.bytes.start;
        let start = if file[header + 54] & 1 == 1 { values_start(file, header + 64) } else { header + 64 };
        let encoding = u16::from_le_bytes([file[header + 52], file[header + 53]]);
        let tables = if encoding & BLOCKS == 0 { start } else { start + 8 };
        encoding & !BLOCKS == ZSTD && u32_at(file, tables) != NO_TABLE
    };
    chunks(file).iter().filter(|location| location.column == column && needs_table(location)).count()
}

/// Returns the offset of the values of a chunk that has a part table.
fn values_start(file: &[u8], body: usize) -> usize {
    let [validity, shape] = [0, 16].map(|part| u32_at(file, body + part).next_multiple_of(64));
    body + 64 + validity + shape
}

/// Returns the ends of the values of samples, in bytes from the first value.
fn value_ends(column: &Column, samples: Range<u64>) -> Vec<usize> {
    let (schema, mut cursor) = (column.schema(), column.cursor());
    let of_null = match schema.shape.is_ragged() {
        true => 0,
        false => schema.shape.inner_elements().unwrap() as usize * schema.dtype.element_bytes(),
    };
    let mut end = 0;
    let mut ends = Vec::new();
    for i in samples {
        end += match schema.levels.is_empty() {
            true => bytes_of(cursor.read(i), of_null),
            false => bytes_of_items(&cursor.read_list(i).unwrap(), of_null),
        };
        ends.push(end);
    }
    ends
}

fn bytes_of_items(list: &List<'_>, of_null: usize) -> usize {
    match list.has_lists() {
        true => (0..list.len()).map(|k| bytes_of_items(&list.list(k).unwrap(), of_null)).sum(),
        false => list.items().map(|item| bytes_of(item, of_null)).sum(),
    }
}

fn bytes_of(item: Result<Sample<'_>>, of_null: usize) -> usize {
    let item = item.unwrap();
    if item.is_null() { of_null } else { item.bytes().len() }
}
