//! Coalescing: turns the many byte ranges of a read into few requests.
//!
//! A batch needs many small ranges of a file, and each request has a fixed cost. Reading the gap
//! between two nearby ranges is therefore often cheaper than sending a second request. The
//! break-even gap is about the latency of a request times the throughput of the source. It differs
//! by orders of magnitude between memory, a local disk and an object store, so each source has its
//! own [`CoalesceConfig`].
//!
//! [`Requests::fill`] makes one greedy sweep over the ranges, sorted by offset. A range extends the
//! last request if the gap between them is at most `gap_bytes` and the request does not exceed
//! `max_request_bytes`. Otherwise, it starts a new request. A range is never split: it lies in
//! exactly one request, even if it exceeds the maximum. Each range has a tag, so that the caller
//! can map a request back to its ranges. Requests are in ascending order. Two requests share bytes
//! only if the maximum forces overlapping ranges into separate requests.
//!
//! The bytes of all requests lie back to back in one buffer, which [`Source::read_ranges`] fills.
//! The caller provides the buffer, so a source needs no memory of its own. No other module
//! coalesces ranges. Plans use this module for the ranges of a read, and object stores use it for
//! the ranges that are neither cached nor in flight.
//!
//! [`Source::read_ranges`]: super::Source::read_ranges

use crate::Result;
use crate::bytes::memory;
use std::ops::Range;
use std::{fmt, io};

/// How ranges of a source are coalesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoalesceConfig {
    /// The maximum gap between two ranges that are fetched with one request. A good value is the
    /// latency of a request times the throughput of the source.
    pub gap_bytes: u64,
    /// The maximum length of a request for several ranges. A longer range gets a request of its
    /// own.
    pub max_request_bytes: u64,
    /// The maximum number of requests in flight for one read. If it is 1, long ranges of raw values
    /// are read straight to their destination with
    /// [`Source::read_exact_at`](super::Source::read_exact_at).
    pub max_in_flight: usize,
}

impl CoalesceConfig {
    /// For memory: no gap is worth reading.
    pub const MEMORY: Self = Self { gap_bytes: 0, max_request_bytes: 256 << 10, max_in_flight: 1 };
    /// For files on a local disk, which are read with one system call at a time. Copying a page of
    /// 4 KiB from the page cache takes less time than a system call, and 256 KiB stay in the L2
    /// cache until they are decoded.
    pub const LOCAL_FILE: Self = Self { gap_bytes: 4 << 10, max_request_bytes: 256 << 10, max_in_flight: 1 };
    /// For files on a network file system, from which many ranges are fetched at the same time. At
    /// 64 MB/s, reading a gap of 64 KiB takes as long as a round trip of 1 ms.
    pub const NETWORK_FILE: Self = Self { gap_bytes: 64 << 10, max_request_bytes: 1 << 20, max_in_flight: 16 };
    /// For object stores in the same region. At a latency of 20 ms, 50 MB/s and 16 requests in
    /// flight, reading a gap of 64 KiB takes 1.3 ms, about as long as another request: 20 ms / 16.
    pub const OBJECT_STORE: Self = Self { gap_bytes: 64 << 10, max_request_bytes: 8 << 20, max_in_flight: 16 };

    /// Returns the maximum number of bytes in flight for one read.
    pub(crate) fn wave_bytes(&self) -> u64 {
        self.max_request_bytes.saturating_mul(u64::try_from(self.max_in_flight).unwrap_or(u64::MAX))
    }
}

impl Default for CoalesceConfig {
    fn default() -> Self {
        Self::MEMORY
    }
}

/// Requests in ascending order of offset, and the ranges that each request fetches. The memory is
/// reused: refilling with no more ranges than before allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Ranges with their tags, in ascending order of offset.
    ranges: Vec<(Range<u64>, usize)>,
    requests: Vec<Range<u64>>,
    /// For each request, the end of its ranges in `ranges`.
    ends: Vec<usize>,
}

