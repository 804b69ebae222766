//! Bins, classes and frequencies for the elements of a part, and what encoding its blocks needs.

use super::class_codes::ClassCodes;
use super::classes::Classes;
use super::mappings::Mapping;
use super::options::{FilterPlan, Gaps, Options, OutlierPlan, low_bytes_of};
use super::partition::Partition;
use super::tables::{ChosenFields, write_tables};
use crate::codec::geometry::Geometry;
use crate::codec::search::{Idea, Search};
use crate::codec::transform::Transform;
use crate::kernel::Width;
use crate::kernel::bins::encode::{self, BinEncoder};
use crate::kernel::bins::{BinModel, GROUP};
use crate::{Error, Result};
use std::ops::Range;

/// The plan of a part, in memory that is reused.
#[derive(Default)]
pub(in crate::codec) struct BinPlan {
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
pub(in crate::codec) struct PlannedPart<'p> {
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
    pub(in crate::codec) fn plan(&mut self, part: &PlannedPart<'_>, width: Width, tables: &mut Vec<u8>) -> Result<()> {
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
            self.outliers.add_block((0..block.len()).map(upper));
        }
        self.outliers.finish();
    }

    /// Appends a block, the one of some elements. `planes` are those of the plan.
    pub(in crate::codec) fn encode(
        &mut self,
        geometry: &Geometry<'_>,
        planes: &[&[u8]],
        (block, elements): (usize, &Range<usize>),
        stored: &mut Vec<u8>,
    ) -> Result<()> {
        self.outliers.append(block, stored);
        let groups_of = |block: Range<usize>| block.len().div_ceil(GROUP);
        let group_count = groups_of(elements.clone());
        let before = geometry.block_ranges().take(block).map(groups_of).sum();
        let classes = self.classes.class_of.get(before..before + group_count).unwrap_or(&[]);
        ClassCodes::new(self.classes.frequencies.len()).write(classes, stored);
        for plane in planes.iter().take(self.low_bytes) {
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

/// Counts the coded integers of each bit length.
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

/// Returns the byte planes of coded integers, the lowest one first: those of `low`, and `top`.
pub(in crate::codec) fn planes_of<'p>(width: Width, low: &'p [u8], top: &'p [u8]) -> ([&'p [u8]; 8], usize) {
    let mut planes: [&[u8]; 8] = Default::default();
    let all = low.chunks_exact(top.len().max(1)).chain(std::iter::once(top));
    planes.iter_mut().zip(all).for_each(|(to, plane)| *to = plane);
    (planes, width.bytes())
}

#[cold]
fn not_planned() -> Error {
    Error::internal("a block has elements that bins were not planned for")
}
