//! Views have the samples that they promise.

use proptest::prelude::*;
use tensilo_data::{Component, Mixture, Split};

fn samples(split: &Split) -> Vec<u64> {
    (0..split.sample_count()).map(|v| split.sample(v).unwrap()).collect()
}

fn component(samples: u64, weight: u32) -> Component {
    Component { dataset_id: [0; 16], view_id: 0, sample_count: samples, weight }
}

proptest! {
    #[test]
    fn splits_divide_a_dataset(n in 0..3000_u64, seed: u64, cut in 1..Split::END) {
        let [first, second] = [0..cut, cut..Split::END].map(|hashes| Split::new(n, seed, hashes).unwrap());
        let mut both = samples(&first);
        prop_assert!(both.is_sorted());
        both.extend(samples(&second));
        both.sort_unstable();
        prop_assert!(both.into_iter().eq(0..n));
        prop_assert_eq!((first.sample(first.sample_count()), second.sample(u64::MAX)), (None, None));
        prop_assert_ne!(first.identity(), second.identity());
    }

    #[test]
    fn a_split_keeps_its_samples_when_others_are_added(n in 0..1000_u64, more in 0..1000_u64, seed: u64) {
        let [before, after] = [n, n + more].map(|n| samples(&Split::new(n, seed, 0..Split::END / 20 * 19).unwrap()));
        prop_assert!(after.into_iter().take_while(|&sample| sample < n).eq(before));
    }

    #[test]
    fn a_mixture_has_its_shares(weights in prop::collection::vec(1..20_u32, 1..5), n in 100..20_000_u64, epoch: u64, run in 1..100_u32) {
        let components: Vec<Component> = weights.iter().map(|&weight| component(u64::from(weight) * 37, weight)).collect();
        let mixture = Mixture::new(&components, n, 3, run).unwrap();
        let mut counts = vec![0_u64; weights.len()];
        for v in 0..n {
            let (number, sample) = mixture.sample(v, epoch).unwrap();
            prop_assert!(sample < components[number].sample_count);
            counts[number] += 1;
        }
        let all: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        for (count, &weight) in counts.iter().zip(&weights) {
            prop_assert!(count.abs_diff(n * u64::from(weight) / all) <= n / 4096 + 1);
        }
    }
}

#[test]
fn a_component_is_gone_round_evenly() {
    let mixture = Mixture::new(&[component(1000, 1), component(7, 1)], 300, 5, 4).unwrap();
    let mut counts = [vec![0; 1000], vec![0; 7]];
    // an epoch has 150 samples of each component
    for epoch in 0..70 {
        for v in 0..300 {
            let (number, sample) = mixture.sample(v, epoch).unwrap();
            counts[number][sample as usize] += 1;
        }
    }
    assert!(counts[0].iter().all(|count| [10, 11].contains(count)), "{counts:?}");
    assert_eq!(counts[1], [1500; 7]);
}

#[test]
fn bad_views_are_refused() {
    assert!(Split::new(10, 0, 5..5).is_err());
    assert!(Split::new(10, 0, 0..Split::END + 1).is_err());
    assert!(Split::new(u64::MAX, 0, 0..1).is_err());
    for components in
        [vec![], vec![component(1, 0)], vec![component(0, 1)], vec![component(1, 1), component(1, u32::MAX)]]
    {
        assert!(Mixture::new(&components, 10, 0, 1).is_err(), "{components:?}");
    }
    assert!(Mixture::new(&[component(1, 1)], 10, 0, 0).is_err());
}
