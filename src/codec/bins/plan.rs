//! The plan of a part: a combination of gaps, mapping, prediction and filters, and the bins,
//! classes and frequencies that code the resulting integers.
//!
//! `choice.rs` chooses a [`Combination`]. [`BinPlan`] then chooses windows, bins and classes for
//! the coded integers of all blocks, writes the tables, and encodes the blocks one by one. The next
//! chunk of a column tries the same combination first.
//!
//! *Bins* are intervals of 2^K values that begin at a multiple of their length, so that an offset
//! has K bits. [`Partition`] divides the window from the widest intervals down: an interval is
//! split if its halves, split in the same way, cost fewer bits. Each bin also costs a constant, for
//! its entry in the tables. This limits the number of bins. If there are still too many bins, the
//! constant is raised, and then lowered by bisection until there are about as many bins as allowed.
//!
//! *Classes* are for parts with different areas, such as background and signal, which no single
//! table of frequencies fits well. Each group of 64 elements names one of up to four classes.
//! [`Classes`] assigns groups by Lloyd's algorithm; the distance is the number of bits that a group
//! costs with the frequencies of a class. A single class is used if the codes and tables of several
//! classes cost more than they save.

use super::dictionaries::DictionaryOrder;
use super::filters::FilterPlan;
use super::mapping::{Bases, Mapping};
use super::multiples::{FloatMultiple, IntMultiple};
use super::options::{Gaps, Options, OutlierPlan, choose_low_bytes};
use super::tables::{Counts, Frequencies, TableFields, write_tables};
use crate::codec::{
    bits::ClassCodes,
    choice::{Search, Technique},
    part::Geometry,
    transform::Transform,
};
use crate::kernel::{
    Width,
    bins::{
        BINS, BinModel, CLASSES, GROUP,
        costs::{self, BinCosts, ClassSums, GroupCounts},
        encode::{self, BinEncoder},
    },
    predict::Prediction,
};
use crate::{Error, Result};
use std::mem::discriminant;
use std::ops::Range;

/// A combination with gaps or filters must be smaller by at least 1/N to win, because undoing them
/// takes time.
const SLOW_PENALTY_DIVISOR: usize = 128;

/// The mapping from elements to integers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbering {
    None,
    Dictionaries(Dictionaries),
    IntMultiple(IntMultiple, Bases),
    FloatMultiple(FloatMultiple, Bases),
}

/// The dictionaries of a numbering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dictionaries {
    pub order: DictionaryOrder,
    pub count: usize,
    /// The index of their plan in `EncodeScratch::dictionaries`.
    pub index: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination {
    pub has_gaps: bool,
    pub numbering: Numbering,
    pub transform: Transform,
    pub has_filters: bool,
    /// The estimated size of the whole part in bytes.
    pub bytes: f64,
}

impl Combination {
    /// Returns the cost of this combination if it needs `stored_bytes` bytes.
    pub(crate) fn cost(&self, stored_bytes: usize) -> usize {
        let is_slow = self.has_gaps || self.has_filters;
        stored_bytes + if is_slow { stored_bytes / SLOW_PENALTY_DIVISOR } else { 0 }
    }

    /// Returns whether another combination is the same, except for parameters that are fitted to a
    /// part.
    fn is_similar(&self, other: &Self) -> bool {
        let prediction = |of: &Self| match of.transform {
            Transform::Predict(Prediction { predictor, restart, stride }) => {
                Some((discriminant(&predictor), restart, stride))
            }
            _ => None,
        };
        (self.has_gaps, self.has_filters) == (other.has_gaps, other.has_filters)
            && discriminant(&self.numbering) == discriminant(&other.numbering)
            && prediction(self) == prediction(other)
    }

    /// Returns the same combination with one base for the part, if it has a base for each block.
    pub(crate) fn with_part_base(&self) -> Option<Self> {
        let numbering = match self.numbering {
            Numbering::IntMultiple(int_multiple, Bases::PerBlock) => {
                Numbering::IntMultiple(int_multiple, Bases::PerPart)
            }
            Numbering::FloatMultiple(float_multiple, Bases::PerBlock) => {
                Numbering::FloatMultiple(float_multiple, Bases::PerPart)
            }
            _ => return None,
        };
        Some(Self { numbering, ..*self })
    }
}

/// The combinations that probably encode a part in the fewest bytes, best first.
#[derive(Clone, Debug)]
pub(crate) struct BinChoice {
    pub(crate) finalists: Vec<Combination>,
    /// Whether the finalists were fitted to this part, not to an earlier part.
    pub(crate) is_fitted: bool,
}

