//! Tests a disk that fills up or fails at any call. The writer must report the error and retry
//! nothing, and the file must have the contents of the last commit that returned.

use super::crash::{Inspector, replay, view};
use super::scenarios::{Contents, Scenario, check_append, contents, path};
use super::simulated::{Faults, Op, Simulated};
use crate::ErrorKind;
use crate::write::sink::{AtomicSink, Sink};
use std::io::{self, Write};

/// Returns the position of the first failed call in the log, and the name of the call.
fn first_failure(log: &[Op]) -> (usize, &'static str) {
    let failure = |(at, op): (usize, &Op)| match op {
        Op::Failed(what) => Some((at, *what)),
        Op::FailedSync { .. } => Some((at, "sync")),
        _ => None,
    };
    log.iter().enumerate().find_map(failure).expect("an injected failure")
}

/// Returns the number of operations up to the last commit that returned, and the state of that
/// commit.
fn last_returned(log: &[Op]) -> (usize, usize) {
    let returned = |(at, op): (usize, &Op)| match op {
        Op::Returned { state } => Some((at + 1, *state)),
        _ => None,
    };
    log.iter().enumerate().filter_map(returned).next_back().unwrap_or((0, 0))
}

/// Checks that nothing was retried, and that the file has the contents of the last commit that
/// returned.
fn check_after_failure(scenario: &Scenario, disk: &Simulated, before: Option<&[u8]>, states: &[Contents], what: &str) {
    let log = disk.state().log.clone();
    let faults = disk.state().faults;
    let (failed_at, call) = first_failure(&log);
    let after = log[failed_at + 1..].iter().find(|op| op.changes());
    assert!(after.is_none(), "{what}: {after:?} after the failure");

    let (mark, state) = last_returned(&log);
    let found = disk.bytes(path()).map(|bytes| contents(&bytes).unwrap_or_else(|error| panic!("{what}: {error}")));
    // the new commit can be present although a call failed: if this call was the sync of the folder
    // or the sync after naming, or if it was the last sync and the disk can no longer cut off the
    // bytes
    let is_named = log[..failed_at].last().is_some_and(|op| matches!(op, Op::Link { .. } | Op::Rename { .. }));
    let later = call == "sync of the folder" || (call == "sync" && (faults.for_ever || is_named));
    assert!(found == states[state] || (later && Some(&found) == states.last()), "{what}: {found:?}");
    let expected = view(before, &log[..mark]);
    if !later && !faults.for_ever && !scenario.has_tail() {
        assert!(disk.bytes(path()) == expected, "{what}: the file has changed");
    }
    let names: Vec<_> = disk.state().names.keys().cloned().collect();
    assert!(names.iter().all(|name| name == path()), "{what}: {names:?}");
}

#[test]
fn a_call_that_fails_is_reported_and_leaves_the_last_commit() {
    let (mut failures, mut inspector_images) = (0, 0);
    let scenarios = Scenario::all().into_iter().flat_map(|scenario| [(scenario.clone(), false), (scenario, true)]);
    for (scenario, only_named) in scenarios {
        let healthy =
            Faults { accept: 1_500, interrupts: true, fail_at: Some(usize::MAX), only_named, ..Faults::default() };
        let (disk, mut states) = scenario.disk(healthy);
        scenario.run(&disk, &mut states).unwrap();
        let calls = disk.state().calls;
        for fail_at in 0..calls {
            for (error, for_ever) in [
                (io::ErrorKind::StorageFull, false),
                (io::ErrorKind::StorageFull, true),
                (io::ErrorKind::Other, false),
                (io::ErrorKind::Other, true),
            ] {
                let what = format!("{}, call {fail_at} of {calls}: {error}, forever: {for_ever}", scenario.name);
                let (disk, mut states) = scenario.disk(Faults { fail_at: Some(fail_at), error, for_ever, ..healthy });
                let before = disk.bytes(path());
                let failed = scenario.run(&disk, &mut states).expect_err(&what);
                let source = std::error::Error::source(&failed).and_then(|source| source.downcast_ref::<io::Error>());
                assert_eq!((failed.kind(), source.map(io::Error::kind)), (ErrorKind::Io, Some(error)), "{what}");
                assert_eq!(failed.path(), Some(path()), "{what}: {failed}");
                check_after_failure(&scenario, &disk, before.as_deref(), &states, &what);
                let log = disk.state().log.clone();
                let (at, call) = first_failure(&log);
                assert_eq!(failed.to_string().contains("not retried"), call == "sync", "{what}: {failed}");
                let mut inspector = Inspector::default();
                for count in [0, 2] {
                    let pass = (fail_at as u64, count);
                    replay(before.as_deref(), &log, at, &states, pass, &mut inspector, &what);
                }
                if let Some(bytes) = disk.bytes(path()) {
                    check_append(&bytes, &what);
                }
                failures += 1;
                inspector_images += inspector.images;
            }
        }
    }
    println!("{failures} failures, {inspector_images} crash images after them, 0 bad");
    assert!(failures > 500, "only {failures} failures");
}

#[test]
fn short_and_interrupted_writes_give_the_same_file() {
    for scenario in Scenario::all() {
        let file = |faults| {
            let (disk, mut states) = scenario.disk(faults);
            scenario.run(&disk, &mut states).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            disk.bytes(path())
        };
        let expected = file(Faults::default());
        for accept in [1, 7, 63, 64, 1_000] {
            for interrupts in [false, true] {
                assert!(
                    file(Faults { accept, interrupts, ..Faults::default() }) == expected,
                    "{}: {accept}",
                    scenario.name
                );
            }
        }
    }
}

/// The sink itself refuses further calls; it does not rely on the writer to make none.
#[test]
fn a_sink_that_has_failed_calls_nothing_again() {
    // resolving the path is call 0, and creating the file is call 1
    for (only_named, calls) in [(true, ["write", "sync", "rename", "sync of the folder"].as_slice()), (false, &CALLS)] {
        for (fail_at, expected) in (2..).zip(calls) {
            let disk = Simulated::new(Faults { fail_at: Some(fail_at), only_named, ..Faults::default() });
            let mut sink = AtomicSink::create(disk.clone(), path(), true).unwrap();
            let mut commit = |bytes: &[u8]| sink.write(bytes).and_then(|_| sink.sync()).and_then(|()| sink.publish());
            commit(b"bytes").unwrap_err();
            let calls = disk.state().calls;
            assert_eq!((calls, first_failure(&disk.state().log).1), (fail_at + 1, *expected));
            for _ in 0..2 {
                commit(b"more").unwrap_err();
                commit(b"").unwrap_err();
            }
            assert_eq!(disk.state().calls, calls, "the sink made another call");
            let is_named = disk.bytes(path()).is_some();
            drop(sink);
            assert_eq!(disk.state().names.len(), usize::from(is_named), "{expected}");
        }
    }
}

/// The calls for a file that gets its name when it is complete.
const CALLS: [&str; 5] = ["write", "sync", "link", "sync", "sync of the folder"];
