//! The threads that send requests, and values that each process creates for itself.
//!
//! The client library is asynchronous, but the crate is not. So the crate has its own small
//! runtime, and programs that use the crate do not need one. A caller waits on a channel and not in
//! the runtime, so the caller can be a thread of another runtime. To stop waiting, a caller drops a
//! handle, which cancels the requests.
//!
//! Threads and connections do not survive a `fork`, so a child process creates its own; see
//! [`PerProcess`]. If a library panics while it prepares or sends a request, the result is an
//! error, not a crash.

use crate::error::panicked;
use futures_util::FutureExt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// The maximum number of threads. They mostly wait, because other threads decode the received
/// bytes.
const MAX_THREADS: usize = 4;
/// The maximum number of requests that the process has in flight.
const MAX_REQUESTS: usize = 256;

/// The threads of this process, and the permits for its requests.
#[derive(Debug)]
pub(crate) struct Threads {
    /// `None` only during drop.
    runtime: Option<Runtime>,
    handle: Handle,
    /// Permits for requests in flight.
    pub requests: Semaphore,
    /// Permits for reads that fill a cache and may wait for file locks. There are fewer permits
    /// than blocking threads in the runtime, so a thread always remains for the work that releases
    /// the locks.
    pub fills: Semaphore,
}

impl Drop for Threads {
    fn drop(&mut self) {
        // an ordinary drop of the runtime would block, and thus panic on a thread of a caller's
        // runtime
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Returns the threads of this process, which the first request starts.
pub(crate) fn threads() -> io::Result<&'static Threads> {
    static THREADS: PerProcess<Threads> = PerProcess::new();
    THREADS.get_or_try_make(|| {
        let count = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let runtime =
            Builder::new_multi_thread().worker_threads(count).thread_name("tensilo-object").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Threads {
            runtime: Some(runtime),
            handle,
            requests: Semaphore::new(MAX_REQUESTS),
            fills: Semaphore::new(MAX_REQUESTS),
        })
    })
}

impl Threads {
    /// Starts work on these threads.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.handle.spawn(work)
    }
}

/// Runs work on a blocking thread, and returns its result. The work may wait for a disk or for
/// another process.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    threads()?.handle.spawn_blocking(work).await.map_err(|_| thread_ended())
}

/// Runs work on the threads of this process and waits for its result. The caller may be a thread of
/// another runtime.
pub(crate) fn wait<T: Send + 'static>(work: impl Future<Output = io::Result<T>> + Send + 'static) -> io::Result<T> {
    begin(work)?.wait()
}

/// Starts work on the threads of this process. The caller waits for its result later.
pub(crate) fn begin<T: Send + 'static>(
    work: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<PendingResult<T>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let task = threads()?.spawn(async move {
        let _ = sender.send(catch_panic_async(work).await); // fails if the caller is gone
    });
    Ok(PendingResult { receiver, _task: Task(task) })
}

/// Work that was started. Dropping it cancels the work.
#[derive(Debug)]
pub(crate) struct PendingResult<T> {
    receiver: Receiver<io::Result<T>>,
    _task: Task<()>,
}

impl<T> PendingResult<T> {
    pub(crate) fn wait(self) -> io::Result<T> {
        self.receiver.recv().unwrap_or_else(|_| Err(thread_ended()))
    }
}

/// A task. Dropping this value cancels the task, because no one will receive its result.
#[derive(Debug)]
pub(crate) struct Task<T>(pub JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs library code that may panic, and returns a panic as an error.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // the values that the code used are dropped, or are not used again after an error
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Like [`catch_panic`], for work on the threads of this process.
pub(crate) async fn catch_panic_async<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Returns the error for work that was lost with its thread.
pub(crate) fn thread_ended() -> io::Error {
    io::Error::other("a thread that sends requests has stopped")
}

/// A value that each process creates on first use. A forked process creates its own, because
/// threads and connections stay in its parent.
///
/// The values of all ancestors stay in memory and are never dropped in a child: dropping threads
/// that do not exist would wait for them forever.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    first: OnceLock<Box<ProcessValue<T>>>,
}

#[derive(Debug)]
struct ProcessValue<T> {
    process: u32,
    value: T,
    /// The value of a forked child. Only a process that does not have a value yet sets it. The
    /// parent already has its value, so none of its threads can have been setting this field during
    /// the fork.
    child: OnceLock<Box<ProcessValue<T>>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Returns the value of this process. If there is none yet, creates it with `make`. If two
    /// threads create a value at the same time, one of the values is dropped.
    pub(crate) fn get_or_try_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let process = process::id();
        let mut slot = &self.first;
        let mut make = Some(make);
        loop {
            match slot.get() {
                Some(made) if made.process == process => return Ok(&made.value),
                Some(made) => slot = &made.child,
                None => {
                    let Some(make) = make.take() else { continue }; // this thread or another one has just set it
                    let made = ProcessValue { process, value: make()?, child: OnceLock::new() };
                    drop(slot.set(Box::new(made)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::future;
    use std::time::Duration;

    #[test]
    fn work_is_cancelled_when_its_handle_is_dropped() {
        struct Ends(mpsc::Sender<()>);
        impl Drop for Ends {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (begun_sender, begun) = mpsc::channel();
        let (sender, ended) = mpsc::channel();
        let waiting = begin(async move {
            let _ends = Ends(sender);
            begun_sender.send(()).unwrap();
            future::pending::<io::Result<()>>().await
        });
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(ended.try_recv().is_err());
        drop(waiting.unwrap());
        ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    fn made(values: &PerProcess<u32>, value: u32) -> u32 {
        let found: Result<_, Infallible> = values.get_or_try_make(|| Ok(value));
        *found.unwrap()
    }

    #[test]
    fn a_value_is_made_once() {
        let values = PerProcess::new();
        assert_eq!(values.get_or_try_make(|| Err::<u32, _>("no")), Err("no"));
        assert_eq!(made(&values, 1), 1);
        assert_eq!(made(&values, 2), 1);
    }

    #[test]
    fn a_child_makes_its_own_value() {
        let parent = ProcessValue { process: process::id().wrapping_add(1), value: 1, child: OnceLock::new() };
        let values = PerProcess { first: OnceLock::from(Box::new(parent)) };
        assert_eq!(made(&values, 2), 2);
        assert_eq!(made(&values, 3), 2);
    }
}
