//! Each sample is at exactly one position.

use proptest::prelude::*;
use tensilo_data::{EpochOrder, Order, WindowSizes};

fn windowed(run: u32, window: u32, streams: u32) -> Order {
    Order::Windowed(WindowSizes::new(run, window).unwrap().with_streams(streams).unwrap())
}

fn modes() -> Vec<Order> {
    let sizes = [(1, 1), (1, 5), (5, 1), (3, 4), (7, 2), (16, 16), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)];
    let windows =
        sizes.into_iter().flat_map(|(run, window)| [1, 2, 8, 1024].map(|streams| windowed(run, window, streams)));
    [Order::Sequential, Order::Shuffled].into_iter().chain(windows).collect()
}

fn any_mode() -> impl Strategy<Value = Order> {
    let size = || prop_oneof![1..100_u32, any::<u32>().prop_map(|size| size.max(1))];
    let sizes = (size(), size(), 0..=10_u32).prop_map(|(run, window, bits)| windowed(run, window, 1 << bits));
    prop_oneof![Just(Order::Sequential), Just(Order::Shuffled), sizes]
}

#[test]
fn an_order_of_few_samples_has_each_of_them_once() {
    for mode in modes() {
        for n in (0..=130).chain([997, 1000, 1024]) {
            let order = EpochOrder::new(mode, n, 3, n);
            let mut found: Vec<u64> = (0..n).map(|p| order.sample_at(p).unwrap()).collect();
            for (p, &sample) in (0..).zip(&found) {
                assert_eq!(order.position_of(sample), Some(p), "{mode:?} {n}");
            }
            assert_eq!((order.sample_at(n), order.position_of(n)), (None, None));
            found.sort_unstable();
            assert!(found.into_iter().eq(0..n), "{mode:?} {n}");
        }
    }
}

#[test]
fn a_window_has_the_samples_of_its_runs() {
    // 103 samples in runs of 10: one run has 3
    for epoch in 0..50 {
        let order = EpochOrder::new(windowed(10, 4, 1), 103, 1, epoch);
        let samples: Vec<u64> = (0..103).map(|p| order.sample_at(p).unwrap()).collect();
        let mut runs_before = Vec::new();
        let mut start = 0;
        while start < 103 {
            // a window has 40 samples, or 33 with the short run; the last window has 3 runs
            let full = if runs_before.len() < 8 { 4 } else { 3 };
            let end = [full * 10, full * 10 - 7].map(|length| start + length).into_iter().find(|&end| {
                let Some(window) = samples.get(start..end) else { return false };
                let mut runs: Vec<u64> = window.iter().map(|sample| sample / 10).collect();
                runs.sort_unstable();
                runs.dedup();
                runs.len() == full
                    && runs.iter().all(|run| !runs_before.contains(run))
                    && window.len() == runs.iter().map(|&run| if run == 10 { 3 } else { 10 }).sum::<usize>()
            });
            let end = end.expect("a window of whole runs");
            let mut runs: Vec<u64> = samples[start..end].iter().map(|sample| sample / 10).collect();
            runs.sort_unstable();
            runs.dedup();
            runs_before.extend(runs);
            start = end;
        }
    }
}

#[test]
fn seed_and_epoch_are_not_added() {
    for mode in [Order::Shuffled, windowed(4, 8, 1), windowed(4, 8, 4)] {
        let order = |seed, epoch| {
            let order = EpochOrder::new(mode, 1000, seed, epoch);
            (0..1000).map(|p| order.sample_at(p).unwrap()).collect::<Vec<u64>>()
        };
        assert_eq!(order(1, 2), order(1, 2));
        for (seed, epoch) in [(2, 1), (0, 3), (3, 0), (1, 1), (2, 2)] {
            let same = order(1, 2).iter().zip(order(seed, epoch)).filter(|(a, b)| **a == *b).count();
            assert!(same < 20, "{mode:?} {seed} {epoch}: {same} samples at the same position");
        }
    }
}

proptest! {
    #[test]
    fn position_and_sample_are_found_from_each_other(
        mode in any_mode(), n in prop_oneof![1..10_000_u64, Just(1_000_000_000_000), Just(1 << 63), 1..1_u64 << 63],
        seed: u64, epoch: u64, p: u64,
    ) {
        let order = EpochOrder::new(mode, n, seed, epoch);
        let p = p % n;
        let sample = order.sample_at(p);
        prop_assert!(sample.is_some_and(|sample| sample < n));
        prop_assert_eq!(sample.and_then(|sample| order.position_of(sample)), Some(p));
        prop_assert_eq!(order.position_of(p).and_then(|position| order.sample_at(position)), Some(p));
    }

    #[test]
    fn many_positions_are_replaced_as_each_of_them(
        mode in any_mode(), n in prop_oneof![1..10_000_u64, Just(1 << 63), 1..1_u64 << 63], seed: u64,
        start: u64, count in 0..1000_u64, scattered in proptest::collection::vec(any::<u64>(), 0..40),
    ) {
        let order = EpochOrder::new(mode, n, seed, 1);
        let start = start % n;
        let mut found: Vec<u64> = (start..n.min(start + count)).chain(scattered.iter().map(|p| p % n)).collect();
        let expected: Vec<u64> = found.iter().map(|&p| order.sample_at(p).unwrap()).collect();
        order.replace_with_samples(&mut found).unwrap();
        prop_assert_eq!(&found, &expected);
        found.push(n);
        let before = found.clone();
        prop_assert!(order.replace_with_samples(&mut found).is_err());
        prop_assert_eq!(found, before);
    }

    #[test]
    fn orders_of_too_many_samples_do_not_panic(mode in any_mode(), n: u64, p: u64) {
        let order = EpochOrder::new(mode, n, 0, 0);
        let _ = (order.sample_at(p), order.position_of(p));
    }
}
