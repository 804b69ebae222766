//! Chunks in blocks: block indexes with invalid lengths, entries or blocks.

use super::Refusal::Reading;
use super::{
    BLOCKS, F32, MAX_CHUNK_BYTES, NO_TABLE, RESIDUAL_TIERS, Row, U8, UTF8, VARYING, ZSTD, bytes, one_chunk, row,
};
use crate::support::build::{ABSENT, Chunk, column};

const BLOCKED_RAW: u16 = BLOCKS;
const BLOCKED_ZSTD: u16 = BLOCKS | ZSTD;
const BLOCKED_RESIDUALS: u16 = BLOCKS | RESIDUAL_TIERS;

/// The length of the tables of tiers.
pub const TIER_TABLES: usize = 48;

/// The elements and stored bytes of all blocks: of short ones, and of a chunk whose block index is
/// read on its own.
const LENGTHS: [u32; 2] = [2000, 20_000];

/// A block index and the blocks after it.
pub struct StoredPart {
    pub block_index_bytes: Option<u32>,
    pub block_count: Option<u32>,
    pub tables: Vec<u8>,
    /// `end` and `stored_end` of each block.
    pub entries: Vec<(u32, u32)>,
    pub filling: usize,
    pub blocks: Vec<u8>,
}

impl StoredPart {
    /// Returns four blocks of bytes of equal length.
    fn new(length: u32) -> Self {
        Self {
            block_index_bytes: None,
            block_count: None,
            tables: Vec::new(),
            entries: (1..=4).map(|block| (length / 4 * block, length / 4 * block)).collect(),
            filling: 0,
            blocks: (0..length).map(|i| i as u8).collect(),
        }
    }

    /// Returns the stored bytes of a part. All checksums that can be correct are.
    fn bytes(&self, encoding: u16) -> Vec<u8> {
        let (of_index, of_blocks) = match encoding ^ BLOCKS {
            0 => (64, 1),
            4..=6 => (16, 16),
            _ => (1, 1),
        };
        let length = 8 + self.tables.len() + 12 * self.entries.len() + 4;
        let length = length.next_multiple_of(of_index) + self.filling;
        let block_index_bytes = self.block_index_bytes.unwrap_or(length as u32);
        let block_count = self.block_count.unwrap_or(self.entries.len() as u32);
        let mut stored = [block_index_bytes.to_le_bytes(), block_count.to_le_bytes()].concat();
        stored.extend(&self.tables);
        let mut start = 0;
        for (block, &(end, stored_end)) in self.entries.iter().enumerate() {
            let is_last = block + 1 == self.entries.len();
            let padded = if is_last { stored_end as usize } else { (stored_end as usize).next_multiple_of(of_blocks) };
            let block = self.blocks.get(start..padded).unwrap_or(&[]);
            stored.extend([end, stored_end, crc32fast::hash(block)].into_iter().flat_map(u32::to_le_bytes));
            start = padded;
        }
        stored.resize(length, 0);
        stored.extend(&self.blocks);
        if let Some(covered) =
            (block_index_bytes as usize).checked_sub(4).filter(|&covered| covered + 4 <= stored.len())
        {
            let crc = crc32fast::hash(&stored[..covered]);
            stored[covered..covered + 4].copy_from_slice(&crc.to_le_bytes());
        }
        stored
    }

    /// Returns a file of a column of bytes with these values, in samples of 100.
    fn of_bytes(&self, length: u32) -> Vec<u8> {
        self.file(bytes(&[100]), BLOCKED_RAW, length / 100, length)
    }

    /// Returns a file of this column, whose only chunk has these values.
    pub fn file(&self, column: Vec<u8>, encoding: u16, samples: u32, raw_bytes: u32) -> Vec<u8> {
        one_chunk(column, &Chunk::of_values(samples, (encoding, raw_bytes, &self.bytes(encoding))))
    }
}

/// Tables of tiers of one bit each, without a transform.
pub fn tier_tables() -> [u8; TIER_TABLES] {
    let mut tables = [0; TIER_TABLES];
    tables[16..19].fill(1);
    tables
}

/// Returns block indexes that refuses, in chunks of both lengths.
pub fn block_indexes() -> Vec<Row> {
    LENGTHS.into_iter().flat_map(malformed).chain(large()).chain(LENGTHS.into_iter().flat_map(of_tables)).collect()
}

