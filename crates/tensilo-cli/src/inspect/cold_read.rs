//! The cost of reading one sample that is in no cache.

use tensilo::Column;
use tensilo::facts::{ChunkBlocks, ColumnFacts};

/// The number of chunks in blocks of a column whose fronts are read.
const READ_FRONTS: u64 = 8;

/// The cost of one random sample of a column, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleCost {
    /// The decoded bytes of a block; `None` if no chunk is in blocks.
    pub(super) block_bytes: Option<u64>,
    /// The bytes that are read once for each chunk.
    pub(super) front_bytes: u64,
    /// The bytes that are read for the first sample of a chunk.
    pub(super) cold_read_bytes: u64,
    /// The quotient of these and the stored bytes of a sample; `None` if samples are stored in 0
    /// bytes.
    pub(super) read_amplification: Option<f64>,
}

impl SampleCost {
    /// Returns the cost for a column. The fronts of some chunks in blocks are read; those that are
    /// damaged are left out.
    pub(super) fn of(column: &Column) -> Self {
        let facts = column.facts();
        let in_blocks = facts.encodings.iter().any(|(name, _)| name.ends_with(" in blocks"));
        let sums = if in_blocks { Sums::of(column, &facts) } else { Sums::default() };
        // an approximation
        let sample_bytes = quotient(facts.stored_bytes, column.sample_count() as f64);
        let cold_read_bytes = sums.per_sample(sums.cold_bytes).unwrap_or_else(|| whole_chunk_bytes(&facts));
        Self {
            block_bytes: sums.raw_bytes.checked_div(sums.blocks),
            front_bytes: sums.per_sample(sums.front_bytes).unwrap_or(0),
            cold_read_bytes,
            read_amplification: sample_bytes.and_then(|bytes| quotient(cold_read_bytes, bytes)),
        }
    }
}

/// Sums over some chunks. Bytes of reads are multiplied by the samples that cost as much.
#[derive(Default)]
struct Sums {
    samples: u64,
    blocks: u64,
    raw_bytes: u64,
    front_bytes: u128,
    cold_bytes: u128,
}

impl Sums {
    fn of(column: &Column, facts: &ColumnFacts) -> Self {
        let mut sums = Self::default();
        let count = facts.chunk_count.min(READ_FRONTS);
        for number in 0..count {
            // the first, the last, and others at equal distances
            let last = u128::from(facts.chunk_count.saturating_sub(1));
            let chunk = (u128::from(number) * last).checked_div(u128::from(count.saturating_sub(1))).unwrap_or(0);
            let _ = sums.add(column, u64::try_from(chunk).unwrap_or(0)); // at most the last
        }
        sums
    }

    fn add(&mut self, column: &Column, chunk: u64) -> tensilo::Result<()> {
        let (info, cold, blocks) = (column.chunk(chunk)?, column.cold_read(chunk)?, column.blocks(chunk)?);
        let (Some(info), Some(cold)) = (info, cold) else { return Ok(()) };
        let samples = info.samples.end.saturating_sub(info.samples.start);
        self.samples = self.samples.saturating_add(samples);
        // below 2^67, of 8 chunks
        self.front_bytes += u128::from(samples) * u128::from(cold.front_bytes);
        // below 2^67, of 8 chunks
        self.cold_bytes += u128::from(samples) * u128::from(cold.bytes());
        for block in blocks.iter().flat_map(|ChunkBlocks { blocks, .. }| blocks) {
            self.blocks += 1; // bounded by the memory that they take
            self.raw_bytes = self.raw_bytes.saturating_add(block.raw_bytes);
        }
        Ok(())
    }

    fn per_sample(&self, bytes: u128) -> Option<u64> {
        u64::try_from(bytes.checked_div(u128::from(self.samples))?).ok()
    }
}

/// Returns head and body of a chunk, on average.
fn whole_chunk_bytes(facts: &ColumnFacts) -> u64 {
    const HEAD_BYTES: u64 = 64;
    match facts.stored_bytes.checked_div(facts.chunk_count) {
        Some(bytes) => bytes.saturating_add(HEAD_BYTES),
        None => 0,
    }
}

pub(super) fn quotient(amount: u64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| amount as f64 / divisor) // an approximation
}

pub(super) fn amplification_text(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}"))
}