impl Requests {
    /// Coalesces ranges into requests. Each range has a tag that the caller chooses. Omits empty
    /// ranges. Cost: one pass over the ranges. Ranges that are not in ascending order are sorted
    /// first.
    pub fn fill(&mut self, ranges: impl Iterator<Item = (Range<u64>, usize)>, config: &CoalesceConfig) -> Result<()> {
        self.ranges.clear();
        self.requests.clear();
        self.ends.clear();
        for range in ranges.filter(|(range, _)| !range.is_empty()) {
            memory::reserve(&mut self.ranges, 1)?;
            self.ranges.push(range);
        }
        if !self.ranges.is_sorted_by_key(|(range, tag)| (range.start, *tag)) {
            self.ranges.sort_unstable_by_key(|(range, tag)| (range.start, *tag));
        }
        for (number, (range, _)) in self.ranges.iter().enumerate() {
            match (self.requests.last_mut(), self.ends.last_mut()) {
                (Some(last), Some(end))
                    if range.start <= last.end.saturating_add(config.gap_bytes)
                        && range.end.max(last.end) - last.start <= config.max_request_bytes =>
                {
                    last.end = last.end.max(range.end);
                    *end = number + 1;
                }
                _ => {
                    memory::reserve(&mut self.requests, 1)?;
                    memory::reserve(&mut self.ends, 1)?;
                    self.requests.push(range.clone());
                    self.ends.push(number + 1);
                }
            }
        }
        Ok(())
    }

    /// Returns the requests, in ascending order. No request is empty.
    pub fn as_slice(&self) -> &[Range<u64>] {
        &self.requests
    }

    /// Returns the ranges of request number `request`, with their tags.
    pub fn ranges_of(&self, request: usize) -> &[(Range<u64>, usize)] {
        let end = self.ends.get(request).copied().unwrap_or(0);
        let start = request.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ranges.get(start..end).unwrap_or(&[])
    }
}

/// Returns the length of a range in memory; `usize::MAX` if it exceeds the address space.
#[inline]
pub fn range_length(range: &Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

/// Returns the bytes of a range. `bytes` has the bytes of the request, which starts at `start`.
#[inline]
pub(crate) fn bytes_of<'a>(start: u64, bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    let at = |offset: u64| range_length(&(start..offset));
    bytes.get(at(range.start)..at(range.end)).unwrap_or(&[])
}

/// A failure to read one of several ranges.
#[derive(Debug)]
pub struct RangeError {
    /// The index of the first range that could not be read. All ranges before it were read.
    pub range: usize,
    /// The error of the operating system.
    pub error: io::Error,
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "range {}: {}", self.range, self.error)
    }
}

impl std::error::Error for RangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_range_is_in_a_request_and_no_gap_is_too_wide(
            needed in prop::collection::vec((0_u64..2000, 0_u64..100), 0..50),
            gap_bytes in 0_u64..50,
            max_request_bytes in 1_u64..400,
        ) {
            let config = CoalesceConfig { gap_bytes, max_request_bytes, max_in_flight: 1 };
            let ranges: Vec<Range<u64>> = needed.iter().map(|(start, length)| *start..start + length).collect();
            let mut requests = Requests::default();
            requests.fill(ranges.iter().cloned().zip(0..), &config).unwrap();
            let mut tags = Vec::new();
            for (number, request) in requests.as_slice().iter().enumerate() {
                let of = requests.ranges_of(number);
                let longest = of.iter().map(|(range, _)| range.end - range.start).max().unwrap();
                prop_assert!(request.end - request.start <= max_request_bytes.max(longest));
                let mut end = request.start;
                for (range, tag) in of {
                    prop_assert_eq!(range, &ranges[*tag]);
                    prop_assert!(range.start <= end + gap_bytes && range.end <= request.end);
                    end = end.max(range.end);
                    tags.push(*tag);
                }
                prop_assert_eq!((of[0].0.start, end), (request.start, request.end));
            }
            tags.sort_unstable();
            prop_assert!(tags.into_iter().eq((0..ranges.len()).filter(|&tag| !ranges[tag].is_empty())));
        }
    }
}
