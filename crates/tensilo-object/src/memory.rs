//! The bytes of objects in memory: small structures of files, and what was prefetched or read
//! ahead.
//!
//! [`Pieces`] are the bytes of all open objects of a store, bounded in bytes. A piece is claimed
//! before it is requested, so that no two threads ask for the same bytes; the least recently used
//! pieces make room. Small structures are read in aligned lines, because what is read next is
//! mostly near by. A [`Sequence`] finds reads that follow one another, as those of verification,
//! salvage and exports do, and says what to read ahead of them.

use crate::request::Pinned;
use bytes::Bytes;
use object_store::path::Path;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Pieces of objects, of which the least recently used make room for others.
///
/// A piece is *coming* from its claim until its bytes are there, so that no two threads ask for the
/// same bytes.
#[derive(Debug)]
pub(crate) struct Pieces {
    most_bytes: u64,
    kept: Mutex<Kept>,
    /// A piece has come, or will not.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    /// The numbers of objects, by their keys and what they are pinned to. An object that is opened
    /// twice has one.
    numbers: HashMap<(Path, Pinned), u64>,
    /// The pieces of each object, by their offsets. They do not overlap.
    objects: HashMap<u64, BTreeMap<u64, Piece>>,
    /// The pieces that have come, the least recently used first.
    by_use: BTreeMap<u64, (u64, u64)>,
    /// The bytes of all pieces, with those that are coming.
    bytes: u64,
    clock: u64,
}

#[derive(Debug)]
struct Piece {
    end: u64,
    /// `None` while it is coming.
    bytes: Option<Bytes>,
    used: u64,
}

/// A part of a range.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The bytes from this offset are kept.
    Kept(u64, Bytes),
    /// The bytes are coming.
    Coming(Range<u64>),
    /// The bytes are neither.
    Missing(Range<u64>),
}

