//! Iterators over the batches of an epoch, on the host or on a GPU, and the loader's [`Cursor`].
//!
//! Waiting for a batch must not hold the GIL, must be interruptible by Ctrl-C, and must not hang in
//! a forked process. So an iterator waits in short steps, checks for signals between them, and
//! never waits for a lock that a thread of the parent process may hold.
//!
//! The cursor records the progress of the training loop. An iterator advances the cursor with each
//! batch that it delivers, unless the loader has started a newer iterator. If several threads share
//! an iterator, the cursor keeps the state that is furthest ahead.

use crate::batch::Batch;
use crate::error::exception;
use crate::loader::gpu::{PythonAllocator, PythonMemory};
use crate::work::SIGNAL_POLL_INTERVAL;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use tensilo_data::{BatchIterator, DataError, LoaderMetrics, State};

/// An iterator over the batches of an epoch.
#[pyclass(frozen, module = "tensilo", name = "BatchIterator")]
pub struct PyBatchIterator(pub Iteration<BatchIterator>);

/// An iterator over the batches of an epoch on a GPU. It yields each batch together with its
/// memory.
#[pyclass(frozen, module = "tensilo")]
pub struct DeviceIterator(pub Iteration<tensilo_data::DeviceIterator<PythonAllocator>>);

/// An iterator over prefetched batches.
pub trait Batches: Iterator<Item = Result<Self::Batch, DataError>> + Send {
    type Batch: Send;
    /// Whether a forked process can continue the iteration.
    const ARE_FORKED: bool;

    fn wait(&self, timeout: Duration) -> bool;

    /// Returns the state and the metrics after the delivered batches.
    fn reached(&self) -> StateAndMetrics;
}

impl Batches for BatchIterator {
    type Batch = tensilo_data::Batch;
    const ARE_FORKED: bool = true;

    fn wait(&self, timeout: Duration) -> bool {
        self.wait(timeout)
    }

    fn reached(&self) -> StateAndMetrics {
        (self.state(), self.metrics())
    }
}

impl Batches for tensilo_data::DeviceIterator<PythonAllocator> {
    type Batch = (tensilo_data::Batch, PythonMemory);
    const ARE_FORKED: bool = false; // only the process that opened a GPU can use it

    fn wait(&self, timeout: Duration) -> bool {
        self.wait(timeout)
    }

    fn reached(&self) -> StateAndMetrics {
        (self.state(), self.metrics())
    }
}

/// One iteration of a loader. It advances the loader's cursor.
pub struct Iteration<B: Batches> {
    process: u32,
    batches: Mutex<Option<B>>,
    cursor: Arc<Mutex<Cursor>>,
    iteration: u64,
}

/// The state after a batch, and the metrics.
type StateAndMetrics = (State, LoaderMetrics);

/// The outcome of waiting for a batch.
enum WaitOutcome<T> {
    Batch(T),
    Failed(DataError),
    End,
    Pending,
}

impl<B: Batches> Iteration<B> {
    pub fn new(batches: B, cursor: &Arc<Mutex<Cursor>>, iteration: u64) -> Self {
        Self { process: process::id(), batches: Mutex::new(Some(batches)), cursor: cursor.clone(), iteration }
    }

