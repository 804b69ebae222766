//! Walks a file from header to header (chapter 2 of the specification), and visits every byte
//! outside the bodies of regions.
//!
//! The end of a region determines where the next one starts, so the walk reads headers in file
//! order. It checks the padding between regions and the links between them: the offset of each
//! region, and the CRC of the previous header, which each header repeats. If no region starts where
//! the next one is expected, the walk reports the bytes up to the next intact header of this file
//! and continues there.
//!
//! Headers are small, and fetching each one with its own request would take too long. So the
//! verifier fetches spans of the file that contain many regions. The walk reads a header from the
//! source only if the span does not contain it.

use super::report::{Finding, FindingKind, as_finding};
use crate::bytes::le::u64_of;
use crate::format::region::{FileId, HEADER_BYTES, HEADER_LEN, RegionHeader, RegionKind, align, next_offset};
use crate::open::source::{Source, check_inside};
use crate::open::{FileHeader, HeaderScan, ReadSizes};
use crate::{Error, Result};

/// Read sizes for finding the next region after damaged bytes, which can span a whole chunk.
const READS: ReadSizes = ReadSizes { first: 1 << 20, second: 1 << 20, max: 1 << 20 };

/// What a step of the walk has found.
pub(super) enum WalkItem {
    /// A region whose body was not read.
    Region(RegionHeader),
    /// Bytes that cannot be a region, or a region that does not follow its predecessor.
    Finding(Finding),
}

