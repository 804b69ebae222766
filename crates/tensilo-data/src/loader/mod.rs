//! The loader: batches that are ready before the consumer requests them.
//!
//! A training step should not have to wait for storage or decoding. So a loader prepares several
//! batches at the same time, and a single thread takes each batch through five stages:
//!
//! | stage | what it does |
//! |---|---|
//! | `plan` | finds the samples of a step, the files that have them, and the chunks to read |
//! | `fetch` | reads the bytes of these chunks, and prefetches the runs that later batches need |
//! | `decode` | decodes the bytes into the memory of the batch |
//! | `transform` | casts and pads values, and calls the caller's function |
//! | `deliver` | hands batches to the consumer in order, and reuses their memory |
//!
//! With a GPU, `device` collects stored blocks instead of decoding them, and launches batches.
//!
//! A batch is the unit of work: no data passes from one thread to another between stages. There are
//! `io_depth` threads, and permits let at most `decode_threads` of them decode. A high I/O depth
//! thus hides the latency of storage, without more decoding threads than there are CPUs.
//!
//! The samples of a step are computed from its number. So the threads need no coordination beyond a
//! counter of steps, and a batch is the same whatever the number of threads. [`batch_reader`]
//! implements the work of one thread. All threads share the [`setup`], which never changes. The
//! only mutable state that they share is the queue of batches, the permits, the memory pool, the
//! counters and the state of prefetching.

mod batch_reader;
mod decode;
mod deliver;
#[cfg(feature = "cuda")]
mod device;
mod fetch;
mod handle;
mod metrics;
mod options;
mod plan;
mod setup;
mod transform;

pub use deliver::batch::{Batch, BatchColumn};
pub use deliver::batch_iterator::BatchIterator;
pub use deliver::memory::{BatchAllocator, BatchMemory};
#[cfg(feature = "cuda")]
pub use device::{DeviceBatch, DeviceIterator, ResidentColumn, ResidentSamples};
pub use handle::{Loader, SampleReader};
#[cfg(feature = "cuda")]
pub(crate) use metrics::Counters;
pub use metrics::LoaderMetrics;
pub use options::LoaderOptions;
pub use setup::{Interrupt, OnDamage, ReadAhead};
pub use transform::BatchTransform;
pub use transform::padding::Padding;
