//! The range cache: byte ranges of objects in memory, and the detection of sequential reads.
//!
//! Bytes that were requested but have not arrived are nearly as good as cached bytes: waiting for
//! them takes less than a round trip. So bytes have one of three states: cached, in flight, or
//! missing. A range is *claimed* before it is requested. The claim puts an entry without bytes into
//! the cache. The entry is in flight until [`RangeCache::finish`] ends the claim; then it is cached
//! or removed. A lookup divides a range into [`Segment`]s: cached segments to copy, segments in
//! flight to wait for, and missing segments to request. So claimed bytes are fetched by one thread
//! only.
//!
//! For each object, the cache has a map of entries by offset, whose ranges do not overlap. The
//! total size of all entries is bounded, including entries in flight. The least recently used
//! cached entries are evicted. Entries in flight are never evicted; if there is no room, only some
//! of the missing bytes are claimed. Claims are made only by prefetches and by reads of small
//! structures (in aligned lines). All other reads go straight to the caller's memory, so a long
//! read does not evict entries that are used often.
//!
//! [`SequentialReads`] detects sequential reads, as in verification, salvage and exports, and
//! returns the range to prefetch. Read-ahead starts with the third sequential read, so random reads
//! cost nothing. It grows from 1 MiB to 32 MiB.

use crate::request::ObjectVersion;
use bytes::Bytes;
use object_store::path::Path;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Ranges of all open objects in a store, with a bounded total size.
#[derive(Debug)]
pub(crate) struct RangeCache {
    max_bytes: AtomicU64,
    cached: Mutex<LruState>,
    /// Signals that a claim has ended.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LruState {
    /// The ids of objects, by key and version. An object that is opened again keeps its id.
    object_ids: HashMap<(Path, ObjectVersion), u64>,
    /// The entries of each object, by their offsets. They do not overlap.
    objects: HashMap<u64, BTreeMap<u64, Entry>>,
    /// The cached entries by time of last use. The least recently used entry comes first.
    by_use: BTreeMap<u64, (u64, u64)>,
    /// The total size of all entries in bytes, including entries in flight.
    bytes: u64,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    end: u64,
    /// `None` while it is in flight.
    bytes: Option<Bytes>,
    used: u64,
}

/// A segment of a range in a lookup.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// These bytes are cached. They start at this offset.
    Cached(u64, Bytes),
    /// The bytes are in flight.
    InFlight(Range<u64>),
    /// The bytes are neither cached nor in flight.
    Missing(Range<u64>),
}

