//! Values and lists of samples, as decoders stage them before they are laid out.

use crate::pod::AlignedBytes;
use std::ops::Range;

/// A ragged sample that was decoded: its values.
#[derive(Clone, Debug, Default)]
pub(in crate::read) struct RaggedValues {
    /// The number of the decoder that staged them; `None` if they are in the file.
    pub decoder: Option<usize>,
    pub bytes: Range<usize>,
    /// Of a nested column: the number of the decoder that staged the lists, and their words.
    pub stager: usize,
    pub words: Range<usize>,
}

/// The values and lists that a decoder stages, of ragged or nested samples.
#[derive(Default)]
pub(in crate::read) struct Staging {
    pub values: AlignedBytes,
    pub words: Vec<u32>,
}

impl Staging {
    pub(in crate::read) fn clear(&mut self) {
        self.values.clear();
        self.words.clear();
    }
}

/// Values of ragged samples, as decoders have staged them.
pub(in crate::read) trait StagedValues {
    /// Returns the values that decoder number `decoder` has staged.
    fn of(&self, decoder: usize) -> &[u8];

    /// Returns the lists that decoder number `decoder` has staged.
    fn words(&self, decoder: usize) -> &[u32];

    /// Exchanges those of decoder 0, which end at `end`, with `out`, from which their memory came;
    /// `false`: it came from elsewhere.
    fn exchange(&mut self, end: usize, out: &mut AlignedBytes) -> bool;
}

/// Values and lists of one decoder.
impl StagedValues for Staging {
    fn of(&self, _decoder: usize) -> &[u8] {
        self.values.as_slice()
    }

    fn words(&self, _decoder: usize) -> &[u32] {
        &self.words
    }

    fn exchange(&mut self, end: usize, out: &mut AlignedBytes) -> bool {
        if self.values.as_slice().len() != end {
            return false;
        }
        std::mem::swap(&mut self.values, out);
        true
    }
}
