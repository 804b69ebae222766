//! Scratch memory: the buffers, contexts and cached tables that encoders and decoders reuse.
//!
//! Encodings keep state between parts here and nowhere else. An estimate leaves its choices here
//! for the encoder (`tier_transform`, `bin_choice`). Apart from these, results do not depend on the
//! previous contents of a scratch.

use super::bins::{
    BinChoice, BinPlan, BinTableCache, DictionaryPlan, FilterPlan, MappedScratch, Marks, Numbers, Present,
    WindowScratch,
};
use super::choice::{PartSample, SampledPart, Search};
use super::part::RawPart;
use super::tiers::{TierEncodeScratch, TierHeader, TierScratch, TierTableCache};
use super::transform::Transform;
use super::zstandard::ZstdEncoderDictionary;
#[cfg(feature = "zstd")]
use super::zstandard::{FrameEncodeScratch, FrameScratch};
use std::sync::Arc;

/// Memory and contexts reused by decoders.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    #[cfg(feature = "zstd")]
    pub(super) frames: FrameScratch,
    pub(super) tiers: TierScratch,
    pub(super) tier_tables: TierTableCache,
    pub(super) bin_tables: BinTableCache,
    pub(super) windows: WindowScratch,
    pub(super) mapped: MappedScratch,
    /// Coded integers of the elements that are being decoded.
    pub(super) coded: Vec<u8>,
    /// Coded integers of a second block.
    pub(super) second_coded: Vec<u8>,
    pub(super) gaps: Marks,
    pub(super) outliers: Marks,
    /// The filter of each segment of a block.
    pub(super) filter_codes: Vec<u8>,
    /// Elements outside gaps.
    pub(super) present: Vec<u8>,
    /// A whole block, if only some of its elements are requested.
    pub(super) block: Vec<u8>,
}

/// Memory and contexts reused by encoders.
#[derive(Default)]
pub(crate) struct EncodeScratch {
    pub(super) search: Search,
    #[cfg(feature = "zstd")]
    pub(super) frames: FrameEncodeScratch,
    /// The Zstandard dictionary of the column whose values are encoded.
    pub(super) zstd_dictionary: Option<Arc<ZstdEncoderDictionary>>,
    pub(super) tiers: TierEncodeScratch,
    /// A symbol for each element.
    pub(super) symbols: Vec<u8>,
    pub(super) sample: PartSample,
    /// The planes of the bytes below the top byte.
    pub(super) low_bytes: Vec<u8>,
    /// Coded integers.
    pub(super) coded: Vec<u8>,
    pub(super) words: Vec<u64>,
    pub(super) bins: BinPlan,
    /// The numbers that bins code instead of the elements, if there is a mapping.
    pub(super) numbers: Numbers,
    /// The dictionaries found for the part.
    pub(super) dictionaries: Vec<DictionaryPlan>,
    /// The filters that predict the numbers, if there are any.
    pub(super) filters: FilterPlan,
    pub(super) present: Present,
    /// The choices made when the part was estimated, stored here until the part is encoded.
    pub(super) tier_transform: Option<Transform>,
    pub(super) bin_choice: Option<BinChoice>,
    /// The choice with which bins were last encoded.
    pub(super) last_bin_choice: Option<BinChoice>,
    /// The header planned for the blocks of a part.
    pub(super) header: TierHeader,
    /// The block index and the blocks that a plan produces.
    pub(super) planned: Vec<u8>,
}

impl EncodeScratch {
    /// Samples a part, using the memory of this scratch, and returns the result of `estimate`.
    pub(super) fn estimated<'a, T>(
        &mut self,
        part: RawPart<'a>,
        estimate: impl FnOnce(&mut SampledPart<'a>, &mut Self) -> T,
    ) -> T {
        let mut part = SampledPart::new(part, std::mem::take(&mut self.sample));
        let estimated = estimate(&mut part, self);
        self.sample = part.sample;
        estimated
    }
}
