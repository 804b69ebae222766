//! Work that is divided among threads.

use std::thread;

/// Runs the first of `work` on this thread and each other on a thread of its own, and waits for
/// all.
///
/// If a thread cannot be started, fewer run. Each takes tasks until none is left, so one is enough.
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
