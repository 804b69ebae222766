//! Destinations that are symbolic links.

use super::{Destination, begin, check_whole, io_kind, push};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::{fs, io};
use tensilo_testing::Folder;

#[test]
fn a_symbolic_link_is_preserved_and_its_target_is_replaced() {
    for old in [None, Some("the old file")] {
        let destination = Destination::new();
        let elsewhere = Folder::new();
        let target = elsewhere.path("target.tsl");
        if let Some(old) = old {
            fs::write(&target, old).expect("disk space");
        }
        // a chain of two links, the first of them relative
        let middle = destination.0.path("middle");
        symlink(&target, &middle).expect("a link");
        symlink("middle", destination.path()).expect("a link");
        if old.is_some() {
            let error = begin(&destination.path(), false).map(|_| ()).expect_err("a file at the target");
            assert_eq!(
                (error.path(), io_kind(&error)),
                (Some(&*destination.path()), Some(io::ErrorKind::AlreadyExists))
            );
        }
        let mut writer = begin(&destination.path(), old.is_some()).expect("a new file");
        push(&mut writer, 1, 10).expect("disk space");
        writer.finish().expect("disk space");
        assert_eq!(fs::read_link(destination.path()).expect("still a link"), Path::new("middle"));
        assert_eq!(fs::read_link(&middle).expect("still a link"), target);
        assert!(fs::symlink_metadata(&target).expect("a file").is_file());
        assert_eq!(check_whole(&target, 1), 10);
        assert_eq!(elsewhere.names(), ["target.tsl"]);
    }
}

#[test]
fn a_symbolic_link_to_itself_is_refused() {
    let destination = Destination::new();
    symlink("out.tsl", destination.path()).expect("a link to itself");
    let error = begin(&destination.path(), true).map(|_| ()).expect_err("a circle");
    assert!(error.to_string().contains("symbolic links"), "{error}");
}