impl BinChoice {
    pub(crate) fn bytes(&self) -> usize {
        self.finalists.first().map_or(usize::MAX, |best| best.bytes as usize) // the cast saturates
    }

    /// Returns whether the best combinations of both choices are alike.
    pub(crate) fn is_similar(&self, other: &Self) -> bool {
        let both = self.finalists.first().zip(other.finalists.first());
        both.is_some_and(|(best, other)| best.is_similar(other))
    }

    /// Returns a choice of one combination, to be fitted to other parts.
    pub(crate) fn of(combination: Combination) -> Self {
        Self { finalists: vec![combination], is_fitted: false }
    }
}

/// The plan of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct BinPlan {
    windows: Vec<[u8; 2]>,
    /// The bin of each window.
    bins: Vec<u8>,
    partition: Partition,
    classes: Classes,
    model: BinModel,
    encoder: BinEncoder,
    /// The number of bytes of an element that are below its window.
    low_bytes: usize,
    outliers: OutlierPlan,
}

/// A part, and the choices that its plan starts from.
pub(crate) struct PlanInput<'p> {
    pub mapping: &'p Mapping,
    pub gaps: Option<Gaps>,
    pub transform: Transform,
    pub filters: &'p FilterPlan,
    /// The geometry of the coded integers.
    pub geometry: &'p Geometry<'p>,
    /// The byte planes of the coded integers, the lowest one first.
    pub planes: &'p [&'p [u8]],
    pub search: Search,
}

impl BinPlan {
    /// Plans a part of elements of `width`. Appends the tables.
    pub(crate) fn plan(&mut self, part: &PlanInput<'_>, width: Width, tables: &mut Vec<u8>) -> Result<()> {
        self.set_windows(part);
        let value_bits = if part.planes.len() == 1 { 8 } else { 16 };
        self.partition.choose(&self.windows, value_bits);
        self.partition.bins_of(&self.windows, &mut self.bins);
        let in_blocks = part.geometry.block_ranges().map(|elements| self.bins.get(elements).unwrap_or(&[]));
        self.classes.choose(in_blocks, part.search.has(Technique::Classes));
        self.set_outliers(part);
        self.model.set_bins(&self.partition.bits);
        for (class, frequencies) in self.classes.frequencies.iter().enumerate() {
            let (first, frequencies) = frequencies.range();
            self.model.set_class(class, first, frequencies);
        }
        self.encoder.set_model(&self.model);
        let options = Options { gaps: part.gaps, outliers: self.outliers.outliers, filters: part.filters.filters };
        let (mapping, transform, low_bytes) = (part.mapping, part.transform, self.low_bytes);
        let fields = TableFields { width, mapping, options: &options, transform, low_bytes };
        write_tables(fields, &self.partition.bits, &self.classes.frequencies, tables)
    }

    /// Sets the windows to the highest plane that is not all zero and the plane below it, or to
    /// lower planes if it is cheaper to make a few integers outliers.
    fn set_windows(&mut self, part: &PlanInput<'_>) {
        let planes = part.planes;
        let is_used = |plane: &&[u8]| plane.iter().any(|&byte| byte != 0);
        let top = planes.iter().rposition(is_used).unwrap_or(0);
        self.low_bytes = match top {
            0 | 1 => 0,
            _ => choose_low_bytes(&count_lengths(planes.get(..=top).unwrap_or(planes)), part.search).0,
        };
        self.windows.clear();
        let Some(low) = planes.get(self.low_bytes) else { return };
        match planes.get(self.low_bytes + 1) {
            Some(high) => self.windows.extend(low.iter().zip(*high).map(|(&low, &high)| [low, high])),
            None => self.windows.extend(low.iter().map(|&low| [low, 0])),
        }
    }

    fn set_outliers(&mut self, part: &PlanInput<'_>) {
        self.outliers.clear();
        let above = part.planes.get(self.low_bytes + 2..).unwrap_or(&[]);
        if above.iter().all(|plane| plane.iter().all(|&byte| byte == 0)) {
            return;
        }
        for block in part.geometry.block_ranges() {
            let upper = |i: usize| {
                let bytes = above.iter().map(|plane| plane.get(block.start + i).copied().unwrap_or(0));
                bytes.rev().fold(0, |upper, byte| upper << 8 | u64::from(byte))
            };
            self.outliers.add_block(block.len(), upper);
        }
        self.outliers.finish();
    }

