//! What follows the last commit: an append that has not committed, or damage.
//!
//! A writer writes front to back and commits with a trailer. So an append that is at work, or was
//! stopped, has left intact regions without a trailer, the last of which may be cut off at any
//! byte. All else is damage, such as a later commit whose trailer or footer is damaged: its samples
//! were there. Bytes that a failure of power has lost cannot be told from these, and are damage,
//! too.

use super::body::load_body;
use super::span::SpanBytes;
use super::walk::Walk;
use crate::format::region::RegionKind;
use crate::open::OpenedHeader;
use crate::open::source::Source;
use crate::{Error, ErrorKind, Result};
use std::error::Error as _;
use std::io;

/// Returns whether the bytes from `start`, the end of the last commit, to the end of the file are
/// what an append has left that has not committed.
///
/// Cost: reads these bytes.
pub(super) fn is_uncommitted(source: &dyn Source, header: &OpenedHeader, start: u64) -> Result<bool> {
    let mut walk = Walk::of_tail(source, header, start);
    let mut buffer = Vec::new();
    loop {
        let head = match walk.next_intact(SpanBytes::default()) {
            Ok(head) => head,
            Err(error) => return ends_early(error),
        };
        if head.kind == RegionKind::Trailer {
            return Ok(false); // it was not valid, or the commit would end here
        }
        match load_body(source, &head, &mut buffer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(false),
            Err(error) => return ends_early(error),
        }
    }
}

/// Returns whether an error says that the file ends, which it does earlier than it did if an append
/// has failed meanwhile. Other damage is no end.
fn ends_early(error: Error) -> Result<bool> {
    if error.kind() == ErrorKind::Corrupt {
        return Ok(matches!(error.rule(), Some("R-2.5" | "R-2.9")));
    }
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => Ok(true),
        _ => Err(error),
    }
}
