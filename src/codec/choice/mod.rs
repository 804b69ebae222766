//! What writers choose from, and how they estimate what a choice would store.
//!
//! A [`Profile`] lists encodings and their weights. Each is estimated from a [`Sample`] of the
//! part: `estimate.rs` estimates bits of coded integers, `predict.rs` finds predictions. A
//! [`Search`] says what may be used, and how thoroughly.

mod estimate;
mod predict;
mod profile;
mod sample;
mod search;

pub(super) use estimate::{Coded, drop_first_rows, refine};
#[cfg(test)]
pub(super) use predict::predictions;
pub(super) use predict::{
    best_tier_transform, best_weights, bin_predictions, bit_lengths, transform_blocks, transforms,
};
pub use profile::Profile;
pub(super) use profile::{Candidates, TRUSTED_TO_ONE_IN, WeightedEncoder};
pub(super) use sample::{Pieces, Sample, SampledPart};
pub use search::{Idea, Search};
