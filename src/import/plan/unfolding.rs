//! Finds how many outer dimensions of a column are lists, because a sample is no tensor.

use crate::import::batch::Samples;
use crate::import::input_column::{ColumnKind, Level};
use crate::import::options::NullElements;

/// The finder of one column.
pub(in crate::import) struct UnfoldFinder {
    kind: ColumnKind,
    keeps_nulls: bool,
    may_be_jagged: bool,
    dimensions: usize,
}

impl UnfoldFinder {
    /// Makes the finder of a column of this kind, or `None` if all its samples are tensors by their
    /// type.
    pub(in crate::import) fn new(kind: &ColumnKind, null_elements: NullElements) -> Option<Self> {
        let keeps_nulls = null_elements == NullElements::Keep;
        let may_be_jagged = kind.levels.iter().skip(1).any(|level| *level == Level::Open);
        let may_have_nulls = kind.may_have_nulls_inside() && (keeps_nulls || kind.list_levels().len() > 1);
        let is_open = may_be_jagged || may_have_nulls;
        (is_open && !kind.variable_tensor).then(|| Self {
            kind: kind.clone(),
            keeps_nulls,
            may_be_jagged,
            dimensions: 0,
        })
    }

    /// Examines samples. Null elements remain nulls only as items of lists.
    pub(in crate::import) fn observe(&mut self, samples: &Samples) {
        self.dimensions = self.dimensions.max(dimensions(samples, &self.kind));
        let all = self.kind.list_levels().len();
        if self.keeps_nulls && samples.element_nulls.is_some() && self.kind.can_unfold(all) {
            self.dimensions = all;
        }
    }

    /// Returns the number of dimensions that are lists.
    pub(in crate::import) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns whether no sample can change it any more. The samples may have nulls inside, or not.
    pub(in crate::import) fn is_settled(&self, may_have_nulls: bool) -> bool {
        self.dimensions == self.kind.list_levels().len() || !(self.may_be_jagged || may_have_nulls)
    }
}

/// Returns how many outer dimensions are lists in these samples of a column.
pub(super) fn dimensions(samples: &Samples, kind: &ColumnKind) -> usize {
    samples.lists.len().saturating_sub(kind.lists.len())
}
