//! Reads that follow one another, which are read ahead of: by verification, salvage, exports.

use std::ops::Range;
use std::sync::Mutex;

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
mod tests {
    use super::*;

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
