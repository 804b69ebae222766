//! Divides groups into classes whose bins are alike: Lloyd's algorithm, with the bits that a group
//! costs with the frequencies of a class as the distance.

use super::class_codes::ClassCodes;
use super::frequencies::{Counts, Frequencies};
use crate::kernel::bins::costs::{self, BinCosts, GroupCounts};
use crate::kernel::bins::{BINS, CLASSES, GROUP};

/// Bins whose counts a vector has.
const OCTET: usize = 8;

/// Groups whose costs are computed together.
const TOGETHER: usize = 64;

/// Rounds of the algorithm.
const ROUNDS: usize = 3;
/// The count that is added to each of a class, so that a bin that it has not costs some bits, not
/// infinitely many.
const ADDED: f32 = 0.02;
/// The unit of costs is a bit divided by this. A cost is below 64 bits or 2^13 units, and that of a
/// group at most 2^19.
const UNITS: f32 = 128.0;

/// The classes of the groups of a part, in memory that is reused.
#[derive(Default)]
pub(in crate::codec) struct Classes {
    groups: Vec<GroupCounts>,
    /// The place of each group in `class_of`.
    places: Vec<u32>,
    /// The sum of the bins of each place, and their number.
    means: Vec<(u32, u32)>,
    /// The vectors of the counts of a group that are in use.
    octets: usize,
    /// Places in the order of their mean bins: the number of each, below the bits of the mean.
    order: Vec<u64>,
    tried: Vec<u8>,
    /// The class of each group or, if they repeat, of each group of the longest block.
    pub class_of: Vec<u8>,
    /// The frequencies of each class.
    pub frequencies: Vec<Frequencies>,
}

