//! The bytes of a file that were read last.

use super::source::{Source, fetch, slice};
use crate::le::u64_of;
use crate::{Error, Result};

/// A range of the file that is kept, so that it is not read twice. Keeps nothing of a file that is
/// in memory.
#[derive(Default)]
pub(crate) struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns the bytes from `start` to `end`, or to the end of the file. Reads and keeps them
    /// unless they are kept.
    pub(crate) fn until<'b>(&'b mut self, source: &'b dyn Source, start: u64, end: u64) -> Result<&'b [u8]> {
        let length = usize::try_from(end.min(source.byte_count()).saturating_sub(start)).unwrap_or(usize::MAX);
        if let Some(file) = source.as_bytes() {
            return slice(file, start, length);
        }
        if self.part(start, length).is_none() {
            self.start = start;
            let fetched = fetch(source, start, length, &mut self.bytes).map(|_| ());
            fetched.inspect_err(|_| self.bytes.clear())?;
        }
        self.part(start, length).ok_or_else(|| Error::internal("bytes that were read are not kept"))
    }

    /// Returns the number of kept bytes that begin at `start`.
    pub(super) fn bytes_from(&self, start: u64) -> u64 {
        if start < self.start { 0 } else { self.end().saturating_sub(start) }
    }

    /// Returns the number of kept bytes that end at `end`.
    pub(super) fn bytes_before(&self, end: u64) -> u64 {
        if end > self.end() { 0 } else { end.saturating_sub(self.start) }
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(u64_of(self.bytes.len()))
    }

    fn part(&self, start: u64, length: usize) -> Option<&[u8]> {
        let at = usize::try_from(start.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..)?.get(..length)
    }
}
