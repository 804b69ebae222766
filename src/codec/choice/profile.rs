//! Profiles: the encodings that a writer chooses from, and their weights.
//!
//! The candidate with the lowest cost (stored size times weight) wins, so an encoding that decodes
//! slowly has to save more than a fast one. Each profile also has its own block size and chunk
//! size. Text and bytes have their own candidates.

use crate::bytes::le::u64_of;
use crate::codec::{
    base_name,
    bins::BinBlocks,
    blocked::{Blocked, Constant, Encoder},
    tiers::{ExponentBlocks, ResidualBlocks},
    zstandard::{BitshuffleBlocks, PlaneBlocks, ZstdBlocks},
};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The default block size, in decoded bytes.
const BLOCK_BYTES: usize = 8 << 10;

/// A writer's trade-off between size, reading speed and writing speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// The fastest to decode: tiers of short codes, without an entropy coder. Text and bytes are
    /// stored raw.
    Fast,
    /// The default. Numbers are coded in tiers. They are coded in bins instead if the result is 4 %
    /// smaller, or with bit-shuffle and Zstandard if it is 20 % smaller. Text and bytes are
    /// compressed with Zstandard, with a trained dictionary if there is enough data.
    #[default]
    Balanced,
    /// The smallest files: the encoding with the smallest result wins. Chunks have 512 KiB, or 256
    /// KiB for text and bytes. Writing takes several times longer.
    Small,
    /// No encoding: any sample can be read as a view of the file, without a copy.
    Raw,
    /// Bit-shuffle and Zstandard level 9. Text and bytes are compressed with Zstandard level 9,
    /// without bit-shuffle.
    BitshuffleZstd,
}

/// The default margin for errors of estimates: an encoding is skipped if its estimated cost exceeds
/// the best cost so far by more than 1/N.
pub(crate) const SKIP_MARGIN_DIVISOR: u64 = 16;

/// An encoder that can be chosen, and its weight.
#[derive(Clone, Copy)]
pub(crate) struct WeightedEncoder {
    pub encoder: &'static dyn Encoder,
    /// The factor by which the stored size is multiplied when encodings are compared. It is 100, or
    /// more for encodings that decode more slowly and therefore have to save more.
    pub weight: u64,
    /// See [`SKIP_MARGIN_DIVISOR`].
    pub skip_margin_divisor: u64,
}

impl WeightedEncoder {
    pub(crate) fn cost(&self, stored_bytes: usize) -> u64 {
        u64_of(stored_bytes).saturating_mul(self.weight)
    }
}

/// The encoders that a profile chooses from, in addition to raw.
pub(crate) type Candidates = &'static [WeightedEncoder];

const fn candidate(encoder: &'static dyn Encoder, weight: u64) -> WeightedEncoder {
    WeightedEncoder { encoder, weight, skip_margin_divisor: SKIP_MARGIN_DIVISOR }
}

const CONSTANT: WeightedEncoder = candidate(&Blocked(Constant), 100);
const EXPONENTS: WeightedEncoder = candidate(&Blocked(ExponentBlocks), 100);
const RESIDUALS: WeightedEncoder = candidate(&Blocked(ResidualBlocks), 100);
const BITSHUFFLE: WeightedEncoder = candidate(&Blocked(BitshuffleBlocks), 100);
const PLANES: WeightedEncoder = candidate(&Blocked(PlaneBlocks), 100);
const TEXT: WeightedEncoder = candidate(&Blocked(ZstdBlocks), 100);

/// Estimates treat the lower bits of residuals as noise. If residuals are multiples of a number,
/// bins take up to a quarter less than estimated. Only encoding a sample shows this, so the margin
/// is larger.
const SMALL_BINS: WeightedEncoder =
    WeightedEncoder { skip_margin_divisor: 4, ..candidate(&Blocked(BinBlocks { for_size: true }), 100) };

