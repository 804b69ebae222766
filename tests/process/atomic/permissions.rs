//! Permissions of a new file, and of one that replaces another.

use super::child_writer::{CHILD, Work, environment};
use super::{Destination, begin, check_whole, push};
use crate::child::arguments;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_new_file_has_the_same_permissions_as_other_new_files() {
    let destination = Destination::new();
    fs::write(destination.0.path("plain"), "").expect("disk space");
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let mut writer = begin(&destination.path(), false).expect("a new file");
    push(&mut writer, 1, 1).expect("disk space");
    writer.finish().expect("disk space");
    assert_eq!(mode(&destination.path()), mode(&destination.0.path("plain")));
}

/// The umask of this process may already make files private, so children run with different ones.
#[test]
fn permissions_follow_the_umask() {
    for (umask, expected) in [("000", 0o666), ("022", 0o644), ("027", 0o640), ("077", 0o600)] {
        let destination = Destination::new();
        let command = format!("umask {umask}; exec \"$0\" \"$@\"");
        let status = Command::new("sh")
            .args(["-c", &command])
            .arg(std::env::current_exe().expect("this program"))
            .args(arguments(CHILD))
            .envs(environment(&destination.path(), Work::Finish))
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("a shell").success());
        assert_eq!(check_whole(&destination.path(), 7), 20);
        let mode = fs::metadata(destination.path()).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, expected, "umask {umask}");
    }
}

#[test]
fn a_file_that_replaces_another_gets_its_permissions() {
    for mode in [0o600, 0o640, 0o444, 0o777] {
        let destination = Destination::new();
        fs::write(destination.path(), "old").expect("disk space");
        fs::set_permissions(destination.path(), fs::Permissions::from_mode(mode)).expect("an own file");
        let mut writer = begin(&destination.path(), true).expect("a new file");
        push(&mut writer, 1, 1).expect("disk space");
        writer.finish().expect("disk space");
        assert_eq!(check_whole(&destination.path(), 1), 1);
        let found = fs::metadata(destination.path()).expect("a file").permissions().mode();
        assert_eq!(found & 0o7777, mode);
    }
}
