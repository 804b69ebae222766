//! Several writers with one destination.

use super::{Destination, begin, check_samples, check_whole, io_kind, push};
use std::{fs, io};
use tensilo::{ErrorKind, Reader, Result};

#[test]
fn exactly_one_of_two_writers_wins_if_neither_may_overwrite() {
    let destination = Destination::new();
    let path = destination.path();
    let mut first = begin(&path, false).expect("a new file");
    let mut second = begin(&path, false).expect("the first has not appeared yet");
    push(&mut first, 1, 100).expect("disk space");
    push(&mut second, 2, 50).expect("disk space");
    assert!(!path.exists(), "a file appeared before it was finished");
    second.finish().expect("a free destination");
    let error = first.finish().expect_err("the file of the second");
    assert_eq!((error.kind(), io_kind(&error)), (ErrorKind::Io, Some(io::ErrorKind::AlreadyExists)), "{error}");
    assert_eq!(error.path(), Some(path.as_path()));
    assert_eq!(check_whole(&path, 2), 50);
    destination.assert_no_other_files();
    // a third writer cannot even start
    let error = begin(&path, false).map(|_| ()).expect_err("a file at the destination");
    assert_eq!(io_kind(&error), Some(io::ErrorKind::AlreadyExists), "{error}");
    destination.assert_no_other_files();
}

#[test]
fn exactly_one_of_many_threads_wins_if_all_finish_at_once() {
    for _ in 0..5 {
        let destination = Destination::new();
        let path = destination.path();
        let barrier = std::sync::Barrier::new(6);
        let results: Vec<Result<()>> = std::thread::scope(|scope| {
            let write = |number: u32| {
                let (path, barrier) = (&path, &barrier);
                move || {
                    let mut writer = begin(path, false).expect("no writer has finished yet");
                    push(&mut writer, number, 5 + u64::from(number)).expect("disk space");
                    barrier.wait();
                    writer.finish().map(|_| ())
                }
            };
            let threads: Vec<_> = (0..6).map(|number| scope.spawn(write(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let winners: Vec<usize> = (0..6).filter(|&number| results[number].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            assert_eq!(io_kind(error), Some(io::ErrorKind::AlreadyExists), "{error}");
        }
        assert_eq!(check_whole(&path, winners[0] as u32), 5 + winners[0] as u64);
        destination.assert_no_other_files();
    }
}

#[test]
fn the_last_of_two_writers_wins_if_both_may_overwrite() {
    let destination = Destination::new();
    let path = destination.path();
    fs::write(&path, "something else").expect("disk space");
    let mut first = begin(&path, true).expect("a new file");
    let mut second = begin(&path, true).expect("a new file");
    push(&mut first, 1, 100).expect("disk space");
    push(&mut second, 2, 50).expect("disk space");
    assert_eq!(fs::read(&path).expect("a file"), b"something else");
    second.finish().expect("overwriting is allowed");
    let old = Reader::open(&path).expect("the second's");
    assert_eq!(check_whole(&path, 2), 50);
    first.finish().expect("overwriting is allowed");
    assert_eq!(check_whole(&path, 1), 100);
    assert_eq!(check_samples(&old, 2), 50, "a reader keeps the file that it has opened");
    destination.assert_no_other_files();
}
