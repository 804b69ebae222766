//! Simple statistics cannot tell `shuffled` from a true shuffle.

use tensilo_data::{EpochOrder, Order};

/// Returns the chi-square of counts that should be equal, in standard deviations from the mean.
fn deviation(counts: &[u64], free: usize) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let chi: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    (chi - free as f64) / (2.0 * free as f64).sqrt()
}

/// How often each sample is at each position, over many epochs.
#[test]
fn each_sample_is_at_each_position_as_often() {
    for n in [2_u64, 3, 5, 8, 13, 31, 64, 100] {
        let epochs = 40_000;
        let mut counts = vec![0; (n * n) as usize];
        for epoch in 0..epochs {
            let order = EpochOrder::new(Order::Shuffled, n, 11, epoch);
            (0..n).for_each(|p| counts[(p * n + order.sample_at(p).unwrap()) as usize] += 1);
        }
        let free = (n - 1) * (n - 1);
        let deviation = deviation(&counts, free as usize);
        assert!(deviation.abs() < 5.0, "{n}: {deviation}");
    }
}

/// The distance modulo `n` between neighbors.
#[test]
fn neighbors_have_each_distance_as_often() {
    for n in [16_u64, 64, 257, 1000, 4096] {
        let mut counts = vec![0; n as usize - 1];
        for epoch in 0..4_000_000 / n {
            let order = EpochOrder::new(Order::Shuffled, n, 12, epoch);
            let samples: Vec<u64> = (0..n).map(|p| order.sample_at(p).unwrap()).collect();
            samples.windows(2).for_each(|pair| counts[((pair[1] + n - pair[0]) % n - 1) as usize] += 1);
        }
        let deviation = deviation(&counts, counts.len() - 1);
        assert!(deviation.abs() < 5.0, "{n}: {deviation}");
    }
}

/// Pairs of positions that differ in one bit: a Feistel network with few rounds keeps some of the
/// difference.
#[test]
fn positions_that_differ_in_one_bit_have_unrelated_samples() {
    for n in [64_u64, 100_003, 1 << 20] {
        for bit in 0..63 - n.leading_zeros() {
            let mut counts = vec![0; 64];
            for epoch in 0..64_000 / 8 {
                let order = EpochOrder::new(Order::Shuffled, n, 13, epoch);
                for p in (0..8).map(|i| i * 2_654_435_761 % (n >> 1)) {
                    let (a, b) = (p & !(1 << bit), p | 1 << bit);
                    let Some((a, b)) = order.sample_at(a).zip(order.sample_at(b)) else { continue };
                    counts[((b + n - a) % n * 64 / n) as usize] += 1;
                }
            }
            if n == 64 {
                counts.remove(0); // two positions never have the same sample
            }
            let deviation = deviation(&counts, counts.len() - 1);
            assert!(deviation.abs() < 5.5, "{n}, bit {bit}: {deviation}");
        }
    }
}
