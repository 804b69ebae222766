//! Ranks divide an epoch without loss, each reads its own runs, and any number of ranks resumes
//! from any step.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tensilo_data::{Division, EpochOrder, LastBatch, Order, Receipt, WindowSizes};

fn windowed(run: u32, window: u32, streams: u32) -> Order {
    Order::Windowed(WindowSizes::new(run, window).unwrap().with_streams(streams).unwrap())
}

fn any_mode() -> impl Strategy<Value = Order> {
    let sizes = (1..20_u32, 1..6_u32, 0..=10_u32).prop_map(|(run, window, bits)| windowed(run, window, 1 << bits));
    prop_oneof![Just(Order::Sequential), Just(Order::Shuffled), sizes]
}

fn positions(division: &Division, order: &EpochOrder, start: u64, rank: u32) -> Vec<u64> {
    let mut positions = vec![7; 3];
    division.positions(order, start, rank, &mut positions).unwrap();
    positions
}

/// Returns the positions of all ranks in the step that starts at `start`, in ascending order.
fn step(division: &Division, order: &EpochOrder, start: u64) -> Vec<u64> {
    let of_ranks = (0..division.world_size()).flat_map(|rank| positions(division, order, start, rank));
    let mut all: Vec<u64> = of_ranks.collect();
    all.sort_unstable();
    all
}

/// Returns the positions of all steps of the epoch that start at `start` or later.
fn rest(division: &Division, order: &EpochOrder, start: u64) -> Vec<Vec<u64>> {
    let n = order.sample_count();
    let first = (division.steps(n, start) > 0).then_some(start);
    std::iter::successors(first, |&start| division.next(n, start)).map(|start| step(division, order, start)).collect()
}

