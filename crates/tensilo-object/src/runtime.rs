//! The threads that send requests, and other values that each process makes for itself.
//!
//! The threads are the crate's own: programs that embed it need no asynchronous runtime, and one
//! that they have is left alone. Callers wait on a channel and not in the runtime, so that they may
//! be threads of another one. Threads and connections do not survive `fork`, so a child makes its
//! own: see [`PerProcess`]. A panic of a library that prepares or sends a request is an error.

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

/// The threads at most. They wait more than they work: the bytes that arrive are decoded elsewhere.
const MAX_THREADS: usize = 4;
/// The maximum number of requests of the process that are in flight.
const MAX_REQUESTS: usize = 256;

/// The threads of this process, and the requests that it may send.
#[derive(Debug)]
pub(crate) struct Threads {
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
    handle: Handle,
    /// A permit for each request that may be in flight.
    pub requests: Semaphore,
    /// A permit for each read that may fill a cache: fewer than there are threads for waiting, so
    /// that one is left for those that are waited for.
    pub fills: Semaphore,
}

impl Drop for Threads {
    fn drop(&mut self) {
        // any other way of dropping waits, which a caller's own runtime forbids
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Returns the threads of this process. The first request makes them.
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

/// Returns the result of work that waits for a disk or another process, on a thread for such work.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    threads()?.handle.spawn_blocking(work).await.map_err(|_| thread_ended())
}

/// Returns the result of work on the threads of this process, which the caller waits for. The
/// caller may be a thread of another runtime.
pub(crate) fn wait<T: Send + 'static>(work: impl Future<Output = io::Result<T>> + Send + 'static) -> io::Result<T> {
    begin(work)?.wait()
}

/// Begins work on the threads of this process, for which the caller waits later.
pub(crate) fn begin<T: Send + 'static>(
    work: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<PendingResult<T>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let task = threads()?.spawn(async move {
        let _ = sender.send(catch_panic_async(work).await); // the caller is gone
    });
    Ok(PendingResult { receiver, _task: Task(task) })
}

/// Work that was begun. If it is dropped, the work ends.
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

/// Work that ends when this is dropped: requests whose reader has gone.
#[derive(Debug)]
pub(crate) struct Task<T>(pub JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs code of a library that may panic. Returns a panic as an error.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // what the code used is dropped, or not used again after an error
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// As [`catch_panic`], for work on the threads of this process.
pub(crate) async fn catch_panic_async<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Returns the error of work that was lost with its thread.
pub(crate) fn thread_ended() -> io::Error {
    io::Error::other("a thread that sends requests has ended")
}

/// A value that is made when it is first asked for, and made again in a process that was forked
/// since: threads and connections stay behind in its parent.
///
/// The values of all ancestors are kept, and never dropped in a child: dropping threads that do not
/// exist would wait for them.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    first: OnceLock<Box<ProcessValue<T>>>,
}

#[derive(Debug)]
struct ProcessValue<T> {
    process: u32,
    value: T,
    /// The value of a child. Only processes that have no value yet set it, so no other thread was
    /// at it when the child was forked.
    child: OnceLock<Box<ProcessValue<T>>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Returns the value of this process, which `make` makes if there is none. If two threads make
    /// one at the same time, one of the values is dropped.
    pub(crate) fn get_or_try_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let process = process::id();
        let mut slot = &self.first;
        let mut make = Some(make);
        loop {
            match slot.get() {
                Some(made) if made.process == process => return Ok(&made.value),
                Some(made) => slot = &made.child,
                None => {
                    let Some(make) = make.take() else { continue }; // set by another thread since
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
    fn work_ends_when_the_one_who_waits_for_it_has_gone() {
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
