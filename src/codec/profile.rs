//! Profiles: the encodings that a writer chooses from.

use super::blocked::{BinBlocks, Blocked, ExponentBlocks, ResidualBlocks};
use super::constant::Constant;
use super::encoding::Encoder;
use super::exponent_tiers::ExponentTiers;
use super::residual_tiers::ResidualTiers;
use super::zstandard::{BitshuffleBlocks, BitshuffleZstd, PlanesZstd, Zstd, ZstdBlocks, ZstdDictionary};
use crate::Result;
use crate::le::u64_of;

/// The decoded bytes of a block, unless the writer's options say otherwise.
const BLOCK_BYTES: usize = 8 << 10;

/// The trade between size, speed of reading and speed of writing that a writer makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// The fastest to decode: tiers of short codes, no entropy coder. Text and bytes are stored
    /// raw.
    Fast,
    /// The default. Numbers are coded in tiers, in bins where these save 4 % more, or with
    /// Zstandard where that saves 20 % more. Text and bytes are compressed with Zstandard, and with
    /// a dictionary if there is much of them.
    #[default]
    Balanced,
    /// The smallest: of all encodings the one with the fewest bytes, in chunks of 512 KiB, or of
    /// 256 KiB of text and bytes. Several times slower to write.
    Small,
    /// No encoding: any sample is a view of the file, without a copy.
    Raw,
    /// Bit-shuffle and Zstandard 9; for text and bytes, Zstandard 9 alone.
    BitshuffleZstd,
}

/// The default of how far estimates are trusted. If an encoding is estimated to cost more than
/// another by one in this many bytes, it is not tried.
pub(super) const TRUSTED_TO_ONE_IN: u64 = 16;

/// An encoder that may be chosen, and its weight.
#[derive(Clone, Copy)]
pub(super) struct WeightedEncoder {
    pub encoder: &'static dyn Encoder,
    /// The factor of the stored bytes when encodings are compared. The fewest win, so an encoding
    /// that decodes more slowly has to save more.
    pub weight: u64,
    /// See [`TRUSTED_TO_ONE_IN`].
    pub trusted_to_one_in: u64,
}

impl WeightedEncoder {
    /// Returns the cost that is compared.
    pub(super) fn cost(&self, stored_bytes: usize) -> u64 {
        u64_of(stored_bytes).saturating_mul(self.weight)
    }
}

/// The encoders that a profile chooses from, besides raw.
pub(super) type Candidates = &'static [WeightedEncoder];

const fn candidate(encoder: &'static dyn Encoder, weight: u64) -> WeightedEncoder {
    WeightedEncoder { encoder, weight, trusted_to_one_in: TRUSTED_TO_ONE_IN }
}

const CONSTANT: WeightedEncoder = candidate(&Constant, 100);
const CLASSIC: WeightedEncoder = candidate(&BitshuffleZstd, 100);
const TEXT: WeightedEncoder = candidate(&Zstd, 100);
const DICTIONARY: WeightedEncoder = candidate(&ZstdDictionary, 100);

/// Estimates assume that the lower bits of residuals are noise. For residuals that are multiples of
/// a number, bins take up to a quarter less, which an encoded sample shows.
const SMALL_BINS: WeightedEncoder =
    WeightedEncoder { trusted_to_one_in: 4, ..candidate(&Blocked(BinBlocks { for_size: true }), 100) };

const NOTHING: Candidates = &[];
const FAST: Candidates =
    &[CONSTANT, candidate(&ExponentTiers { spacing: 11 }, 100), candidate(&ResidualTiers { spacing: 12 }, 100)];
const BALANCED: Candidates = &[
    CONSTANT,
    candidate(&ExponentTiers { spacing: 13 }, 100),
    candidate(&ResidualTiers { spacing: 14 }, 100),
    candidate(&Blocked(BinBlocks { for_size: false }), 104),
    candidate(&BitshuffleZstd, 125),
];
const SMALL: Candidates = &[
    CONSTANT,
    SMALL_BINS,
    candidate(&PlanesZstd, 100),
    candidate(&ExponentTiers { spacing: 16 }, 100),
    candidate(&ResidualTiers { spacing: 16 }, 100),
    CLASSIC,
];
const CLASSIC_NUMBERS: Candidates = &[CONSTANT, CLASSIC];
const CLASSIC_STRINGS: Candidates = &[CONSTANT, TEXT];
const STRINGS: Candidates = &[CONSTANT, TEXT, DICTIONARY];
const SMALL_STRINGS: Candidates = &[CONSTANT, TEXT, DICTIONARY];
const FAST_STRINGS: Candidates = &[CONSTANT];
const FAST_BLOCKS: Candidates =
    &[CONSTANT, candidate(&Blocked(ExponentBlocks), 100), candidate(&Blocked(ResidualBlocks), 100)];
