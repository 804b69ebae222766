//! Divides groups into classes whose bins are alike: Lloyd's algorithm, with the bits that a group
//! costs with the frequencies of a class as the distance.

use super::class_codes::ClassCodes;
use super::frequencies::{Counts, Frequencies};
use crate::kernel::bins::{BINS, CLASSES, GROUP};

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
    /// Groups in the order of their mean bins.
    order: Vec<usize>,
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
        for group in blocks.flat_map(|bins| bins.chunks(GROUP)) {
            let mut counts = [0; BINS];
            group.iter().for_each(|&bin| counts[usize::from(bin) % BINS] += 1); // in bounds
            self.groups.push(counts);
        }
        let mean = |counts: &GroupCounts| {
            let count: i32 = counts.iter().map(|&count| i32::from(count)).sum();
            let sum: i32 = (0..).zip(counts).map(|(bin, &count)| bin * i32::from(count)).sum();
            sum as f32 / count.max(1) as f32
        };
        let mut means: Vec<(f32, usize)> = self.groups.iter().map(mean).zip(0..).collect();
        means.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.order.clear();
        self.order.extend(means.into_iter().map(|(_, group)| group));
    }

    /// Sets `self.tried` to a class for each group.
    fn assign(&mut self, class_count: usize) {
        let Self { groups, order, tried, .. } = self;
        tried.clear();
        tried.resize(groups.len(), 0);
        for (rank, &group) in order.iter().enumerate() {
            // in bounds: one of all; below 16
            tried[group] = (rank * class_count / groups.len()) as u8;
        }
        if class_count == 1 {
            return;
        }
        for _ in 0..ROUNDS {
            let costs: Vec<GroupCounts> = sums(groups, tried, class_count).iter().map(costs).collect();
            for (class, group) in tried.iter_mut().zip(&*groups) {
                let cost = |costs: &GroupCounts| -> i32 {
                    costs.iter().zip(group).map(|(&cost, &count)| i32::from(cost) * i32::from(count)).sum()
                };
                let nearest = (0..).zip(&costs).min_by_key(|(_, costs)| cost(costs));
                *class = nearest.map_or(0, |(nearest, _)| nearest);
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
