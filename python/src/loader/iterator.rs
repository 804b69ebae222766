//! The batches of an epoch, as Python iterates over them, on the host or on a GPU; and the place
//! of the loader, which they move.
//!
//! Waiting for a batch must not hold the GIL, must end with Ctrl-C, and must not hang in a process
//! that was forked. So an iterator waits in short steps, looks for signals between them, and never
//! waits for a lock that a thread of the other process may hold.
//!
//! An iterator moves the place when it delivers a batch. One that a newer iterator has replaced
//! moves it no more, and of threads that share an iterator the one that is ahead counts.

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

/// The batches of an epoch.
#[pyclass(frozen, module = "tensilo")]
pub struct LoaderIterator(pub Iteration<BatchIterator>);

/// The batches of an epoch on a GPU, each with its memory.
#[pyclass(frozen, module = "tensilo")]
pub struct DeviceIterator(pub Iteration<tensilo_data::DeviceIterator<PythonAllocator>>);

/// Batches that threads read ahead.
pub trait Batches: Iterator<Item = Result<Self::Batch, DataError>> + Send {
    type Batch: Send;
    /// Whether a forked process can continue them.
    const ARE_FORKED: bool;

    fn wait(&self, timeout: Duration) -> bool;

    /// Returns the state and the metrics after the batches that were taken.
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

/// Batches of an iteration of a loader, whose place they move.
pub struct Iteration<B: Batches> {
    process: u32,
    batches: Mutex<Option<B>>,
    cursor: Arc<Mutex<Cursor>>,
    iteration: u64,
}

/// The state after a batch, and the metrics.
type StateAndMetrics = (State, LoaderMetrics);

/// What waiting for a batch gave.
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

    /// Locks the batches. A lock that another thread held when the process was forked is never
    /// released in the child, so waiting for it is an error.
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<B>>> {
        if self.process == process::id() {
            return Ok(self.batches.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if !B::ARE_FORKED {
            return Err(PyRuntimeError::new_err(
                "this process was forked after the loader was iterated, and cannot use its GPU: start processes by spawn",
            ));
        }
        match self.batches.try_lock() {
            Ok(batches) => Ok(batches),
            Err(TryLockError::Poisoned(batches)) => Ok(batches.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "another thread took a batch when this process was forked: iterate over the loader again",
            )),
        }
    }

    /// Moves the place of the loader. Of threads that share an iterator, the last is ahead.
    fn advance(&self, state: &State, metrics: LoaderMetrics, is_over: bool) {
        let mut cursor = lock(&self.cursor);
        let at = |state: &State| (state.epoch, state.position);
        let is_newer = cursor.reached.is_none_or(|reached| at(&reached) <= at(state));
        if cursor.iteration != self.iteration || !is_newer {
            return;
        }
        (cursor.reached, cursor.metrics, cursor.has_taken) = (Some(*state), Some(metrics), true);
        if is_over {
            cursor.epoch = state.epoch; // that of the next iteration
        }
    }

    /// Takes the next batch, if it is ready soon.
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
            *batches = None; // its threads end
        }
        Ok((outcome, Some(reached)))
    }

    /// Returns the next batch. Waits without the GIL, and looks for signals.
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
        // at the end of the interpreter nothing can be attached
        Python::try_attach(|py| py.detach(|| drop(batches.take())));
    }
}

#[pymethods]
impl LoaderIterator {
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

/// Where a loader is. The lock is held only by a thread that has the GIL, so that no other holds it
/// when a process is forked.
#[derive(Default)]
pub struct Cursor {
    pub epoch: u64,
    /// A state that was loaded, at which the next iteration begins.
    pub loaded: Option<State>,
    /// The state after the last batch that was taken.
    pub reached: Option<State>,
    /// Whether a batch was taken since the last iteration began.
    pub has_taken: bool,
    /// The number of iterations that were begun: an earlier one no longer moves the place.
    pub iteration: u64,
    pub metrics: Option<LoaderMetrics>,
}

impl Cursor {
    /// Returns the position in its epoch at which the next iteration begins.
    pub fn next_position(&self) -> u64 {
        match self.reached {
            Some(_) if self.has_taken => 0,
            reached => reached.or(self.loaded).map_or(0, |state| state.position),
        }
    }

    /// Moves to where another iteration begins.
    pub fn begin_again(&mut self) {
        let Some(reached) = self.reached.take() else { return };
        match (self.has_taken, reached.position) {
            // nothing was taken: it begins at the same state
            (false, 1..) => self.loaded = Some(reached),
            // what is left of an epoch that was left early is over, as with other loaders
            (true, 1..) => self.epoch = reached.epoch.saturating_add(1),
            // the epoch after one of which all batches were taken, maybe without asking for more
            (_, 0) => self.epoch = reached.epoch,
        }
    }
}

/// Locks the place of a loader.
pub fn lock(cursor: &Mutex<Cursor>) -> MutexGuard<'_, Cursor> {
    cursor.lock().unwrap_or_else(PoisonError::into_inner)
}
