//! Tests of the limits of parsing: a structure at a limit is accepted, and a structure one step
//! beyond it is refused. The test vectors cover the other rules.

mod chunks;
mod footer;
mod index;
mod region;
mod schema;

use super::Flags;
use super::region::FileId;
use crate::{ErrorKind, Result};

const FILE: FileId = FileId([7; 12]);

/// Returns the rule that the error names, if there is an error.
fn rule<T>(result: Result<T>) -> Option<&'static str> {
    result.err().map(|error| error.rule().expect("the rule of a file"))
}

fn flags(incompat: u32, ro_compat: u32, compat: u32) -> Flags {
    Flags { incompat, ro_compat, compat }
}

#[test]
fn the_union_of_flags_is_bitwise() {
    let union_flags = flags(0b0011, 0b0101, 0b1001).union(flags(0b0110, 0b0011, 0b0001));
    assert_eq!(union_flags, flags(0b0111, 0b0111, 0b1001));
    assert!(union_flags.contains(flags(0b0100, 0b0100, 0b1000)));
    for missing in [flags(8, 0, 0), flags(0, 8, 0), flags(0, 0, 2), flags(1, 1, 3)] {
        assert!(!union_flags.contains(missing), "{missing:?}");
    }
}

#[test]
fn unknown_flags_bar_reading_or_appending_or_nothing() {
    let refusals = |flags: Flags| [flags.check(), flags.check_writable()].map(|result| result.err().map(|e| e.kind()));
    assert_eq!(refusals(flags(1 << 31, 0, 0)), [Some(ErrorKind::TooNew), None]);
    assert_eq!(refusals(flags(0, 1 << 31, 0)), [None, Some(ErrorKind::TooNew)]);
    assert_eq!(refusals(flags(0, 0, u32::MAX)), [None, None]);
}
