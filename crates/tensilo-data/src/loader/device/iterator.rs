//! Batches on a GPU, launched before they are requested.
//!
//! While the consumer works with a batch, the GPU copies and decodes the next batches, if the
//! threads have read them. States, receipts and metrics cover the batches that the consumer has
//! taken, not the batches in flight. So if a job stops and resumes, no launched batch is lost.

use crate::error::{DataError, Result};
use crate::loader::deliver::batch::Batch;
use crate::loader::deliver::batch_iterator::BatchIterator;
use crate::loader::metrics::LoaderMetrics;
use crate::order::{Receipt, State};
use crate::sys::device::{DeviceAllocator, LaunchInMemory};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The maximum number of launched batches: one being delivered, one being decoded, and one being
/// copied.
const MAX_IN_FLIGHT: usize = 3;

/// An iterator that decodes ahead. It returns the batches of a rank in order, each with its GPU
/// memory. [`BatchIterator::on_device`] creates one.
///
/// When a batch is delivered, the GPU has decoded it, so operations on any stream see its values.
/// If a batch cannot be read or decoded, the iterator returns an error in its place, like
/// [`BatchIterator`]. If the allocator fails, the error is [`DataError::Memory`], no batch is lost,
/// and the next call tries again.
pub struct DeviceIterator<A: DeviceAllocator> {
    batches: BatchIterator,
    allocator: A,
    /// A batch that has no memory yet.
    waiting: Option<Batch>,
    in_flight: VecDeque<InFlight<A::Memory>>,
    /// The number of steps that the consumer has taken.
    taken: u64,
    receipt: Receipt,
    /// The numbers of delivered batches, samples, and bytes of values.
    delivered: [u64; 3],
    /// Whether `batches` has no more batches.
    is_over: bool,
}

struct InFlight<M> {
    launched: Result<LaunchInMemory<M>>,
    /// The number of steps up to and including this batch.
    taken: u64,
}

impl<A: DeviceAllocator> fmt::Debug for DeviceIterator<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} of them in flight", self.batches, self.in_flight.len())
    }
}

impl BatchIterator {
    /// Decodes the remaining batches on the GPU that was passed to
    /// [`LoaderOptions::decode_on`](crate::LoaderOptions::decode_on), into memory from an
    /// allocator. A [`Gpu`](tensilo_cuda::Gpu) is itself an allocator.
    pub fn on_device<A: DeviceAllocator>(self, allocator: A) -> DeviceIterator<A> {
        DeviceIterator {
            taken: self.taken(),
            receipt: self.receipt(),
            batches: self,
            allocator,
            waiting: None,
            in_flight: VecDeque::new(),
            delivered: [0; 3],
            is_over: false,
        }
    }
}

impl<A: DeviceAllocator> DeviceIterator<A> {
    /// Returns the state after the batches that were taken; see [`BatchIterator::state`].
    pub fn state(&self) -> State {
        self.batches.state_after(self.taken, self.receipt)
    }

    /// Like [`BatchIterator::wait`]. A batch in flight counts as ready.
    pub fn wait(&self, timeout: Duration) -> bool {
        !self.in_flight.is_empty() || self.waiting.is_some() || self.batches.wait(timeout)
    }

    /// Returns what the loader has done so far; see [`BatchIterator::metrics`].
    pub fn metrics(&self) -> LoaderMetrics {
        let [batches, samples, value_bytes] = self.delivered;
        LoaderMetrics { batches, samples, value_bytes, ..self.batches.metrics() }
    }

    /// Launches the batches that are ready, and waits for one if none is in flight. Fails if the
    /// allocator fails.
    fn launch_ready(&mut self) -> Result<()> {
        while self.in_flight.len() < MAX_IN_FLIGHT {
            let is_ready = self.in_flight.is_empty() || self.waiting.is_some() || self.batches.wait(Duration::ZERO);
            if !is_ready || (self.is_over && self.waiting.is_none()) {
                break;
            }
            let batch = match self.waiting.take() {
                Some(batch) => Ok(batch),
                None => match self.batches.next() {
                    Some(batch) => batch,
                    None => {
                        self.is_over = true;
                        break;
                    }
                },
            };
            let launched = match batch {
                Ok(batch) => match self.allocator.allocate(batch.device_bytes().unwrap_or(0)) {
                    Ok(memory) => LaunchInMemory::new::<A>(batch, memory),
                    Err(error) => {
                        self.waiting = Some(batch);
                        return Err(DataError::Memory(error));
                    }
                },
                Err(error) => Err(error),
            };
            self.in_flight.push_back(InFlight { launched, taken: self.batches.taken() });
        }
        Ok(())
    }
}

impl<A: DeviceAllocator> Iterator for DeviceIterator<A> {
    type Item = Result<(Batch, A::Memory)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.launch_ready() {
            return Some(Err(error));
        }
        let InFlight { launched, taken } = self.in_flight.pop_front()?;
        self.taken = taken;
        Some(launched.and_then(|launched| {
            let (batch, memory) = launched.finish(self.batches.counters())?;
            self.receipt = self.receipt.plus(batch.receipt());
            let bytes: u64 = batch.columns().iter().map(|column| column.byte_count() as u64).sum(); // exact
            for (delivered, more) in self.delivered.iter_mut().zip([1, batch.indices().len() as u64, bytes]) {
                *delivered = delivered.saturating_add(more);
            }
            Ok((batch, memory))
        }))
    }
}
