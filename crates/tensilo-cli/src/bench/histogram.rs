//! A histogram of times: bounded memory, percentiles to within 2 %.

use std::time::Duration;

/// Below this limit each nanosecond has a bucket of its own.
const LINEAR: u64 = 64;
/// Above that limit each power of two has this many buckets.
const PER_POWER: u64 = 32;
/// 64, and 32 for each power of two from 2^6 to 2^63.
const BUCKETS: usize = 64 + 58 * 32;

/// The number of reads by their duration.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }

    /// Counts a read.
    pub(super) fn add(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(nanoseconds)) {
            *count += 1;
            self.total += 1;
        }
    }

    /// Adds the counts of another histogram.
    pub(super) fn merge(&mut self, other: &Self) {
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
        self.total += other.total;
    }

    /// Returns the time in nanoseconds that this percentage of the reads did not exceed; `None` if
    /// the histogram is empty.
    pub(super) fn percentile(&self, percent: u64) -> Option<f64> {
        let due = self.total.saturating_mul(percent).div_ceil(100).max(1);
        let mut counted = 0_u64;
        let found = self.counts.iter().position(|count| {
            counted = counted.saturating_add(*count);
            counted >= due
        });
        found.map(middle)
    }
}

fn bucket(nanoseconds: u64) -> usize {
    let power = u64::from(nanoseconds.max(1).ilog2());
    let bucket = match power.checked_sub(6) {
        None => nanoseconds,
        Some(above) => LINEAR + above * PER_POWER + (nanoseconds >> (power - 5)) - PER_POWER,
    };
    usize::try_from(bucket).unwrap_or(usize::MAX) // below BUCKETS
}

/// Returns the middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64; // exact: usize has at most 64 bits
    let Some(above) = bucket.checked_sub(LINEAR) else { return bucket as f64 }; // exact: below 64
    let (power, step) = (above / PER_POWER, above % PER_POWER);
    let width = (2_u64 << power) as f64; // exact: a power of two
    ((PER_POWER + step) as f64 + 0.5) * width // exact: below 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bucket_and_its_middle_is_near() {
        let powers = (0..64).map(|power| 1_u64 << power);
        for time in powers.flat_map(|time| [time, time + time / 3, time - 1, time + (time - 1)]).chain([0, u64::MAX]) {
            let bucket = bucket(time);
            assert!(bucket < BUCKETS, "{time}");
            assert!((middle(bucket) - time as f64).abs() <= time as f64 / 60.0, "{time}: {}", middle(bucket));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_all_that_was_counted() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(50), None);
        (1..=50).for_each(|time| histogram.add(Duration::from_nanos(time)));
        let mut other = Histogram::new();
        (51..=100).for_each(|time| other.add(Duration::from_nanos(time * 1000)));
        histogram.merge(&other);
        assert_eq!(histogram.percentile(50), Some(50.0));
        assert_eq!(histogram.percentile(1), Some(1.0));
        let p99 = histogram.percentile(99).unwrap();
        assert!((p99 / 99_000.0 - 1.0).abs() < 0.02, "{p99}");
    }
}
