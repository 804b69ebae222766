//! Frequencies that add up to 256.

use crate::kernel::bins::BINS;

/// The number of times that each bin occurs.
pub(super) type Counts = [u32; BINS];

/// Bins that have a frequency in a class: the first of them, and the frequencies up to the last.
#[derive(Clone, Debug)]
pub(super) struct Frequencies {
    of: [u8; BINS],
}

/// The sum of the frequencies of a class.
const SUM: u32 = 256;

impl Frequencies {
    /// Returns frequencies that code `counts` in about the fewest bits. Every bin that occurs has
    /// one, and at least two bins have one.
    pub(super) fn of(counts: &Counts) -> Self {
        let total: u64 = counts.iter().copied().map(u64::from).sum();
        let mut of = counts.map(|count| {
            // at most 256
            let share = (u64::from(count) * u64::from(SUM)).checked_div(total).unwrap_or(0) as u32;
            if count == 0 { 0 } else { share.max(1) }
        });
        let mut sum: u32 = of.iter().sum();
        while sum < SUM {
            // the bits that one more saves are about in proportion
            // in bounds: a bin
            let gain = |bin: &usize| counts[*bin] as f32 / (of[*bin] as f32 + 0.5);
            let present = (0..BINS).filter(|&bin| counts[bin] > 0); // in bounds
            let Some(most) = present.max_by(|a, b| gain(a).total_cmp(&gain(b))) else { break };
            of[most] += 1; // in bounds
            sum += 1;
        }
        while sum > SUM {
            // in bounds: a bin
            let loss = |bin: &usize| counts[*bin] as f32 / (of[*bin] as f32 - 0.5);
            let several = (0..BINS).filter(|&bin| of[bin] > 1); // in bounds
            let Some(least) = several.min_by(|a, b| loss(a).total_cmp(&loss(b))) else { break };
            of[least] -= 1; // in bounds
            sum -= 1;
        }
        Self::with_two(of)
    }

    /// Gives a second bin a frequency if one has all, or if none has any.
    fn with_two(mut of: [u32; BINS]) -> Self {
        if let Some(all) = of.iter().position(|&frequency| frequency == SUM) {
            of = [0; BINS];
            of[all] = SUM - 1; // in bounds: a bin
            of[if all == 0 { 1 } else { all - 1 }] = 1; // in bounds: there are 64
        }
        if of == [0; BINS] {
            (of[0], of[1]) = (SUM - 1, 1);
        }
        Self { of: of.map(|frequency| frequency as u8) } // exact: below 256
    }

    /// Returns the bits that bins with these counts cost.
    pub(super) fn bits(&self, counts: &Counts) -> f32 {
        let bits = |(&count, &frequency): (&u32, &u8)| match count {
            0 => 0.0,
            _ => count as f32 * (8.0 - f32::from(frequency).log2()),
        };
        counts.iter().zip(&self.of).map(bits).sum()
    }

    /// Returns the first bin that has a frequency, and the frequencies from it to the last one.
    pub(super) fn range(&self) -> (usize, &[u8]) {
        let has_one = |&frequency: &u8| frequency > 0;
        let first = self.of.iter().position(has_one).unwrap_or(0);
        let end = self.of.iter().rposition(has_one).map_or(0, |last| last + 1);
        (first, self.of.get(first..end).unwrap_or(&[]))
    }
}
