//! The work of one thread: from the number of a step to the values of its batch.
//!
//! A [`BatchReader`] takes a batch through the stages: it prefetches the runs that later batches
//! need, then plans, fetches, decodes and transforms the batch. It owns the memory of these stages
//! and reuses it for the next batch. Permits limit how many threads decode at the same time. Only
//! decoding and the caller's function need one, so a thread that waits for storage does not keep
//! others from decoding.
//!
//! An error names only the first damaged sample of a batch. So if damaged samples are to be
//! substituted, the reader tests the samples of a failed batch one at a time, replaces the damaged
//! ones, and reads the batch again. This costs nothing for intact batches. A substitute depends
//! only on the sample, the seed and the epoch, so all ranks and all retries agree on it.

use super::decode::{BatchDecoder, ReadFailure};
use super::deliver::batch::{Batch, BatchColumn};
use super::deliver::queue::Semaphore;
#[cfg(feature = "cuda")]
use super::device::blocks::BatchBlocks;
#[cfg(feature = "cuda")]
use super::device::collect::collect;
use super::fetch::{RunPrefetcher, fetch};
use super::metrics::{Count, Counters};
use super::plan::schedule::Schedule;
use super::plan::segments::Segments;
use super::setup::{OnDamage, Setup};
use super::transform;
use crate::error::{DataError, Result};
use crate::order::{MAX_SUBSTITUTE_ATTEMPTS, Receipt, substitute_candidate};
use std::sync::Arc;

/// Reads batches into reused memory.
pub(super) struct BatchReader {
    setup: Arc<Setup>,
    pub(super) schedule: Schedule,
    permits: Arc<Semaphore>,
    pub(super) counters: Arc<Counters>,
    prefetcher: Arc<RunPrefetcher>,
    segments: Segments,
    decoder: BatchDecoder,
    /// The blocks of the samples that were read last, for the GPU to decode.
    #[cfg(feature = "cuda")]
    blocks: Option<BatchBlocks>,
}

/// State shared by all batch readers of an iterator.
pub(super) struct Shared {
    setup: Arc<Setup>,
    schedule: Schedule,
    permits: Arc<Semaphore>,
    counters: Arc<Counters>,
    prefetcher: Arc<RunPrefetcher>,
}

impl Shared {
    /// Returns the shared state for step `first` and all later steps.
    pub(super) fn new(setup: &Arc<Setup>, schedule: Schedule, first: u64, counters: &Arc<Counters>) -> Self {
        Self {
            setup: setup.clone(),
            schedule,
            permits: Arc::new(Semaphore::new(setup.threads.decode_threads)),
            counters: counters.clone(),
            prefetcher: Arc::new(RunPrefetcher::new(setup, &schedule, first)),
        }
    }
}

impl BatchReader {
    pub(super) fn new(shared: &Shared) -> Self {
        let Shared { setup, schedule, permits, counters, prefetcher } = shared;
        Self {
            setup: setup.clone(),
            schedule: *schedule,
            permits: permits.clone(),
            counters: counters.clone(),
            prefetcher: prefetcher.clone(),
            segments: Segments::default(),
            decoder: BatchDecoder::new(setup.columns.columns.len()),
            #[cfg(feature = "cuda")]
            blocks: None,
        }
    }

    /// Reads the batch of a step.
    pub(super) fn read(&mut self, step: u64) -> Result<Batch> {
        let start = self.schedule.start(step);
        let (mut samples, mut substituted) = (Vec::new(), Vec::new());
        self.schedule.samples(start, &mut samples)?;
        let Self { prefetcher, setup, schedule, counters, .. } = self;
        counters.time(Count::Fetching, || prefetcher.request(setup, schedule, start, &samples));
        let mut columns = self.columns();
        match self.fill(&samples, start.epoch, &mut columns) {
            Ok(()) => {}
            Err(failure) if failure.is_damage() && self.setup.on_damage == OnDamage::Substitute => {
                substituted = self.substitute(&mut samples, start.epoch, &mut columns)?;
                self.fill(&samples, start.epoch, &mut columns).map_err(ReadFailure::into_error)?;
            }
            Err(failure) => return Err(failure.into_error()),
        }
        let mut batch = self.batch(samples, columns, start.epoch);
        (batch.position, batch.substituted) = (start.position, substituted);
        self.transform(&mut batch)?;
        Ok(batch)
    }

    /// Prefetches runs of later batches. A thread calls this when it has delivered the batch of a
    /// step.
    pub(super) fn prefetch(&self, step: u64) {
        let start = self.schedule.start(step);
        self.counters.time(Count::Fetching, || self.prefetcher.prefetch(&self.setup, &self.schedule, start));
    }

