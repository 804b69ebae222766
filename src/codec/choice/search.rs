//! What encoders may use, and how thoroughly they choose.
//!
//! A writer estimates from samples of a part which combination of encoding, transform, mapping and
//! options is the smallest, and encodes the part with that one. Two measurements keep this honest.
//! The *regret* of a choice is what it takes above the smallest of all combinations. An exhaustive
//! [`Search`] finds that one: it encodes the whole part with each, hundreds of times slower. The
//! *ablation* leaves out one [`Idea`] after the other and counts the bytes that are lost without
//! it.

use crate::format::index::BLOCKS;

macro_rules! ideas {
    ($($(#[$meta:meta])* $idea:ident,)*) => {
        /// An idea that encoders use. An ablation measures what it saves.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Idea {
            $($(#[$meta])* $idea,)*
        }

        impl Idea {
            /// All ideas.
            pub const ALL: [Self; [$(Self::$idea),*].len()] = [$(Self::$idea),*];
        }
    };
}

ideas! {
    /// The encoding `exponent-tiers`.
    ExponentTiers,
    /// The encoding `residual-tiers`.
    ResidualTiers,
    /// The encoding `bins`.
    Bins,
    /// The encoding `bitshuffle-zstd`.
    BitshuffleZstd,
    /// The encoding `planes-zstd`.
    PlanesZstd,
    /// The encoding `zstd` without a dictionary.
    Zstd,
    /// The encoding `zstd` with a dictionary.
    ZstdDictionary,
    /// Widths of tiers that fit a part: without it, 2, 2 and 4 bits.
    TierWidths,
    /// Exponent tiers of elements of 4 and 8 bytes.
    WideExponentTiers,
    /// Prediction from a row above.
    Rows,
    /// The 2-D Lorenzo predictor.
    Lorenzo,
    /// Separable prediction.
    Separable,
    /// Prediction from the sample before.
    AcrossSamples,
    /// Palettes by value.
    Palettes,
    /// A palette for each channel.
    ChannelPalettes,
    /// Palettes by frequency.
    FrequencyPalettes,
    /// Quotients.
    Quotients,
    /// Quotients with a divisor that is not a power of two.
    Divisors,
    /// Details of quotients.
    Details,
    /// Multiples of integers.
    Multiples,
    /// The upper bits of floats.
    UpperBits,
    /// The base of a part in place of one for each block.
    PartBase,
    /// Gaps.
    Gaps,
    /// Outliers.
    Outliers,
    /// Filters.
    Filters,
    /// Several classes.
    Classes,
}

impl Idea {
    /// Returns the ideas of an encoding, by its id, for elements of this length: none if a writer
    /// cannot do without it.
    pub(crate) fn of_encoding(id: u16, element_bytes: usize) -> impl Iterator<Item = Self> {
        let encoding = match id & !BLOCKS {
            3 => Some(Self::BitshuffleZstd),
            4 => Some(Self::ExponentTiers),
            5 => Some(Self::ResidualTiers),
            6 => Some(Self::Bins),
            7 => Some(Self::PlanesZstd),
            _ => None,
        };
        let is_wide = encoding == Some(Self::ExponentTiers) && element_bytes > 2;
        encoding.into_iter().chain(is_wide.then_some(Self::WideExponentTiers))
    }
}

/// What encoders may use, and how thoroughly they choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The ideas that are left out, a bit for each.
    without: u64,
    /// Whether all combinations are encoded, instead of the one with the least estimate.
    pub(crate) is_exhaustive: bool,
}

impl Search {
    /// Returns the search of writers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves out an idea.
    pub fn without(self, idea: Idea) -> Self {
        Self { without: self.without | 1 << idea as u8, ..self } // fewer than 64
    }

    /// Encodes all combinations and keeps the smallest: hundreds of times slower.
    pub fn exhaustive(self) -> Self {
        Self { is_exhaustive: true, ..self }
    }

    pub(crate) fn has(&self, idea: Idea) -> bool {
        self.without & 1 << idea as u8 == 0
    }
}
