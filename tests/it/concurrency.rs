//! Tests that many threads can share one reader while chunks are touched for the first time, and
//! that a file that changes under a reader is an error.
//!
//! Under the thread sanitizer: `RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std
//! --target x86_64-unknown-linux-gnu --no-default-features --test it concurrency::`.

use crate::support::shared::{file, read_all};
use std::fs::{self, File, OpenOptions};
use std::sync::Barrier;
use std::thread;
use tensilo::{ErrorKind, Profile, Reader};
use tensilo_testing::Folder;

const THREADS: u64 = 8;

fn profiles() -> Vec<Profile> {
    if cfg!(feature = "zstd") { Profile::ALL.to_vec() } else { vec![Profile::Raw] }
}

/// Reads everything on all threads, starting at the same moment, each in a different order. Returns
/// the errors of each thread.
fn share(reader: &Reader) -> Vec<Vec<String>> {
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    read_all(reader, seed % 3, 0).iter().map(ToString::to_string).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_that_share_a_reader_read_what_was_written() {
    let folder = Folder::new();
    for profile in profiles() {
        let bytes = file(profile, 0);
        let path = folder.path(profile.name());
        fs::write(&path, &bytes).unwrap();
        for _ in 0..10 {
            assert!(share(&Reader::from_bytes(bytes.clone()).unwrap()).iter().all(Vec::is_empty));
            assert!(share(&Reader::open(&path).unwrap()).iter().all(Vec::is_empty));
        }
    }
}

#[test]
fn a_damaged_chunk_is_an_error_in_every_thread() {
    for profile in profiles() {
        let mut bytes = file(profile, 0);
        let chunk = Reader::from_bytes(bytes.clone()).unwrap().column("fixed").unwrap().chunk_of(250).unwrap();
        bytes[chunk.file_range.start as usize + 5] ^= 1;
        for _ in 0..5 {
            let errors = share(&Reader::from_bytes(bytes.clone()).unwrap());
            let lost = chunk.samples.end - chunk.samples.start;
            for (seed, found) in errors.iter().enumerate() {
                assert!(found.len() as u64 > lost, "{profile:?}: {} errors in a thread", found.len());
                assert_eq!(*found, errors[seed % 3], "{profile:?}: threads that read in one order");
                assert!(found.iter().all(|error| error.contains("R-2.6") && error.contains("fixed")), "{found:?}");
            }
        }
    }
}

#[test]
fn a_reader_keeps_reading_its_file_when_another_takes_its_name() {
    let folder = Folder::new();
    let (path, other) = (folder.path("a.tsl"), folder.path("b.tsl"));
    fs::write(&path, file(Profile::Raw, 0)).unwrap();
    let old: Reader = Reader::open(&path).unwrap();
    #[cfg(feature = "mmap")]
    // SAFETY: these files are never written again; one only takes the name of the other.
    let mapped = unsafe { Reader::map(&path) }.unwrap();
    fs::write(&other, file(Profile::Raw, 1000)).unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(read_all(&old, 1, 0).is_empty());
    #[cfg(feature = "mmap")]
    assert!(read_all(&mapped, 2, 0).is_empty());
    let new: Reader = Reader::open(&path).unwrap();
    assert!(read_all(&new, 1, 1000).is_empty());
    assert!(read_all(&old, 2, 0).is_empty());
}

/// A file that is truncated under a map kills the process, which is why `MappedFile::open` is
/// unsafe and not tested here.
#[test]
fn a_file_cut_off_under_a_reader_by_position_is_an_error_that_says_so() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    let bytes = file(Profile::Raw, 0);
    fs::write(&path, &bytes).unwrap();
    let reader: Reader = Reader::open(&path).unwrap();
    let middle = reader.column("fixed").unwrap().chunk_of(300).unwrap().file_range.start;
    OpenOptions::new().write(true).open(&path).unwrap().set_len(middle).unwrap();
    let errors = read_all(&reader, 0, 0);
    assert!(!errors.is_empty());
    for error in &errors {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains("shorter than when it was opened"), "{error}");
        assert_eq!(error.path(), Some(path.as_path()), "{error}");
    }
    // bytes that are restored can be read again: no error sticks
    File::create(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    assert!(read_all(&reader, 0, 0).is_empty());
}
