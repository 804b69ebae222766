//! The child process of these tests: it writes a file, and some tests kill it on the way.

use super::{Destination, begin, push};
use crate::child::{Child, arguments, report};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DESTINATION: &str = "TENSILO_TEST_DESTINATION";
const WORK: &str = "TENSILO_TEST_WORK";

/// The work of a child.
#[derive(Clone, Copy)]
pub enum Work {
    /// Pushes forever.
    Push,
    /// Pushes and commits forever; reports the number of samples after each commit.
    Commit,
    /// Writes 20 samples and finishes.
    Finish,
}

/// Returns the environment variables that tell the child its work.
pub fn environment(destination: &Path, work: Work) -> [(&'static str, String); 2] {
    let work = match work {
        Work::Push => "push",
        Work::Commit => "commit",
        Work::Finish => "finish",
    };
    let destination = destination.to_str().expect("a temporary folder of plain characters");
    [(DESTINATION, destination.to_owned()), (WORK, work.to_owned())]
}

/// The test that other tests start as their child.
pub const CHILD: &str = "atomic::child_writer::a_child_writes_the_bytes_that_this_process_writes";

#[test]
fn a_child_writes_the_bytes_that_this_process_writes() {
    if let Ok(destination) = std::env::var(DESTINATION) {
        return write(Path::new(&destination));
    }
    let (own, of_child) = (Destination::new(), Destination::new());
    finish(&own.path());
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(arguments(CHILD))
        .envs(environment(&of_child.path(), Work::Finish))
        .stdout(Stdio::null())
        .status();
    assert!(child.expect("this program can start itself").success());
    let bytes = |destination: &Destination| fs::read(destination.path()).expect("a file");
    assert!(bytes(&own) == bytes(&of_child));
}

fn finish(destination: &Path) {
    let mut writer = begin(destination, true).expect("a new file");
    push(&mut writer, 7, 20).expect("disk space");
    writer.finish().expect("disk space");
}

/// Does the work that the environment asks for, in the child.
fn write(destination: &Path) {
    let work = std::env::var(WORK).expect("set with the destination");
    if work == "finish" {
        return finish(destination);
    }
    let mut writer = begin(destination, true).expect("a new file");
    // samples are bounded, so that a child whose parent is gone does not fill the disk
    for _ in 0..2_000 {
        push(&mut writer, 7, 20).expect("disk space");
        if work == "commit" {
            writer.commit().expect("disk space");
        }
        report(writer.sample_count());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts the child.
pub fn start(destination: &Path, work: Work) -> Child {
    Child::start(CHILD, environment(destination, work))
}