impl Pieces {
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self { most_bytes, kept: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the parts of a range of an object, in order.
    pub(crate) fn parts(&self, object: u64, range: &Range<u64>) -> Vec<Part> {
        self.locked().parts(object, range)
    }

    /// Returns the parts of ranges of an object, each with the number of its range, in order.
    pub(crate) fn parts_of(&self, object: u64, ranges: &[Range<u64>]) -> Vec<(usize, Part)> {
        let mut kept = self.locked();
        let parts = ranges.iter().enumerate();
        parts
            .flat_map(|(number, range)| kept.parts(object, range).into_iter().map(move |part| (number, part)))
            .collect()
    }

    /// Claims the parts of a range that are missing, each of at most `longest` bytes: the caller
    /// asks for them, and calls [`Pieces::finish`] for each. Claims less if there is no room.
    pub(crate) fn claim(&self, object: u64, range: &Range<u64>, longest: u64) -> Vec<Range<u64>> {
        let mut kept = self.locked();
        let mut claimed = Vec::new();
        for part in kept.parts(object, range) {
            let Part::Missing(missing) = part else { continue };
            for part in split(&missing, longest) {
                if !kept.make_room(length(&part), self.most_bytes) {
                    return claimed;
                }
                kept.insert(object, &part, None);
                claimed.push(part);
            }
        }
        claimed
    }

    /// Ends a claim: with the bytes, or with `None` if they will not come.
    pub(crate) fn finish(&self, object: u64, claimed: &Range<u64>, bytes: Option<Bytes>) {
        let mut kept = self.locked();
        let is_claimed = kept
            .objects
            .get(&object)
            .is_some_and(|pieces| pieces.get(&claimed.start).is_some_and(|piece| piece.bytes.is_none()));
        if is_claimed {
            kept.remove(object, claimed.start);
            if let Some(bytes) = bytes {
                kept.insert(object, claimed, Some(bytes));
            }
        }
        drop(kept);
        self.changed.notify_all();
    }

    /// Forgets the bytes of an object.
    pub(crate) fn forget(&self, object: u64) {
        let mut kept = self.locked();
        let pieces = kept.objects.get(&object).into_iter().flatten();
        let starts: Vec<u64> = pieces.filter(|(_, piece)| piece.bytes.is_some()).map(|(&start, _)| start).collect();
        starts.into_iter().for_each(|start| kept.remove(object, start));
    }

    /// Waits for bytes that are coming. Returns `None` if they have not come.
    pub(crate) fn wait(&self, object: u64, range: &Range<u64>) -> Option<Bytes> {
        let mut kept = self.locked();
        loop {
            match <[Part; 1]>::try_from(kept.parts(object, range)) {
                Ok([Part::Kept(_, bytes)]) => return Some(bytes),
                Ok([Part::Coming(_)]) => {}
                _ => return None,
            }
            kept = self.changed.wait(kept).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the number of an object.
    pub(crate) fn number_of(&self, key: &Path, pinned: &Pinned) -> u64 {
        let mut kept = self.locked();
        let next = kept.numbers.len() as u64; // exact: usize has at most 64 bits
        *kept.numbers.entry((key.clone(), pinned.clone())).or_insert(next)
    }

    fn locked(&self) -> MutexGuard<'_, Kept> {
        // a thread that panicked has left whole entries
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn parts(&mut self, object: u64, range: &Range<u64>) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut at = range.start;
        let mut used = Vec::new();
        if let Some(pieces) = self.objects.get(&object) {
            let before = pieces.range(..=range.start).next_back();
            let from = before.map_or(range.start, |(start, _)| *start);
            for (&start, piece) in pieces.range(from..range.end.max(from)) {
                let part = start.max(at)..piece.end.min(range.end);
                if part.is_empty() {
                    continue;
                }
                if at < part.start {
                    parts.push(Part::Missing(at..part.start));
                }
                at = part.end;
                parts.push(match &piece.bytes {
                    Some(bytes) => {
                        used.push(start);
                        let of = |offset: u64| usize::try_from(offset - start).unwrap_or(bytes.len()).min(bytes.len());
                        Part::Kept(part.start, bytes.slice(of(part.start)..of(part.end)))
                    }
                    None => Part::Coming(part),
                });
            }
        }
        if at < range.end {
            parts.push(Part::Missing(at..range.end));
        }
        used.into_iter().for_each(|start| self.touch(object, start));
        parts
    }

    /// Makes a piece the most recently used one.
    fn touch(&mut self, object: u64, start: u64) {
        let Some(piece) = self.objects.get_mut(&object).and_then(|pieces| pieces.get_mut(&start)) else { return };
        self.by_use.remove(&piece.used);
        self.clock += 1;
        piece.used = self.clock;
        self.by_use.insert(self.clock, (object, start));
    }

    /// Forgets pieces until there is room for so many bytes. Returns whether there is.
    fn make_room(&mut self, bytes: u64, most_bytes: u64) -> bool {
        while self.bytes.saturating_add(bytes) > most_bytes {
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
        let piece = Piece { end: range.end, bytes, used: self.clock };
        self.objects.entry(object).or_default().insert(range.start, piece);
    }

    fn remove(&mut self, object: u64, start: u64) {
        let Some(pieces) = self.objects.get_mut(&object) else { return };
        let Some(piece) = pieces.remove(&start) else { return };
        if pieces.is_empty() {
            self.objects.remove(&object);
        }
        self.bytes = self.bytes.saturating_sub(length(&(start..piece.end)));
        self.by_use.remove(&piece.used);
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Divides a range into parts of at most `longest` bytes, which is at least 1.
pub(crate) fn split(range: &Range<u64>, longest: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    let step = usize::try_from(longest).unwrap_or(usize::MAX).max(1);
    (range.start..end).step_by(step).map(move |start| start..start.saturating_add(longest).min(end))
}

/// Small structures are read in aligned lines of this length, and kept: what is read next is mostly
/// near by.
pub(crate) const LINE_BYTES: u64 = 64 << 10;

/// Returns the lines that a range is in, of an object of this length.
pub(crate) fn widened(range: &Range<u64>, byte_count: u64) -> Range<u64> {
    let end = range.end.checked_next_multiple_of(LINE_BYTES).unwrap_or(u64::MAX);
    range.start / LINE_BYTES * LINE_BYTES..end.min(byte_count)
}

/// Reads that follow one another before more is read than they ask for.
const READS: u32 = 3;
/// A read follows another one if it begins at most so many bytes behind its end, or so many before:
/// threads that share the work read a little out of order.
const GAP_BYTES: u64 = 256 << 10;
const BACK_BYTES: u64 = 8 << 20;
/// The bytes that are read ahead at first, and at most. They double each time.
const FIRST_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 32 << 20;

/// The reads of an object, as far as they follow one another.
#[derive(Debug, Default)]
pub(crate) struct Sequence(Mutex<SequenceState>);

#[derive(Debug, Default)]
struct SequenceState {
    /// The reads, and the end of the last one.
    reads: u32,
    end: u64,
    /// The bytes that are read ahead, and the end of what was asked for.
    ahead: u64,
    asked: u64,
}

impl Sequence {
    /// Notes a read of an object of so many bytes. Returns the bytes to ask for now, ahead of those
    /// that follow. Nobody waits: a read that another one meets here counts for nothing.
    pub(crate) fn next(&self, read: &Range<u64>, byte_count: u64) -> Option<Range<u64>> {
        let mut state = self.0.try_lock().ok()?;
        let follows =
            read.start <= state.end.saturating_add(GAP_BYTES) && read.start.saturating_add(BACK_BYTES) >= state.end;
        if !follows || state.reads == 0 {
            *state = SequenceState { reads: 1, end: read.end, ..SequenceState::default() };
            return None;
        }
        state.reads = state.reads.saturating_add(1);
        state.end = state.end.max(read.end);
        if state.reads < READS || state.asked >= state.end.saturating_add(state.ahead / 2).min(byte_count) {
            return None;
        }
        state.ahead = state.ahead.saturating_mul(2).clamp(FIRST_BYTES, MOST_BYTES);
        let start = state.asked.max(state.end);
        let end = state.end.saturating_add(state.ahead).min(byte_count);
        state.asked = end;
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

    fn kept(pieces: &Pieces, object: u64, range: Range<u64>) {
        for claimed in pieces.claim(object, &range, u64::MAX) {
            pieces.finish(object, &claimed, Some(bytes(claimed.clone())));
        }
    }

    #[test]
    fn a_range_has_parts_that_are_kept_coming_and_missing() {
        let pieces = Pieces::new(100);
        kept(&pieces, 1, 10..20);
        assert_eq!(pieces.claim(1, &(15..30), 6), [20..26, 26..30]);
        pieces.finish(1, &(20..26), Some(bytes(20..26)));
        let due = [
            Part::Missing(5..10),
            Part::Kept(10, bytes(10..20)),
            Part::Kept(20, bytes(20..26)),
            Part::Coming(26..30),
            Part::Missing(30..32),
        ];
        assert_eq!(pieces.parts(1, &(5..32)), due);
        assert_eq!(pieces.parts(1, &(12..14)), [Part::Kept(12, bytes(12..14))]);
        assert_eq!(pieces.parts(1, &(27..28)), [Part::Coming(27..28)]);
        assert_eq!(pieces.parts(2, &(12..14)), [Part::Missing(12..14)]);
        assert_eq!(pieces.parts(1, &(12..12)), []);
    }

    #[test]
    fn the_least_recently_used_piece_makes_room() {
        let pieces = Pieces::new(30);
        kept(&pieces, 1, 0..10);
        kept(&pieces, 2, 0..10);
        kept(&pieces, 1, 10..20);
        pieces.parts(1, &(3..4));
        kept(&pieces, 3, 0..10);
        assert_eq!(pieces.parts(2, &(0..10)), [Part::Missing(0..10)]);
        assert_eq!(pieces.parts(1, &(0..10)), [Part::Kept(0, bytes(0..10))]);
        assert_eq!(pieces.claim(4, &(0..31), u64::MAX), [], "longer than all that is kept");
    }

    #[test]
    fn what_is_coming_keeps_its_room() {
        let pieces = Pieces::new(20);
        assert_eq!(pieces.claim(1, &(0..15), u64::MAX), [0..15]);
        assert_eq!(pieces.claim(1, &(15..30), 5), [15..20]);
        pieces.finish(1, &(0..15), None);
        assert_eq!(pieces.parts(1, &(0..20)), [Part::Missing(0..15), Part::Coming(15..20)]);
        pieces.finish(1, &(15..20), Some(bytes(15..20)));
        assert_eq!(pieces.parts(1, &(0..20)), [Part::Missing(0..15), Part::Kept(15, bytes(15..20))]);
    }

    #[test]
    fn threads_wait_for_what_is_coming() {
        let pieces = Pieces::new(20);
        assert_eq!(pieces.claim(1, &(0..15), u64::MAX), [0..15]);
        assert_eq!(pieces.claim(1, &(0..20), u64::MAX), [15..20]);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| pieces.wait(1, &(3..5)));
            let waits_in_vain = scope.spawn(|| pieces.wait(1, &(15..20)));
            pieces.finish(1, &(0..15), Some(bytes(0..15)));
            pieces.finish(1, &(15..20), None);
            assert_eq!(waits.join().unwrap(), Some(bytes(3..5)));
            assert_eq!(waits_in_vain.join().unwrap(), None);
        });
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn reads_that_follow_one_another_are_read_ahead_of() {
        let sequence = Sequence::default();
        let (mut asked, mut requests) = (0, 0);
        for number in 0..1000 {
            let read = number * 100_000..(number + 1) * 100_000;
            if let Some(ahead) = sequence.next(&read, 100_000_000) {
                assert!(ahead.start >= read.end && ahead.start >= asked, "{ahead:?} after {read:?}");
                assert!(ahead.end <= (read.end + MOST_BYTES).min(100_000_000));
                asked = ahead.end;
                requests += 1;
            }
            assert!(number < 3 || asked >= (read.end + MIB / 2).min(100_000_000), "{number}: {asked}");
        }
        assert!(requests < 15, "{requests}");
    }

    #[test]
    fn reads_anywhere_are_not() {
        let sequence = Sequence::default();
        for start in [5, 300, 7, 100, 900, 20, 500] {
            assert_eq!(sequence.next(&(start * MIB..start * MIB + 1000), 1000 * MIB), None);
        }
    }

    #[test]
    fn threads_may_read_a_little_out_of_order() {
        let sequence = Sequence::default();
        let found: Vec<_> = [0, 2, 1, 3, 5, 4].map(|n| sequence.next(&(n * MIB..(n + 1) * MIB), 64 * MIB)).into();
        assert!(found.iter().flatten().count() >= 1, "{found:?}");
    }
}
