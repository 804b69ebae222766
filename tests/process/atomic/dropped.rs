//! Writers that are dropped before they finish.

use super::{Destination, begin, check_samples, push};
use std::fs;
use tensilo::Reader;
use tensilo::verify::VerifyOptions;

#[test]
fn a_writer_that_is_dropped_leaves_the_old_file_or_none() {
    for old in [None, Some("the old file")] {
        let destination = Destination::new();
        let path = destination.path();
        if let Some(old) = old {
            fs::write(&path, old).expect("disk space");
        }
        let mut writer = begin(&path, true).expect("a new file");
        push(&mut writer, 1, 200).expect("disk space");
        assert_eq!(
            destination.others().len(),
            usize::from(destination.names_temporary_files()),
            "{:?}",
            destination.others()
        );
        drop(writer);
        destination.assert_no_other_files();
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
    }
}

#[test]
fn a_writer_that_is_dropped_after_a_commit_leaves_that_commit() {
    let destination = Destination::new();
    let mut writer = begin(&destination.path(), false).expect("a new file");
    push(&mut writer, 1, 30).expect("disk space");
    assert!(!destination.path().exists());
    writer.commit().expect("disk space");
    assert_eq!(Reader::open(destination.path()).expect("a commit").sample_count(), 30);
    push(&mut writer, 1, 100).expect("disk space");
    drop(writer);
    let reader = Reader::open(destination.path()).expect("a commit");
    assert_eq!(check_samples(&reader, 1), 30);
    assert!(!reader.is_finished());
    destination.assert_no_other_files();
    let report = reader.verify(VerifyOptions::new()).expect("a readable file");
    assert!(!report.findings.is_empty(), "an unfinished file with a tail is reported");
}
