//! Profiles: which encodings a writer tries.

use super::Encoder;
use super::constant::Constant;
use super::exponent_tiers::ExponentTiers;
use super::residual_tiers::ResidualTiers;
use super::zstandard::{BitshuffleZstd, PlanesZstd, Zstd};
use crate::Result;

/// What a writer trades for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// The quickest to decode: tiers of short codes, no entropy coder. Text and bytes stay as they are.
    Fast,
    /// The default: tiers of short codes for numbers wherever they do, Zstandard where it saves much more, and for text and bytes.
    #[default]
    Balanced,
    /// The smallest: of all encodings the one that gives the fewest bytes, in chunks of 256 KiB. Several times slower to write and to read.
    Small,
    /// Everything as it is: any sample is a zero-copy view of the file.
    Raw,
    /// The classic: bit-shuffle and Zstandard 9; Zstandard 9 alone for bytes and text.
    BitshuffleZstd,
}

/// An encoding that may be taken.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub encoder: &'static dyn Encoder,
    /// Of two encodings that is taken whose stored bytes times this are fewer: what decodes more slowly has to save that much more.
    pub weight: u64,
}

impl Candidate {
    /// What is compared.
    pub(super) fn cost(&self, stored_bytes: usize) -> u64 {
        (stored_bytes as u64).saturating_mul(self.weight) // exact: usize has at most 64 bits
    }
}

/// The encodings of a profile; raw is always one more.
#[derive(Clone, Copy)]
pub(super) struct Candidates {
    /// Each of these is tried.
    pub tried: &'static [Candidate],
    /// Of these only the one is tried that is the best by its own estimate.
    pub rivals: &'static [Candidate],
}

impl Candidates {
    pub(super) fn all(self) -> impl Iterator<Item = &'static Candidate> {
        self.tried.iter().chain(self.rivals)
    }
}

const fn candidate(encoder: &'static dyn Encoder, weight: u64) -> Candidate {
    Candidate { encoder, weight }
}

const CONSTANT: Candidate = candidate(&Constant, 100);
const CLASSIC: Candidate = candidate(&BitshuffleZstd, 100);
const TEXT: Candidate = candidate(&Zstd, 100);

const NOTHING: Candidates = Candidates { tried: &[], rivals: &[] };
const FAST: Candidates = Candidates {
    tried: &[CONSTANT],
    rivals: &[candidate(&ExponentTiers { spacing: 11 }, 100), candidate(&ResidualTiers { spacing: 12 }, 100)],
};
const BALANCED: Candidates = Candidates {
    tried: &[CONSTANT],
    rivals: &[
        candidate(&ExponentTiers { spacing: 13 }, 100),
        candidate(&ResidualTiers { spacing: 14 }, 100),
        candidate(&BitshuffleZstd, 125),
    ],
};
const SMALL: Candidates = Candidates {
    tried: &[CONSTANT, candidate(&PlanesZstd, 100)],
    rivals: &[candidate(&ExponentTiers { spacing: 16 }, 100), candidate(&ResidualTiers { spacing: 16 }, 100), CLASSIC],
};
const CLASSIC_NUMBERS: Candidates = Candidates { tried: &[CONSTANT, CLASSIC], rivals: &[] };
const CLASSIC_STRINGS: Candidates = Candidates { tried: &[CONSTANT, TEXT], rivals: &[] };
const FAST_STRINGS: Candidates = Candidates { tried: &[CONSTANT], rivals: &[] };

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 5] = [Self::Fast, Self::Balanced, Self::Small, Self::Raw, Self::BitshuffleZstd];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Small => "small",
            Self::Raw => "raw",
            Self::BitshuffleZstd => "bitshuffle-zstd",
        }
    }

    /// Decoded bytes of a chunk, where the caller names none.
    pub fn chunk_bytes(self) -> usize {
        match self {
            Self::Small => 256 << 10,
            _ => 64 << 10,
        }
    }

    /// The encodings of a part.
    pub(super) fn candidates(self, is_string: bool) -> Candidates {
        match (self, is_string) {
            (Self::Raw, _) => NOTHING,
            (Self::Fast, true) => FAST_STRINGS,
            (Self::Fast, false) => FAST,
            (Self::Balanced, false) => BALANCED,
            (Self::Small, false) => SMALL,
            (Self::BitshuffleZstd, false) => CLASSIC_NUMBERS,
            (Self::Balanced | Self::Small | Self::BitshuffleZstd, true) => CLASSIC_STRINGS,
        }
    }

    /// Whether this build can write it.
    pub(crate) fn check_built(self) -> Result<()> {
        let mut all = [false, true].into_iter().flat_map(|string| self.candidates(string).all());
        all.try_for_each(|candidate| candidate.encoder.check_built())
    }
}
