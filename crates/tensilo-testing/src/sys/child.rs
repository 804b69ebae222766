//! Processes that are forked.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seconds after which a child that hangs is killed.
const TIMEOUT_SECONDS: u32 = 60;

/// A forked process. Wait for it by [`Child::assert_success`].
#[must_use]
#[derive(Debug)]
pub struct Child(libc::pid_t);

impl Child {
    /// Forks a child that runs `work`. It ends well if that returns true.
    ///
    /// # Safety
    ///
    /// `work` takes no lock that another thread of this process may hold.
    pub unsafe fn fork(work: impl FnOnce() -> bool) -> Self {
        // SAFETY: the caller's promise. The allocator of the C library takes care of its own locks.
        match unsafe { libc::fork() } {
            -1 => panic!("{}", io::Error::last_os_error()),
            0 => {
                // SAFETY: it takes a number.
                unsafe { libc::alarm(TIMEOUT_SECONDS) };
                let is_right = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
                // SAFETY: the child ends here. `_exit` runs no destructors, so the parent's
                // resources are not released twice.
                unsafe { libc::_exit(i32::from(!is_right)) }
            }
            child => Self(child),
        }
    }

    /// Waits for the child, and panics unless it ended well.
    pub fn assert_success(self, what: &str) {
        let mut status = -1;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0, "{what}");
        assert_eq!(status, 0, "{what}: a child has read something else, hung, or died");
    }
}
