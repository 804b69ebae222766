//! What follows the last commit: an append that has not committed, or damage.
//!
//! A writer writes front to back and commits with a trailer. So an append that is at work, or was
//! stopped, has left intact regions without a trailer, the last of which may be cut off at any
//! byte. What is there of its padding and its head must be right. All else is damage, such as a
//! later commit whose trailer or footer is damaged: its samples were there. Bytes that a failure of
//! power has lost cannot be told from these, and are damage, too.

use super::body::BodyCheck;
use super::met_tables::MetTables;
use super::span::SpanBytes;
use super::walk::Walk;
use crate::format::region::{HEAD, RegionHead, RegionKind, next_offset};
use crate::open::OpenedHeader;
use crate::open::source::{Source, fetch};
use crate::{Error, ErrorKind, Result};
use std::error::Error as _;
use std::io;

/// Returns whether the bytes from `start`, the end of the last commit, to the end of the file are
/// what an append has left that has not committed. `trailer_crc` is the `head_crc` of the trailer
/// that ends there: what an older file has left does not follow it.
///
/// Cost: reads these bytes.
pub(super) fn is_uncommitted(source: &dyn Source, header: &OpenedHeader, start: u64, trailer_crc: u32) -> Result<bool> {
    let mut walk = Walk::of_tail(source, header, start, trailer_crc);
    let tables = MetTables::new(source, header.header.file_id);
    let mut bodies = BodyCheck::new(source, &[], &tables, false);
    loop {
        let head = match walk.next_intact(SpanBytes::default()) {
            Ok(head) => head,
            Err(error) => return Ok(ends_early(error)? && begins_region(source, header, &walk)?),
        };
        if head.kind == RegionKind::Trailer {
            return Ok(false); // it was not valid, or the commit would end here
        }
        match bodies.check_sum(&head, SpanBytes::default()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(false),
            Err(error) => return ends_early(error),
        }
    }
}

/// Returns whether the bytes where a walk has ended are padding and the head of another region, as
/// far as they are there.
fn begins_region(source: &dyn Source, header: &OpenedHeader, walk: &Walk<'_>) -> Result<bool> {
    let (at, Some(previous)) = (walk.at(), walk.previous()) else { return Ok(false) };
    let (alignment, file_id) = (header.header.alignment.into(), header.header.file_id);
    let until = next_offset(RegionKind::Chunk, at, alignment).saturating_add(HEAD).min(source.byte_count());
    // less than two alignments
    let length = usize::try_from(until.saturating_sub(at)).unwrap_or(usize::MAX);
    let mut buffer = Vec::new();
    let bytes = match fetch(source, at, length, &mut buffer) {
        Ok(bytes) => bytes,
        Err(error) => return ends_early(error),
    };
    let begins = |kind: RegionKind| {
        let offset = next_offset(kind, at, alignment);
        let padding = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
        let (padding, head) = bytes.split_at_checked(padding).unwrap_or((bytes, &[]));
        padding.iter().all(|byte| *byte == 0) && RegionHead::can_begin(kind, file_id, previous, offset, head)
    };
    Ok(RegionKind::ALL.into_iter().filter(|kind| *kind != RegionKind::Header).any(begins))
}

/// Returns whether an error means that the file ends here. If an append has failed in the meantime,
/// that is earlier than when it was opened. Other damage is not an end.
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
