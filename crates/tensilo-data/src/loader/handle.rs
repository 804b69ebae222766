//! The public handles of a loader: [`Loader`] and [`SampleReader`].
//!
//! A [`Loader`] holds only a setup and starts no threads. Its iterators have threads and deliver
//! the batches of epochs in order. A [`SampleReader`] reads arbitrary samples on the calling
//! thread. Both run the same [`BatchReader`], so they deliver the same values.

use super::batch_reader::{BatchReader, Shared};
use super::decode::ReadFailure;
use super::deliver::batch::Batch;
use super::deliver::batch_iterator::BatchIterator;
use super::metrics::Counters;
use super::plan::schedule::{Schedule, StepStart};
use super::setup::Setup;
use crate::error::{DataError, Result};
use crate::io::Io;
use crate::order::{Receipt, State};
#[cfg(feature = "cuda")]
use crate::sys::device::{DeviceAllocator, LaunchInMemory};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Delivers the batches of a rank. Threads read them ahead of the consumer.
///
/// A loader has no threads and is cheap to clone; only its iterators have threads.
#[derive(Clone)]
pub struct Loader(Arc<Setup>);

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { division, rank, order, seed, .. } = &*self.0;
        write!(f, "rank {rank} of {division:?}, {order:?}, seed {seed}")
    }
}

impl Loader {
    pub(super) fn new(setup: Setup) -> Self {
        #[cfg(feature = "cuda")]
        let setup = with_host(setup);
        Self(Arc::new(setup))
    }

    /// Returns the batches of one epoch. Starts threads.
    pub fn epoch(&self, epoch: u64) -> BatchIterator {
        self.epochs(epoch..epoch.saturating_add(1))
    }

    /// Returns the batches of several epochs, without a pause between them.
    pub fn epochs(&self, epochs: Range<u64>) -> BatchIterator {
        let setup = self.0.for_this_process();
        let schedule = Schedule::for_epochs(&setup, epochs);
        BatchIterator::new(setup, schedule)
    }

    /// Returns the batches from a state to the end of its epoch, in the order of the state. The
    /// batch size and the number of ranks can be different from when the state was saved.
    ///
    /// Fails if the state belongs to a different dataset, view or number of samples, or if the
    /// loader was given a different order, seed or last batch. Cost: starts threads. The cost does
    /// not depend on the position.
    pub fn resume(&self, state: &State) -> Result<BatchIterator> {
        self.resume_until(state, state.epoch.saturating_add(1))
    }

    /// Like [`Loader::resume`], but continues up to the start of epoch `end`.
    pub fn resume_until(&self, state: &State, end: u64) -> Result<BatchIterator> {
        let setup = self.0.for_this_process();
        let schedule = Schedule::resume(&setup, state, end)?;
        Ok(BatchIterator::new(setup, schedule))
    }

    /// Returns the state at the start of an epoch. From it, [`Loader::resume`] delivers the whole
    /// epoch.
    pub fn state(&self, epoch: u64) -> State {
        Schedule::for_epochs(&self.0, epoch..epoch.saturating_add(1)).state(&self.0, 0, Receipt::default())
    }

    /// Fails if [`Loader::resume`] would fail with this state. Starts no threads.
    pub fn check(&self, state: &State) -> Result<()> {
        Schedule::resume(&self.0, state, state.epoch.saturating_add(1)).map(|_| ())
    }

    /// Returns the indices of the samples that this rank takes in the step that starts at a
    /// position of an epoch, including damaged ones. Fails if they do not fit in memory. Cost:
    /// one lookup in the order for each sample.
    pub fn indices(&self, epoch: u64, position: u64) -> Result<Vec<u64>> {
        let mut samples = Vec::new();
        let start = StepStart { epoch, position };
        Schedule::for_epochs(&self.0, epoch..epoch.saturating_add(1)).samples(start, &mut samples)?;
        Ok(samples)
    }

    /// Returns a reader of arbitrary samples of the view for the calling thread.
    pub fn reader(&self) -> SampleReader {
        let setup = self.0.for_this_process();
        let schedule = Schedule::for_epochs(&setup, 0..1);
        let counters = Arc::new(Counters::new());
        SampleReader::new(BatchReader::new(&Shared::new(&setup, schedule, 0, &counters)))
    }

    /// Returns how the files of the first dataset are read, and the reason in words.
    pub fn io(&self) -> (Io, &'static str) {
        let first = self.0.view.datasets().first();
        first.map_or((Io::Custom, ""), |first| (first.io(), first.io_reason()))
    }

    /// Returns the number of batches from a position of an epoch to its end.
    pub fn batches_from(&self, position: u64) -> u64 {
        self.0.division.steps(self.0.view.sample_count(), position)
    }

    /// Returns the number of batches of an epoch.
    pub fn batches_per_epoch(&self) -> u64 {
        self.batches_from(0)
    }
}

/// Gives the device a function that reads samples without the GPU. If the GPU refuses a block, this
/// function reports the error in detail.
#[cfg(feature = "cuda")]
fn with_host(mut setup: Setup) -> Setup {
    let on_host = Loader(Arc::new(setup.on_host()));
    if let Some(device) = &mut setup.device {
        let read = move |samples: &[u64], epoch: u64| on_host.reader().take_of(samples, epoch).map(drop);
        device.read_on_host = Some(Arc::new(read));
    }
    setup
}

/// Reads arbitrary samples as batches, with the columns, casts and paddings of a [`Loader`]. It has
/// no threads of its own, and each thread that reads needs its own reader.
pub struct SampleReader(BatchReader);

impl fmt::Debug for SampleReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SampleReader")
    }
}

impl SampleReader {
    fn new(reader: BatchReader) -> Self {
        Self(reader)
    }

    /// Reads samples of the view in the given order. A sample that is given several times is
    /// delivered several times. For a mixture, the samples are the ones of epoch 0.
    ///
    /// Fails if a sample is not in the view or is damaged; nothing is substituted. Cost: the same
    /// as for a batch of the loader. The loader reuses the memory when the batch is dropped.
    pub fn take(&mut self, samples: &[u64]) -> Result<Batch> {
        let n = self.0.schedule.n();
        if let Some(sample) = samples.iter().find(|sample| **sample >= n) {
            let message = format!("sample {sample} does not exist: the view has {n} samples, counted from 0");
            return Err(DataError::BadArgument(message));
        }
        self.take_of(samples, 0)
    }

    /// Like [`SampleReader::take`], but decodes the samples on the GPU that was passed to
    /// [`LoaderOptions::decode_on`](super::LoaderOptions::decode_on), into memory from an
    /// allocator. Returns once the samples are decoded.
    #[cfg(feature = "cuda")]
    pub fn take_on_device<A: DeviceAllocator>(
        &mut self,
        samples: &[u64],
        allocator: &mut A,
    ) -> Result<(Batch, A::Memory)> {
        let batch = self.take(samples)?;
        let memory = allocator.allocate(batch.device_bytes().unwrap_or(0)).map_err(DataError::Memory)?;
        LaunchInMemory::new::<A>(batch, memory)?.finish(&self.0.counters)
    }

    /// Reads samples of an epoch.
    fn take_of(&mut self, samples: &[u64], epoch: u64) -> Result<Batch> {
        let mut columns = self.0.columns();
        self.0.fill(samples, epoch, &mut columns).map_err(ReadFailure::into_error)?;
        let mut batch = self.0.batch(samples.to_vec(), columns, epoch);
        self.0.transform(&mut batch)?;
        Ok(batch)
    }
}
