//! Simple statistics cannot tell `shuffled` from a true shuffle, and the batches of `windowed` are
//! nearly as mixed, with any number of streams.

use std::collections::BTreeSet;
use tensilo_data::{Division, EpochOrder, LastBatch, Order, WindowSizes};

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

/// The runs of a dataset, and the samples of a run.
const RUNS: u64 = 1 << 13;
const RUN: u64 = 32;
/// The runs of the windows of all streams together.
const WINDOW_RUNS: u32 = 2048;
/// The ranks of a job, and the samples of their batches.
const RANKS: u32 = 8;
const BATCH: u32 = 256;
const STREAMS: [u32; 4] = [1, 8, 64, 1024];

/// Returns the batches of an epoch in windowed order: the batches of a rank, or whole steps of the
/// job.
fn batches(streams: u32, window_runs: u32, rank: Option<u32>) -> Vec<Vec<u64>> {
    let sizes = WindowSizes::new(RUN as u32, window_runs / streams).and_then(|sizes| sizes.with_streams(streams));
    let order = EpochOrder::new(Order::Windowed(sizes.unwrap()), RUNS * RUN, 14, 3);
    let (batch, world_size) = if rank.is_some() { (BATCH, RANKS) } else { (BATCH * RANKS, 1) };
    let division = Division::new(batch, world_size, LastBatch::Drop).unwrap();
    let batch_at = |step: u64| {
        let mut samples = Vec::new();
        division.positions(&order, step * division.step_samples(), rank.unwrap_or(0), &mut samples).unwrap();
        order.replace_with_samples(&mut samples).unwrap();
        samples
    };
    (0..division.steps(RUNS * RUN, 0)).map(batch_at).collect()
}

/// The batches with one stream and as many runs in its window as a batch is compared with: all of
/// them for a step, and one rank's share for a batch of a rank, which reads that many runs at a
/// time.
fn with_one_stream(rank: Option<u32>) -> Vec<Vec<u64>> {
    batches(1, if rank.is_some() { WINDOW_RUNS / RANKS } else { WINDOW_RUNS }, rank)
}

/// Returns the shares of consecutive samples that are in the same run and that ascend, and their
/// mean distance as a share of the dataset.
fn neighbors(batches: &[Vec<u64>]) -> [f64; 3] {
    let samples = batches.concat();
    let mean = |of: &dyn Fn(u64, u64) -> f64| {
        samples.windows(2).map(|pair| of(pair[0], pair[1])).sum::<f64>() / (samples.len() - 1) as f64
    };
    [
        mean(&|a, b| f64::from(u8::from(a / RUN == b / RUN))),
        mean(&|a, b| f64::from(u8::from(a < b))),
        mean(&|a, b| a.abs_diff(b) as f64 / (RUNS * RUN) as f64),
    ]
}

/// Consecutive samples are in the same run as rarely as with one stream, and as far apart as two
/// random samples. Two streams have runs with the same index next to each other in
/// the dataset, and `RUNS / streams` indices to choose from, so slightly more pairs ascend.
#[test]
fn consecutive_samples_of_a_windowed_order_are_unrelated() {
    for rank in [None, Some(5)] {
        let expected_same_run = neighbors(&with_one_stream(rank))[0];
        for streams in STREAMS {
            let [same_run, ascending, distance] = neighbors(&batches(streams, WINDOW_RUNS, rank));
            let same_index = f64::from(streams) / RUNS as f64;
            let what = format!("{streams} streams, rank {rank:?}: {same_run} {ascending} {distance}");
            assert!(same_run <= 1.1 * expected_same_run, "{what}; expected {expected_same_run}");
            assert!((ascending - 0.5 - same_index / 2.0).abs() < 0.01, "{what}");
            assert!((distance - 1.0 / 3.0).abs() < 0.01, "{what}");
        }
    }
}

/// If a dataset is sorted by label, batches have as many different labels as with one stream.
#[test]
fn batches_of_sorted_samples_have_as_many_labels() {
    let label = |sample: u64| sample * 100 / (RUNS * RUN);
    let mean_labels = |batches: &[Vec<u64>]| {
        let of_batch = |batch: &Vec<u64>| batch.iter().map(|&sample| label(sample)).collect::<BTreeSet<_>>().len();
        batches.iter().map(of_batch).sum::<usize>() as f64 / batches.len() as f64
    };
    for rank in [None, Some(0)] {
        let expected = mean_labels(&with_one_stream(rank));
        for streams in STREAMS {
            let found = mean_labels(&batches(streams, WINDOW_RUNS, rank));
            assert!(found >= 0.99 * expected, "{streams} streams, rank {rank:?}: {found} labels, expected {expected}");
        }
    }
}