/// A walk over a file.
pub(super) struct Walk<'a> {
    source: &'a dyn Source,
    file_header: &'a FileHeader,
    /// The offset at which the walk ends: the end of the last valid trailer, or the end of the
    /// file.
    end: u64,
    /// The end of the previous region, or of the damaged bytes after it.
    at: u64,
    /// The `header_crc` of the previous region, which the next one repeats; `None` if
    /// there are damaged bytes between them.
    previous: Option<u32>,
    /// The next region, if it has already been found after damaged bytes.
    found: Option<RegionHeader>,
    scan: HeaderScan<'a>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(source: &'a dyn Source, file_header: &'a FileHeader, end: u64) -> Self {
        let (at, previous) = (file_header.header.end(), Some(file_header.header.header_crc()));
        Self { source, file_header, end, at, previous, found: None, scan: HeaderScan::new(source, READS) }
    }

    /// Creates a walk over the bytes after the last commit. The commit ends at `start`, and
    /// `trailer_crc` is the `header_crc` of its trailer.
    pub(super) fn of_tail(source: &'a dyn Source, file_header: &'a FileHeader, start: u64, trailer_crc: u32) -> Self {
        Self { at: start, previous: Some(trailer_crc), ..Self::new(source, file_header, source.byte_count()) }
    }

    /// Returns the next region. Fails if its header is damaged or does not follow the previous
    /// region, or if the padding between the two is not zero.
    pub(super) fn next_intact(&mut self, span: SpanBytes<'_>) -> Result<RegionHeader> {
        let header = self.next_region(span)?;
        self.previous.map_or(Ok(()), |previous| header.check_previous(previous))?;
        self.pass(&header);
        Ok(header)
    }

    fn pass(&mut self, header: &RegionHeader) {
        self.at = header.end();
        self.previous = Some(header.header_crc());
    }

    /// Returns the `header_crc` of the previous region; `None` if damaged bytes follow it.
    pub(super) fn previous(&self) -> Option<u32> {
        self.previous
    }

    /// Returns the end of the last region.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Returns the offset at which the walk ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the next region or finding; `None` at the end. Reads a header from the source if
    /// `span` does not contain it.
    pub(super) fn next(&mut self, span: SpanBytes<'_>) -> Result<Option<WalkItem>> {
        if self.found.is_none() && self.at >= self.end {
            return Ok(None);
        }
        let header = match self.found.take() {
            Some(header) => Ok(header),
            None => self.next_region(span),
        };
        match header {
            Ok(header) => {
                if let Some(Err(error)) = self.previous.take().map(|previous| header.check_previous(previous)) {
                    // the next call returns the region itself, with an unknown predecessor
                    (self.at, self.found) = (header.offset, Some(header));
                    return Ok(Some(WalkItem::Finding(broken_link(&header, error))));
                }
                self.pass(&header);
                Ok(Some(WalkItem::Region(header)))
            }
            Err(error) => self.skip(as_finding(error)?).map(|finding| Some(WalkItem::Finding(finding))),
        }
    }

    /// Reads the header of the next region at the offset that requires, and checks that the
    /// padding before it is zero.
    fn next_region(&mut self, span: SpanBytes<'_>) -> Result<RegionHeader> {
        let alignment = self.file_header.fields.alignment.into();
        let other = align(self.at, HEADER_LEN);
        let chunk = next_offset(RegionKind::Chunk, self.at, alignment);
        if other >= self.end {
            let message = "the file ends without a trailer: it is truncated, or its writer has not committed";
            return Err(Error::corrupt("R-2.9", message).with_offset(self.at));
        }
        // the padding and both candidate headers take less than twice the alignment
        let until = chunk.saturating_add(HEADER_LEN);
        let lookahead = match span.get(self.at, until) {
            Some(bytes) => bytes,
            None => self.scan.bytes(self.at, until)?,
        };
        let first = header_at(self.source, lookahead, self.at, other)?;
        let header_of = |bytes, at| intact_header(bytes, at, self.file_header.fields.file_id, self.end);
        let chunk_header = || header_of(header_at(self.source, lookahead, self.at, chunk)?, chunk);
        let header = match header_of(first, other) {
            Err(_) if first.starts_with(&[0; 4]) && chunk > other => chunk_header()?,
            Err(_) if first.starts_with(&[0; 4]) => {
                let message = "expected another region, but none begins here";
                return Err(Error::corrupt("R-2.7", message).with_offset(other));
            }
            // a chunk after damaged padding, for which `check_padding` fails below
            Err(error) if chunk > other => chunk_header().ok().filter(holds_column_data).ok_or(error)?,
            header => header?,
        };
        let at = header.offset;
        if next_offset(header.kind, self.at, alignment) != at {
            let message = format!("a region of kind {} begins at an offset that R-2.7 does not allow", header.kind);
            return Err(Error::corrupt("R-2.7", message).with_offset(at));
        }
        let found = (at == other).then_some(header); // otherwise a region can be missing before it
        check_padding(lookahead, self.at, at).inspect_err(|_| self.found = found)?;
        Ok(header)
    }

    /// Returns the finding for bytes that cannot be a region, up to the next region of this file.
    fn skip(&mut self, error: Error) -> Result<Finding> {
        let start = self.at;
        self.previous = None;
        if self.found.is_none() {
            self.found = self.find_region(align(self.at, HEADER_LEN).saturating_add(HEADER_LEN))?;
        }
        self.at = self.found.map_or(self.end, |header| header.offset);
        Ok(Finding::of_bytes(FindingKind::Damaged, start..self.at, None, error))
    }

    /// Finds the next region of this file at or after `at`, a multiple of 64.
    fn find_region(&mut self, at: u64) -> Result<Option<RegionHeader>> {
        let (file_id, end) = (self.file_header.fields.file_id, self.end);
        self.scan.first(at, end, |found| {
            let is_later = found.kind != RegionKind::FileHeader; // the file header is always first
            is_later.then(|| intact_header(found.bytes, found.offset, file_id, end).ok()).flatten()
        })
    }
}

/// Returns the finding for a region that does not follow its predecessor. Either of the two can be
/// the wrong one, so the finding does not name samples. The later comparison with the index shows
/// which one it is.
fn broken_link(header: &RegionHeader, error: Error) -> Finding {
    Finding::of_bytes(FindingKind::Damaged, header.offset..header.body_offset(), Some(header.kind), error)
}

/// Returns the header at `offset`, from `bytes`, which start at `start`.
fn header_at<'b>(source: &dyn Source, bytes: &'b [u8], start: u64, offset: u64) -> Result<&'b [u8; HEADER_BYTES]> {
    check_inside(source, offset, HEADER_BYTES)?;
    let header = offset.checked_sub(start).and_then(|at| bytes.get(usize::try_from(at).ok()?..)?.first_chunk());
    header.ok_or_else(|| Error::internal("a header inside the file was not read").with_offset(offset))
}