const NOTHING: Candidates = &[];
const FAST: Candidates = &[CONSTANT, EXPONENTS, RESIDUALS];
const BALANCED: Candidates = &[
    CONSTANT,
    EXPONENTS,
    RESIDUALS,
    candidate(&Blocked(BinBlocks { for_size: false }), 104),
    candidate(&Blocked(BitshuffleBlocks), 125),
];
const SMALL: Candidates = &[CONSTANT, SMALL_BINS, PLANES, EXPONENTS, RESIDUALS, BITSHUFFLE];
const SMALL_BLOCKS: Candidates = &[CONSTANT, SMALL_BINS, RESIDUALS, BITSHUFFLE];
/// Encodings that benefit from repetitions more than a block apart.
const SMALL_WHOLE: Candidates = &[PLANES];
const BITSHUFFLE_NUMBERS: Candidates = &[CONSTANT, BITSHUFFLE];
const FAST_STRINGS: Candidates = &[CONSTANT];
const STRINGS: Candidates = &[CONSTANT, TEXT];

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

    /// Returns the chunk size in decoded bytes, which [`WriterOptions::chunk_bytes`] overrides.
    ///
    /// [`WriterOptions::chunk_bytes`]: crate::WriterOptions::chunk_bytes
    pub fn chunk_bytes(self) -> usize {
        match self {
            Self::Small => 512 << 10,
            _ => 64 << 10,
        }
    }

    /// Returns the chunk size for text and bytes. With [`Profile::Small`], their chunks are not
    /// divided into blocks.
    pub(crate) fn text_chunk_bytes(self) -> usize {
        match self {
            Self::Small => 256 << 10,
            _ => self.chunk_bytes(),
        }
    }

    /// Returns whether columns of text and bytes have Zstandard dictionaries.
    pub(crate) fn has_zstd_dictionaries(self) -> bool {
        matches!(self, Self::Balanced | Self::Small)
    }

    /// Returns the block size in decoded bytes, which [`WriterOptions::block_bytes`] overrides.
    /// Returns `None` if the profile writes each part as one block.
    ///
    /// [`WriterOptions::block_bytes`]: crate::WriterOptions::block_bytes
    pub fn block_bytes(self) -> Option<usize> {
        match self {
            Self::Small => Some(64 << 10),
            Self::BitshuffleZstd => None,
            _ => Some(BLOCK_BYTES),
        }
    }

    /// Returns the weight of the encoding with this name: the factor by which its stored size is
    /// multiplied when this profile compares encodings. It is 100, or more for encodings that
    /// decode more slowly.
    pub fn weight(self, encoding: &str) -> u64 {
        let all = [false, true].into_iter().flat_map(|in_blocks| self.candidates(false, in_blocks));
        let weights =
            all.filter(|candidate| candidate.encoder.name() == base_name(encoding)).map(|candidate| candidate.weight);
        weights.max().unwrap_or(100)
    }

    /// Returns the candidates for the values of a column. `in_blocks` says whether the values have
    /// several blocks.
    pub(crate) fn candidates(self, is_string: bool, in_blocks: bool) -> Candidates {
        match (self, is_string) {
            (Self::Raw, _) => NOTHING,
            (Self::Fast, true) => FAST_STRINGS,
            (_, true) => STRINGS,
            (Self::Fast, false) => FAST,
            (Self::Balanced, false) => BALANCED,
            (Self::Small, false) if in_blocks => SMALL_BLOCKS,
            (Self::Small, false) => SMALL,
            (Self::BitshuffleZstd, false) => BITSHUFFLE_NUMBERS,
        }
    }

    /// Returns the candidates that are also tried with all values as one block.
    pub(crate) fn candidates_for_whole(self, is_string: bool) -> Candidates {
        match self {
            _ if is_string => self.candidates(true, false),
            Self::Small => SMALL_WHOLE,
            _ => NOTHING,
        }
    }

    /// Returns the block size to use for text and bytes (`is_string`) or for numbers, given the
    /// requested size. `None` stands for one block.
    pub(crate) fn block_bytes_of(self, is_string: bool, block_bytes: Option<usize>) -> Option<usize> {
        match self {
            Self::Small if is_string => None, // their chunks are short instead
            Self::Raw | Self::BitshuffleZstd => block_bytes,
            // tiers and bins limit the length of a block
            _ if !is_string => block_bytes.or(Some(usize::MAX)),
            _ => block_bytes,
        }
    }

    /// Refuses a profile that this build cannot write.
    pub(crate) fn check_built(self) -> Result<()> {
        let mut all = [false, true].into_iter().flat_map(|string| self.candidates(string, false).iter());
        all.try_for_each(|candidate| candidate.encoder.check_built())
    }
}

/// Parses a [name](Profile::name), such as `"small"`. If the string is not a name, fails with an
/// error that lists the names.
impl FromStr for Profile {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::bad_argument(format!("unknown profile {name:?}; expected one of {names}"))
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
