//! Bins, classes and frequencies for the elements of a part, and what encoding its blocks needs.

use super::class_codes::ClassCodes;
use super::classes::Classes;
use super::mappings::Mapping;
use super::partition::Partition;
use super::tables::{ChosenFields, write_tables};
use crate::codec::geometry::Geometry;
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
}

impl BinPlan {
    /// Plans a part whose coded integers have these byte planes, the lowest one first. Appends the
    /// tables.
    pub(in crate::codec) fn plan(
        &mut self,
        mapping: &Mapping,
        transform: Transform,
        geometry: &Geometry<'_>,
        planes: &[&[u8]],
        most_classes: usize,
        tables: &mut Vec<u8>,
    ) -> Result<()> {
        self.set_windows(planes);
        let value_bits = if planes.len() == 1 { 8 } else { 16 };
        self.partition.choose(&self.windows, value_bits);
        self.partition.bins_of(&self.windows, &mut self.bins);
        let blocks = geometry.block_ranges().map(|elements| self.bins.get(elements).unwrap_or(&[]));
        self.classes.choose(blocks, most_classes);
        self.model.set_bins(&self.partition.bits);
        for (class, frequencies) in self.classes.frequencies.iter().enumerate() {
            let (first, frequencies) = frequencies.range();
            self.model.set_class(class, first, frequencies);
        }
        self.encoder.set_model(&self.model);
        let head = ChosenFields { mapping, transform, low_bytes: self.low_bytes };
        write_tables(head, &self.partition.bits, &self.classes.frequencies, tables)
    }

    /// Sets the windows to the highest two planes that are not all zero.
    fn set_windows(&mut self, planes: &[&[u8]]) {
        let is_used = |plane: &&[u8]| plane.iter().any(|&byte| byte != 0);
        let top = planes.iter().rposition(is_used).unwrap_or(0);
        self.low_bytes = top.saturating_sub(1);
        self.windows.clear();
        let Some(low) = planes.get(self.low_bytes) else { return };
        match planes.get(self.low_bytes + 1) {
            Some(high) => self.windows.extend(low.iter().zip(*high).map(|(&low, &high)| [low, high])),
            None => self.windows.extend(low.iter().map(|&low| [low, 0])),
        }
    }

    /// Appends the block of some elements. `planes` are those of the plan.
    pub(in crate::codec) fn encode(
        &mut self,
        geometry: &Geometry<'_>,
        planes: &[&[u8]],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
    ) -> Result<()> {
        let groups_of = |block: Range<usize>| block.len().div_ceil(GROUP);
        // blocks before this one, and those of no others
        let before: usize =
            geometry.block_ranges().take_while(|block| block.end <= elements.start).map(groups_of).sum();
        let groups = before..before + groups_of(elements.clone());
        let classes = self.classes.class_of.get(groups).unwrap_or(&[]);
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