proptest! {
    #[test]
    fn an_epoch_has_each_position_once(mode in any_mode(), n in 0..500_u64, batch in 1..20_u32, world_size in 1..9_u32) {
        let order = EpochOrder::new(mode, n, 1, 2);
        for last_batch in [LastBatch::Drop, LastBatch::Pad, LastBatch::Exact] {
            let division = Division::new(batch, world_size, last_batch).unwrap();
            let steps = rest(&division, &order, 0);
            prop_assert_eq!(steps.len() as u64, division.steps(n, 0));
            for (start, taken) in (0..).step_by(division.step_samples() as usize).zip(steps) {
                let end = start + division.step_samples();
                let mut expected: Vec<u64> = match last_batch {
                    LastBatch::Pad => (start..end).map(|position| position % n).collect(),
                    _ => (start..end.min(n)).collect(),
                };
                expected.sort_unstable();
                prop_assert_eq!(taken, expected);
            }
            let lengths = |start| (0..world_size).map(move |rank| positions(&division, &EpochOrder::new(mode, n, 1, 2), start, rank).len());
            if last_batch == LastBatch::Exact && n > 0 {
                let last = (division.steps(n, 0) - 1) * division.step_samples();
                prop_assert!(lengths(last).max().unwrap() - lengths(last).min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn other_ranks_go_on_where_four_ended(
        mode in any_mode(), n in 100..2000_u64, steps in 0..5_u64, world_size in 3..=7_u32, batch in 1..9_u32,
    ) {
        let order = EpochOrder::new(mode, n, 1, 2);
        let four = Division::new(5, 4, LastBatch::Exact).unwrap();
        let other = Division::new(batch, world_size, LastBatch::Exact).unwrap();
        let mut taken: Vec<u64> = (0..steps).flat_map(|number| step(&four, &order, number * 20)).collect();
        taken.extend(rest(&other, &order, steps * 20).concat());
        prop_assert!(taken.into_iter().eq(0..n));
    }

    #[test]
    fn the_positions_of_a_rank_ascend(mode in any_mode(), n in 1..3000_u64, start: u64, batch in 1..50_u32, world_size in 1..9_u32) {
        let order = EpochOrder::new(mode, n, 1, 2);
        let division = Division::new(batch, world_size, LastBatch::Exact).unwrap();
        for rank in 0..world_size {
            let found = positions(&division, &order, start % n, rank);
            prop_assert!(found.is_sorted());
        }
    }

    #[test]
    fn receipts_do_not_depend_on_the_division(mode in any_mode(), n in 0..300_u64, epoch: u64, world_size in 1..8_u32) {
        let receipt_of = |mode, seed, world_size| {
            let order = EpochOrder::new(mode, n, seed, epoch);
            let division = Division::new(3, world_size, LastBatch::Exact).unwrap();
            let of_rank = |rank| {
                let mut receipt = Receipt::default();
                for number in 0..division.steps(n, 0) {
                    for position in positions(&division, &order, number * division.step_samples(), rank) {
                        receipt.add(order.sample_at(position).unwrap(), epoch);
                    }
                }
                receipt
            };
            (0..world_size).map(of_rank).fold(Receipt::default(), Receipt::plus)
        };
        let expected = receipt_of(Order::Sequential, 0, 1);
        prop_assert_eq!(receipt_of(mode, 7, world_size), expected);
        let mut more = expected;
        more.add(0, epoch);
        prop_assert_ne!(more, expected);
    }
}

/// Returns by how many nodes a run is read on average, if a node has all ranks of the division.
fn readers_of_a_run(mode: WindowSizes, n: u64, nodes: u32, batch: u32) -> f64 {
    let order = EpochOrder::new(Order::Windowed(mode), n, 1, 0);
    let division = Division::new(batch, nodes, LastBatch::Exact).unwrap();
    let mut reads = 0;
    for node in 0..nodes {
        let mut runs = BTreeSet::new();
        for step in 0..division.steps(n, 0) {
            let mut samples = positions(&division, &order, step * division.step_samples(), node);
            order.replace_with_samples(&mut samples).unwrap();
            runs.extend(samples.iter().map(|sample| sample / u64::from(mode.run_samples())));
        }
        reads += runs.len();
    }
    reads as f64 / n.div_ceil(mode.run_samples().into()) as f64
}

#[test]
fn a_run_is_read_by_one_node() {
    // 2,048 runs of 64 samples; the last one is short
    let n = 2048 * 64 - 17;
    for (streams, nodes, batch, at_most) in [
        (64, 8, 32, 1.05),
        (64, 64, 4, 1.15), // at the end of the epoch, nodes read up to a window of their neighbors
        (64, 64, 16, 1.15),
        (1024, 64, 4, 1.15),
        (64, 8, 4, 1.05), // a step is shorter than the number of streams
        (64, 6, 40, 1.1),
        (128, 48, 8, 1.4),
        (128, 48, 32, 1.4),
    ] {
        let sizes = WindowSizes::new(64, 4).unwrap().with_streams(streams).unwrap();
        let readers = readers_of_a_run(sizes, n, nodes, batch);
        println!("{streams} streams, {nodes} nodes, batches of {batch}: a run is read by {readers:.3} nodes");
        assert!((1.0..at_most).contains(&readers), "{streams} {nodes} {batch}: {readers}");
    }
    // with one stream, each node takes samples of each run
    assert!(readers_of_a_run(WindowSizes::new(64, 256).unwrap(), n, 8, 32) > 7.9);
}

#[test]
fn a_stretch_takes_evenly_from_all_parts_of_the_list() {
    for bits in 0..=10 {
        let streams = 1_u64 << bits;
        let reversed = |stream: u64| (0..bits).fold(0_u64, |number, bit| number << 1 | (stream >> bit & 1));
        let listed: Vec<u64> = (0..streams).map(reversed).collect();
        let mut largest: f64 = 0.0;
        for bound in (0..=streams).step_by(1 + streams as usize / 64) {
            // the surplus of each prefix; a stretch is the difference of two
            let (mut below, mut surpluses) = (0, vec![0.0]);
            for (length, listed) in (1..).zip(&listed) {
                below += u64::from(*listed < bound);
                surpluses.push(below as f64 - length as f64 * bound as f64 / streams as f64);
            }
            let max = surpluses.iter().copied().fold(f64::MIN, f64::max);
            let min = surpluses.iter().copied().fold(f64::MAX, f64::min);
            largest = largest.max(max - min);
        }
        assert!(largest < 4.0, "{streams}: {largest}");
    }
}

#[test]
fn steps_have_bounds() {
    for (batch, world_size) in [(0, 1), (1, 0), (1 << 16, (1 << 16) + 1), (u32::MAX, u32::MAX)] {
        assert!(Division::new(batch, world_size, LastBatch::Drop).is_err(), "{batch} {world_size}");
    }
    let largest = Division::new(1 << 16, 1 << 16, LastBatch::Pad).unwrap();
    for mode in [Order::Sequential, windowed(5, 7, 1024)] {
        let few = EpochOrder::new(mode, 10, 0, 0);
        let many = EpochOrder::new(mode, 1 << 63, 0, 0);
        assert_eq!(positions(&largest, &many, 1 << 62, 65_535).len(), 1 << 16);
        assert_eq!(positions(&largest, &many, (1 << 63) - 1, 65_535).len(), 1 << 16);
        assert_eq!(positions(&largest, &few, 0, 65_535).len(), 1 << 16);
        assert!(positions(&largest, &few, 10, 0).is_empty());
        assert!(positions(&largest, &few, 0, 65_536).is_empty());
    }
}
