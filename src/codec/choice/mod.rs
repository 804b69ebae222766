//! How writers choose the encoding of a part, and estimate the size that a choice would have.
//!
//! A part can be stored with several encodings, and each has transforms, mappings and options.
//! Encoding the part with every combination would find the smallest result, but would take hundreds
//! of times longer. Writers hold a tournament instead. Each round has fewer candidates than the
//! round before, and spends more time on each of them:
//!
//! 1. A [`Profile`] lists candidate encodings and their weights. The *cost* of an encoding is its
//!    stored size times its weight. An encoding that decodes slowly has a higher weight, so it must
//!    save more to win.
//! 2. A [`PartSample`] of the part is taken: evenly spaced whole blocks, and short segments from
//!    the middle of blocks.
//! 3. Each candidate estimates its stored size. It transforms the sample, counts the symbols of the
//!    coded integers, and adds their cost to the number of bits that would be stored raw. All
//!    transforms are compared on the segments, but only the best few on the blocks.
//! 4. Candidates are sorted by estimated cost. A candidate is skipped if its estimate exceeds the
//!    best cost so far by more than a margin, which is 1/16 by default.
//! 5. A candidate can then make a second estimate by encoding the sampled blocks. Bins do this with
//!    their best few combinations, and keep the smallest. The margin of this estimate is only
//!    1/128.
//! 6. The remaining candidates encode the part. The cheapest one wins if it saves more than 5 %.
//!    Otherwise, the part is stored raw.
//!
//! An estimate decides only which encodings are tried. A wrong estimate makes the file larger, but
//! never changes values. A [`Search`] restricts what encoders may use, or replaces the tournament
//! by encoding with all combinations. Such searches measure how good the choices are.
//!
//! `profile.rs` has the candidates and their weights, `sample.rs` the samples and searches, and
//! `estimate.rs` the estimates of tiers and bins. `bins/choice.rs` has the combinations of bins.
//! `ChunkEncoder` runs the tournament, and tries its winner first for the next chunk.

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
pub(super) use sample::{PartSample, SampledPart, SampledRanges};
pub use sample::{Search, Technique};