impl RangeCache {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes: max_bytes.into(), cached: Mutex::default(), changed: Condvar::new() }
    }

    /// Raises the maximum size to at least `bytes`.
    pub(crate) fn reserve(&self, bytes: u64) {
        self.max_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Returns the segments of a range of an object, in order.
    pub(crate) fn segments(&self, object: u64, range: &Range<u64>) -> Vec<Segment> {
        self.lock().segments(object, range)
    }

    /// Returns the segments of ranges of an object, in order, each with the index of its range.
    pub(crate) fn segments_of(&self, object: u64, ranges: &[Range<u64>]) -> Vec<(usize, Segment)> {
        let mut cached = self.lock();
        let numbered = ranges.iter().enumerate();
        numbered
            .flat_map(|(number, range)| {
                cached.segments(object, range).into_iter().map(move |segment| (number, segment))
            })
            .collect()
    }

    /// Claims the missing segments of a range, divided into ranges of at most `max_request_bytes`
    /// bytes. The caller requests the returned ranges, and calls [`RangeCache::finish`] for each of
    /// them. If there is no room for all of them, claims only the first ones.
    pub(crate) fn claim(&self, object: u64, range: &Range<u64>, max_request_bytes: u64) -> Vec<Range<u64>> {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let mut cached = self.lock();
        let mut claimed = Vec::new();
        for segment in cached.segments(object, range) {
            let Segment::Missing(missing) = segment else { continue };
            for segment in split(&missing, max_request_bytes) {
                if !cached.make_room(length(&segment), max_bytes) {
                    return claimed;
                }
                cached.insert(object, &segment, None);
                claimed.push(segment);
            }
        }
        claimed
    }

    /// Ends a claim, with its bytes or with `None` if they will not arrive.
    pub(crate) fn finish(&self, object: u64, claimed: &Range<u64>, bytes: Option<Bytes>) {
        let mut cached = self.lock();
        let is_claimed = cached
            .objects
            .get(&object)
            .is_some_and(|entries| entries.get(&claimed.start).is_some_and(|entry| entry.bytes.is_none()));
        if is_claimed {
            cached.remove(object, claimed.start);
            if let Some(bytes) = bytes {
                cached.insert(object, claimed, Some(bytes));
            }
        }
        drop(cached);
        self.changed.notify_all();
    }

    /// Evicts the cached bytes of an object.
    pub(crate) fn invalidate(&self, object: u64) {
        let mut cached = self.lock();
        let entries = cached.objects.get(&object).into_iter().flatten();
        let starts: Vec<u64> = entries.filter(|(_, entry)| entry.bytes.is_some()).map(|(&start, _)| start).collect();
        starts.into_iter().for_each(|start| cached.remove(object, start));
    }

    /// Waits for bytes in flight. Returns `None` if they did not arrive.
    pub(crate) fn wait(&self, object: u64, range: &Range<u64>) -> Option<Bytes> {
        let mut cached = self.lock();
        loop {
            match <[Segment; 1]>::try_from(cached.segments(object, range)) {
                Ok([Segment::Cached(_, bytes)]) => return Some(bytes),
                Ok([Segment::InFlight(_)]) => {}
                _ => return None,
            }
            cached = self.changed.wait(cached).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the id of an object in this cache. A new key or version gets a new id.
    pub(crate) fn object_id(&self, key: &Path, pinned: &ObjectVersion) -> u64 {
        let mut cached = self.lock();
        let next = cached.object_ids.len() as u64; // exact: usize has at most 64 bits
        *cached.object_ids.entry((key.clone(), pinned.clone())).or_insert(next)
    }

    fn lock(&self) -> MutexGuard<'_, LruState> {
        // only whole entries are replaced, so a panic cannot leave an entry half written
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LruState {
    fn segments(&mut self, object: u64, range: &Range<u64>) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut at = range.start;
        let mut used = Vec::new();
        if let Some(entries) = self.objects.get(&object) {
            let before = entries.range(..=range.start).next_back();
            let from = before.map_or(range.start, |(start, _)| *start);
            for (&start, entry) in entries.range(from..range.end.max(from)) {
                let segment = start.max(at)..entry.end.min(range.end);
                if segment.is_empty() {
                    continue;
                }
                if at < segment.start {
                    segments.push(Segment::Missing(at..segment.start));
                }
                at = segment.end;
                segments.push(match &entry.bytes {
                    Some(bytes) => {
                        used.push(start);
                        let of = |offset: u64| usize::try_from(offset - start).unwrap_or(bytes.len()).min(bytes.len());
                        Segment::Cached(segment.start, bytes.slice(of(segment.start)..of(segment.end)))
                    }
                    None => Segment::InFlight(segment),
                });
            }
        }
        if at < range.end {
            segments.push(Segment::Missing(at..range.end));
        }
        used.into_iter().for_each(|start| self.touch(object, start));
        segments
    }

    /// Makes an entry the most recently used one.
    fn touch(&mut self, object: u64, start: u64) {
        let Some(entry) = self.objects.get_mut(&object).and_then(|entries| entries.get_mut(&start)) else { return };
        self.by_use.remove(&entry.used);
        self.clock += 1;
        entry.used = self.clock;
        self.by_use.insert(self.clock, (object, start));
    }

    /// Evicts entries until there is room for `bytes` more bytes. Returns whether there is.
    fn make_room(&mut self, bytes: u64, max_bytes: u64) -> bool {
        while self.bytes.saturating_add(bytes) > max_bytes {
            let Some((_, (object, start))) = self.by_use.pop_first() else { return false };
            self.remove(object, start);
        }
        true
    }

    fn insert(&mut self, object: u64, range: &Range<u64>, bytes: Option<Bytes>) {
        self.clock += 1;
        self.bytes += length(range);
        if bytes.is_some() {
            self.by_use.insert(self.clock, (object, range.start));
        }
        let entry = Entry { end: range.end, bytes, used: self.clock };
        self.objects.entry(object).or_default().insert(range.start, entry);
    }

    fn remove(&mut self, object: u64, start: u64) {
        let Some(entries) = self.objects.get_mut(&object) else { return };
        let Some(entry) = entries.remove(&start) else { return };
        if entries.is_empty() {
            self.objects.remove(&object);
        }
        self.bytes = self.bytes.saturating_sub(length(&(start..entry.end)));
        self.by_use.remove(&entry.used);
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Divides a range into ranges of at most `max_request_bytes` bytes. `max_request_bytes` is at
/// least 1.
pub(crate) fn split(range: &Range<u64>, max_request_bytes: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    let step = usize::try_from(max_request_bytes).unwrap_or(usize::MAX).max(1);
    (range.start..end).step_by(step).map(move |start| start..start.saturating_add(max_request_bytes).min(end))
}

/// Small structures are read and cached in aligned lines of this length, because the next read is
/// usually close by.
pub(crate) const LINE_BYTES: u64 = 64 << 10;

/// Returns the lines that contain a range of an object of `byte_count` bytes.
pub(crate) fn align_to_lines(range: &Range<u64>, byte_count: u64) -> Range<u64> {
    let end = range.end.checked_next_multiple_of(LINE_BYTES).unwrap_or(u64::MAX);
    range.start / LINE_BYTES * LINE_BYTES..end.min(byte_count)
}

/// The number of sequential reads that start the read-ahead.
const MIN_SEQUENTIAL_READS: u32 = 3;
/// A read continues a sequence if it starts at most `MAX_GAP_BYTES` after the end of the sequence,
/// or at most `MAX_BACKWARD_BYTES` before the end. Some distance backward is allowed, because
/// threads that share work read slightly out of order.
const MAX_GAP_BYTES: u64 = 256 << 10;
const MAX_BACKWARD_BYTES: u64 = 8 << 20;
/// The minimum and maximum length of the read-ahead in bytes. The length doubles with each
/// prefetch.
const MIN_LOOKAHEAD_BYTES: u64 = 1 << 20;
const MAX_LOOKAHEAD_BYTES: u64 = 32 << 20;

/// Detects sequential reads of an object.
#[derive(Debug, Default)]
pub(crate) struct SequentialReads(Mutex<SequentialState>);

#[derive(Debug, Default)]
struct SequentialState {
    /// The number of reads in the sequence, and their furthest end.
    reads: u32,
    end: u64,
    /// The current length of the read-ahead, and the end of the bytes that were requested ahead.
    lookahead: u64,
    requested_end: u64,
}

impl SequentialReads {
    /// Records a read of an object of `byte_count` bytes. Returns the range to prefetch now, if the
    /// read continues a sequence. Never blocks: if the lock is taken, this read is not counted.
    pub(crate) fn next(&self, read: &Range<u64>, byte_count: u64) -> Option<Range<u64>> {
        let mut state = self.0.try_lock().ok()?;
        let follows = read.start <= state.end.saturating_add(MAX_GAP_BYTES)
            && read.start.saturating_add(MAX_BACKWARD_BYTES) >= state.end;
        if !follows || state.reads == 0 {
            *state = SequentialState { reads: 1, end: read.end, ..SequentialState::default() };
            return None;
        }
        state.reads = state.reads.saturating_add(1);
        state.end = state.end.max(read.end);
        if state.reads < MIN_SEQUENTIAL_READS
            || state.requested_end >= state.end.saturating_add(state.lookahead / 2).min(byte_count)
        {
            return None;
        }
        state.lookahead = state.lookahead.saturating_mul(2).clamp(MIN_LOOKAHEAD_BYTES, MAX_LOOKAHEAD_BYTES);
        let start = state.requested_end.max(state.end);
        let end = state.end.saturating_add(state.lookahead).min(byte_count);
        state.requested_end = end;
        (start < end).then_some(start..end)
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use super::*;

    fn bytes(range: Range<u64>) -> Bytes {
        range.map(|at| at as u8).collect()
    }

    fn insert(cache: &RangeCache, object: u64, range: Range<u64>) {
        for claimed in cache.claim(object, &range, u64::MAX) {
            cache.finish(object, &claimed, Some(bytes(claimed.clone())));
        }
    }

    #[test]
    fn a_range_has_segments_that_are_cached_in_flight_and_missing() {
        let cache = RangeCache::new(100);
        insert(&cache, 1, 10..20);
        assert_eq!(cache.claim(1, &(15..30), 6), [20..26, 26..30]);
        cache.finish(1, &(20..26), Some(bytes(20..26)));
        let expected = [
            Segment::Missing(5..10),
            Segment::Cached(10, bytes(10..20)),
            Segment::Cached(20, bytes(20..26)),
            Segment::InFlight(26..30),
            Segment::Missing(30..32),
        ];
        assert_eq!(cache.segments(1, &(5..32)), expected);
        assert_eq!(cache.segments(1, &(12..14)), [Segment::Cached(12, bytes(12..14))]);
        assert_eq!(cache.segments(1, &(27..28)), [Segment::InFlight(27..28)]);
        assert_eq!(cache.segments(2, &(12..14)), [Segment::Missing(12..14)]);
        assert_eq!(cache.segments(1, &(12..12)), []);
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let cache = RangeCache::new(30);
        insert(&cache, 1, 0..10);
        insert(&cache, 2, 0..10);
        insert(&cache, 1, 10..20);
        cache.segments(1, &(3..4));
        insert(&cache, 3, 0..10);
        assert_eq!(cache.segments(2, &(0..10)), [Segment::Missing(0..10)]);
        assert_eq!(cache.segments(1, &(0..10)), [Segment::Cached(0, bytes(0..10))]);
        assert_eq!(cache.claim(4, &(0..31), u64::MAX), [], "larger than the cache");
    }

    #[test]
    fn bytes_in_flight_count_against_the_limit() {
        let cache = RangeCache::new(20);
        assert_eq!(cache.claim(1, &(0..15), u64::MAX), [0..15]);
        assert_eq!(cache.claim(1, &(15..30), 5), [15..20]);
        cache.finish(1, &(0..15), None);
        assert_eq!(cache.segments(1, &(0..20)), [Segment::Missing(0..15), Segment::InFlight(15..20)]);
        cache.finish(1, &(15..20), Some(bytes(15..20)));
        assert_eq!(cache.segments(1, &(0..20)), [Segment::Missing(0..15), Segment::Cached(15, bytes(15..20))]);
    }

    #[test]
    fn threads_wait_for_bytes_in_flight() {
        let cache = RangeCache::new(20);
        assert_eq!(cache.claim(1, &(0..15), u64::MAX), [0..15]);
        assert_eq!(cache.claim(1, &(0..20), u64::MAX), [15..20]);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| cache.wait(1, &(3..5)));
            let waits_in_vain = scope.spawn(|| cache.wait(1, &(15..20)));
            cache.finish(1, &(0..15), Some(bytes(0..15)));
            cache.finish(1, &(15..20), None);
            assert_eq!(waits.join().unwrap(), Some(bytes(3..5)));
            assert_eq!(waits_in_vain.join().unwrap(), None);
        });
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn sequential_reads_are_read_ahead() {
        let sequence = SequentialReads::default();
        let (mut requested_end, mut requests) = (0, 0);
        for number in 0..1000 {
            let read = number * 100_000..(number + 1) * 100_000;
            if let Some(lookahead) = sequence.next(&read, 100_000_000) {
                assert!(
                    lookahead.start >= read.end && lookahead.start >= requested_end,
                    "{lookahead:?} after {read:?}"
                );
                assert!(lookahead.end <= (read.end + MAX_LOOKAHEAD_BYTES).min(100_000_000));
                requested_end = lookahead.end;
                requests += 1;
            }
            assert!(number < 3 || requested_end >= (read.end + MIB / 2).min(100_000_000), "{number}: {requested_end}");
        }
        assert!(requests < 15, "{requests}");
    }

    #[test]
    fn random_reads_are_not_read_ahead() {
        let sequence = SequentialReads::default();
        for start in [5, 300, 7, 100, 900, 20, 500] {
            assert_eq!(sequence.next(&(start * MIB..start * MIB + 1000), 1000 * MIB), None);
        }
    }

    #[test]
    fn threads_may_read_a_little_out_of_order() {
        let sequence = SequentialReads::default();
        let found: Vec<_> = [0, 2, 1, 3, 5, 4].map(|n| sequence.next(&(n * MIB..(n + 1) * MIB), 64 * MIB)).into();
        assert!(found.iter().flatten().count() >= 1, "{found:?}");
    }
}
