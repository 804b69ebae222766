//! The inputs of a choice: a sample of the part, and a [`Search`], which sets what encoders may use
//! and how thoroughly they choose.
//!
//! A sample of a part has some of its blocks, and short segments from the middle of blocks for
//! quick estimates. Prediction restarts in each block, so the cost of the sampled blocks is
//! representative. It includes their first rows, which have no row above them to predict from.
//! Estimates from segments omit the first row of each segment.
//!
//! An earlier version sampled ranges at fixed intervals. Each range happened to begin at the start
//! of a tensor, so estimates counted its first row as a quarter of all rows. As a result, writers
//! did not use prediction for hidden states, although it makes them 15 % smaller.
//!
//! Two measurements show how good the choices are. The *regret* of a choice is its excess size over
//! the smallest of all combinations. An exhaustive [`Search`] finds the smallest one by encoding
//! the whole part with every combination, which is hundreds of times slower. An *ablation* leaves
//! out one [`Technique`] at a time, and measures how many more bytes the file takes without it.

use crate::codec::part::{Geometry, RawPart};
use crate::format::index::BLOCKS;
use std::ops::Range;

/// One block in this many is sampled.
const BLOCK_SAMPLING_INTERVAL: usize = 8;
/// The minimum number of sampled blocks, if the part has that many.
const MIN_BLOCKS: usize = 2;
/// The maximum number of sampled blocks.
const MAX_BLOCKS: usize = 16;
/// The minimum number of elements that are sampled as one block if the part is a single block.
const MIN_BLOCK_ELEMENTS: usize = 4096;
/// One element in this many is in a segment, and at least [`MIN_SAMPLED_ELEMENTS`] in total.
const SEGMENT_SAMPLING_INTERVAL: usize = 16;
const MIN_SAMPLED_ELEMENTS: usize = 4096;
/// The maximum number of segments, and the minimum number of rows in each.
const MAX_SEGMENTS: usize = 8;
const MIN_ROWS: usize = 2;

/// Sampled ranges of elements, in memory that is reused.
#[derive(Default)]
pub(crate) struct SampledRanges {
    pub bytes: Vec<u8>,
    /// The element at which each range ends.
    pub ends: Vec<u32>,
}

impl SampledRanges {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn add(&mut self, element_bytes: usize, raw: &[u8], elements: Range<usize>) {
        let bytes = elements.start * element_bytes..elements.end * element_bytes;
        self.bytes.extend_from_slice(raw.get(bytes).unwrap_or(&[]));
        // a part has fewer than 2^32 elements
        self.ends.push((self.bytes.len() / element_bytes) as u32);
    }
}

#[derive(Default)]
pub(crate) struct PartSample {
    /// Whole blocks.
    pub blocks: SampledRanges,
    /// Ranges for quick estimates.
    pub segments: SampledRanges,
}

impl PartSample {
    fn set(&mut self, RawPart { geometry, raw }: RawPart<'_>) {
        let Self { blocks, segments } = self;
        blocks.clear();
        segments.clear();
        let w = geometry.element_bytes.max(1);
        let count = raw.len() / w;
        let mut all: Vec<Range<usize>> = geometry.block_ranges().collect();
        if !geometry.is_in_blocks() {
            // whole samples or rows, and at least two rows of each dimension
            let rows = MIN_BLOCK_ELEMENTS.max(MIN_ROWS * geometry.longest_row(count / MIN_ROWS));
            let length = rows.next_multiple_of(geometry.row_up_to(2 * MIN_BLOCK_ELEMENTS as u32) as usize); // exact
            all = (0..count.div_ceil(length)).map(|i| i * length..count.min((i + 1) * length)).collect();
        }
        let some = (all.len() / BLOCK_SAMPLING_INTERVAL).clamp(MIN_BLOCKS, MAX_BLOCKS);
        for elements in evenly_spaced(&all, some) {
            blocks.add(w, raw, elements.clone());
        }
        let min_elements =
            (count / SEGMENT_SAMPLING_INTERVAL).max(MIN_SAMPLED_ELEMENTS) / MAX_SEGMENTS.min(all.len().max(1));
        for elements in evenly_spaced(&all, MAX_SEGMENTS) {
            // the segment then has at least half of a second row
            let row = geometry.longest_row(elements.len() * 2 / 3);
            let length = min_elements.max(MIN_ROWS * row).min(elements.len());
            // aligned, so prediction restarts at the same elements as in the block
            let unit = geometry.row_up_to((elements.len() / 2) as u32) as usize; // exact
            let start = elements.start + ((elements.len() - length) / 2).next_multiple_of(unit);
            segments.add(w, raw, start..elements.end.min(start + length));
        }
    }
}