impl Classes {
    /// Chooses up to `most` classes for the groups of bins, whose blocks are given. If classes
    /// repeat, groups at the same place of their blocks have the same class. Returns the bits that
    /// bins and classes cost.
    pub(in crate::codec) fn choose<'b>(
        &mut self,
        blocks: impl Iterator<Item = &'b [u8]>,
        most: usize,
        repeat: bool,
    ) -> f32 {
        self.count(blocks, repeat);
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

    fn count<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>, repeat: bool) {
        self.groups.clear();
        self.places.clear();
        self.means.clear();
        let mut most = 0;
        for (in_block, group) in blocks.flat_map(|bins| bins.chunks(GROUP).enumerate()) {
            most = group.iter().fold(most, |most, &bin| bin.max(most));
            let place = if repeat { in_block } else { self.groups.len() };
            self.means.resize(self.means.len().max(place + 1), (0, 0));
            if let Some((sum, count)) = self.means.get_mut(place) {
                // below 2^32: a bin is below 64, and a part has fewer than 2^26 elements
                *sum += group.iter().map(|&bin| u32::from(bin)).sum::<u32>();
                *count += group.len() as u32; // at most 64
            }
            self.places.push(place as u32); // exact, as above
            self.groups.push(count(group));
        }
        self.octets = usize::from(most) / OCTET + 1;
        self.order.clear();
        let means = self.means.iter().map(|&(sum, count)| sum as f32 / count.max(1) as f32);
        // the bits of floats that are not negative are in their order
        self.order.extend((0..).zip(means).map(|(place, mean)| u64::from(mean.to_bits()) << 32 | place));
        self.order.sort_unstable();
    }

    /// Sets `self.tried` to a class for each place.
    fn assign(&mut self, class_count: usize) {
        let Self { groups, places, octets, order, tried, .. } = self;
        let place_count = order.len();
        tried.clear();
        tried.resize(place_count, 0);
        for (rank, &place) in order.iter().enumerate() {
            let Some(class) = tried.get_mut(place as u32 as usize) else { continue }; // lower bits
            *class = (rank * class_count / place_count) as u8; // below 16
        }
        if class_count == 1 {
            return;
        }
        for _ in 0..ROUNDS {
            let sums = sums(groups, places, *octets, tried, class_count);
            match class_count {
                0..=4 => {
                    let add = |costs: &_, groups: &[_], sums: &mut [_]| costs::best().add_4(costs, groups, sums);
                    ClassCosts::new(&sums).assign(add, groups, places, tried);
                }
                _ => {
                    let add = |costs: &_, groups: &[_], sums: &mut [_]| costs::best().add_16(costs, groups, sums);
                    ClassCosts::new(&sums).assign(add, groups, places, tried);
                }
            }
        }
    }

    /// Returns the bits of `self.tried`, and the frequencies of its classes.
    fn cost(&self, class_count: usize) -> (f32, Vec<Frequencies>) {
        let codes = ClassCodes::new(class_count).bytes(self.tried.len()).unwrap_or(usize::MAX);
        let mut bits = 8.0 * codes as f32;
        let mut frequencies = Vec::with_capacity(class_count);
        for counts in sums(&self.groups, &self.places, self.octets, &self.tried, class_count) {
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

/// Returns the counts of the groups of each class.
fn sums(groups: &[GroupCounts], places: &[u32], octets: usize, class_of: &[u8], class_count: usize) -> Vec<Counts> {
    let mut sums = vec![[0; BINS]; class_count];
    for (group, &place) in groups.iter().zip(places) {
        let class = class_of.get(place as usize).copied().unwrap_or(0); // exact
        let Some(sum) = sums.get_mut(usize::from(class)) else { continue };
        for (sums, counts) in sum.as_chunks_mut::<OCTET>().0.iter_mut().zip(group.as_chunks::<OCTET>().0).take(octets) {
            // fewer than 2^32 in all
            sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += u32::from(count));
        }
    }
    sums
}

/// The costs of bins in up to `N` classes.
///
/// A number has the units in all bits but the lowest four, and the class in these: the least of
/// several is the first that costs the least. Sums are below 2^24, so that they are exact.
struct ClassCosts<const N: usize> {
    /// The cost of no bins.
    none: [f32; N],
    /// The cost of each bin, without the class.
    bins: BinCosts<N>,
}

impl<const N: usize> ClassCosts<N> {
    /// Returns the costs in classes with these counts, at most `N`.
    fn new(classes: &[Counts]) -> Self {
        let mut costs = Self { none: [f32::INFINITY; N], bins: [[0.0; N]; BINS] };
        for (class, counts) in classes.iter().enumerate().take(N) {
            costs.none[class] = class as f32; // in bounds, and exact
            let total: f32 = counts.iter().map(|&count| count as f32 + ADDED).sum();
            for (costs, &count) in costs.bins.iter_mut().zip(counts) {
                let units = (-((count as f32 + ADDED) / total).log2() * UNITS) as i16; // below 2^13
                costs[class] = f32::from(units) * CLASSES as f32; // in bounds
            }
        }
        costs
    }

    /// Sets the class of each place to the nearest. `add` adds the costs of groups to their sums.
    fn assign(
        &self,
        add: impl Fn(&BinCosts<N>, &[GroupCounts], &mut [[f32; N]]),
        groups: &[GroupCounts],
        places: &[u32],
        class_of: &mut [u8],
    ) {
        if class_of.len() < groups.len() {
            return self.assign_repeated(add, groups, places, class_of);
        }
        for (classes, groups) in class_of.chunks_mut(TOGETHER).zip(groups.chunks(TOGETHER)) {
            let mut sums = [self.none; TOGETHER];
            add(&self.bins, groups, &mut sums);
            for (class, sums) in classes.iter_mut().zip(&mut sums) {
                *class = (least(sums) as u32 % CLASSES as u32) as u8; // below 16
            }
        }
    }

    /// Does the same if several groups have one place. Their sums may be too great to have the
    /// class in their lowest bits.
    fn assign_repeated(
        &self,
        add: impl Fn(&BinCosts<N>, &[GroupCounts], &mut [[f32; N]]),
        groups: &[GroupCounts],
        places: &[u32],
        class_of: &mut [u8],
    ) {
        let mut totals = vec![[0.0_f32; N]; class_of.len()];
        let mut groups = groups;
        // the places of the groups of a block follow each other
        for places in places.chunk_by(|before, place| before < place) {
            let in_block = groups.split_off(..places.len()).unwrap_or(&[]);
            for (groups, totals) in in_block.chunks(TOGETHER).zip(totals.chunks_mut(TOGETHER)) {
                // apart, because those of a group alone are exact in any order
                let mut sums = [[0.0; N]; TOGETHER];
                add(&self.bins, groups, &mut sums);
                for (totals, sums) in totals.iter_mut().zip(&sums).take(groups.len()) {
                    totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
                }
            }
        }
        for (class, sums) in class_of.iter_mut().zip(&totals) {
            let used = sums.iter().zip(self.none).filter(|(_, none)| none.is_finite());
            let nearest = used.enumerate().min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
            *class = nearest.map_or(0, |(nearest, _)| nearest as u8); // below 16
        }
    }
}

/// Returns the least of some sums, whose number is a power of two. Changes them.
fn least(sums: &mut [f32]) -> f32 {
    let mut rest = sums;
    while rest.len() > 1 {
        let (low, high) = rest.split_at_mut(rest.len() / 2); // a half
        low.iter_mut().zip(high).for_each(|(low, high)| *low = if *high < *low { *high } else { *low });
        rest = low;
    }
    rest.first().copied().unwrap_or(0.0)
}
