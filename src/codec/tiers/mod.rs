//! Chapters 5.7 to 5.9: encodings in tiers of short codes, the fastest to decode.
//!
//! `stream.rs` has tables and blocks as readers meet them, `plan.rs` writes them; `exponents.rs`
//! and `residuals.rs` are the encodings.

mod exponents;
mod plan;
mod residuals;
mod stream;

pub(super) use exponents::ExponentBlocks;
pub(super) use plan::{Histogram, TierEncodeScratch, TierPlan, count, histogram, sum_of};
pub(super) use residuals::ResidualBlocks;
#[cfg(test)]
pub(super) use stream::RANKS;
pub(super) use stream::{KeptTables, TABLE_BYTES as TIER_TABLE_BYTES, TierHead, TierScratch};