    /// Calls the caller's function with a batch, while holding a permit to decode.
    pub(super) fn transform(&self, batch: &mut Batch) -> Result<()> {
        let Some(function) = &self.setup.transform else { return Ok(()) };
        self.permits.run(|| self.counters.time(Count::Decoding, || transform::run_transform(function, batch)))
    }

    /// Returns columns to fill, reusing memory if possible.
    pub(super) fn columns(&self) -> Vec<BatchColumn> {
        let mut columns = self.setup.pool.take().unwrap_or_default();
        columns.resize_with(self.setup.columns.columns.len(), BatchColumn::default);
        columns
    }

    /// Returns a batch of filled columns.
    pub(super) fn batch(&mut self, samples: Vec<u64>, columns: Vec<BatchColumn>, epoch: u64) -> Batch {
        let mut receipt = Receipt::default();
        samples.iter().for_each(|&sample| receipt.add(sample, epoch));
        let pool = Some(self.setup.pool.clone());
        Batch {
            epoch,
            position: 0,
            samples,
            substituted: Vec::new(),
            receipt,
            columns,
            pool,
            #[cfg(feature = "cuda")]
            blocks: self.blocks.take(),
        }
    }

    /// Fills columns with samples of the view.
    pub(super) fn fill(
        &mut self,
        samples: &[u64],
        epoch: u64,
        columns: &mut [BatchColumn],
    ) -> std::result::Result<(), ReadFailure> {
        let filled = self.fill_columns(samples, epoch, columns);
        self.segments.release();
        filled
    }

    fn fill_columns(
        &mut self,
        samples: &[u64],
        epoch: u64,
        columns: &mut [BatchColumn],
    ) -> std::result::Result<(), ReadFailure> {
        let Self { setup, segments, decoder, permits, counters, .. } = self;
        counters.time(Count::Planning, || segments.find(setup, samples, epoch)).map_err(ReadFailure::Fatal)?;
        counters.time(Count::Planning, || segments.plan(setup)).map_err(ReadFailure::Failed)?;
        #[cfg(feature = "cuda")]
        if let Some(device) = &setup.device {
            segments.all_mut().iter_mut().for_each(|segment| device.give_memory(&segment.plan, &mut segment.bytes));
        }
        counters.time(Count::Fetching, || fetch(segments, setup)).map_err(ReadFailure::Failed)?;
        counters.add(Count::ReadBytes, segments.iter().map(|segment| segment.plan.fetched_bytes()).sum());
        #[cfg(feature = "cuda")]
        if let Some(device) = &setup.device {
            let collect = || collect(decoder, setup, device, segments, samples.len(), columns);
            let blocks = permits.run(|| counters.time(Count::Decoding, collect))?;
            // these blocks are left over from a failed attempt or a test for damage
            if let Some(BatchBlocks { list, device, .. }) = self.blocks.replace(blocks) {
                device.put_list(list);
            }
            return Ok(());
        }
        permits.run(|| counters.time(Count::Decoding, || decoder.decode(setup, segments, samples.len(), columns)))
    }

    /// Tests samples one at a time, in the memory of `scratch`. Replaces damaged samples, and
    /// returns their positions in the batch.
    fn substitute(&mut self, samples: &mut [u64], epoch: u64, scratch: &mut [BatchColumn]) -> Result<Vec<usize>> {
        let mut substituted = Vec::new();
        for (position, sample) in samples.iter_mut().enumerate() {
            if !self.is_intact(*sample, epoch, scratch)? {
                *sample = self.find_substitute(*sample, epoch, scratch)?;
                substituted.push(position);
            }
        }
        self.counters.add(Count::Substitutes, substituted.len() as u64); // exact
        Ok(substituted)
    }

    fn find_substitute(&mut self, sample: u64, epoch: u64, scratch: &mut [BatchColumn]) -> Result<u64> {
        for attempt in 0..MAX_SUBSTITUTE_ATTEMPTS {
            let candidate = substitute_candidate(self.schedule.n(), self.schedule.seed(), epoch, sample, attempt);
            if let Some(candidate) = candidate
                && self.is_intact(candidate, epoch, scratch)?
            {
                return Ok(candidate);
            }
        }
        // read the sample itself again, because its error describes the damage
        let read = self.fill(&[sample], epoch, scratch).map_err(ReadFailure::into_error);
        Err(read.err().unwrap_or_else(|| {
            DataError::Internal(format!("sample {sample} of the view was damaged, but reading it again succeeded"))
        }))
    }

    fn is_intact(&mut self, sample: u64, epoch: u64, scratch: &mut [BatchColumn]) -> Result<bool> {
        match self.fill(&[sample], epoch, scratch) {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_damage() => Ok(false),
            Err(failure) => Err(failure.into_error()),
        }
    }
}
