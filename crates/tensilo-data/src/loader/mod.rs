//! The loader: batches that are ready before the consumer asks for them.

mod batch;
mod batch_iterator;
mod batch_reader;
mod columns;
mod conversion;
mod damage;
mod handle;
mod memory;
mod metrics;
mod options;
mod padding;
mod parts;
mod policies;
mod queue;
mod read_ahead;
mod sample_reader;
mod schedule;
mod setup;

pub use batch::{Batch, BatchColumn};
pub use batch_iterator::BatchIterator;
pub use handle::Loader;
pub use memory::{BatchAllocator, BatchMemory};
pub use metrics::LoaderMetrics;
pub use options::LoaderOptions;
pub use padding::Padding;
pub use policies::{BatchMap, Interrupt, OnDamage, ReadAhead};
pub use sample_reader::SampleReader;
