//! Measures times, summarizes them, and draws random numbers.

use anyhow::Result;
use std::time::{Duration, Instant};

/// The median and the spread of the results of several rounds.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    pub min: f64,
    pub low: f64,
    pub median: f64,
    pub high: f64,
    pub max: f64,
}

impl Stats {
    /// Returns median, quartiles and extremes, interpolated between neighbors. `values` must not
    /// be empty.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = share * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
            below + (above - below) * rank.fract()
        };
        Self { min: at(0.0), low: at(0.25), median: at(0.5), high: at(0.75), max: at(1.0) }
    }

    /// Applies a monotonic function to all values.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let [min, low, median, high, max] = [self.min, self.low, self.median, self.high, self.max].map(&f);
        if min <= max {
            return Self { min, low, median, high, max };
        }
        Self { min: max, low: high, median, high: low, max: min }
    }
}

/// Seconds for one call of `work`: it is called at least once, and again until `min_time` has
/// passed.
pub fn seconds_per_call(min_time: Duration, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    let mut calls = 0_u32;
    loop {
        work()?;
        calls += 1;
        let elapsed = start.elapsed();
        if elapsed >= min_time {
            return Ok(elapsed.as_secs_f64() / f64::from(calls));
        }
    }
}

/// The source of all random numbers of this program: distributions of the generator of the tests,
/// with a given seed.
pub struct Random(tensilo_testing::Random);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(tensilo_testing::Random(seed))
    }

    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a uniform number below `end`, which must be below 2^32.
    #[inline]
    pub fn below(&mut self, end: usize) -> usize {
        (((self.bits() >> 32) * end as u64) >> 32) as usize
    }

    /// Returns a uniform number from 0 to 1.
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1_u32 << 24) as f32
    }

    /// Returns a standard normal number (Box-Muller transform).
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f32::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_and_their_order() {
        let stats = Stats::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!([stats.min, stats.low, stats.median, stats.high, stats.max], [1.0, 2.0, 3.0, 4.0, 5.0]);
        let inverse = stats.map(|value| 1.0 / value);
        assert_eq!([inverse.min, inverse.median, inverse.max], [0.2, 1.0 / 3.0, 1.0]);
    }
}
