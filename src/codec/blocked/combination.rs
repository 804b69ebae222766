//! How a part may be coded by bins: gaps, a mapping of elements to numbers, a prediction, filters.

use crate::codec::bins::{Bases, Multiple, PaletteOrder, Quotient};
use crate::codec::transform::Transform;
use crate::kernel::predict::Prediction;
use std::mem::discriminant;

/// Gaps and filters save at least one in this many bytes: they take time to undo.
const SLOW_SAVES_ONE_IN: usize = 128;

/// How elements become numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbering {
    None,
    Palettes(Palettes),
    Multiple(Multiple, Bases),
    Quotient(Quotient, Bases),
}

/// Palettes that were found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palettes {
    pub order: PaletteOrder,
    pub count: usize,
    /// Which of those in the scratch they are.
    pub place: usize,
}

/// A combination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combination {
    pub has_gaps: bool,
    pub numbering: Numbering,
    pub transform: Transform,
    pub has_filters: bool,
    /// The bytes that it is estimated to take of the whole part.
    pub bytes: f64,
}

impl Combination {
    /// Returns the cost of stored bytes of this combination.
    pub(super) fn cost(&self, stored_bytes: usize) -> usize {
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
    pub(super) fn of_part(&self) -> Option<Self> {
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
pub(in crate::codec) struct BinChoice {
    pub(super) finalists: Vec<Combination>,
    /// Whether they were fitted to this part, and not to another.
    pub(super) is_fitted: bool,
}

impl BinChoice {
    /// Returns an estimate of the stored bytes.
    pub(super) fn bytes(&self) -> usize {
        self.finalists.first().map_or(usize::MAX, |best| best.bytes as usize) // saturating
    }

    /// Returns whether the best combinations of both choices are alike.
    pub(in crate::codec) fn is_like(&self, other: &Self) -> bool {
        let both = self.finalists.first().zip(other.finalists.first());
        both.is_some_and(|(best, other)| best.is_like(other))
    }

    /// Returns the choice of a combination for other parts.
    pub(super) fn of(combination: Combination) -> Self {
        Self { finalists: vec![combination], is_fitted: false }
    }
}
