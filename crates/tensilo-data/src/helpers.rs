//! Threads that help with jobs that wait: each for an answer of its own.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// Does jobs on the calling thread and at most `helpers` others, which have ended when this
/// returns. Returns the results, in the order of the jobs. Cost: some 15 us for each helper.
pub(crate) fn on_threads<J: Send, R: Send>(
    helpers: usize,
    jobs: impl ExactSizeIterator<Item = J> + Send,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let helpers = helpers.min(jobs.len().saturating_sub(1));
    let (jobs, results) = (Mutex::new(jobs.enumerate()), Mutex::new(Vec::new()));
    let run = || {
        while let Some((number, job)) = locked(&jobs, Iterator::next) {
            let result = work(job);
            locked(&results, |results| results.push((number, result)));
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            // where no thread can be started, those that there are do its work
            let _ = Builder::new().name("tensilo-helper".to_owned()).spawn_scoped(scope, run);
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

fn locked<T, R>(mutex: &Mutex<T>, act: impl FnOnce(&mut T) -> R) -> R {
    // a thread that panicked has left whole entries
    act(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}
