//! Writers that are killed.

use super::child_writer::{Work, start};
use super::{Destination, check_samples};
use crate::child::Child;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tensilo::{ErrorKind, Reader};

/// Returns the size of the child's unnamed file in this folder, if there is one.
fn unnamed_bytes(child: &Child, folder: &Path) -> Option<u64> {
    let files = fs::read_dir(format!("/proc/{}/fd", child.id())).ok()?;
    let paths = files.map(|file| file.expect("an open file").path());
    let mut unnamed = paths.filter(|path| {
        let target = fs::read_link(path).unwrap_or_default();
        target.starts_with(folder) && target.to_string_lossy().ends_with(" (deleted)")
    });
    Some(fs::metadata(unnamed.next()?).expect("a file").len())
}

#[test]
fn a_writer_killed_at_any_time_leaves_the_old_file_and_no_new_one_that_opens() {
    let mut sizes = Vec::new();
    for round in 0..20_u64 {
        let destination = Destination::new();
        let old = (round % 2 == 0).then_some("the old file");
        if let Some(old) = old {
            fs::write(destination.path(), old).expect("disk space");
        }
        let mut child = start(&destination.path(), Work::Push);
        // a writer queues 1 MiB before it writes
        (0..=2 * round).for_each(|_| assert!(child.report() > 0));
        std::thread::sleep(Duration::from_micros(700 * (round % 9)));
        sizes.extend(unnamed_bytes(&child, destination.0.root()));
        child.kill();
        assert_eq!(fs::read_to_string(destination.path()).ok().as_deref(), old, "round {round}");
        let others = destination.others();
        assert_eq!(others.len(), usize::from(destination.names_temporary_files()), "{others:?}");
        for name in others {
            let left = destination.0.path(&name);
            sizes.push(fs::metadata(&left).expect("a file").len());
            assert!(name.starts_with(".out.tsl.") && name.ends_with(".tmp"), "{name}");
            let error = Reader::open(&left).map(|_| ()).expect_err("no commit");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
    }
    assert_eq!(sizes.len(), 20, "each killed writer had one temporary file");
    assert!(sizes.iter().filter(|size| **size > 0).count() >= 15, "they were killed too early: {sizes:?}");
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() >= 5, "they were all killed at the same size: {sizes:?}");
}

#[test]
fn a_writer_killed_after_a_commit_leaves_that_commit() {
    for round in 0..20_u64 {
        let destination = Destination::new();
        let mut child = start(&destination.path(), Work::Commit);
        child.report();
        std::thread::sleep(Duration::from_micros(1_300 * (round % 11)));
        let reported = child.kill().unwrap_or(20);
        let reader = Reader::open(destination.path()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let samples = check_samples(&reader, 7);
        // the last commit may be complete without having been reported
        assert!(samples == reported || samples == reported + 20, "round {round}: {samples}, reported {reported}");
        assert!(!reader.is_finished());
        // the first commit gave the file its name
        destination.assert_no_other_files();
    }
}
