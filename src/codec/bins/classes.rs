//! Divides groups into classes whose bins are alike: Lloyd's algorithm, with the bits that a group
//! costs with the frequencies of a class as the distance.

use super::class_codes::ClassCodes;
use super::frequencies::{Counts, Frequencies};
use crate::kernel::bins::{BINS, CLASSES, GROUP};
use crate::le::u64_of;

/// The number of times that each bin occurs in a group.
type GroupCounts = [i16; BINS];

/// Rounds of the algorithm.
const ROUNDS: usize = 3;
/// The count that is added to each of a class, so that a bin that it has not costs some bits, not
/// infinitely many.
const ADDED: f32 = 0.02;
/// The unit of costs is a bit divided by this. A cost is below 32 bits, and a group below 2^18.
const UNITS: f32 = 128.0;

/// The classes of the groups of a part, in memory that is reused.
#[derive(Default)]
pub(in crate::codec) struct Classes {
    groups: Vec<GroupCounts>,
    /// Groups in the order of their mean bins: the number of each, below the bits of the mean.
    order: Vec<u64>,
    tried: Vec<u8>,
    /// The class of each group.
    pub class_of: Vec<u8>,
    /// The frequencies of each class.
    pub frequencies: Vec<Frequencies>,
}

impl Classes {
    /// Chooses up to `most` classes for the groups of bins, whose blocks are given. Returns the
    /// bits that bins and classes cost.
    pub(in crate::codec) fn choose<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>, most: usize) -> f32 {
        self.count(blocks);
        let mut least = f32::INFINITY;
        let mut class_count = 1;
        while class_count <= most.min(CLASSES) {
            self.assign(class_count);
            let (bits, frequencies) = self.cost(class_count);
            if bits >= least {
                break; // more would hardly help
            }
            least = bits;
            self.frequencies = frequencies;
            std::mem::swap(&mut self.class_of, &mut self.tried);
            class_count *= 4;
        }
        least
    }

    fn count<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>) {
        self.groups.clear();
        self.order.clear();
        for group in blocks.flat_map(|bins| bins.chunks(GROUP)) {
            let sum: u32 = group.iter().map(|&bin| u32::from(bin)).sum();
            let mean = sum as f32 / group.len() as f32;
            // the bits of floats that are not negative are in their order; fewer than 2^32 groups
            self.order.push(u64::from(mean.to_bits()) << 32 | u64_of(self.groups.len()));
            self.groups.push(count(group));
        }
        self.order.sort_unstable();
    }

    /// Sets `self.tried` to a class for each group.
    fn assign(&mut self, class_count: usize) {
        let Self { groups, order, tried, .. } = self;
        tried.clear();
        tried.resize(groups.len(), 0);
        for (rank, &group) in order.iter().enumerate() {
            let Some(class) = tried.get_mut(group as u32 as usize) else { continue }; // the lower half
            *class = (rank * class_count / groups.len()) as u8; // below 16
        }
        if class_count == 1 {
            return;
        }
        for _ in 0..ROUNDS {
            let costs: Vec<GroupCounts> = sums(groups, tried, class_count).iter().map(costs).collect();
            for (class, group) in tried.iter_mut().zip(&*groups) {
                *class = nearest(&costs, group);
            }
        }
    }

    /// Returns the bits of `self.tried`, and the frequencies of its classes.
    fn cost(&self, class_count: usize) -> (f32, Vec<Frequencies>) {
        let codes = ClassCodes::new(class_count).bytes(self.groups.len()).unwrap_or(usize::MAX);
        let mut bits = 8.0 * codes as f32;
        let mut frequencies = Vec::with_capacity(class_count);
        for counts in sums(&self.groups, &self.tried, class_count) {
            let class = Frequencies::of(&counts);
            bits += class.bits(&counts) + 8.0 * (2 + class.range().1.len()) as f32;
            frequencies.push(class);
        }
        (bits, frequencies)
    }
}

/// Counts the bins of a group. Each has two counters, so that equal bins in a row do not wait for
/// each other.
fn count(bins: &[u8]) -> GroupCounts {
    let [mut counts, mut others] = [[0; BINS]; 2];
    let (pairs, rest) = bins.as_chunks();
    for &[bin, other] in pairs {
        // in bounds
        counts[usize::from(bin) % BINS] += 1;
        others[usize::from(other) % BINS] += 1;
    }
    rest.iter().for_each(|&bin| counts[usize::from(bin) % BINS] += 1); // in bounds
    counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
    counts
}

/// Returns the first of the classes in which a group costs the least.
fn nearest(costs: &[GroupCounts], group: &GroupCounts) -> u8 {
    let cost = |costs: &GroupCounts| -> i32 {
        costs.iter().zip(group).map(|(&cost, &count)| i32::from(cost) * i32::from(count)).sum()
    };
    let (mut nearest, mut least) = (0, i32::MAX);
    for (class, costs) in (0..).zip(costs) {
        let cost = cost(costs);
        if cost < least {
            (nearest, least) = (class, cost);
        }
    }
    nearest
}

/// Returns the counts of the groups of each class.
fn sums(groups: &[GroupCounts], class_of: &[u8], class_count: usize) -> Vec<Counts> {
    let mut sums = vec![[0; BINS]; class_count];
    for (group, &class) in groups.iter().zip(class_of) {
        let Some(sum) = sums.get_mut(usize::from(class)) else { continue };
        // counts are not negative, and fewer than 2^32 in all
        sum.iter_mut().zip(group).for_each(|(sum, &count)| *sum += u32::from(count.unsigned_abs()));
    }
    sums
}

/// Returns what each bin costs in a class with these counts.
fn costs(counts: &Counts) -> GroupCounts {
    let total: f32 = counts.iter().map(|&count| count as f32 + ADDED).sum();
    // below 32 bits: 2^12
    counts.map(|count| (-((count as f32 + ADDED) / total).log2() * UNITS) as i16)
}
