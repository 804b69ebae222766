//! What writers choose from, and how they estimate what a choice would store.
//!
//! A [`Profile`] lists encodings and their weights. Each is estimated from a [`Sample`] of the
//! part, by the bits of its coded integers. A [`Search`] says what may be used, and how thoroughly.

mod estimate;
mod profile;
mod sample;

#[cfg(test)]
pub(super) use estimate::predictions;
pub(super) use estimate::{
    CostModel, best_tier_transform, best_weights, bin_predictions, bit_lengths, drop_first_rows, refine,
    transform_blocks, transforms,
};
pub use profile::Profile;
pub(super) use profile::{Candidates, SKIP_MARGIN_DIVISOR, WeightedEncoder};
pub use sample::{Idea, Search};
pub(super) use sample::{Sample, SampledPart, SampledRanges};