    /// Appends the block of these elements. `planes` are the byte planes for which the plan was
    /// made.
    pub(crate) fn encode<'p>(
        &mut self,
        geometry: &Geometry<'_>,
        planes: impl Iterator<Item = &'p [u8]>,
        (block, elements): (usize, &Range<usize>),
        stored: &mut Vec<u8>,
    ) -> Result<()> {
        self.outliers.append(block, stored);
        let groups_of = |block: Range<usize>| block.len().div_ceil(GROUP);
        let group_count = groups_of(elements.clone());
        let before = geometry.block_ranges().take(block).map(groups_of).sum();
        let classes = self.classes.class_of.get(before..before + group_count).unwrap_or(&[]);
        ClassCodes::new(self.classes.frequencies.len()).write(classes, stored);
        for plane in planes.take(self.low_bytes) {
            stored.extend_from_slice(plane.get(elements.clone()).unwrap_or(&[]));
        }
        let block = (self.windows.get(elements.clone()), self.bins.get(elements.clone()));
        let (Some(windows), Some(bins)) = block else { return Err(not_planned()) };
        match encode::best().encode(&mut self.encoder, classes, windows, bins, stored) {
            true => Ok(()),
            false => Err(not_planned()),
        }
    }
}

fn count_lengths(planes: &[&[u8]]) -> [u32; 65] {
    let mut counts = [0; 65];
    let count = planes.first().map_or(0, |plane| plane.len());
    for i in 0..count {
        let bytes = planes.iter().map(|plane| plane.get(i).copied().unwrap_or(0));
        let integer = bytes.rev().fold(0, |integer, byte| integer << 8 | u64::from(byte));
        let length = u64::BITS - integer.leading_zeros();
        counts[length as usize] += 1; // in bounds: at most 64
    }
    counts
}

#[cold]
fn not_planned() -> Error {
    Error::internal("a block has elements that bins were not planned for")
}

// ---- bins

/// The number of values of a window.
const WINDOW_VALUES: usize = 1 << 16;
/// The number of values that are skipped together if none of them occurs.
const COUNT_CHUNK: usize = 64;
/// The cost of a bin in the tables, in bits: `K`, and its frequencies in some classes.
const BIN_BITS: f32 = 60.0;
/// The number of steps of the bisection, which searches for the lowest cost per bin that keeps the
/// number of bins within the limit.
const BISECTIONS: usize = 4;
/// The bisection stops if the number of bins is below the limit by at most this many.
const BIN_SLACK: usize = 4;
/// The minimum share of all windows that estimates of costs assume for a bin. In the tables, the
/// minimum is 1/256.
const MIN_SHARE: f32 = 1.0 / 1024.0;

/// The bins of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct Partition {
    /// For each value, the number of windows below it.
    below: Vec<u32>,
    bin_of: Vec<u8>,
    /// `K` of each bin.
    pub bits: Vec<u8>,
    /// `K` of each bin of another partition that is tried.
    tried: Vec<u8>,
}

impl Partition {
    /// Chooses bins for `windows`, which must not be empty. `value_bits` is 16, or 8 if the
    /// elements are bytes.
    pub(crate) fn choose(&mut self, windows: &[[u8; 2]], value_bits: u32) {
        self.count(windows);
        let search = |bin_bits: f32, bits: &mut Vec<u8>| {
            bits.clear();
            // bins are never wider than half of all values
            let half = 1 << (value_bits - 1);
            let search = IntervalSearch { below: &self.below, total: windows.len() as f32, bin_bits };
            for start in [0, half] {
                search.best(start, value_bits - 1, bits);
            }
        };
        search(BIN_BITS, &mut self.bits);
        let (mut too_cheap, mut bin_bits) = (BIN_BITS, BIN_BITS);
        while self.bits.len() > BINS {
            (too_cheap, bin_bits) = (bin_bits, 1.5 * bin_bits + 8.0);
            search(bin_bits, &mut self.bits);
        }
        for _ in 0..BISECTIONS {
            if self.bits.len() > BINS - BIN_SLACK || too_cheap == bin_bits {
                break;
            }
            let middle = (too_cheap + bin_bits) / 2.0;
            search(middle, &mut self.tried);
            if self.tried.len() > BINS {
                too_cheap = middle;
            } else {
                bin_bits = middle;
                std::mem::swap(&mut self.bits, &mut self.tried);
            }
        }
        self.bin_of.resize(WINDOW_VALUES, 0);
        let mut start = 0;
        for (bin, &bits) in (0..).zip(&self.bits) {
            let end = start + (1 << bits);
            self.bin_of.get_mut(start..end).unwrap_or(&mut []).fill(bin);
            start = end;
        }
    }

