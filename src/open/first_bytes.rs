//! A file as it was at an earlier commit.

use super::FileIdentity;
use super::coalesce::{CoalesceConfig, RangeError};
use super::source::{ReadMemory, Source};
use crate::le::u64_of;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The first bytes of a source. What a later writer appended is not seen.
pub(crate) struct FirstBytes {
    source: Arc<dyn Source>,
    bytes: u64,
}

impl FirstBytes {
    /// Returns at most the first `bytes` bytes of `source`.
    pub(crate) fn new(source: Arc<dyn Source>, bytes: u64) -> Self {
        let bytes = bytes.min(source.byte_count());
        Self { source, bytes }
    }

    fn ends_inside(&self, offset: u64, length: usize) -> bool {
        offset.checked_add(u64_of(length)).is_some_and(|end| end <= self.bytes)
    }
}

impl Source for FirstBytes {
    fn byte_count(&self) -> u64 {
        self.bytes
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if !self.ends_inside(offset, out.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.source.read_exact_at(offset, out)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        let bytes = self.source.as_bytes()?;
        bytes.get(..usize::try_from(self.bytes).unwrap_or(usize::MAX)) // no more than there are
    }

    fn coalesce(&self) -> CoalesceConfig {
        self.source.coalesce()
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RangeError> {
        if let Some(range) = ranges.iter().position(|range| range.end > self.bytes) {
            return Err(RangeError { range, error: io::ErrorKind::UnexpectedEof.into() });
        }
        self.source.read_ranges(ranges, out)
    }

    fn alignment(&self) -> Option<u64> {
        self.source.alignment()
    }

    fn read_to_memory(
        &self,
        ranges: &[Range<u64>],
        memory: Box<dyn ReadMemory>,
    ) -> (Option<Box<dyn ReadMemory>>, Result<(), RangeError>) {
        if let Some(range) = ranges.iter().position(|range| range.end > self.bytes) {
            return (Some(memory), Err(RangeError { range, error: io::ErrorKind::UnexpectedEof.into() }));
        }
        self.source.read_to_memory(ranges, memory)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        // what a writer appended since is never asked for
        self.source.prefetch(ranges);
    }

    fn invalidate(&self) {
        self.source.invalidate();
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.source.identity()
    }
}
