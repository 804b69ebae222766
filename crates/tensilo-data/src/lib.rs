//! Datasets of many tensilo files, and a loader that delivers their samples to training jobs.
//!
//! A [`Loader`] reads the batches of a [`View`] ahead of the training loop. [`LoaderOptions`]
//! creates one, and each epoch is a [`BatchIterator`] with its own threads. A [`State`] has
//! everything that a job needs to continue, on any number of machines.
//!
//! ```
//! use half::bf16;
//! use tensilo_data::{Dataset, LoaderOptions, State, LastBatch, View};
//! # use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, Writer, WriterOptions};
//!
//! # let temporary = tempfile::tempdir()?;
//! # let folder = temporary.path().join("train");
//! # let embedding = ColumnSchema::tensor("embedding", DType::Bf16, Shape::fixed(&[4]));
//! # let mut changes = Dataset::create(&folder)?;
//! # let path = changes.next_path()?;
//! # let mut writer = Writer::create(&path, Schema::new([embedding]), &WriterOptions::new())?;
//! # writer.push_batch(&[ColumnBatch::fixed(100, &[bf16::ONE; 100 * 4])])?;
//! # writer.finish()?;
//! # changes.add_file(&path)?;
//! # changes.publish("create")?;
//! // a folder of 100 samples, as `tensilo convert` writes it
//! let view = View::all(&Dataset::open(&folder)?);
//! let options = || LoaderOptions::new(32).columns(["embedding"]).last_batch(LastBatch::Exact);
//! let loader = options().seed(1).loader(&view)?;
//! let mut batches = loader.epoch(0); // starts threads that read ahead
//! let batch = batches.next().ok_or("no batch")??;
//! let values: &[bf16] = batch.column("embedding")?.values()?;
//! assert_eq!(values.len(), 32 * 4);
//! let checkpoint = batches.state().to_bytes(); // 96 bytes
//!
//! // another process, as rank 0 of 2: the seed comes from the state
//! let state = State::from_bytes(&checkpoint)?;
//! let mut samples = 0;
//! for batch in options().rank(0, 2).loader(&view)?.resume(&state)? {
//!     samples += batch?.indices().len();
//! }
//! assert_eq!(samples, (100 - 32) / 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Dataset`] reads files as one sequence of samples: the files that the manifest of a folder
//! lists, or any list of files. [`Changes`] append samples, add, rename and drop columns, repack
//! files, and publish the result as a new version, which appears either complete or not at all. A
//! [`WriteJob`] publishes files that many processes have written. [`Garbage`] removes old versions.
//!
//! This crate implements `format-spec/ORDER.md`, which defines the order, and
//! `format-spec/MANIFEST.md`, which defines the manifest.
//!
//! # The order on its own
//!
//! The order is computed, not stored. An [`EpochOrder`] finds the sample at any position of an
//! epoch, and the position of any sample, in nanoseconds. A [`Division`] says which positions each
//! rank takes in each step. A [`Receipt`] proves that two jobs took the same samples. An order
//! applies to a view, such as a [`Split`], a [`SampleList`] or a [`Mixture`]. Loaders use all of
//! these. A program that reads samples itself can use them as follows:
//!
//! ```
//! use tensilo_data::{Division, EpochOrder, Order, LastBatch};
//!
//! // rank 1 of 4, batches of 8 samples, in epoch 0
//! let (samples, rank) = (1_000, 1);
//! let order = EpochOrder::new(Order::Shuffled, samples, 42, 0);
//! let division = Division::new(8, 4, LastBatch::Drop)?;
//! let (mut batch, mut taken) = (Vec::new(), 0);
//! for step in 0..division.steps(samples, 0) {
//!     division.positions(&order, step * division.step_samples(), rank, &mut batch)?;
//!     order.replace_with_samples(&mut batch)?;
//!     assert_eq!(batch.len(), 8);
//!     taken += batch.len();
//! }
//! assert_eq!(taken, 31 * 8);
//! # Ok::<(), tensilo_data::DataError>(())
//! ```

#![deny(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod dataset;
mod error;
mod io;
mod loader;
mod manifest;
pub mod model;
mod order;
#[allow(unsafe_code, reason = "memory maps, and memory that the kernel writes to; every use has a SAFETY comment")]
mod sys;
mod view;

pub use dataset::{
    Changes, DataFile, Dataset, DatasetOptions, Garbage, GroupFile, JobFile, SalvagedFile, SampleGroup, SampleLocation,
    WriteJob,
};
pub use error::DataError;
pub use io::Io;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
pub use io::UringFile;
pub use loader::{
    Batch, BatchAllocator, BatchColumn, BatchIterator, BatchMemory, BatchTransform, Interrupt, Loader, LoaderMetrics,
    LoaderOptions, OnDamage, Padding, ReadAhead, SampleReader,
};
#[cfg(feature = "cuda")]
pub use loader::{DeviceBatch, DeviceIterator, ResidentColumn, ResidentSamples};
pub use order::{
    Division, EpochOrder, LastBatch, Order, Permutation, Receipt, State, WindowSizes, substitute_candidate,
};
#[cfg(feature = "cuda")]
pub use sys::device::DeviceAllocator;
pub use view::{Component, Mixture, SampleList, Split, View};

/// The examples of the guide, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/src/datasets.md")]
#[doc = include_str!("../../../docs/src/loading.md")]
struct GuideExamples;

/// The examples of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
