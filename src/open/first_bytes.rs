//! A file as it was at an earlier commit.

use super::FileIdentity;
use super::ranges::{Fragment, RangeError};
use super::source::Source;
use crate::le::u64_of;
use std::io;
use std::ops::{ControlFlow, Range};
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

    fn will_need(&self, range: Range<u64>) {
        self.source.will_need(range.start.min(self.bytes)..range.end.min(self.bytes));
    }

    fn distrust(&self) {
        self.source.distrust();
    }

    fn gap_bytes(&self) -> u64 {
        self.source.gap_bytes()
    }

    fn reads_in_place(&self) -> bool {
        self.source.reads_in_place()
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        scratch: &mut Vec<u8>,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> Result<(), RangeError> {
        if let Some(range) = ranges.iter().position(|range| range.end > self.bytes) {
            return Err(RangeError { range, error: io::ErrorKind::UnexpectedEof.into() });
        }
        self.source.read_ranges(ranges, scratch, arrived)
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.source.identity()
    }
}
