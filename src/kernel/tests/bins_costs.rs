//! Costs of groups in classes.

use super::support::Random;
use crate::kernel::bins::costs::{GroupCounts, available};
use crate::kernel::bins::{BINS, CLASSES};

/// Returns groups of 64 bins each.
fn groups(random: &mut Random, count: usize) -> Vec<GroupCounts> {
    let mut groups = vec![[0; BINS]; count];
    for group in &mut groups {
        (0..64).for_each(|_| group[usize::from(random.byte()) % BINS] += 1);
    }
    groups
}

#[test]
fn every_kernel_adds_the_same_costs() {
    for count in if cfg!(miri) { 0..3 } else { 0..70 } {
        let mut random = Random::new(count);
        let groups = groups(&mut random, count);
        // below 2^17
        let costs = std::array::from_fn(|_| std::array::from_fn(|_| (random.next() >> 47) as f32));
        let before = f32::from(random.byte());
        let mut due = vec![[before; CLASSES]; count];
        for (group, sums) in groups.iter().zip(&mut due) {
            for (costs, &count) in costs.iter().zip(group) {
                sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost * f32::from(count));
            }
        }
        for kernel in available() {
            let mut found = vec![[before; CLASSES]; count];
            kernel.add(&costs, &groups, &mut found);
            assert_eq!(found, due, "{} {count}", kernel.name());
        }
    }
}

#[test]
fn groups_that_both_have() {
    for kernel in available() {
        let groups = [[1; BINS]; 3];
        let mut sums = [[0.0; CLASSES]; 2];
        kernel.add(&[[1.0; CLASSES]; BINS], &groups, &mut sums);
        kernel.add(&[[1.0; CLASSES]; BINS], &groups[..1], &mut sums);
        assert_eq!(sums, [[128.0; CLASSES], [64.0; CLASSES]], "{}", kernel.name());
    }
}
