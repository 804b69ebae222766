//! Frequencies of bins, and the classes of groups whose bins are alike.
//!
//! rANS codes a bin by its frequency; the frequencies of a class add up to 256. If a part has
//! regions that differ, such as background and signal, one table of frequencies fits none of them
//! well, so a group of 64 elements names one of up to four classes. Writers assign groups by
//! Lloyd's algorithm, with the bits that a group costs with the frequencies of a class as the
//! distance, and keep one class for all if codes and tables cost more than several save.

use crate::codec::bits::ClassCodes;
use crate::kernel::bins::{
    BINS, CLASSES, GROUP,
    costs::{self, BinCosts, ClassSums, GroupCounts},
};

/// The number of times that each bin occurs.
pub(super) type Counts = [u32; BINS];

/// Bins that have a frequency in a class: the first of them, and the frequencies up to the last.
#[derive(Clone, Debug)]
pub(super) struct Frequencies {
    of: [u8; BINS],
}

/// The sum of the frequencies of a class.
const SUM: u32 = 256;

impl Frequencies {
    /// Returns frequencies that code `counts` in about the fewest bits. Every bin that occurs has
    /// one, and at least two bins have one.
    pub(super) fn of(counts: &Counts) -> Self {
        let total: u64 = counts.iter().copied().map(u64::from).sum();
        let mut of = counts.map(|count| {
            // at most 256
            let share = (u64::from(count) * u64::from(SUM)).checked_div(total).unwrap_or(0) as u32;
            if count == 0 { 0 } else { share.max(1) }
        });
        add_up(&mut of, counts);
        Self::with_two(of)
    }

    /// Gives a second bin a frequency if one has all, or if none has any.
    fn with_two(mut of: [u32; BINS]) -> Self {
        if let Some(all) = of.iter().position(|&frequency| frequency == SUM) {
            of = [0; BINS];
            of[all] = SUM - 1; // in bounds: a bin
            of[if all == 0 { 1 } else { all - 1 }] = 1; // in bounds: there are 64
        }
        if of == [0; BINS] {
            (of[0], of[1]) = (SUM - 1, 1);
        }
        Self { of: of.map(|frequency| frequency as u8) } // exact: below 256
    }

    pub(super) fn bits(&self, counts: &Counts) -> f32 {
        let bits = |(&count, &frequency): (&u32, &u8)| match count {
            0 => 0.0,
            _ => count as f32 * (8.0 - f32::from(frequency).log2()),
        };
        counts.iter().zip(&self.of).map(bits).sum()
    }

    /// Returns the first bin that has a frequency, and the frequencies from it to the last one.
    pub(super) fn range(&self) -> (usize, &[u8]) {
        let has_one = |&frequency: &u8| frequency > 0;
        let first = self.of.iter().position(has_one).unwrap_or(0);
        let end = self.of.iter().rposition(has_one).map_or(0, |last| last + 1);
        (first, self.of.get(first..end).unwrap_or(&[]))
    }
}

/// Adds to the frequencies, or takes from them, until they add up to [`SUM`].
fn add_up(of: &mut [u32; BINS], counts: &Counts) {
    let mut sum: u32 = of.iter().sum();
    // the bits that one more saves are about in proportion
    let gain = |count: u32, frequency: u32| count as f32 / (frequency as f32 + 0.5);
    let mut gains = map(counts, of, gain);
    while sum < SUM {
        let most = best(&gains, |gain, most| gain >= most);
        // in bounds: bins
        if counts[most] == 0 {
            break; // all are
        }
        of[most] += 1;
        gains[most] = gain(counts[most], of[most]);
        sum += 1;
    }
    let loss = |count: u32, frequency: u32| match frequency {
        0..=1 => f32::INFINITY,
        _ => count as f32 / (frequency as f32 - 0.5),
    };
    let mut losses = map(counts, of, loss);
    while sum > SUM {
        let least = best(&losses, |loss, least| loss < least);
        // in bounds: bins
        of[least] -= 1; // more than 1, since there are fewer bins than their sum
        losses[least] = loss(counts[least], of[least]);
        sum -= 1;
    }
}

fn map(counts: &Counts, of: &[u32; BINS], value: impl Fn(u32, u32) -> f32) -> [f32; BINS] {
    std::array::from_fn(|bin| value(counts[bin], of[bin])) // in bounds: a bin
}

/// Returns the index of the value that no later one is better than.
fn best(values: &[f32; BINS], is_better: impl Fn(f32, f32) -> bool) -> usize {
    let mut best = (0, values[0]);
    for (bin, &value) in values.iter().enumerate() {
        if is_better(value, best.1) {
            best = (bin, value);
        }
    }
    best.0
}

/// Bins whose counts a vector has.
const OCTET: usize = 8;

/// Groups whose costs are computed together.
const TOGETHER: usize = 64;

const ROUNDS: usize = 3;
/// The count that is added to each of a class, so that a bin that it has not costs some bits, not
/// infinitely many.
const ADDED: f32 = 0.02;
/// The unit of costs is a bit divided by this. A cost is below 64 bits or 2^13 units, and that of a
/// group at most 2^19.
const UNITS: f32 = 128.0;

