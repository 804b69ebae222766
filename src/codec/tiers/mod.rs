//! Chapters 5.7 to 5.9: encodings in tiers of short codes, the fastest to decode.
//!
//! `stream.rs` has tables and blocks of tiers, read and written; `encodings.rs` has the encodings.

mod encodings;
mod stream;

pub(super) use encodings::{ExponentBlocks, ResidualBlocks};
#[cfg(test)]
pub(super) use stream::RANKS;
pub(super) use stream::{
    Histogram, TABLE_BYTES as TIER_TABLE_BYTES, TierEncodeScratch, TierHeader, TierPlan, TierScratch, TierTableCache,
    count, histogram, sum_of,
};
