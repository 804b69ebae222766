//! The choice that was made last for a part of bins.

use crate::codec::geometry::Geometry;
use crate::codec::transform::Transform;

/// A transform, and an estimate of the stored bytes with it.
#[derive(Clone, Copy)]
pub(in crate::codec) struct TransformChoice {
    pub transform: Transform,
    pub bytes: usize,
    /// Whether prediction takes fewer bytes than none.
    pub is_predictable: bool,
}

/// The last choice, and what it was made for: a part whose stored bytes are estimated is mostly
/// encoded then.
#[derive(Default)]
pub(in crate::codec) struct KeptChoice {
    choice: Option<TransformChoice>,
    for_size: bool,
    /// The elements, and all that was known of them.
    raw: Vec<u8>,
    blocks: Vec<u32>,
    facts: Option<Geometry<'static>>,
}

impl KeptChoice {
    /// Returns the choice for these elements, if it is the last one.
    pub(super) fn get(&self, for_size: bool, geometry: &Geometry<'_>, raw: &[u8]) -> Option<TransformChoice> {
        let is_same = self.for_size == for_size
            && self.facts == Some(geometry.in_blocks(&[]))
            && self.blocks == geometry.blocks
            && self.raw == raw;
        self.choice.filter(|_| is_same)
    }

    /// Keeps a choice.
    pub(super) fn set(&mut self, for_size: bool, geometry: &Geometry<'_>, raw: &[u8], choice: TransformChoice) {
        self.choice = Some(choice);
        self.for_size = for_size;
        self.facts = Some(Geometry { blocks: &[], ..*geometry });
        self.blocks.clear();
        self.blocks.extend_from_slice(geometry.blocks);
        self.raw.clear();
        self.raw.extend_from_slice(raw);
    }
}
