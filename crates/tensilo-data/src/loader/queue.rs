//! A queue of numbered results, which threads make ahead of the consumer, and which it takes in
//! order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A queue of the results of jobs `0..jobs`.
pub(super) struct Queue<T> {
    jobs: u64,
    ahead: usize,
    state: Mutex<Results<T>>,
    /// Signals room for another job, or the end of the queue.
    room: Condvar,
    /// Signals that the next result is ready.
    ready: Condvar,
}

struct Results<T> {
    /// The job that is claimed next.
    next: u64,
    /// The job whose result is taken next.
    taken: u64,
    /// The results from `taken` on; `None` is in work.
    results: VecDeque<Option<T>>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// Returns a queue in which at most `ahead` results are ready or in work.
    pub(super) fn new(jobs: u64, ahead: usize) -> Self {
        let results = VecDeque::new();
        let state = Mutex::new(Results { next: 0, taken: 0, results, is_closed: false });
        Self { jobs, ahead, state, room: Condvar::new(), ready: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Results<T>> {
        // a thread that panicked has left whole entries
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, and claims the next job. `None`: there is none left, or the queue is closed.
    pub(super) fn claim(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            if state.is_closed || state.next >= self.jobs {
                return None;
            }
            if state.results.len() < self.ahead {
                let job = state.next;
                state.next = job.saturating_add(1);
                state.results.push_back(None);
                return Some(job);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands over the result of a job that was claimed.
    pub(super) fn put(&self, job: u64, result: T) {
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
    }

    /// Waits until the next result is ready, or until all were taken; at most for `timeout`.
    /// Returns whether it is so.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
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

    /// Waits for the next result, and takes it; also returns how many more are ready. `None`: all
    /// were taken.
    pub(super) fn take(&self) -> Option<(T, usize)> {
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

    /// Ends the queue: nothing more is claimed, and threads that wait return.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.room.notify_all();
    }
}

impl<T> Results<T> {
    fn is_ready(&self, jobs: u64) -> bool {
        self.taken >= jobs || self.results.front().is_some_and(Option::is_some)
    }
}

/// A number of permits, for each of which one thread does something at a time.
pub(super) struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), returned: Condvar::new() }
    }

    /// Waits for a permit, and does the work.
    pub(super) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
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

/// A permit that is returned in the end, also by a thread that panics.
struct Permit<'p>(&'p Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.saturating_add(1);
        drop(free);
        self.0.returned.notify_one();
    }
}
