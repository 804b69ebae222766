//! The process that other tests start, and some of them kill: it writes a file.

use super::{begin, push};
use crate::child::{Child, report};
use std::path::Path;
use std::time::Duration;

/// The work of a child.
#[derive(Clone, Copy)]
pub enum Work {
    /// Pushes without end.
    Push,
    /// Pushes and commits without end; reports the number of samples after each commit.
    Commit,
    /// Writes 20 samples and finishes.
    Finish,
}

/// Returns the variables that tell the child its work.
pub fn environment(destination: &Path, work: Work) -> [(&'static str, String); 2] {
    let work = match work {
        Work::Push => "push",
        Work::Commit => "commit",
        Work::Finish => "finish",
    };
    let destination = destination.to_str().expect("a temporary folder of plain characters");
    [("TENSILO_TEST_DESTINATION", destination.to_owned()), ("TENSILO_TEST_WORK", work.to_owned())]
}

pub const CHILD: &str = "atomic::child_writer::child_that_writes";

/// Writes as the environment says. This is no test of its own: other tests start it.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn child_that_writes() {
    let Ok(destination) = std::env::var("TENSILO_TEST_DESTINATION") else { return };
    let work = std::env::var("TENSILO_TEST_WORK").expect("set beside the destination");
    let mut writer = begin(Path::new(&destination), true).expect("a new file");
    if work == "finish" {
        push(&mut writer, 7, 20).expect("disk space");
        writer.finish().expect("disk space");
        return;
    }
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