    fn count(&mut self, windows: &[[u8; 2]]) {
        self.below.clear();
        self.below.resize(WINDOW_VALUES + 1, 0);
        let Some(counts) = self.below.last_chunk_mut::<WINDOW_VALUES>() else { return }; // unreachable: it has one more
        for &window in windows {
            counts[usize::from(u16::from_le_bytes(window))] += 1; // in bounds: 2^16 values
        }
        let mut sum = 0_u32;
        for counts in counts.as_chunks_mut::<COUNT_CHUNK>().0 {
            // most values do not occur, and vector instructions detect that faster than they
            // compute a sum
            if counts.iter().fold(0, |any, count| any | count) == 0 {
                counts.fill(sum);
                continue;
            }
            for count in counts {
                sum = sum.wrapping_add(*count); // fewer than 2^32 windows
                *count = sum;
            }
        }
    }

    pub(crate) fn bins_of(&self, windows: &[[u8; 2]], bins: &mut Vec<u8>) {
        bins.clear();
        // `None` if nothing was chosen
        let Some(bin_of) = self.bin_of.first_chunk::<WINDOW_VALUES>() else { return };
        // in bounds: 2^16 values
        bins.extend(windows.iter().map(|&window| bin_of[usize::from(u16::from_le_bytes(window))]));
    }
}

/// The search from the widest intervals to the narrowest.
struct IntervalSearch<'a> {
    below: &'a [u32],
    total: f32,
    bin_bits: f32,
}

impl IntervalSearch<'_> {
    fn count(&self, start: usize, end: usize) -> u32 {
        let below = |value| self.below.get(value).copied().unwrap_or(0);
        below(end) - below(start) // sums ascend
    }

    /// Appends `K` of each bin of an interval. Returns the cost of its windows with these bins, in
    /// bits.
    fn best(&self, start: usize, bits: u32, bins: &mut Vec<u8>) -> f32 {
        let count = self.count(start, start + (1 << bits));
        let whole = bins.len();
        bins.push(bits as u8); // exact: at most 15
        if count == 0 {
            return 0.0;
        }
        let count = count as f32;
        let share = (count / self.total).max(MIN_SHARE);
        let excess = (share - count / self.total) * self.total * std::f32::consts::LOG2_E;
        let cost = count * (bits as f32 - share.log2()) + excess + self.bin_bits;
        // splitting cannot save more than the bits of the offsets
        if bits == 0 || count * bits as f32 <= self.bin_bits {
            return cost;
        }
        bins.pop();
        let half = 1 << (bits - 1);
        let halves = self.best(start, bits - 1, bins) + self.best(start + half, bits - 1, bins);
        if halves < cost {
            return halves;
        }
        bins.truncate(whole);
        bins.push(bits as u8); // exact: at most 15
        cost
    }
}

// ---- classes

/// The number of bins whose counts fit in a vector.
const OCTET: usize = 8;

/// The number of groups whose costs are computed together.
const GROUP_BATCH: usize = 64;

const ROUNDS: usize = 3;
/// Added to each count of a class, so that a bin that does not occur in the class has a finite
/// cost.
const SMOOTHING_COUNT: f32 = 0.02;
/// Costs are in units of 1/N bit. The cost of a bin is below 64 bits, which are 2^13 units, and the
/// cost of a group is at most 2^19 units.
const UNITS_PER_BIT: f32 = 128.0;

/// The classes of the groups of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct Classes {
    groups: Vec<GroupCounts>,
    /// The number of vectors of counts that are in use.
    octets: usize,
    /// The groups in the order of their mean bins. The upper half of an entry has the bits of the
    /// mean, and the lower half the index of the group.
    order: Vec<u64>,
    tried: Vec<u8>,
    /// The class of each group.
    pub class_of: Vec<u8>,
    /// The frequencies of each class.
    pub frequencies: Vec<Frequencies>,
}

