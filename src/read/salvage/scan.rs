//! Finds the regions of a file at any offset, without following an offset in the file.

use super::progress::ScanProgress;
use crate::ErrorKind;
use crate::format::region::{HEAD, RegionHead, align};
use crate::open::source::{Source, fetch};
use crate::open::{BlockSizes, HeadScan};
use crate::{Error, Result};

/// A region whose head is intact and at the offset that it states.
pub(super) struct FoundRegion {
    pub head: RegionHead,
    /// Whether the body is complete and its checksum right.
    pub is_intact: bool,
}

/// The search begins with 64 bytes, then a sector: the next head is mostly directly after a region.
const BLOCKS: BlockSizes = BlockSizes { first: HEAD, second: 4 << 10, largest: 1 << 20 };

/// Examines every multiple of 64 for a head. Skips intact bodies, because they may
/// contain bytes that look like heads. Bytes that cannot be read count as damaged.
pub(super) fn regions(source: &dyn Source, progress: &mut ScanProgress<'_>) -> Result<Vec<FoundRegion>> {
    let mut regions = Vec::new();
    let mut buffer = Vec::new();
    let mut scan = HeadScan::new(source, BLOCKS).skip_unreadable();
    let mut at = 0;
    let end = source.byte_count();
    while let Some(head) = scan.first(at, end, |found| RegionHead::parse(found.bytes, found.offset).ok())? {
        let is_intact = is_intact(source, &head, &mut buffer)?;
        at = if is_intact { align(head.end(), HEAD) } else { head.body_offset() };
        regions.push(FoundRegion { head, is_intact });
        progress.scanned(at)?;
    }
    progress.scanned(end)?;
    Ok(regions)
}

/// Returns whether a body can be read and its checksum is right. Errors that are not about the
/// file, such as those of memory, are returned.
fn is_intact(source: &dyn Source, head: &RegionHead, buffer: &mut Vec<u8>) -> Result<bool> {
    let length =
        usize::try_from(head.body_bytes).map_err(|_| Error::over_limit("a region is too large for this machine"))?;
    let body = fetch(source, head.body_offset(), length, buffer);
    match body.and_then(|body| head.check_body(body)) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => Ok(false),
        Err(error) => Err(error),
    }
}
