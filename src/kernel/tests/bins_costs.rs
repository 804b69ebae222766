//! Costs of groups in classes.

use super::support::Random;
use crate::kernel::bins::BINS;
use crate::kernel::bins::costs::{BinCosts, GroupCounts, available};

/// Returns groups of 64 bins each.
fn groups(random: &mut Random, count: usize) -> Vec<GroupCounts> {
    let mut groups = vec![[0; BINS]; count];
    for group in &mut groups {
        (0..64).for_each(|_| group[usize::from(random.byte()) % BINS] += 1);
    }
    groups
}

/// Returns random costs below 2^17.
fn costs<const N: usize>(random: &mut Random) -> BinCosts<N> {
    std::array::from_fn(|_| std::array::from_fn(|_| (random.next() >> 47) as f32))
}

#[test]
fn every_kernel_adds_the_same_costs() {
    for count in if cfg!(miri) { 0..3 } else { 0..70 } {
        let mut random = Random::new(count);
        let groups = groups(&mut random, count);
        let (of_4, of_16) = (costs(&mut random), costs(&mut random));
        let before = f32::from(random.byte());
        let mut due = (vec![[before; 4]; count], vec![[before; 16]; count]);
        for ((group, sums), all) in groups.iter().zip(&mut due.0).zip(&mut due.1) {
            for (bin, &count) in group.iter().enumerate() {
                sums.iter_mut().zip(of_4[bin]).for_each(|(sum, cost)| *sum += cost * f32::from(count));
                all.iter_mut().zip(of_16[bin]).for_each(|(sum, cost)| *sum += cost * f32::from(count));
            }
        }
        for kernel in available() {
            let mut found = (vec![[before; 4]; count], vec![[before; 16]; count]);
            kernel.add_4(&of_4, &groups, &mut found.0);
            kernel.add_16(&of_16, &groups, &mut found.1);
            assert_eq!(found, due, "{} {count}", kernel.name());
        }
    }
}

#[test]
fn groups_that_both_have() {
    for kernel in available() {
        let groups = [[1; BINS]; 3];
        let mut sums = [[0.0; 4]; 2];
        kernel.add_4(&[[1.0; 4]; BINS], &groups, &mut sums);
        kernel.add_4(&[[1.0; 4]; BINS], &groups[..1], &mut sums);
        assert_eq!(sums, [[128.0; 4], [64.0; 4]], "{}", kernel.name());
    }
}