impl Classes {
    /// Chooses one class for all groups of these blocks or, if several classes are allowed and need
    /// fewer bits, [`CLASSES`] classes.
    pub(crate) fn choose<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>, may_have_classes: bool) {
        self.count(blocks);
        let mut min_cost = f32::INFINITY;
        let class_counts: &[usize] = if may_have_classes { &[1, CLASSES] } else { &[1] };
        for &class_count in class_counts {
            self.assign(class_count);
            let (bits, frequencies) = self.cost(class_count);
            if bits < min_cost {
                min_cost = bits;
                self.frequencies = frequencies;
                std::mem::swap(&mut self.class_of, &mut self.tried);
            }
        }
    }

    fn count<'b>(&mut self, blocks: impl Iterator<Item = &'b [u8]>) {
        self.groups.clear();
        self.order.clear();
        let mut max_bin = 0;
        for (i, group) in (0..).zip(blocks.flat_map(|bins| bins.chunks(GROUP))) {
            let mut sum = 0;
            for &bin in group {
                max_bin = bin.max(max_bin);
                sum += u32::from(bin); // no overflow: at most 64 bins, each below 64
            }
            let mean = sum as f32 / group.len() as f32;
            // the bits of non-negative floats sort like the floats
            self.order.push(u64::from(mean.to_bits()) << 32 | i);
            self.groups.push(count_bins(group));
        }
        self.octets = usize::from(max_bin) / OCTET + 1;
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
            assign_to_nearest(&class_costs(&sum_classes(groups, *octets, tried, class_count)), groups, tried);
        }
    }

    fn cost(&self, class_count: usize) -> (f32, Vec<Frequencies>) {
        let codes = ClassCodes::new(class_count).bytes(self.tried.len()).unwrap_or(usize::MAX);
        let mut bits = 8.0 * codes as f32;
        let mut frequencies = Vec::with_capacity(class_count);
        for counts in sum_classes(&self.groups, self.octets, &self.tried, class_count) {
            let class = Frequencies::of(&counts);
            bits += class.bits(&counts) + 8.0 * (2 + class.range().1.len()) as f32;
            frequencies.push(class);
        }
        (bits, frequencies)
    }
}

/// Counts the bins of a group. Each bin has two counters, so that equal bins in a row do not wait
/// for each other.
fn count_bins(bins: &[u8]) -> GroupCounts {
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

fn sum_classes(groups: &[GroupCounts], octets: usize, class_of: &[u8], class_count: usize) -> Vec<Counts> {
    let mut sums = vec![[0; BINS]; class_count];
    for (group, &class) in groups.iter().zip(class_of) {
        let Some(sum) = sums.get_mut(usize::from(class)) else { continue };
        for (sums, counts) in sum.as_chunks_mut::<OCTET>().0.iter_mut().zip(group.as_chunks::<OCTET>().0).take(octets) {
            // no overflow: fewer than 2^32 in total
            sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += u32::from(count));
        }
    }
    sums
}

/// The costs, one for each class, with which the sum over the bins of a group starts. A cost is
/// `4 * units + class`, so the minimum cost also names the first class with the fewest units.
const NONE: ClassSums = [0.0, 1.0, 2.0, 3.0];

/// Returns the costs of bins in classes with these counts. The sum for a group is below 2^24, so an
/// `f32` represents it exactly.
fn class_costs(classes: &[Counts]) -> BinCosts {
    let mut costs = [[0.0; CLASSES]; BINS];
    for (class, counts) in classes.iter().enumerate().take(CLASSES) {
        let total: f32 = counts.iter().map(|&count| count as f32 + SMOOTHING_COUNT).sum();
        for (costs, &count) in costs.iter_mut().zip(counts) {
            let units = (-((count as f32 + SMOOTHING_COUNT) / total).log2() * UNITS_PER_BIT) as i16; // below 2^13
            costs[class] = f32::from(units) * CLASSES as f32; // in bounds
        }
    }
    costs
}

/// Assigns each group to the class in which its bins cost the least.
fn assign_to_nearest(costs: &BinCosts, groups: &[GroupCounts], class_of: &mut [u8]) {
    for (classes, groups) in class_of.chunks_mut(GROUP_BATCH).zip(groups.chunks(GROUP_BATCH)) {
        let mut sums = [NONE; GROUP_BATCH];
        costs::best().add(costs, groups, &mut sums);
        for (class, sums) in classes.iter_mut().zip(sums) {
            let min_cost =
                sums.into_iter().fold(f32::INFINITY, |min_cost, sum| if sum < min_cost { sum } else { min_cost });
            *class = (min_cost as u32 % CLASSES as u32) as u8; // below 4
        }
    }
}
