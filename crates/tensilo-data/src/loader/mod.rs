//! The loader: batches that are ready before the consumer asks for them.
//!
//! A thread takes a batch through five stages, and several threads have a batch each, so that some
//! wait for storage while others decode:
//!
//! | stage | what it does |
//! |---|---|
//! | `plan` | from the number of a step to its samples, and to the files that have them |
//! | `fetch` | the bytes: opens the files, finds the chunks, reads; announces what follows |
//! | `decode` | from the bytes to the memory of the batch |
//! | `transform` | casts, padding, and the function of the caller |
//! | `deliver` | batches in order, and their memory, which is used again |
//!
//! With a GPU, `device` collects blocks in place of decoding them, and launches batches.
//!
//! [`batch_reader`] is the sequence of these stages; it is a thread's own. What the threads share
//! never changes ([`setup`]) but for the queue of batches, permits to decode and what was
//! announced.

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
pub use transform::BatchMap;
pub use transform::padding::Padding;
