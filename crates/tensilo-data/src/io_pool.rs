//! Threads that wait for I/O: several files are opened and read at the same time.
//!
//! Opening an object or reading from it takes a round trip, and so does a file on a network. A
//! batch of samples from many files would wait for one after the other. So a loader owns one pool,
//! whose threads start with the first batch that needs them and stay until the loader is dropped:
//! no batch starts a thread. A pool is useless in a process that was forked, which does not have
//! its threads: there, work runs on the calling thread, and the loader makes another pool.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::mem::ManuallyDrop;
use std::process;
use std::sync::OnceLock;

/// Threads that wait for I/O.
pub(crate) struct IoPool {
    depth: usize,
    /// The process that made the pool.
    process: u32,
    /// `None` if threads cannot be started.
    pool: OnceLock<Option<ManuallyDrop<ThreadPool>>>,
}

impl IoPool {
    /// Returns a pool for so many jobs at the same time. Starts no thread.
    pub(crate) fn new(depth: usize) -> Self {
        Self { depth, process: process::id(), pool: OnceLock::new() }
    }

    /// Returns the number of jobs that run at the same time.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Runs `work` for each job, many at the same time, and returns the results in the order of the
    /// jobs. The caller waits for all of them.
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
        let start = || {
            let builder = ThreadPoolBuilder::new().num_threads(self.depth);
            builder.thread_name(|_| "tensilo-io".to_owned()).build().ok().map(ManuallyDrop::new)
        };
        self.pool.get_or_init(start).as_deref()
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        if let Some(Some(pool)) = self.pool.take()
            && self.process == process::id()
        {
            drop(ManuallyDrop::into_inner(pool));
        }
        // in a forked process its locks may be held by threads that are not here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn jobs_wait_together_on_the_same_threads_each_time() {
        let pool = IoPool::new(8);
        let all = Barrier::new(8);
        let mut threads = Vec::new();
        for _ in 0..3 {
            threads.extend(pool.map(0..8, |job| {
                all.wait(); // for ever, if they did not run at the same time
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
    fn a_pool_of_one_is_the_calling_thread() {
        let here = thread::current().id();
        assert!(IoPool::new(1).map(0..5, |_| thread::current().id()).iter().all(|id| *id == here));
        assert!(IoPool::new(9).map(0..1, |_| thread::current().id()).iter().all(|id| *id == here));
    }
}
