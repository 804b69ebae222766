//! A file whose ranges arrive in reverse order and in fragments.

use std::io;
use std::ops::{ControlFlow, Range};
use tensilo::source::{InMemory, Source};
use tensilo::stages::{Fragment, RangeError};

/// A file that is read by position. Of many ranges it completes the last first, and hands over each
/// in fragments of this many bytes, the last first.
pub struct Scattered<B> {
    pub file: B,
    pub fragment_bytes: usize,
    pub gap_bytes: u64,
}

impl<B: AsRef<[u8]> + Send + Sync> Source for Scattered<B> {
    fn byte_count(&self) -> u64 {
        self.file.as_ref().len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        InMemory(self.file.as_ref()).read_exact_at(offset, out)
    }

    fn gap_bytes(&self) -> u64 {
        self.gap_bytes
    }

    fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        _scratch: &mut Vec<u8>,
        arrived: &mut dyn FnMut(Fragment<'_>) -> ControlFlow<()>,
    ) -> Result<(), RangeError> {
        for (range, bytes) in ranges.iter().enumerate().rev() {
            let found = self.file.as_ref().get(bytes.start as usize..bytes.end as usize);
            let found = found.ok_or(RangeError { range, error: io::ErrorKind::UnexpectedEof.into() })?;
            for (number, bytes) in found.chunks(self.fragment_bytes).enumerate().rev() {
                if arrived(Fragment { range, offset: number * self.fragment_bytes, bytes }).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
