//! Ranks divide an epoch without loss, and any number of ranks resumes from any step.

use proptest::prelude::*;
use tensilo_data::{Division, EpochOrder, LastBatch, Order, Receipt};

/// Returns the positions of all ranks in the step that starts at `start`.
fn step(division: &Division, n: u64, start: u64) -> Vec<u64> {
    (0..division.world_size()).flat_map(|rank| division.positions(n, start, rank)).collect()
}

/// Returns the positions of all steps of the epoch that start at `start` or later.
fn rest(division: &Division, n: u64, start: u64) -> Vec<Vec<u64>> {
    let first = (division.steps(n, start) > 0).then_some(start);
    std::iter::successors(first, |&start| division.next(n, start)).map(|start| step(division, n, start)).collect()
}

proptest! {
    #[test]
    fn an_epoch_has_each_position_once(n in 0..500_u64, batch in 1..20_u32, world_size in 1..9_u32) {
        for last_batch in [LastBatch::Drop, LastBatch::Pad, LastBatch::Exact] {
            let division = Division::new(batch, world_size, last_batch).unwrap();
            let steps = rest(&division, n, 0);
            prop_assert_eq!(steps.len() as u64, division.steps(n, 0));
            let taken = steps.concat();
            let expected = match last_batch {
                LastBatch::Drop => n - n % division.step_samples(),
                LastBatch::Pad => n.div_ceil(division.step_samples()) * division.step_samples(),
                _ => n,
            };
            prop_assert!(taken.into_iter().eq((0..expected).map(|position| position % n)));
            let lengths = |start| (0..world_size).map(move |rank| division.positions(n, start, rank).count());
            if last_batch == LastBatch::Exact && n > 0 {
                let last = (division.steps(n, 0) - 1) * division.step_samples();
                prop_assert!(lengths(last).max().unwrap() - lengths(last).min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn other_ranks_go_on_where_four_ended(n in 100..2000_u64, steps in 0..5_u64, world_size in 3..=7_u32, batch in 1..9_u32) {
        let four = Division::new(5, 4, LastBatch::Exact).unwrap();
        let other = Division::new(batch, world_size, LastBatch::Exact).unwrap();
        let mut taken: Vec<u64> = (0..steps).flat_map(|number| step(&four, n, number * 20)).collect();
        taken.extend(rest(&other, n, steps * 20).concat());
        prop_assert!(taken.into_iter().eq(0..n));
    }

    #[test]
    fn receipts_do_not_depend_on_the_division(n in 0..300_u64, epoch: u64, world_size in 1..8_u32) {
        let receipt_of = |mode, seed, world_size| {
            let order = EpochOrder::new(mode, n, seed, epoch);
            let division = Division::new(3, world_size, LastBatch::Exact).unwrap();
            let of_rank = |rank| {
                let mut receipt = Receipt::default();
                for number in 0..division.steps(n, 0) {
                    for position in division.positions(n, number * division.step_samples(), rank) {
                        receipt.add(order.sample_at(position).unwrap(), epoch);
                    }
                }
                receipt
            };
            (0..world_size).map(of_rank).fold(Receipt::default(), Receipt::plus)
        };
        let expected = receipt_of(Order::Sequential, 0, 1);
        prop_assert_eq!(receipt_of(Order::Shuffled, 7, world_size), expected);
        let mut more = expected;
        more.add(0, epoch);
        prop_assert_ne!(more, expected);
    }
}

#[test]
fn steps_have_bounds() {
    for (batch, world_size) in [(0, 1), (1, 0), (1 << 16, (1 << 16) + 1), (u32::MAX, u32::MAX)] {
        assert!(Division::new(batch, world_size, LastBatch::Drop).is_err(), "{batch} {world_size}");
    }
    let largest = Division::new(1 << 16, 1 << 16, LastBatch::Pad).unwrap();
    assert_eq!(largest.positions(1 << 63, 1 << 62, 65_535).count(), 1 << 16);
    assert_eq!(largest.positions(10, 10, 0).count(), 0);
    assert_eq!(largest.positions(10, 0, 65_536).count(), 0);
}