/// The classes of the groups of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct Classes {
    groups: Vec<GroupCounts>,
    /// The vectors of the counts of a group that are in use.
    octets: usize,
    /// Groups in the order of their mean bins: the number of each, below the bits of the mean.
    order: Vec<u64>,
    tried: Vec<u8>,
    /// The class of each group.
    pub class_of: Vec<u8>,
    /// The frequencies of each class.
    pub frequencies: Vec<Frequencies>,
}

impl Classes {
    /// Chooses one class for all groups of the bins of these blocks or, if there may be several and
    /// that takes fewer bits, [`CLASSES`].
    pub(crate) fn choose<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>, may_have_classes: bool) {
        self.count(blocks);
        let mut least = f32::INFINITY;
        let class_counts: &[usize] = if may_have_classes { &[1, CLASSES] } else { &[1] };
        for &class_count in class_counts {
            self.assign(class_count);
            let (bits, frequencies) = self.cost(class_count);
            if bits < least {
                least = bits;
                self.frequencies = frequencies;
                std::mem::swap(&mut self.class_of, &mut self.tried);
            }
        }
    }

    fn count<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>) {
        self.groups.clear();
        self.order.clear();
        let mut most = 0;
        for (i, group) in (0..).zip(blocks.flat_map(|bins| bins.chunks(GROUP))) {
            let mut sum = 0;
            for &bin in group {
                most = bin.max(most);
                sum += u32::from(bin); // at most 64 bins below 64
            }
            let mean = sum as f32 / group.len() as f32;
            // the bits of floats that are not negative are in their order
            self.order.push(u64::from(mean.to_bits()) << 32 | i);
            self.groups.push(count(group));
        }
        self.octets = usize::from(most) / OCTET + 1;
        self.order.sort_unstable();
    }

    fn assign(&mut self, class_count: usize) {
        let Self { groups, octets, order, tried, .. } = self;
        tried.clear();
        tried.resize(groups.len(), 0);
        for (rank, &group) in order.iter().enumerate() {
            let Some(class) = tried.get_mut(group as u32 as usize) else { continue }; // lower bits
            *class = (rank * class_count / groups.len()) as u8; // below 4
        }
        if class_count == 1 {
            return;
        }
        for _ in 0..ROUNDS {
            assign_to_nearest(&class_costs(&sums(groups, *octets, tried, class_count)), groups, tried);
        }
    }

    fn cost(&self, class_count: usize) -> (f32, Vec<Frequencies>) {
        let codes = ClassCodes::new(class_count).bytes(self.tried.len()).unwrap_or(usize::MAX);
        let mut bits = 8.0 * codes as f32;
        let mut frequencies = Vec::with_capacity(class_count);
        for counts in sums(&self.groups, self.octets, &self.tried, class_count) {
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

fn sums(groups: &[GroupCounts], octets: usize, class_of: &[u8], class_count: usize) -> Vec<Counts> {
    let mut sums = vec![[0; BINS]; class_count];
    for (group, &class) in groups.iter().zip(class_of) {
        let Some(sum) = sums.get_mut(usize::from(class)) else { continue };
        for (sums, counts) in sum.as_chunks_mut::<OCTET>().0.iter_mut().zip(group.as_chunks::<OCTET>().0).take(octets) {
            // fewer than 2^32 in all
            sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += u32::from(count));
        }
    }
    sums
}

/// The costs of no bins: the class, in the lowest two bits. The units are in the other bits, so the
/// minimum of the costs names the first class with the fewest units.
const NONE: ClassSums = [0.0, 1.0, 2.0, 3.0];

/// Returns the costs of bins in classes with these counts. Sums are below 2^24, so they are exact.
fn class_costs(classes: &[Counts]) -> BinCosts {
    let mut costs = [[0.0; CLASSES]; BINS];
    for (class, counts) in classes.iter().enumerate().take(CLASSES) {
        let total: f32 = counts.iter().map(|&count| count as f32 + ADDED).sum();
        for (costs, &count) in costs.iter_mut().zip(counts) {
            let units = (-((count as f32 + ADDED) / total).log2() * UNITS) as i16; // below 2^13
            costs[class] = f32::from(units) * CLASSES as f32; // in bounds
        }
    }
    costs
}

/// Sets the class of each group to the one in which its bins cost the least.
fn assign_to_nearest(costs: &BinCosts, groups: &[GroupCounts], class_of: &mut [u8]) {
    for (classes, groups) in class_of.chunks_mut(TOGETHER).zip(groups.chunks(TOGETHER)) {
        let mut sums = [NONE; TOGETHER];
        costs::best().add(costs, groups, &mut sums);
        for (class, sums) in classes.iter_mut().zip(sums) {
            let least = sums.into_iter().fold(f32::INFINITY, |least, sum| if sum < least { sum } else { least });
            *class = (least as u32 % CLASSES as u32) as u8; // below 4
        }
    }
}
