//! The dataset and the jobs of the model.

use crate::dataset_model::{DatasetModel, HEADER_BYTES, OpeningRead};
use crate::epoch::Job;

/// Returns 10^12 samples of 512 BF16 values in 10^5 files, stored with the profile `fast` at the
/// ratio of embeddings in `benchmarks.md`, 1.478.
pub fn dataset() -> DatasetModel {
    let (sample_bytes, chunk_samples) = (1024, 64);
    let stored = (sample_bytes * chunk_samples * 1000_u64).div_ceil(1478);
    DatasetModel {
        files: 100_000,
        file_samples: 10_000_000,
        sample_bytes,
        start_bytes: START_BYTES,
        chunk_samples,
        chunk_bytes: (HEADER_BYTES + stored).next_multiple_of(64),
        block_samples: 8,
        block_index_bytes: BLOCK_INDEX_BYTES,
        opening: OPENING.to_vec(),
        end_bytes: END_BYTES,
    }
}

/// The reads that open a file of one column. A test compares them with a real file.
pub const OPENING: [OpeningRead; 6] = [
    OpeningRead { offset: 0, is_from_end: false, bytes: 64 },
    OpeningRead { offset: 64, is_from_end: false, bytes: 25 },
    OpeningRead { offset: 64, is_from_end: true, bytes: 64 },
    OpeningRead { offset: 64, is_from_end: true, bytes: 64 },
    OpeningRead { offset: 320, is_from_end: true, bytes: 64 },
    OpeningRead { offset: 256, is_from_end: true, bytes: 145 },
];
/// The bytes of the header.
pub const START_BYTES: u64 = 128;
/// The bytes of the block index of a chunk.
const BLOCK_INDEX_BYTES: u64 = 160;
/// The bytes of footer and trailer.
pub const END_BYTES: u64 = 320;

/// One machine with eight ranks, and 64 such machines.
pub const ONE_NODE: Job = Job { batch: 256, world_size: 8, node_ranks: 8, step_seconds: 0.2 };
pub const MANY_NODES: Job = Job { world_size: 512, ..ONE_NODE };
