//! The dataset and the jobs of the tables.

use std::time::Duration;
use tensilo_data::model::{ColumnModel, Job, OpeningRead, Storage};
use tensilo_data::{Order, WindowSizes};

/// Returns 10^12 samples of 512 BF16 values in 10^5 files, stored with the profile `fast` at the
/// ratio of embeddings in `benchmarks.md`, 1.478.
pub fn dataset() -> ColumnModel {
    dataset_with_chunks_of(64)
}

/// Returns the same samples in chunks of `chunk_samples` samples, which have 1 KiB each.
pub fn dataset_with_chunks_of(chunk_samples: u64) -> ColumnModel {
    let sample_bytes = 1024;
    let stored = (sample_bytes * chunk_samples * 1000_u64).div_ceil(1478);
    let chunk_bytes = (HEADER_BYTES + stored).next_multiple_of(64);
    ColumnModel {
        file_count: 100_000,
        file_samples: 10_000_000,
        sample_bytes,
        start_bytes: START_BYTES,
        chunk_samples,
        chunk_bytes,
        stride: chunk_bytes,
        block_samples: 8,
        block_index_bytes: BLOCK_INDEX_BYTES * chunk_samples / 64,
        opening: OpeningRead::ALL.to_vec(),
        end_bytes: END_BYTES,
    }
}

/// Returns the window sizes that a new dataset in this storage records.
pub fn window_sizes(dataset: &ColumnModel, storage: &Storage) -> WindowSizes {
    WindowSizes::for_dataset(dataset.sample_count(), dataset.stored_bytes(), storage.run_bytes)
}

/// Returns the windowed order with these sizes.
pub fn windowed(dataset: &ColumnModel, storage: &Storage) -> Order {
    Order::Windowed(window_sizes(dataset, storage))
}

/// The bytes of the header of a region.
const HEADER_BYTES: u64 = 64;
/// The bytes of the header of the file.
pub const START_BYTES: u64 = 128;
/// The bytes of the block index of a chunk of 64 samples.
const BLOCK_INDEX_BYTES: u64 = 160;
/// The bytes of footer and trailer.
pub const END_BYTES: u64 = 320;

/// One machine with eight ranks, 64 such machines, and 1,024.
pub const ONE_NODE: Job = Job { batch_size: 256, nodes: 1, node_ranks: 8, step: Duration::from_millis(200) };
pub const MANY_NODES: Job = Job { nodes: 64, ..ONE_NODE };
pub const LARGEST_JOB: Job = Job { nodes: 1024, ..ONE_NODE };
pub const JOBS: [Job; 3] = [ONE_NODE, MANY_NODES, LARGEST_JOB];
