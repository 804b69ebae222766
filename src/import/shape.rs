//! Finding the shape of a column: a dimension is fixed if it is the same in every sample.

use super::types::{Kind, Level};
use super::walk::{Samples, UNKNOWN};
use crate::{Extent, Shape};

/// What is known of one dimension so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Same(u32),
    Varies,
}

/// Looks at the samples of one column.
pub(super) struct ShapeFinder {
    found: Vec<Found>,
}

impl ShapeFinder {
    pub(super) fn new(kind: &Kind) -> Self {
        Self { found: vec![Found::Nothing; kind.open_count()] }
    }

    pub(super) fn observe(&mut self, samples: &Samples) {
        for extents in samples.open_extents.chunks_exact(self.found.len().max(1)) {
            for (found, &extent) in self.found.iter_mut().zip(extents) {
                *found = found.and(extent);
            }
        }
    }

    /// Whether no sample can change the shape any more.
    pub(super) fn is_settled(&self) -> bool {
        self.found.iter().all(|found| *found == Found::Varies)
    }

    /// The shape that all samples seen have.
    pub(super) fn shape(&self, kind: &Kind) -> Shape {
        let mut found = self.found.iter();
        let mut extents = Vec::new();
        for level in &kind.levels {
            match level {
                Level::Fixed(fixed) => extents.extend(fixed.iter().map(|&extent| Extent::Fixed(extent))),
                Level::Open => extents.push(match found.next() {
                    Some(Found::Same(extent)) => Extent::Fixed(*extent),
                    _ => Extent::Varying,
                }),
            }
        }
        Shape::new(extents)
    }
}

impl Found {
    fn and(self, extent: u32) -> Self {
        match self {
            _ if extent == UNKNOWN => self,
            Self::Nothing => Self::Same(extent),
            Self::Same(same) if same == extent => self,
            Self::Same(_) | Self::Varies => Self::Varies,
        }
    }
}
