//! Work shared among threads.

use std::thread;

/// Runs all of `work`, the first on this thread and each other on one of its own, and waits for them. Where a thread cannot be had
/// fewer run: each takes what there is to do until nothing is left, so that one is enough.
pub(crate) fn run(work: impl IntoIterator<Item: FnOnce() + Send>) {
    thread::scope(|scope| {
        let mut work = work.into_iter();
        let own = work.next();
        for other in work {
            if thread::Builder::new().spawn_scoped(scope, other).is_err() {
                break;
            }
        }
        own.into_iter().for_each(|own| own());
    });
}
