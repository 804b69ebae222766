//! The quality of an order: how far it is from a true shuffle.

use super::super::pattern::Random;
use std::collections::HashSet;
use tensilo_data::{Mode, Order};

/// The most positions that are looked at.
const POSITIONS: u64 = 1 << 20;
/// The labels of the imagined dataset, by which it is sorted.
const LABELS: u64 = 100;

/// Measures of an order. Distances are divided by the number of samples: 1/3 is that of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quality {
    /// The share of samples that are followed by the one that is stored next.
    pub neighbours: f64,
    /// The mean distance of samples that follow each other.
    pub distance: f64,
    /// The mean distance of the positions of samples that are stored next to each other.
    pub run_distance: f64,
    /// The mean number of labels in a batch, if the samples are sorted by labels.
    pub labels: f64,
}

/// Returns the quality of an order of `n` samples, in batches of this size, and that of a true
/// shuffle.
pub(super) fn quality(mode: Mode, n: u64, batch: u32) -> [Quality; 2] {
    let order = Order::new(mode, n, 1, 0);
    let positions = n.min(POSITIONS);
    let samples: Vec<u64> = (0..positions).filter_map(|position| order.sample_at(position)).collect();
    let next = |sample: u64| Some(order.position_of(sample)?.abs_diff(order.position_of(sample.checked_add(1)?)?));
    let runs: Vec<u64> = samples.iter().filter_map(|&sample| next(sample)).collect();
    let shuffled = shuffle(n, positions);
    // where a sample is in a true shuffle does not depend on where the next one is
    let shuffled_runs: Vec<u64> = pairs(&shuffled).map(|(a, b)| a.abs_diff(b)).collect();
    [measure(&samples, &runs, n, batch), measure(&shuffled, &shuffled_runs, n, batch)]
}

fn pairs(samples: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    samples.iter().copied().zip(samples.iter().copied().skip(1))
}

fn measure(samples: &[u64], runs: &[u64], n: u64, batch: u32) -> Quality {
    let scale = n.max(1) as f64; // an approximation
    let neighbours = pairs(samples).map(|(a, b)| if b.wrapping_sub(a) == 1 { 1.0 } else { 0.0 });
    let distances = pairs(samples).map(|(a, b)| a.abs_diff(b) as f64 / scale); // an approximation
    let run_distances = runs.iter().map(|&distance| distance as f64 / scale); // an approximation
    let label = |sample: &u64| u128::from(*sample) * u128::from(LABELS) / u128::from(n.max(1));
    let batch = usize::try_from(batch).unwrap_or(usize::MAX).max(1);
    let labels = samples.chunks(batch).filter(|batch_of| batch_of.len() == batch.min(samples.len()));
    let labels = labels.map(|batch| batch.iter().map(label).collect::<HashSet<u128>>().len() as f64); // exact
    Quality {
        neighbours: mean(neighbours),
        distance: mean(distances),
        run_distance: mean(run_distances),
        labels: mean(labels),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Returns the first `count` samples of a true shuffle: that of Fisher and Yates, of which only the
/// places that were exchanged are kept.
fn shuffle(n: u64, count: u64) -> Vec<u64> {
    let mut exchanged = std::collections::HashMap::new();
    let mut random = Random(1);
    let mut taken = Vec::new();
    for place in 0..count {
        let other = place.saturating_add(random.below(n.saturating_sub(place)));
        let found = exchanged.get(&other).copied().unwrap_or(other);
        let here = exchanged.get(&place).copied().unwrap_or(place);
        exchanged.insert(other, here);
        taken.push(found);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_true_shuffle_is_one_and_shuffled_is_like_it() {
        let mut found = shuffle(1000, 1000);
        found.sort_unstable();
        assert_eq!(found, (0..1000).collect::<Vec<u64>>());
        let [order, shuffle] = quality(Mode::Shuffled, 100_000, 256);
        for quality in [order, shuffle] {
            assert!((quality.distance - 1.0 / 3.0).abs() < 0.01, "{quality:?}");
            assert!((quality.run_distance - 1.0 / 3.0).abs() < 0.01, "{quality:?}");
            assert!(quality.neighbours < 0.001 && (quality.labels - 92.4).abs() < 0.5, "{quality:?}");
        }
        let [order, _] = quality(Mode::Sequential, 100_000, 256);
        assert!(order.neighbours > 0.99 && order.labels < 2.0, "{order:?}");
    }
}
