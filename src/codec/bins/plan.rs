//! The plan of a part: a combination of gaps, mapping, prediction and filters, and the bins,
//! classes and frequencies that code what is left.
//!
//! `choice.rs` chooses a [`Combination`]; [`BinPlan`] then chooses windows, bins and classes for
//! the coded integers of all blocks, writes the tables, and encodes the blocks one by one. A choice
//! is kept from chunk to chunk: the next chunk of a column tries it first.

use super::classes::Classes;
use super::mappings::{Bases, Mapping, Multiple, PaletteOrder, Quotient};
use super::options::{FilterPlan, Gaps, Options, OutlierPlan, low_bytes_of};
use super::partition::Partition;
use super::tables::{ChosenFields, write_tables};
use crate::codec::{
    bits::ClassCodes,
    choice::{Idea, Search},
    geometry::Geometry,
    transform::Transform,
};
use crate::kernel::{
    Width,
    bins::{
        BinModel, GROUP,
        encode::{self, BinEncoder},
    },
    predict::Prediction,
};
use crate::{Error, Result};
use std::mem::discriminant;
use std::ops::Range;

/// Gaps and filters save at least one in this many bytes: they take time to undo.
const SLOW_SAVES_ONE_IN: usize = 128;

/// How elements become numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbering {
    None,
    Palettes(Palettes),
    Multiple(Multiple, Bases),
    Quotient(Quotient, Bases),
}

/// Palettes that were found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palettes {
    pub order: PaletteOrder,
    pub count: usize,
    /// Which of those in the scratch they are.
    pub place: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination {
    pub has_gaps: bool,
    pub numbering: Numbering,
    pub transform: Transform,
    pub has_filters: bool,
    /// The bytes that it is estimated to take of the whole part.
    pub bytes: f64,
}

impl Combination {
    /// Returns the cost of stored bytes of this combination.
    pub(crate) fn cost(&self, stored_bytes: usize) -> usize {
        let is_slow = self.has_gaps || self.has_filters;
        stored_bytes + if is_slow { stored_bytes / SLOW_SAVES_ONE_IN } else { 0 }
    }

    /// Returns whether another combination is the same, except for parameters that are fitted to a
    /// part.
    fn is_like(&self, other: &Self) -> bool {
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

    /// Returns the same combination with the base of the part, if it has bases of blocks.
    pub(crate) fn of_part(&self) -> Option<Self> {
        let numbering = match self.numbering {
            Numbering::Multiple(multiple, Bases::OfBlocks) => Numbering::Multiple(multiple, Bases::OfPart),
            Numbering::Quotient(quotient, Bases::OfBlocks) => Numbering::Quotient(quotient, Bases::OfPart),
            _ => return None,
        };
        Some(Self { numbering, ..*self })
    }
}

/// The combinations of a part that seem to be the smallest, the best first.
#[derive(Clone, Debug)]
pub(crate) struct BinChoice {
    pub(crate) finalists: Vec<Combination>,
    /// Whether they were fitted to this part, and not to another.
    pub(crate) is_fitted: bool,
}

impl BinChoice {
    pub(crate) fn bytes(&self) -> usize {
        self.finalists.first().map_or(usize::MAX, |best| best.bytes as usize) // saturating
    }

    /// Returns whether the best combinations of both choices are alike.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let both = self.finalists.first().zip(other.finalists.first());
        both.is_some_and(|(best, other)| best.is_like(other))
    }

    /// Returns the choice of a combination for other parts.
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
    /// Bytes of an element below its window.
    low_bytes: usize,
    outliers: OutlierPlan,
}

/// A part, and the choices that its plan begins with.
pub(crate) struct PlannedPart<'p> {
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
    pub(crate) fn plan(&mut self, part: &PlannedPart<'_>, width: Width, tables: &mut Vec<u8>) -> Result<()> {
        self.set_windows(part);
        let value_bits = if part.planes.len() == 1 { 8 } else { 16 };
        self.partition.choose(&self.windows, value_bits);
        self.partition.bins_of(&self.windows, &mut self.bins);
        let in_blocks = part.geometry.block_ranges().map(|elements| self.bins.get(elements).unwrap_or(&[]));
        self.classes.choose(in_blocks, part.search.has(Idea::Classes));
        self.set_outliers(part);
        self.model.set_bins(&self.partition.bits);
        for (class, frequencies) in self.classes.frequencies.iter().enumerate() {
            let (first, frequencies) = frequencies.range();
            self.model.set_class(class, first, frequencies);
        }
        self.encoder.set_model(&self.model);
        let options = Options { gaps: part.gaps, outliers: self.outliers.outliers, filters: part.filters.filters };
        let (mapping, transform, low_bytes) = (part.mapping, part.transform, self.low_bytes);
        let head = ChosenFields { width, mapping, options: &options, transform, low_bytes };
        write_tables(head, &self.partition.bits, &self.classes.frequencies, tables)
    }

    /// Sets the windows: to the highest two planes that are not all zero, unless it is better to
    /// make outliers of a few.
    fn set_windows(&mut self, part: &PlannedPart<'_>) {
        let planes = part.planes;
        let is_used = |plane: &&[u8]| plane.iter().any(|&byte| byte != 0);
        let top = planes.iter().rposition(is_used).unwrap_or(0);
        self.low_bytes = match top {
            0 | 1 => 0,
            _ => low_bytes_of(&count_lengths(planes.get(..=top).unwrap_or(planes)), part.search).0,
        };
        self.windows.clear();
        let Some(low) = planes.get(self.low_bytes) else { return };
        match planes.get(self.low_bytes + 1) {
            Some(high) => self.windows.extend(low.iter().zip(*high).map(|(&low, &high)| [low, high])),
            None => self.windows.extend(low.iter().map(|&low| [low, 0])),
        }
    }

    fn set_outliers(&mut self, part: &PlannedPart<'_>) {
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

    /// Appends a block, the one of some elements. `planes` are those of the plan.
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
