//! Finds the regions of a file at any offset, without following an offset in the file.

use super::progress::ScanProgress;
use crate::ErrorKind;
use crate::format::region::{HEAD, HEAD_BYTES, RegionHead, align};
use crate::open::source::{Source, fetch, fetch_array};
use crate::{Error, Result};

/// A region whose head is intact and at the offset that it states.
pub(super) struct FoundRegion {
    pub head: RegionHead,
    /// Whether the body is complete and its checksum right.
    pub is_intact: bool,
}

/// Examines every multiple of 64 for a head. Skips intact bodies, because they may
/// contain bytes that look like heads. Bytes that cannot be read count as damaged.
pub(super) fn regions(source: &dyn Source, progress: &mut ScanProgress<'_>) -> Result<Vec<FoundRegion>> {
    let mut regions = Vec::new();
    let mut buffer = Vec::new();
    let mut at = 0;
    while let Some(head) = next_head(source, at, &mut buffer)? {
        let is_intact = is_intact(source, &head, &mut buffer)?;
        at = if is_intact { align(head.end(), HEAD) } else { head.body_offset() };
        regions.push(FoundRegion { head, is_intact });
        progress.scanned(at)?;
    }
    progress.scanned(source.byte_count())?;
    Ok(regions)
}

/// Returns `None` for damage, which includes bytes that cannot be read. Other errors, such as those
/// of memory, are not about the file.
fn passing<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_intact(source: &dyn Source, head: &RegionHead, buffer: &mut Vec<u8>) -> Result<bool> {
    let length =
        usize::try_from(head.body_bytes).map_err(|_| Error::over_limit("a region is too large for this machine"))?;
    let body = fetch(source, head.body_offset(), length, buffer);
    Ok(passing(body.and_then(|body| head.check_body(body)))?.is_some())
}

/// Returns the first head at or after `from`, a multiple of 64.
fn next_head(source: &dyn Source, from: u64, buffer: &mut Vec<u8>) -> Result<Option<RegionHead>> {
    if let Some(bytes) = passing(fetch_array(source, from))?
        && let Some(head) = head_at(&bytes, from)
    {
        return Ok(Some(head));
    }
    let mut at = from.saturating_add(HEAD);
    let mut block_bytes = SECTOR;
    while at.saturating_add(HEAD) <= source.byte_count() {
        // a block ends with a sector, so that one that cannot be read costs no bytes of others
        let length = block_bytes - at % SECTOR;
        let length = (source.byte_count() - at).min(length) & !(HEAD - 1);
        // at most MOST_BLOCK
        let block = fetch(source, at, usize::try_from(length).unwrap_or(HEAD_BYTES), buffer);
        match passing(block)? {
            Some(block) => {
                if let Some(head) = first_head(block, at) {
                    return Ok(Some(head));
                }
                at = at.saturating_add(length);
                block_bytes = (block_bytes * 2).min(MOST_BLOCK);
            }
            None if block_bytes > SECTOR => block_bytes = SECTOR,
            None => at = at.saturating_add(length),
        }
    }
    Ok(None)
}

/// The smallest unit that a disk reads.
const SECTOR: u64 = 4 << 10;
/// The largest number of bytes read at once in search of a head, if the file is not in memory. The
/// search begins with one sector, because the next head is mostly near.
const MOST_BLOCK: u64 = 1 << 20;

fn first_head(block: &[u8], at: u64) -> Option<RegionHead> {
    let places = (at..).step_by(HEAD_BYTES);
    block.as_chunks::<HEAD_BYTES>().0.iter().zip(places).find_map(|(bytes, place)| head_at(bytes, place))
}

fn head_at(bytes: &[u8; HEAD_BYTES], at: u64) -> Option<RegionHead> {
    // nearly no 64 bytes begin so, and a checksum of those that do is all this costs
    let is_magic = bytes.starts_with(b"TSL") || bytes.starts_with(b"\x89TSL");
    is_magic.then(|| RegionHead::parse(bytes, at).ok()).flatten()
}
