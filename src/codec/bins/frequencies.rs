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
        add_up(&mut of, counts);
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

/// Adds to the frequencies, or takes from them, until they add up to [`SUM`].
fn add_up(of: &mut [u32; BINS], counts: &Counts) {
    let mut sum: u32 = of.iter().sum();
    // the bits that one more saves are about in proportion
    let gain = |count: u32, frequency: u32| count as f32 / (frequency as f32 + 0.5);
    let mut gains = map(counts, of, gain);
    while sum < SUM {
        let most = best(&gains, |gain, most| gain >= most);
        // in bounds: bins
        if counts[most] == 0 {
            break; // all are
        }
        of[most] += 1;
        gains[most] = gain(counts[most], of[most]);
        sum += 1;
    }
    let loss = |count: u32, frequency: u32| match frequency {
        0..=1 => f32::INFINITY,
        _ => count as f32 / (frequency as f32 - 0.5),
    };
    let mut losses = map(counts, of, loss);
    while sum > SUM {
        let least = best(&losses, |loss, least| loss < least);
        // in bounds: bins
        of[least] -= 1; // more than 1, since there are fewer bins than their sum
        losses[least] = loss(counts[least], of[least]);
        sum -= 1;
    }
}

fn map(counts: &Counts, of: &[u32; BINS], value: impl Fn(u32, u32) -> f32) -> [f32; BINS] {
    std::array::from_fn(|bin| value(counts[bin], of[bin])) // in bounds: a bin
}

/// Returns the index of the value that no later one is better than.
fn best(values: &[f32; BINS], is_better: impl Fn(f32, f32) -> bool) -> usize {
    let mut best = (0, values[0]);
    for (bin, &value) in values.iter().enumerate() {
        if is_better(value, best.1) {
            best = (bin, value);
        }
    }
    best.0
}
