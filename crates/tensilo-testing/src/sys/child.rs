//! Forked processes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of seconds after which a child that hangs is killed.
const TIMEOUT_SECONDS: u32 = 60;

/// A forked process. Wait for it with [`Child::assert_success`].
#[must_use]
#[derive(Debug)]
pub struct Child(libc::pid_t);

impl Child {
    /// Forks a child that runs `work`. The child succeeds if `work` returns true.
    ///
    /// # Safety
    ///
    /// `work` takes no lock that another thread of this process may hold.
    pub unsafe fn fork(work: impl FnOnce() -> bool) -> Self {
        // SAFETY: the caller promises that `work` takes no such lock. The C library handles the
        // locks of its allocator.
        match unsafe { libc::fork() } {
            -1 => panic!("{}", io::Error::last_os_error()),
            0 => {
                // SAFETY: `alarm` takes only a number.
                unsafe { libc::alarm(TIMEOUT_SECONDS) };
                let is_right = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
                // SAFETY: the child ends here. `_exit` runs no destructors, so the parent's
                // resources are not released twice.
                unsafe { libc::_exit(i32::from(!is_right)) }
            }
            child => Self(child),
        }
    }

    /// Waits for the child, and panics unless it succeeded.
    pub fn assert_success(self, what: &str) {
        let mut status = -1;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0, "{what}");
        assert_eq!(status, 0, "{what}: the child read wrong data, hung, or died");
    }
}
