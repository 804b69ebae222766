//! Runs long work without the GIL, shows its progress, and lets Ctrl-C interrupt it.
//!
//! Python handles signals only on its main thread, between two bytecode instructions. So the
//! calling thread must keep polling. [`run`] and [`wait_for`] move the work to another thread and
//! poll ten times a second. [`Signals`] polls from inside work that stays on the calling thread.
//!
//! After Ctrl-C, [`run`] waits until the work has stopped and its output is removed. [`wait_for`]
//! is for work that only reads, so it raises at once.

use crate::error::{OrRaise, Result, exception};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The interval between two checks for signals.
pub const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The progress that worker threads report.
#[derive(Default)]
pub struct Progress {
    is_cancelled: AtomicBool,
    phase: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Reports progress and returns whether to continue. A total of `None` or 0 means that it is
    /// unknown.
    pub fn update(&self, phase: &'static str, done: u64, total: Option<u64>) -> ControlFlow<()> {
        if let Ok(mut shown) = self.phase.lock() {
            *shown = phase;
        }
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        if self.is_cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Requests cancellation of the work.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Calls a Python function with the phase, the amount of work done, and the total (None if
    /// unknown).
    fn show(&self, py: Python<'_>, show: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(show) = show else { return Ok(()) };
        let phase = self.phase.lock().map_or("", |phase| *phase);
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        if !phase.is_empty() {
            show.call1(py, (phase, done, (total > 0).then_some(total)))?;
        }
        Ok(())
    }
}

/// Checks for signals during work that a Python thread does without the GIL.
pub struct Signals {
    last_poll: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
}

impl Signals {
    pub fn new() -> Self {
        Self { last_poll: Mutex::new(Instant::now()), raised: Mutex::default() }
    }

    /// Restarts the interval when work starts, because Python has just handled its signals.
    pub fn begin(&self) {
        *self.last_poll.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Checks for signals if the interval has passed, and stores the exception of a handler.
    pub fn poll(&self) -> ControlFlow<()> {
        let mut last_poll = self.last_poll.lock().unwrap_or_else(PoisonError::into_inner);
        if last_poll.elapsed() < SIGNAL_POLL_INTERVAL {
            return ControlFlow::Continue(());
        }
        *last_poll = Instant::now();
        // attaching fails while the interpreter shuts down
        let Some(Err(raised)) = Python::try_attach(|py| py.check_signals()) else { return ControlFlow::Continue(()) };
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
        ControlFlow::Break(())
    }

    /// Takes the exception that a handler raised.
    pub fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs work on another thread and waits for it without the GIL. If a signal arrives, its exception
/// is raised at once, and the thread ends by itself.
pub fn wait_for<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send + 'static) -> PyResult<T> {
    let (sender, receiver) = channel();
    thread::Builder::new().name("tensilo-work".to_owned()).spawn(move || sender.send(work()).is_ok())?;
    let receiver = Mutex::new(receiver);
    loop {
        let received =
            py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SIGNAL_POLL_INTERVAL));
        match received {
            Ok(result) => return result.or_raise(py),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(panicked()),
        }
    }
}

#[cold]
fn panicked() -> PyErr {
    PyRuntimeError::new_err("internal error: a tensilo thread panicked; please report this")
}

/// Runs work on another thread. The calling thread waits without the GIL, and calls `show` and
/// checks for signals ten times a second. Ctrl-C cancels the work, which then removes its output.
pub fn run<T: Send>(
    py: Python<'_>,
    show: Option<&Py<PyAny>>,
    work: impl FnOnce(&Progress) -> Result<T> + Send,
) -> PyResult<T> {
    let progress = Progress::default();
    let (finished, is_finished) = channel::<()>();
    // `detach` requires a closure that is `Send`, but a receiver is not `Sync`
    let is_finished = Mutex::new(is_finished);
    let result = thread::scope(|scope| {
        let progress = &progress;
        let worker = thread::Builder::new().name("tensilo-work".to_owned()).spawn_scoped(scope, move || {
            let result = work(progress);
            drop(finished);
            result
        })?;
        let interrupted = wait(py, show, progress, &is_finished);
        if interrupted.is_err() {
            progress.cancel();
        }
        let result = py.detach(|| worker.join());
        interrupted?;
        result.map_err(|_| panicked())
    })?;
    result.map_err(|error| exception(py, &error))
}

/// Waits until the work is finished. Fails if a signal arrives or `show` raises.
fn wait(
    py: Python<'_>,
    show: Option<&Py<PyAny>>,
    progress: &Progress,
    is_finished: &Mutex<Receiver<()>>,
) -> PyResult<()> {
    loop {
        let over = py.detach(|| match is_finished.lock() {
            Ok(is_finished) => is_finished.recv_timeout(SIGNAL_POLL_INTERVAL) != Err(RecvTimeoutError::Timeout),
            Err(_) => true,
        });
        if over {
            return Ok(());
        }
        py.check_signals()?;
        progress.show(py, show)?;
    }
}
