//! Ranges of the file that are fetched with one request, and hold many regions.

use crate::open::Source;

/// The smallest and largest span of a source that is not in memory. The smallest stays in the
/// second-level cache until it is checked.
const SPAN_BYTES: (u64, u64) = (1 << 20, 4 << 20);
/// The ratio of a span to the gap that a source reads rather than skips.
const SPAN_GAPS: u64 = 16;
/// The largest mean number of regions in a span. If a batch is full before its last span ends, the
/// next batch fetches the rest of that span again.
const SPAN_REGIONS: u64 = 256;
/// The smallest span of many small regions.
const REGIONS_SPAN_BYTES: u64 = 64 << 10;
/// A span of a file that is in memory: enough for a lock to cost nothing.
const MEMORY_SPAN_BYTES: u64 = 256 << 10;
/// A span of a file with large chunks, whose bodies are fetched alone.
const HEAD_SPAN_BYTES: u64 = 4 << 10;

/// Returns the length of the spans of a source, given the mean length of its regions, if known.
///
/// While one thread has not found the regions of a span, others fetch the next spans. If a region
/// extends into one of these, its bytes are fetched twice. So a span has at least 8 regions on
/// average, or is so short that it contains little more than the head of one.
pub(super) fn span_bytes(source: &dyn Source, mean_region_bytes: Option<u64>) -> u64 {
    if source.as_bytes().is_some() {
        return MEMORY_SPAN_BYTES;
    }
    let (least, most) = SPAN_BYTES;
    let bytes = source.coalesce().gap_bytes.saturating_mul(SPAN_GAPS).clamp(least, most);
    match mean_region_bytes {
        Some(mean) if mean > bytes / 8 => HEAD_SPAN_BYTES,
        Some(mean) => bytes.min(mean.saturating_mul(SPAN_REGIONS)).max(REGIONS_SPAN_BYTES),
        None => REGIONS_SPAN_BYTES, // enough for small regions, and little beside large ones
    }
}

/// The bytes of a span; none if it could not be fetched.
#[derive(Clone, Copy, Default)]
pub(super) struct SpanBytes<'b> {
    pub start: u64,
    pub bytes: &'b [u8],
}

impl<'b> SpanBytes<'b> {
    /// Returns the bytes from `start` to `end`, if the span has all of them.
    pub(super) fn get(self, start: u64, end: u64) -> Option<&'b [u8]> {
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        self.from(start).get(..length)
    }

    /// Returns the bytes of the span from `start` on.
    pub(super) fn from(self, start: u64) -> &'b [u8] {
        let at = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.bytes.get(at..)).unwrap_or(&[])
    }
}