const BALANCED_BLOCKS: Candidates = &[
    CONSTANT,
    candidate(&Blocked(ExponentBlocks), 100),
    candidate(&Blocked(ResidualBlocks), 100),
    candidate(&Blocked(BinBlocks { for_size: false }), 104),
    candidate(&Blocked(BitshuffleBlocks), 125),
];
const SMALL_BLOCKS: Candidates =
    &[CONSTANT, SMALL_BINS, candidate(&Blocked(ResidualBlocks), 100), candidate(&Blocked(BitshuffleBlocks), 100)];
/// Those that see repetitions which are farther apart than a block.
const SMALL_WHOLE: Candidates = &[candidate(&PlanesZstd, 100)];
const STRING_BLOCKS: Candidates = &[CONSTANT, TEXT, candidate(&Blocked(ZstdBlocks), 100)];

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 5] = [Self::Fast, Self::Balanced, Self::Small, Self::Raw, Self::BitshuffleZstd];

    /// Returns the name on the command line, such as `"fast"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Small => "small",
            Self::Raw => "raw",
            Self::BitshuffleZstd => "bitshuffle-zstd",
        }
    }

    /// Returns the chunk size in decoded bytes, unless [`WriterOptions::chunk_bytes`] sets it.
    ///
    /// [`WriterOptions::chunk_bytes`]: crate::WriterOptions::chunk_bytes
    pub fn chunk_bytes(self) -> usize {
        match self {
            Self::Small => 512 << 10,
            _ => 64 << 10,
        }
    }

    /// Returns the chunk size of text and bytes: chunks of [`Profile::Small`] have no blocks then.
    pub(crate) fn text_chunk_bytes(self) -> usize {
        match self {
            Self::Small => 256 << 10,
            _ => self.chunk_bytes(),
        }
    }

    /// Returns whether columns of text and bytes have dictionaries.
    pub(crate) fn has_dictionaries(self) -> bool {
        self.candidates(true, false).iter().any(|candidate| candidate.encoder.needs_table())
    }

    /// Returns the block size in decoded bytes, unless [`WriterOptions::block_bytes`] sets it;
    /// `None` if the profile writes chunks without blocks.
    ///
    /// [`WriterOptions::block_bytes`]: crate::WriterOptions::block_bytes
    pub fn block_bytes(self) -> Option<usize> {
        match self {
            Self::Small => Some(64 << 10),
            Self::BitshuffleZstd => None,
            _ => Some(BLOCK_BYTES),
        }
    }

    /// Returns the factor of the stored bytes of an encoding, of this name, when encodings are
    /// compared: 100, or more for those that decode more slowly.
    pub fn weight(self, encoding: &str) -> u64 {
        let all = [false, true].into_iter().flat_map(|in_blocks| self.candidates(false, in_blocks));
        let weights = all.filter(|candidate| candidate.encoder.name() == encoding).map(|candidate| candidate.weight);
        weights.max().unwrap_or(100)
    }

    /// Returns the encoders for the values of a column, or for those that are in several blocks.
    pub(super) fn candidates(self, is_string: bool, in_blocks: bool) -> Candidates {
        match (self, is_string) {
            (Self::Fast, false) if in_blocks => FAST_BLOCKS,
            (Self::Balanced, false) if in_blocks => BALANCED_BLOCKS,
            (Self::Small, false) if in_blocks => SMALL_BLOCKS,
            (Self::Balanced, true) if in_blocks => STRING_BLOCKS,
            (Self::Raw, _) => NOTHING,
            (Self::Fast, true) => FAST_STRINGS,
            (Self::Fast, false) => FAST,
            (Self::Balanced, false) => BALANCED,
            (Self::Small, false) => SMALL,
            (Self::BitshuffleZstd, false) => CLASSIC_NUMBERS,
            (Self::Balanced, true) => STRINGS,
            (Self::Small, true) => SMALL_STRINGS,
            (Self::BitshuffleZstd, true) => CLASSIC_STRINGS,
        }
    }

    /// Returns the encoders that are tried for whole chunks in addition to encoders of blocks.
    pub(super) fn candidates_for_whole(self) -> Candidates {
        match self {
            Self::Small => SMALL_WHOLE,
            _ => NOTHING,
        }
    }

    /// Refuses a profile that this build cannot write.
    pub(crate) fn check_built(self) -> Result<()> {
        let mut all = [false, true].into_iter().flat_map(|string| self.candidates(string, false).iter());
        all.try_for_each(|candidate| candidate.encoder.check_built())
    }
}
