//! Proves that parent and children can use a reader that was opened before a fork, and that
//! children can still use it when the parent has closed it.
//!
//! The threads of the usual test harness would make `fork` unsound, so this program has no harness
//! and one thread.

#[cfg(unix)]
#[path = "support/shared.rs"]
mod shared;

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    let folder = tensilo_testing::Folder::new();
    let path = folder.path("a.tsl");
    let profile = if cfg!(feature = "zstd") { tensilo::Profile::Balanced } else { tensilo::Profile::Raw };
    let bytes = shared::file(profile, 0);
    std::fs::write(&path, &bytes).unwrap();
    unix::check("in memory", || tensilo::Reader::from_bytes(bytes.to_vec()).unwrap());
    unix::check("by position", || tensilo::Reader::open(&path).unwrap());
    #[cfg(feature = "mmap")]
    // SAFETY: nobody else knows this file.
    unix::check("mapped", || unsafe { tensilo::Reader::map(&path) }.unwrap());
    println!("parents and children read what was written");
}

#[cfg(unix)]
mod unix {
    use super::shared::{SAMPLES, read_all};
    use std::io::{Read, Write, pipe};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use tensilo::Reader;

    /// A child that runs `work`; it ends with 0 if that returns true.
    fn fork(work: impl FnOnce() -> bool) -> libc::pid_t {
        // SAFETY: this process has one thread, so no lock is held in the child for ever.
        match unsafe { libc::fork() } {
            -1 => panic!("{}", std::io::Error::last_os_error()),
            0 => {
                let is_right = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
                // SAFETY: the child ends here. `_exit` runs no destructors, so the parent's
                // resources are not released twice.
                unsafe { libc::_exit(i32::from(!is_right)) }
            }
            child => child,
        }
    }

    fn assert_ended_well(child: libc::pid_t, what: &str) {
        let mut status = -1;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child, "{what}");
        assert_eq!(status, 0, "{what}: a child has read something else, or died");
    }

    pub fn check(what: &str, open: impl Fn() -> Reader) {
        let reader = open();
        let mut cursor = reader.column("fixed").unwrap().cursor();
        assert!((0..SAMPLES / 2).all(|i| cursor.read(i).is_ok())); // half of it was touched before
        let children: Vec<_> = (0..4).map(|seed| fork(|| read_all(&reader, seed, 0).is_empty())).collect();
        assert!(read_all(&reader, 9, 0).is_empty(), "{what}: the parent");
        children.into_iter().for_each(|child| assert_ended_well(child, what));
        let reader = open();
        let (mut wait, mut go) = pipe().unwrap();
        let child = fork(|| wait.read_exact(&mut [0]).is_ok() && read_all(&reader, 5, 0).is_empty());
        drop(reader);
        go.write_all(&[1]).unwrap();
        assert_ended_well(child, &format!("{what}, closed by the parent"));
    }
}
