//! Divides work among scoped threads.

use std::thread;

/// Runs the first item of `work` on this thread and each other item on its own thread, and waits
/// for all of them.
///
/// If a thread cannot be started, the remaining items do not run. Callers pass workers that take
/// tasks until none are left, so even a single worker completes all tasks.
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
