//! A source that reads ranges in reverse order.

use std::io;
use std::ops::Range;
use tensilo::source::{CoalesceConfig, InMemory, RangeError, Source};

/// A file that is read by position, and fills memory backwards: the last range first, and in each
/// range the last fragment first. `max_in_flight` is the number of ranges that may be requested at
/// once.
pub struct Reversed<B> {
    pub file: B,
    pub fragment_bytes: usize,
    pub gap_bytes: u64,
    pub max_in_flight: usize,
}

impl<B: AsRef<[u8]> + Send + Sync> Source for Reversed<B> {
    fn byte_count(&self) -> u64 {
        self.file.as_ref().len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        InMemory(self.file.as_ref()).read_exact_at(offset, out)
    }

    fn coalesce(&self) -> CoalesceConfig {
        let mut config = CoalesceConfig::MEMORY;
        config.gap_bytes = self.gap_bytes;
        config.max_in_flight = self.max_in_flight;
        config
    }

    fn read_ranges(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RangeError> {
        let mut end = out.len();
        assert_eq!(ranges.iter().map(|range| (range.end - range.start) as usize).sum::<usize>(), end);
        for (range, bytes) in ranges.iter().enumerate().rev() {
            let found = self.file.as_ref().get(bytes.start as usize..bytes.end as usize);
            let found = found.ok_or(RangeError { range, error: io::ErrorKind::UnexpectedEof.into() })?;
            let start = end - found.len();
            for (number, bytes) in found.chunks(self.fragment_bytes).enumerate().rev() {
                out[start + number * self.fragment_bytes..][..bytes.len()].copy_from_slice(bytes);
            }
            end = start;
        }
        Ok(())
    }
}