/// Parses the header at `at` and checks. The region must not extend beyond `end`.
fn intact_header(bytes: &[u8; HEADER_BYTES], at: u64, file_id: FileId, end: u64) -> Result<RegionHeader> {
    let header = RegionHeader::parse(bytes, at)?;
    header.expect(header.kind, file_id)?;
    header.check_inside(end)?;
    Ok(header)
}

/// Returns whether a region holds column data, and therefore has an aligned body.
fn holds_column_data(header: &RegionHeader) -> bool {
    matches!(header.kind, RegionKind::Chunk | RegionKind::Table)
}

/// Checks for the bytes from `start` to `end`. `bytes` starts at `start`.
fn check_padding(bytes: &[u8], start: u64, end: u64) -> Result<()> {
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
    let padding = bytes.get(..length).unwrap_or(bytes);
    if padding.iter().fold(0, |any, byte| any | byte) == 0 {
        return Ok(()); // fast path: no branch per byte
    }
    let at = u64_of(padding.iter().take_while(|byte| **byte == 0).count());
    Err(Error::corrupt("R-2.8", "padding is not zero").with_offset(start.saturating_add(at)))
}

/// The minimum and maximum length of a span if the source is not in memory. A span of the minimum
/// length stays in the L2 cache until it is verified.
const SPAN_BYTES: (u64, u64) = (1 << 20, 4 << 20);
/// The ratio of the length of a span to the maximum gap that a source reads rather than skips.
const SPAN_GAPS: u64 = 16;
/// The maximum number of regions in a span, on average. If a batch becomes full in the middle of a
/// span, the next batch fetches the remaining bytes of that span again.
const SPAN_REGIONS: u64 = 256;
/// The minimum length of a span that contains many small regions.
const REGIONS_SPAN_BYTES: u64 = 64 << 10;
/// The length of a span if the file is in memory. It is long enough to make the cost of locking
/// negligible.
const MEMORY_SPAN_BYTES: u64 = 256 << 10;
/// The length of a span if the file has large chunks. Their bodies are fetched individually.
const HEADER_SPAN_BYTES: u64 = 4 << 10;

/// Returns the length of the spans of a source. `mean_region_bytes` is the mean length of its
/// regions, if it is known.
///
/// While one thread walks over a span, other threads already fetch the next spans. If a region
/// extends into the next span, the bytes that it has there are fetched twice. To keep this rare, a
/// span has at least 8 regions on average, or is so short that it contains little more than one
/// header.
pub(super) fn span_bytes(source: &dyn Source, mean_region_bytes: Option<u64>) -> u64 {
    if source.as_bytes().is_some() {
        return MEMORY_SPAN_BYTES;
    }
    let (min_bytes, max_bytes) = SPAN_BYTES;
    let bytes = source.coalesce().gap_bytes.saturating_mul(SPAN_GAPS).clamp(min_bytes, max_bytes);
    match mean_region_bytes {
        Some(mean) if mean > bytes / 8 => HEADER_SPAN_BYTES,
        Some(mean) => bytes.min(mean.saturating_mul(SPAN_REGIONS)).max(REGIONS_SPAN_BYTES),
        None => REGIONS_SPAN_BYTES, // enough for small regions, and little compared with large ones
    }
}

/// The bytes of a span; empty if it could not be fetched.
#[derive(Clone, Copy, Default)]
pub(super) struct SpanBytes<'b> {
    pub start: u64,
    pub bytes: &'b [u8],
}

impl<'b> SpanBytes<'b> {
    /// Returns the bytes from `start` to `end`; `None` if the span lacks some of them.
    pub(super) fn get(self, start: u64, end: u64) -> Option<&'b [u8]> {
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        self.from(start).get(..length)
    }

    /// Returns the bytes of the span at and after `start`.
    pub(super) fn from(self, start: u64) -> &'b [u8] {
        let at = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.bytes.get(at..)).unwrap_or(&[])
    }
}
