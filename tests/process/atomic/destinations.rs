//! Destinations at which no file can appear, and temporary files that killed writers leave there.

use super::{Destination, begin, io_kind, push};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};
use tensilo::ErrorKind;
use tensilo::sink::AtomicFile;
use tensilo_testing::Folder;

#[test]
fn paths_where_no_file_can_be_are_refused() {
    let destination = Destination::new();
    let missing = destination.0.path("no such folder").join("out.tsl");
    let error = begin(&missing, true).map(|_| ()).expect_err("no such folder");
    assert_eq!((error.path(), io_kind(&error)), (Some(missing.as_path()), Some(io::ErrorKind::NotFound)), "{error}");
    for path in [Path::new("/"), Path::new(".."), Path::new("")] {
        assert_eq!(begin(path, true).map(|_| ()).expect_err("no name").kind(), ErrorKind::Io);
    }
}

#[test]
fn only_a_regular_file_is_replaced() {
    type Make = fn(&Path);
    let make: [(&str, Make); 3] = [
        ("a folder", |path| fs::create_dir(path).expect("a folder")),
        ("a named pipe", |path| assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success())),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).expect("a socket"))),
    ];
    for (what, make) in make {
        let destination = Destination::new();
        make(&destination.path());
        let kind = || fs::symlink_metadata(destination.path()).expect("the entry").file_type();
        let before = kind();
        for overwrite in [false, true] {
            let error = begin(&destination.path(), overwrite).map(|_| ()).expect_err(what);
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(kind(), before, "{what}");
        destination.assert_no_other_files();
    }
    let error = begin(Path::new("/dev/null"), true).map(|_| ()).expect_err("a device");
    assert!(
        error.to_string().contains("/dev/null: creating the file: the path leads to a character device"),
        "{error}"
    );
}

#[test]
fn a_folder_that_appears_while_a_file_is_written_is_not_replaced() {
    let destination = Destination::new();
    let mut writer = begin(&destination.path(), true).expect("a free destination");
    push(&mut writer, 1, 1).expect("disk space");
    fs::create_dir(destination.path()).expect("a folder");
    assert_eq!(writer.finish().expect_err("a folder at the destination").kind(), ErrorKind::Io);
    assert!(destination.path().is_dir());
    destination.assert_no_other_files();
}

#[test]
fn temporary_files_of_killed_writers_are_listed_and_not_removed() {
    let destination = Destination::new();
    let left = |destination: &Path| AtomicFile::left_behind(destination).expect("a folder");
    assert_eq!(left(&destination.path()), Vec::<PathBuf>::new());
    let names = [
        ".out.tsl.a1B2c3.tmp",
        ".out.tsl.short.tmp",
        ".out.tsl.a1B2c3.tmpx",
        ".other.tsl.a1B2c3.tmp",
        "out.tsl.a1B2c3.tmp",
    ];
    for name in names {
        fs::write(destination.0.path(name), "old").expect("disk space");
    }
    let expected = destination.0.path(names[0]);
    assert_eq!(left(&destination.path()), std::slice::from_ref(&expected));
    // for a symbolic link, they are next to the target
    let elsewhere = Folder::new();
    symlink(destination.path(), elsewhere.path("link")).expect("a link");
    assert_eq!(left(&elsewhere.path("link")), std::slice::from_ref(&expected));
    // the file of an active writer is not listed
    let file = fs::File::open(&expected).expect("a file");
    file.lock().expect("a lock");
    assert_eq!(left(&destination.path()), Vec::<PathBuf>::new());
    drop(file);
    assert_eq!(left(&destination.path()).len(), 1);
    assert!(expected.exists(), "it is never removed");
}
