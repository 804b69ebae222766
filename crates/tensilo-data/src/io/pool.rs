//! Threads that wait for I/O, so that several files are opened and read at the same time.
//!
//! Opening or reading an object, or a file on a network, takes a round trip. On a single thread, a
//! batch with samples in many files would wait for one file after another. So each loader owns a
//! pool. The threads of the pool start with the first batch that needs them and stay until the
//! loader is dropped, so later batches start no threads.
//!
//! After `fork`, the child does not have the threads of the pool. There, work runs on the calling
//! thread until the loader creates another pool.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::mem::ManuallyDrop;
use std::process;
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};

/// Threads that wait for I/O.
pub(crate) struct IoPool {
    depth: usize,
    /// The process that created the pool.
    process: u32,
    /// `None` if threads could not be started.
    threads: OnceLock<Option<Threads>>,
}

/// A thread pool, and the handles of its threads, which are joined when the pool is dropped.
struct Threads {
    pool: ManuallyDrop<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
}

impl IoPool {
    /// Returns a pool that runs up to `depth` jobs at the same time. Starts no threads.
    pub(crate) fn new(depth: usize) -> Self {
        Self { depth, process: process::id(), threads: OnceLock::new() }
    }

    /// Returns a pool of the same depth for this process. Starts no threads.
    pub(crate) fn reopened(&self) -> Self {
        Self::new(self.depth)
    }

    /// Runs `work` for each job, up to `depth` at the same time, and waits for all of them. Returns
    /// the results in the order of the jobs.
    pub(crate) fn map<J: Send, R: Send>(
        &self,
        jobs: impl Iterator<Item = J>,
        work: impl Fn(J) -> R + Send + Sync,
    ) -> Vec<R> {
        let jobs: Vec<J> = jobs.collect();
        match self.threads().filter(|_| jobs.len() > 1) {
            Some(pool) => pool.install(|| jobs.into_par_iter().with_max_len(1).map(work).collect()),
            None => jobs.into_iter().map(work).collect(),
        }
    }

    fn threads(&self) -> Option<&ThreadPool> {
        if self.depth <= 1 || self.process != process::id() {
            return None;
        }
        self.threads.get_or_init(|| Threads::start(self.depth)).as_ref().map(|threads| &*threads.pool)
    }
}

impl Threads {
    fn start(count: usize) -> Option<Self> {
        let mut handles = Vec::new();
        let spawn = |thread: ThreadBuilder| {
            handles.push(thread::Builder::new().name("tensilo-io".to_owned()).spawn(|| thread.run())?);
            Ok(())
        };
        let pool = ThreadPoolBuilder::new().num_threads(count).spawn_handler(spawn).build().ok()?;
        Some(Self { pool: ManuallyDrop::new(pool), handles })
    }
}

impl Drop for IoPool {
    /// Waits until the threads have ended. In a forked process, does nothing: threads that do not
    /// exist here may hold locks of the pool.
    fn drop(&mut self) {
        if let Some(Some(Threads { pool, handles })) = self.threads.take()
            && self.process == process::id()
        {
            drop(ManuallyDrop::into_inner(pool)); // signals them to end
            for handle in handles {
                let _ = handle.join(); // a panic of a job has already reached its caller
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn jobs_wait_together_on_the_same_threads_each_time() {
        let pool = IoPool::new(8);
        let all = Barrier::new(8);
        let mut threads = Vec::new();
        for _ in 0..3 {
            threads.extend(pool.map(0..8, |job| {
                all.wait(); // forever, unless they run at the same time
                (job, thread::current().id())
            }));
        }
        assert!(threads.iter().map(|(job, _)| *job).eq((0..8).cycle().take(24)));
        let mut ids: Vec<String> = threads.iter().map(|(_, id)| format!("{id:?}")).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 8);
    }

    #[test]
    fn threads_end_with_the_pool() {
        struct Ended<'a>(&'a AtomicUsize);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        static ENDED: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static HERE: Ended<'static> = const { Ended(&ENDED) });
        let (pool, all) = (IoPool::new(8), Barrier::new(8));
        pool.map(0..8, |_| {
            HERE.with(|_| ());
            all.wait();
        });
        drop(pool);
        assert_eq!(ENDED.load(Ordering::SeqCst), 8);
    }

    #[test]
    fn a_pool_of_one_is_the_calling_thread() {
        let here = thread::current().id();
        assert!(IoPool::new(1).map(0..5, |_| thread::current().id()).iter().all(|id| *id == here));
        assert!(IoPool::new(9).map(0..1, |_| thread::current().id()).iter().all(|id| *id == here));
    }
}