    /// Locks the batches. If another thread held the lock when the process was forked, the lock is
    /// never released in the child. There, this function fails instead of waiting.
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<B>>> {
        if self.process == process::id() {
            return Ok(self.batches.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if !B::ARE_FORKED {
            return Err(PyRuntimeError::new_err(
                "this process was forked after the loader was iterated and cannot use its GPU: start processes with spawn",
            ));
        }
        match self.batches.try_lock() {
            Ok(batches) => Ok(batches),
            Err(TryLockError::Poisoned(batches)) => Ok(batches.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "this process was forked while another thread took a batch: iterate over the loader again",
            )),
        }
    }

    /// Advances the cursor, unless a newer iteration has started or another thread is further
    /// ahead.
    fn advance(&self, state: &State, metrics: LoaderMetrics, is_over: bool) {
        let mut cursor = lock(&self.cursor);
        let at = |state: &State| (state.epoch, state.position);
        let is_newer = cursor.reached.is_none_or(|reached| at(&reached) <= at(state));
        if cursor.iteration != self.iteration || !is_newer {
            return;
        }
        (cursor.reached, cursor.metrics, cursor.has_taken) = (Some(*state), Some(metrics), true);
        if is_over {
            cursor.epoch = state.epoch; // the state after the last batch is in the next epoch
        }
    }

    /// Takes the next batch if it is ready within the polling interval.
    fn wait(&self) -> PyResult<(WaitOutcome<B::Batch>, Option<StateAndMetrics>)> {
        let mut batches = self.lock()?;
        let Some(running) = batches.as_mut() else { return Ok((WaitOutcome::End, None)) };
        if !running.wait(SIGNAL_POLL_INTERVAL) {
            return Ok((WaitOutcome::Pending, None));
        }
        let outcome = match running.next() {
            Some(Ok(batch)) => WaitOutcome::Batch(batch),
            Some(Err(error)) => WaitOutcome::Failed(error),
            None => WaitOutcome::End,
        };
        let reached = running.reached();
        if matches!(outcome, WaitOutcome::End) {
            *batches = None; // stops the threads
        }
        Ok((outcome, Some(reached)))
    }

    /// Returns the next batch. Waits without the GIL and checks for signals.
    fn next(&self, py: Python<'_>) -> PyResult<B::Batch> {
        loop {
            let (outcome, reached) = py.detach(|| self.wait())?;
            if let Some((state, metrics)) = reached {
                self.advance(&state, metrics, matches!(outcome, WaitOutcome::End));
            }
            match outcome {
                WaitOutcome::Batch(batch) => return Ok(batch),
                WaitOutcome::Failed(error) => return Err(exception(py, &error)),
                WaitOutcome::End => return Err(PyStopIteration::new_err(())),
                WaitOutcome::Pending => py.check_signals()?,
            }
        }
    }
}

impl<B: Batches> Drop for Iteration<B> {
    /// Joins the threads without the GIL.
    fn drop(&mut self) {
        let batches = self.batches.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let mut batches = Some(batches);
        // attaching fails while the interpreter shuts down
        Python::try_attach(|py| py.detach(|| drop(batches.take())));
    }
}

#[pymethods]
impl PyBatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Batch> {
        Ok(Batch::new(self.0.next(py)?))
    }
}

#[pymethods]
impl DeviceIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<(Batch, Py<PyAny>)> {
        let (batch, memory) = self.0.next(py)?;
        Ok((Batch::new(batch), memory.object))
    }
}

/// The progress of a loader. Threads lock it only while they hold the GIL, so no other thread holds
/// the lock when a process is forked.
#[derive(Default)]
pub struct Cursor {
    pub epoch: u64,
    /// A loaded state, from which the next iteration resumes.
    pub loaded: Option<State>,
    /// The state after the last delivered batch.
    pub reached: Option<State>,
    /// Whether a batch was delivered since the last iteration started.
    pub has_taken: bool,
    /// The number of iterations started so far. Only the latest one advances the cursor.
    pub iteration: u64,
    pub metrics: Option<LoaderMetrics>,
}

impl Cursor {
    /// Returns the position in its epoch at which the next iteration starts.
    pub fn next_position(&self) -> u64 {
        match self.reached {
            Some(_) if self.has_taken => 0,
            reached => reached.or(self.loaded).map_or(0, |state| state.position),
        }
    }

    /// Moves to the start of the next iteration.
    pub fn begin_again(&mut self) {
        let Some(reached) = self.reached.take() else { return };
        match (self.has_taken, reached.position) {
            // no batch was delivered: start at the same state again
            (false, 1..) => self.loaded = Some(reached),
            // the loop left the epoch early: skip its remaining batches, as other loaders do
            (true, 1..) => self.epoch = reached.epoch.saturating_add(1),
            // all batches were delivered, even if the loop did not request another one
            (_, 0) => self.epoch = reached.epoch,
        }
    }
}

/// Locks the cursor of a loader.
pub fn lock(cursor: &Mutex<Cursor>) -> MutexGuard<'_, Cursor> {
    cursor.lock().unwrap_or_else(PoisonError::into_inner)
}
