//! Tests readers across `fork`: parent and children share a reader that was opened before the fork,
//! and children keep using it after the parent has closed it.
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
    // SAFETY: only this process and its children use the file, and none of them changes it.
    unix::check("mapped", || unsafe { tensilo::Reader::map(&path) }.unwrap());
    println!("parents and children read what was written");
}

#[cfg(unix)]
mod unix {
    use super::shared::{SAMPLES, read_all};
    use std::io::{Read, Write, pipe};
    use tensilo::Reader;
    use tensilo_testing::Child;

    fn fork(work: impl FnOnce() -> bool) -> Child {
        // SAFETY: this process has one thread, so no lock is held in the child for ever.
        unsafe { Child::fork(work) }
    }

    pub fn check(what: &str, open: impl Fn() -> Reader) {
        let reader = open();
        let mut cursor = reader.column("fixed").unwrap().cursor();
        assert!((0..SAMPLES / 2).all(|i| cursor.read(i).is_ok())); // half of it was touched before
        let children: Vec<_> = (0..4).map(|seed| fork(|| read_all(&reader, seed, 0).is_empty())).collect();
        assert!(read_all(&reader, 9, 0).is_empty(), "{what}: the parent");
        children.into_iter().for_each(|child| child.assert_success(what));
        let reader = open();
        let (mut wait, mut go) = pipe().unwrap();
        let child = fork(|| wait.read_exact(&mut [0]).is_ok() && read_all(&reader, 5, 0).is_empty());
        drop(reader);
        go.write_all(&[1]).unwrap();
        child.assert_success(&format!("{what}, closed by the parent"));
    }
}
