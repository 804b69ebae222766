//! A bounded queue of numbered results: threads produce them in any order, and the consumer takes
//! them in order.
//!
//! Jobs are claimed in ascending order. The queue has one slot for each job, from the next job that
//! the consumer will take to the last job that was claimed. A slot is empty while its job is in
//! progress. A thread can claim a job only if there are fewer than `prefetch` slots. So both
//! finished and unfinished jobs count toward the limit, and handing over a result never blocks. The
//! job that the consumer waits for is always the oldest one that was claimed, so a full queue
//! cannot deadlock.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A queue of the results of jobs `0..jobs`.
pub(in crate::loader) struct Queue<T> {
    jobs: u64,
    prefetch: usize,
    /// Whether the first job must finish before any other is claimed.
    first_exclusive: bool,
    state: Mutex<Results<T>>,
    /// Signals that there is room for another job, or that the queue was closed.
    room: Condvar,
    /// Signals that the next result is ready.
    ready: Condvar,
}

struct Results<T> {
    /// The next job to claim.
    next: u64,
    /// The next job whose result the consumer takes.
    taken: u64,
    /// The results of job `taken` and all later jobs; `None` while a job is in progress.
    results: VecDeque<Option<T>>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// Returns a queue in which at most `prefetch` results are ready or in progress.
    pub(in crate::loader) fn new(jobs: u64, prefetch: usize) -> Self {
        let results = VecDeque::new();
        let state = Mutex::new(Results { next: 0, taken: 0, results, is_closed: false });
        Self { jobs, prefetch, first_exclusive: false, state, room: Condvar::new(), ready: Condvar::new() }
    }

    /// Sets whether the first job must finish before any other is claimed, so that it does not
    /// share a resource such as a network link.
    pub(in crate::loader) fn first_exclusive(mut self, first_exclusive: bool) -> Self {
        self.first_exclusive = first_exclusive;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Results<T>> {
        // each entry is written by a single assignment, so a panic cannot leave it half written
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, and claims the next job. Returns `None` if no jobs are left or the queue is
    /// closed.
    pub(in crate::loader) fn claim(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            if state.is_closed || state.next >= self.jobs {
                return None;
            }
            let waits_for_first =
                self.first_exclusive && state.next == 1 && matches!(state.results.front(), Some(None));
            if state.results.len() < self.prefetch && !waits_for_first {
                let job = state.next;
                state.next = job.saturating_add(1);
                state.results.push_back(None);
                return Some(job);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands over the result of a claimed job. Never blocks.
    pub(in crate::loader) fn put(&self, job: u64, result: T) {
        let mut state = self.lock();
        let index = usize::try_from(job.saturating_sub(state.taken)).unwrap_or(usize::MAX);
        let is_next = index == 0;
        if let Some(slot) = state.results.get_mut(index) {
            *slot = Some(result);
        }
        drop(state);
        if is_next {
            self.ready.notify_all();
        }
        if self.first_exclusive && job == 0 {
            self.room.notify_all();
        }
    }

    /// Waits until the next result is ready or all results were taken, but for at most `timeout`.
    /// Returns `false` on a timeout.
    pub(in crate::loader) fn wait(&self, timeout: Duration) -> bool {
        let end = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        loop {
            if state.is_ready(self.jobs) {
                return true;
            }
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            state = self.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the next result and takes it. Also returns how many further results are ready.
    /// Returns `None` if all results were taken.
    pub(in crate::loader) fn take(&self) -> Option<(T, usize)> {
        let mut state = self.lock();
        while !state.is_ready(self.jobs) {
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let result = state.results.pop_front()??;
        state.taken = state.taken.saturating_add(1);
        let ready = state.results.iter().filter(|result| result.is_some()).count();
        drop(state);
        self.room.notify_one();
        Some((result, ready))
    }

    /// Closes the queue: no further job is claimed, and threads that wait for room return.
    pub(in crate::loader) fn close(&self) {
        self.lock().is_closed = true;
        self.room.notify_all();
    }
}

impl<T> Results<T> {
    fn is_ready(&self, jobs: u64) -> bool {
        self.taken >= jobs || self.results.front().is_some_and(Option::is_some)
    }
}

/// A fixed number of permits. A thread holds one while it works.
pub(in crate::loader) struct Semaphore {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Semaphore {
    pub(in crate::loader) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), returned: Condvar::new() }
    }

    /// Waits for a permit, and runs `work` while holding it.
    pub(in crate::loader) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free = free.saturating_sub(1);
        drop(free);
        let _permit = Permit(self);
        work()
    }
}

/// A permit that is returned when it is dropped, even by a panic.
struct Permit<'p>(&'p Semaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.saturating_add(1);
        drop(free);
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_first_job_is_done_before_any_other_is_claimed() {
        for first_exclusive in [false, true] {
            let queue = Queue::new(3, 2).first_exclusive(first_exclusive);
            assert_eq!(queue.claim(), Some(0));
            let (sender, claimed) = channel();
            thread::scope(|scope| {
                scope.spawn(|| sender.send(queue.claim()));
                let second = claimed.recv_timeout(Duration::from_millis(50)).ok();
                assert_eq!(second, (!first_exclusive).then_some(Some(1)));
                queue.put(0, "a");
                assert_eq!(second.or_else(|| claimed.recv().ok()), Some(Some(1)));
            });
            queue.put(1, "b");
            assert_eq!((queue.take(), queue.take()), (Some(("a", 1)), Some(("b", 0))));
            assert_eq!(queue.claim(), Some(2));
        }
    }
}
