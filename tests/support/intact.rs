//! Checks that a file has no damage.

use tensilo::source::Source;
use tensilo::verify::{VerifyOptions, verify};

/// Asserts that a file is finished, that no byte of it has changed, and that all of it can be
/// decoded.
#[track_caller]
pub fn assert_intact(source: &impl Source) {
    let report = verify(source, VerifyOptions::new().deep(true)).expect("a readable source");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}
