//! Profiles: the encodings that a writer chooses from, and what their bytes weigh.
//!
//! Of the candidates, the one with the fewest weighted bytes is chosen, so a slow encoding has to
//! save more than a fast one. Each profile also has its block size and chunk size; text and bytes
//! have candidates of their own.

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
pub(crate) const SKIP_MARGIN_DIVISOR: u64 = 16;

/// An encoder that may be chosen, and its weight.
#[derive(Clone, Copy)]
pub(crate) struct WeightedEncoder {
    pub encoder: &'static dyn Encoder,
    /// The factor of the stored bytes when encodings are compared. The fewest win, so an encoding
    /// that decodes more slowly has to save more.
    pub weight: u64,
    /// See [`SKIP_MARGIN_DIVISOR`].
    pub skip_margin_divisor: u64,
}

impl WeightedEncoder {
    pub(crate) fn cost(&self, stored_bytes: usize) -> u64 {
        u64_of(stored_bytes).saturating_mul(self.weight)
    }
}

/// The encoders that a profile chooses from, besides raw.
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

/// Estimates assume that the lower bits of residuals are noise. For residuals that are multiples of
/// a number, bins take up to a quarter less, which an encoded sample shows.
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
/// Those that see repetitions which are farther apart than a block.
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
    pub(crate) fn has_zstd_dictionaries(self) -> bool {
        matches!(self, Self::Balanced | Self::Small)
    }

    /// Returns the block size in decoded bytes, unless [`WriterOptions::block_bytes`] sets it;
    /// `None` if the profile writes each part as one block.
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
        let weights =
            all.filter(|candidate| candidate.encoder.name() == base_name(encoding)).map(|candidate| candidate.weight);
        weights.max().unwrap_or(100)
    }

    /// Returns the encoders for the values of a column, or for those that are in several blocks.
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

    /// Returns the encoders that are tried for one block of all in addition to those for several.
    pub(crate) fn candidates_for_whole(self, is_string: bool) -> Candidates {
        match self {
            _ if is_string => self.candidates(true, false),
            Self::Small => SMALL_WHOLE,
            _ => NOTHING,
        }
    }

    /// Returns the block size of text and bytes, or of numbers, for a block size that was asked
    /// for. `None` for one block.
    pub(crate) fn block_bytes_of(self, is_string: bool, block_bytes: Option<usize>) -> Option<usize> {
        match self {
            Self::Small if is_string => None, // chunks of the length of blocks
            Self::Raw | Self::BitshuffleZstd => block_bytes,
            // tiers and bins need blocks, if only of the longest
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

/// Parses a [name](Profile::name), such as `"small"`. Fails for any other text, and lists the
/// names.
impl FromStr for Profile {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::bad_argument(format!("unknown profile {name:?}; profiles are {names}"))
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