fn malformed(length: u32) -> Vec<Row> {
    let changed = |what: &str, change: &dyn Fn(&mut StoredPart)| {
        let mut stored = StoredPart::new(length);
        change(&mut stored);
        row(format!("{what}, in {length}"), stored.of_bytes(length), Reading("R-5.14", "R-5.14"))
    };
    let (quarter, block_index) = (length / 4, 64);
    let entries = |ends: [u32; 4], stored_ends: [u32; 4]| {
        move |stored: &mut StoredPart| stored.entries = ends.into_iter().zip(stored_ends).collect()
    };
    let both = |ends| entries(ends, ends);
    let right = [1, 2, 3, 4].map(|block| quarter * block);
    let all = length;
    vec![
        changed("blocks that overlap", &both([quarter, 3 * quarter, 2 * quarter, all])),
        changed("a block before the first", &both([all, quarter, 3 * quarter, all])),
        changed("blocks that end in the block index", &both([u32::MAX - block_index + 1, u32::MAX, quarter, all])),
        changed("blocks whose elements descend", &entries([quarter, 3 * quarter, 2 * quarter, all], right)),
        changed("blocks whose stored bytes descend", &entries(right, [quarter, 3 * quarter, 2 * quarter, all])),
        changed("blocks of nothing", &entries([0, 0, 0, all], [0, 0, 0, all])),
        changed("blocks that end 4 GiB away", &entries([u32::MAX; 4], [u32::MAX; 4])),
        changed("a block of 4 GiB before the last", &entries([1, 2, u32::MAX, all], [1, 2, u32::MAX, all])),
        changed("a last block of 2^32 - 1 elements", &entries([1, 2, 3, u32::MAX], right)),
        changed("2^32 - 1 blocks", &|stored| stored.block_count = Some(u32::MAX)),
        changed("entries of more than 2^32 bytes", &|stored| stored.block_count = Some(u32::MAX / 12 + 5)),
        changed("no blocks", &|stored| stored.block_count = Some(0)),
        changed("one block", &|stored| stored.entries = vec![(all, all)]),
        changed("fewer blocks than are listed", &|stored| stored.block_count = Some(3)),
        changed("a block index of 4 GiB", &|stored| stored.block_index_bytes = Some(u32::MAX)),
        changed("a block index one byte longer than its chunk", &|stored| {
            stored.block_index_bytes = Some(block_index + all + 1)
        }),
        changed("a block index as long as its chunk", &|stored| stored.block_index_bytes = Some(block_index + all)),
        changed("a block index of no bytes", &|stored| stored.block_index_bytes = Some(0)),
        changed("a block index of one byte", &|stored| stored.block_index_bytes = Some(1)),
        changed("a block index without a checksum", &|stored| stored.block_index_bytes = Some(8)),
        changed("blocks that begin within the entries", &|stored| stored.block_index_bytes = Some(48)),
        changed("a block index with 64 zero bytes more", &|stored| stored.filling = 64),
    ]
}

/// Returns tables that are cut off, and faults that only tables can have.
fn of_tables(length: u32) -> Vec<Row> {
    let both = |rule| Reading(rule, rule);
    let of_tiers = |what: &str, tables: &[u8], block_index_bytes: Option<u32>, rule| {
        let stored = StoredPart { tables: tables.to_vec(), block_index_bytes, ..StoredPart::new(length) };
        let file = stored.file(bytes(&[100]), BLOCKED_RESIDUALS, length / 100, length);
        row(format!("{what}, in {length}"), file, both(rule))
    };
    let of_texts = |what: &str, tables: &[u8], rule| {
        let stored = StoredPart { tables: tables.to_vec(), ..StoredPart::new(length) };
        let file = stored.file(bytes(&[100]), BLOCKED_ZSTD, length / 100, length);
        row(format!("{what}, in {length}"), file, both(rule))
    };
    let shape: Vec<u8> = (1..=length / 100).flat_map(|i| (100 * i).to_le_bytes()).collect();
    let block_count = Some(u32::MAX);
    let in_shape = StoredPart { blocks: shape.clone(), block_count, ..StoredPart::new(shape.len() as u32) };
    let values = vec![b'x'; length as usize];
    let parts = [ABSENT, (BLOCKED_RAW, shape.len() as u32, &in_shape.bytes(BLOCKED_RAW)[..]), (0, length, &values[..])];
    let of_shape = one_chunk(column("x", UTF8, false, &[VARYING]), &Chunk::of_parts(length / 100, parts));
    vec![
        of_tiers("a block index that ends in its tables", &[0; TIER_TABLES], Some(8 + 30), "R-5.14"),
        of_tiers("tiers without tables", &[], None, "R-5.14"),
        of_tiers("tiers of no width", &[0; TIER_TABLES], None, "R-5.8"),
        of_texts("texts with the missing table 2^32 - 2", &(u32::MAX - 1).to_le_bytes(), "R-5.13"),
        of_texts("blocks that are not frames", &NO_TABLE, "R-5.5"),
        row(format!("a shape in 2^32 - 1 blocks, in {length}"), of_shape, both("R-5.14")),
    ]
}

/// Returns chunks that claim to decode to 4 GiB.
fn large() -> Vec<Row> {
    let of = |encoding: u16, tables: &[u8], entries: &[(u32, u32)], dtype: u8, raw_bytes: u32| {
        let stored = StoredPart { tables: tables.to_vec(), entries: entries.to_vec(), ..StoredPart::new(20_000) };
        let width = if dtype == U8 { 1 } else { 4 };
        stored.file(column("x", dtype, false, &[raw_bytes / width]), encoding, 1, raw_bytes)
    };
    let refused = |rule| Reading(rule, "OverLimit");
    let second = [(1, 1), (MAX_CHUNK_BYTES, 20_000)];
    let quarters = [1, 2, 3, 4].map(|k| (MAX_CHUNK_BYTES / 16 * k, 5000 * k));
    vec![
        row("a block of 4 GiB of elements", of(BLOCKED_RAW, &[], &second, U8, MAX_CHUNK_BYTES), refused("R-5.3")),
        row("four blocks of 1 GiB", of(BLOCKED_RAW, &[], &quarters, F32, MAX_CHUNK_BYTES / 4 * 4), refused("R-5.3")),
        row(
            "a block of 4 GiB that is not a frame",
            of(BLOCKED_ZSTD, &NO_TABLE, &second, U8, MAX_CHUNK_BYTES),
            refused("R-5.5"),
        ),
        row(
            "a block of 4 GiB of residuals",
            of(BLOCKED_RESIDUALS, &tier_tables(), &second, U8, MAX_CHUNK_BYTES),
            refused("R-5.14"),
        ),
    ]
}