/// A part whose stored size encoders estimate, and the sample that their estimates share.
pub(crate) struct SampledPart<'a> {
    pub geometry: Geometry<'a>,
    pub raw: &'a [u8],
    pub sample: PartSample,
}

impl<'a> SampledPart<'a> {
    pub(crate) fn new(part: RawPart<'a>, mut sample: PartSample) -> Self {
        sample.set(part);
        Self { geometry: *part.geometry, raw: part.raw, sample }
    }

    #[cfg(feature = "zstd")]
    pub(crate) fn raw_part(&self) -> RawPart<'_> {
        RawPart { geometry: &self.geometry, raw: self.raw }
    }

    /// Returns the number of elements of the part per element of the sample; at least 1.
    pub(crate) fn sample_scale(&self) -> f64 {
        self.raw.len().max(1) as f64 / self.sample.blocks.bytes.len().max(1) as f64
    }
}

/// Returns at most `max_count` items of a slice, evenly spaced.
fn evenly_spaced<T>(all: &[T], max_count: usize) -> impl Iterator<Item = &T> {
    let some = max_count.min(all.len());
    (0..some).filter_map(move |i| all.get((2 * i + 1) * all.len() / (2 * some)))
}

// ---- techniques and searches

macro_rules! techniques {
    ($($(#[$meta:meta])* $technique:ident,)*) => {
        /// A technique that encoders use. An ablation measures what it saves.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Technique {
            $($(#[$meta])* $technique,)*
        }

        impl Technique {
            /// All techniques.
            pub const ALL: [Self; [$(Self::$technique),*].len()] = [$(Self::$technique),*];
        }
    };
}

techniques! {
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
    /// Tier widths chosen for each part. Without this, the widths are 2, 3 and 4 bits.
    TierWidths,
    /// Exponent tiers for elements of 4 and 8 bytes.
    WideExponentTiers,
    /// Prediction from the row above.
    Rows,
    /// The 2-D Lorenzo predictor.
    Lorenzo,
    /// Separable prediction.
    Separable,
    /// Prediction from the previous sample.
    AcrossSamples,
    /// Dictionaries sorted by value.
    Dictionaries,
    /// A dictionary for each channel.
    ChannelDictionaries,
    /// Dictionaries sorted by frequency.
    FrequencyDictionaries,
    /// Float multiples.
    FloatMultiples,
    /// Float multiples with a divisor that is not a power of two.
    Divisors,
    /// Details of float multiples: the low-order bits of elements, which the numbers do not
    /// contain.
    Details,
    /// Int multiples.
    IntMultiples,
    /// Numbers that are the upper bits of floats.
    UpperBits,
    /// One base per part instead of one per block.
    PartBase,
    /// Gaps.
    Gaps,
    /// Outliers.
    Outliers,
    /// Filters.
    Filters,
    /// Several classes of groups.
    Classes,
}

impl Technique {
    /// Returns the techniques that must be allowed before the encoding with this id is tried for
    /// elements of this size. Returns none if the encoding is always tried.
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
    /// The techniques that are left out, one bit for each.
    without: u64,
    /// Whether all combinations are encoded, not only the ones with the smallest estimates.
    pub(crate) is_exhaustive: bool,
}

impl Search {
    /// Returns the search that writers use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves out a technique.
    pub fn without(self, technique: Technique) -> Self {
        Self { without: self.without | 1 << technique as u8, ..self } // fewer than 64 techniques
    }

    /// Encodes with all combinations and keeps the smallest result. This is hundreds of times
    /// slower.
    pub fn exhaustive(self) -> Self {
        Self { is_exhaustive: true, ..self }
    }

    pub(crate) fn has(&self, technique: Technique) -> bool {
        self.without & 1 << technique as u8 == 0
    }
}
