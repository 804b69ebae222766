//! Finds the shape of a column: a dimension is fixed if it has the same extent in every sample.

use super::unfolding::dimensions;
use crate::import::batch::{Samples, UNKNOWN};
use crate::import::found::FoundShape;
use crate::import::input_column::{ColumnKind, Level, open_count};
use crate::le::u64_of;
use crate::{Extent, Shape};
use std::collections::BTreeMap;

/// The most samples that may differ from all others in a dimension that is nearly fixed.
const FEW: usize = 16;
/// In a dimension that is nearly fixed, at most one sample in this number differs.
const ONE_IN: u64 = 100;

/// The extents of one dimension, as far as they are known.
enum FoundExtent {
    /// The extents that occur. All samples but a few have the same one.
    Few(Vec<Occurrence>),
    /// More than a few samples differ from all others.
    Varies,
}

/// An extent, and the samples that have it.
struct Occurrence {
    extent: u32,
    sample_count: u64,
    /// The first samples, with the extents of all open dimensions.
    first: Vec<(u64, Vec<u32>)>,
}

/// The finder of the shape of one column.
pub(in crate::import) struct ShapeFinder {
    found: Vec<FoundExtent>,
}

impl ShapeFinder {
    pub(in crate::import) fn new(kind: &ColumnKind) -> Self {
        Self { found: (0..kind.open_count()).map(|_| FoundExtent::Few(Vec::new())).collect() }
    }

    /// Forgets the outer dimensions of a column of this kind, which have become lists.
    pub(in crate::import) fn unfold(&mut self, kind: &ColumnKind, dimensions: usize) {
        let inner = kind.levels.get(dimensions..).map_or(0, open_count);
        self.found.drain(..self.found.len().saturating_sub(inner));
    }

    /// Examines samples of a column of this kind, which begin with number `first` of all.
    pub(in crate::import) fn observe(&mut self, samples: &Samples, kind: &ColumnKind, first: u64) {
        let stated = kind.levels.get(dimensions(samples, kind)..).map_or(0, open_count);
        let outer = stated.saturating_sub(self.found.len());
        for (sample, extents) in (first..).zip(samples.open_extents.chunks_exact(stated.max(1))) {
            for (found, &extent) in self.found.iter_mut().zip(extents.iter().skip(outer)) {
                found.observe(extent, sample, extents);
            }
        }
    }

    /// Returns whether no sample can change what is known any more.
    pub(in crate::import) fn is_settled(&self) -> bool {
        self.found.iter().all(|found| matches!(found, FoundExtent::Varies))
    }

    /// Returns the shape that all samples seen have.
    pub(in crate::import) fn shape(&self, kind: &ColumnKind) -> Shape {
        let extents = self.found.iter().map(|found| match found.common() {
            Some((extent, [])) => Extent::Fixed(extent),
            _ => Extent::Varying,
        });
        shape_of(kind, extents)
    }

    /// Returns the shape to report: a dimension was found to be the same in all or nearly
    /// all samples.
    pub(in crate::import) fn found(&self, kind: &ColumnKind) -> Option<FoundShape> {
        let common: Vec<Option<(u32, &[Occurrence])>> = self.found.iter().map(FoundExtent::common).collect();
        let counts = self.found.iter().zip(&common).filter(|(_, common)| common.is_some());
        let sample_count = counts.map(|(found, _)| found.sample_count()).min()?;
        let shape =
            |common: &Option<(u32, &[Occurrence])>| common.map_or(Extent::Varying, |(extent, _)| Extent::Fixed(extent));
        let odd: BTreeMap<u64, &Vec<u32>> = common
            .iter()
            .flatten()
            .flat_map(|(_, others)| others.iter().flat_map(|other| &other.first))
            .map(|(sample, extents)| (*sample, extents))
            .collect();
        let odd = odd.into_iter().map(|(sample, extents)| (sample, sample_shape(kind, extents)));
        Some(FoundShape::new(shape_of(kind, common.iter().map(shape)), sample_count, odd))
    }
}

impl FoundExtent {
    fn observe(&mut self, extent: u32, sample: u64, extents: &[u32]) {
        let Self::Few(occurrences) = self else { return };
        if extent == UNKNOWN {
            return;
        }
        let known = occurrences.iter_mut().find(|occurrence| occurrence.extent == extent);
        if let Some(Occurrence { sample_count, first, .. }) = known {
            *sample_count += 1; // one for each sample
            if first.len() < FEW {
                first.push((sample, extents.to_vec()));
            }
        } else {
            occurrences.push(Occurrence { extent, sample_count: 1, first: vec![(sample, extents.to_vec())] });
        }
        if occurrences.len() == 1 {
            return;
        }
        // at most a few
        occurrences.sort_by_key(|occurrence| std::cmp::Reverse(occurrence.sample_count));
        let others: u64 = occurrences.iter().skip(1).map(|occurrence| occurrence.sample_count).sum();
        if others > u64_of(FEW) {
            *self = Self::Varies;
        }
    }

    /// Returns the extent of all samples, or of nearly all, and the other extents.
    fn common(&self) -> Option<(u32, &[Occurrence])> {
        let Self::Few(occurrences) = self else { return None };
        let (most, others) = occurrences.split_first()?;
        let odd = self.sample_count() - most.sample_count;
        (odd.saturating_mul(ONE_IN) <= self.sample_count()).then_some((most.extent, others))
    }

    /// Returns the number of samples that state this dimension.
    fn sample_count(&self) -> u64 {
        match self {
            Self::Few(occurrences) => occurrences.iter().map(|occurrence| occurrence.sample_count).sum(),
            Self::Varies => 0,
        }
    }
}

/// Returns the shape with these extents for the dimensions that the type leaves open.
fn shape_of(kind: &ColumnKind, mut open: impl Iterator<Item = Extent>) -> Shape {
    let mut extents = Vec::new();
    for level in &kind.levels {
        match level {
            Level::Fixed(fixed) => extents.extend(fixed.iter().map(|&extent| Extent::Fixed(extent))),
            // there is one for each
            Level::Open => extents.push(open.next().unwrap_or(Extent::Varying)),
        }
    }
    Shape::new(extents)
}

/// Returns the shape of one sample. An extent that it does not state varies.
pub(in crate::import) fn sample_shape(kind: &ColumnKind, open: &[u32]) -> Shape {
    let extent = |&extent: &u32| if extent == UNKNOWN { Extent::Varying } else { Extent::Fixed(extent) };
    shape_of(kind, open.iter().map(extent))
}
