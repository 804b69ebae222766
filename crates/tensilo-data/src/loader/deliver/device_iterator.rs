//! Batches on a GPU, launched before they are asked for.
//!
//! While the consumer works with a batch, the next ones are copied and decoded: as many as
//! [`IN_FLIGHT`], if the threads have them ready. States and metrics are those of the batches that
//! the consumer has taken, not those in flight.

use super::batch::Batch;
use super::batch_iterator::BatchIterator;
use crate::error::Result;
use crate::loader::metrics::LoaderMetrics;
use crate::state::State;
use crate::sys::device::{DeviceAllocator, LaunchedTo};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// Batches that are copied and decoded ahead of the consumer: one that is decoded, and one that is
/// copied meanwhile.
const IN_FLIGHT: usize = 2;

/// The batches of a rank in the memory of a GPU, in order, each with its memory: an iterator that
/// decodes ahead. [`BatchIterator::on_device`] makes one.
///
/// The values of a batch are complete when it is delivered, for operations of any stream. A batch
/// that cannot be read or decoded is an error in its place, as without a GPU.
pub struct DeviceIterator<A: DeviceAllocator> {
    batches: BatchIterator,
    allocator: A,
    in_flight: VecDeque<InFlight<A::Memory>>,
    state: State,
    /// The batches that were taken, their samples, and the bytes of their values.
    taken: [u64; 3],
    /// The threads have no more batches.
    is_over: bool,
}

struct InFlight<M> {
    launched: Result<LaunchedTo<M>>,
    /// The state after the batch.
    state: State,
}

impl<A: DeviceAllocator> fmt::Debug for DeviceIterator<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} of them in flight", self.batches, self.in_flight.len())
    }
}

impl BatchIterator {
    /// Decodes the batches on the GPU of
    /// [`LoaderOptions::decode_on`](crate::LoaderOptions::decode_on), to memory of an allocator:
    /// that [`Gpu`](tensilo_cuda::Gpu) itself is one.
    pub fn on_device<A: DeviceAllocator>(self, allocator: A) -> DeviceIterator<A> {
        let state = self.state();
        DeviceIterator { batches: self, allocator, in_flight: VecDeque::new(), state, taken: [0; 3], is_over: false }
    }
}

impl<A: DeviceAllocator> DeviceIterator<A> {
    /// Returns the state after the batches that were taken, see [`BatchIterator::state`].
    pub fn state(&self) -> State {
        self.state
    }

    /// As [`BatchIterator::wait`]. A batch in flight counts as ready.
    pub fn wait(&self, timeout: Duration) -> bool {
        !self.in_flight.is_empty() || self.batches.wait(timeout)
    }

    /// Returns what the loader did until now, see [`BatchIterator::metrics`].
    pub fn metrics(&self) -> LoaderMetrics {
        let [batches, samples, value_bytes] = self.taken;
        LoaderMetrics { batches, samples, value_bytes, ..self.batches.metrics() }
    }

    /// Launches batches that are ready.
    fn launch_ahead(&mut self) {
        while self.in_flight.len() < IN_FLIGHT && !self.is_over && self.batches.wait(Duration::ZERO) {
            self.launch_next();
        }
    }

    /// Waits for a batch, and launches it.
    fn launch_next(&mut self) {
        let Some(batch) = self.batches.next() else {
            self.is_over = true;
            return;
        };
        let launched = batch.and_then(|batch| LaunchedTo::new(batch, &mut self.allocator));
        self.in_flight.push_back(InFlight { launched, state: self.batches.state() });
    }
}

impl<A: DeviceAllocator> Iterator for DeviceIterator<A> {
    type Item = Result<(Batch, A::Memory)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.in_flight.is_empty() {
            self.launch_next();
        }
        let InFlight { launched, state, .. } = self.in_flight.pop_front()?;
        self.state = state;
        // before this one is waited for, so that the GPU has work meanwhile
        self.launch_ahead();
        Some(launched.and_then(|launched| {
            let (batch, memory) = launched.finish(self.batches.counters())?;
            let bytes: u64 = batch.columns().iter().map(|column| column.byte_count() as u64).sum(); // exact
            for (taken, more) in self.taken.iter_mut().zip([1, batch.samples().len() as u64, bytes]) {
                *taken = taken.saturating_add(more);
            }
            Ok((batch, memory))
        }))
    }
}
