//! Long work: off the interpreter, with progress, until it is done or a signal arrives.

use crate::error::{Result, exception};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The time after which signals are looked for again.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// The progress of work, which its threads tell.
#[derive(Default)]
pub struct Progress {
    is_cancelled: AtomicBool,
    phase: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Tells how far the work is, and returns whether to go on. A total of 0 is not known.
    pub fn tell(&self, phase: &'static str, done: u64, total: Option<u64>) -> ControlFlow<()> {
        if let Ok(mut shown) = self.phase.lock() {
            *shown = phase;
        }
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        if self.is_cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Calls a function of Python with phase, done and total (None if it is not known).
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

/// Does work on a thread of its own. This one waits without the GIL, calls `show` ten times a
/// second, and looks for signals: after Ctrl-C the work is told to end, and what it wrote vanishes.
pub fn run<T: Send>(
    py: Python<'_>,
    show: Option<&Py<PyAny>>,
    work: impl FnOnce(&Progress) -> Result<T> + Send,
) -> PyResult<T> {
    let progress = Progress::default();
    let (finished, is_finished) = channel::<()>();
    // a receiver is of one thread: this one keeps it while it is detached
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
            progress.is_cancelled.store(true, Ordering::Relaxed);
        }
        let result = py.detach(|| worker.join());
        interrupted?;
        result.map_err(|_| PyRuntimeError::new_err("internal error: a thread of tensilo panicked; please report it"))
    })?;
    result.map_err(|error| exception(py, &error))
}

/// Waits until the work is finished. Fails if a signal arrives, or `show` raises.
fn wait(
    py: Python<'_>,
    show: Option<&Py<PyAny>>,
    progress: &Progress,
    is_finished: &Mutex<Receiver<()>>,
) -> PyResult<()> {
    loop {
        let over = py.detach(|| match is_finished.lock() {
            Ok(is_finished) => is_finished.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout),
            Err(_) => true,
        });
        if over {
            return Ok(());
        }
        py.check_signals()?;
        progress.show(py, show)?;
    }
}
