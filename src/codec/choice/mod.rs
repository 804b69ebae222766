//! How writers choose the encoding of a part, and estimate what a choice would store.
//!
//! A part can be stored by several encodings, each with transforms, mappings and options. Encoding
//! it with all combinations would find the smallest, hundreds of times slower. Writers hold a
//! tournament instead. Each round has fewer candidates than the one before, and costs more per
//! candidate:
//!
//! 1. A [`Profile`] lists candidate encodings and their weights. The *cost* of an encoding is its
//!    stored bytes times its weight. A slow decoder has a higher weight, so it must save more to
//!    win.
//! 2. A [`Sample`] of the part is taken: whole blocks at even distances, and short segments from
//!    the middle of blocks.
//! 3. Each candidate estimates its stored bytes. It transforms the sample, counts the symbols of
//!    the coded integers, and adds their cost to the bits that would be stored raw. All transforms
//!    are compared on the segments, only the best few on the blocks.
//! 4. Candidates are sorted by estimated cost. A candidate whose estimate exceeds the best cost so
//!    far by more than a margin, 1/16 by default, is skipped.
//! 5. A candidate may then estimate again, by encoding the sampled blocks. Bins do so with their
//!    best few combinations, and keep the smallest. The margin of this estimate is only 1/128.
//! 6. The candidates that are left encode the part. The cheapest one wins if it saves more than
//!    5 %; otherwise the part is stored raw.
//!
//! An estimate decides only which encodings are tried. A wrong estimate costs bytes, but never
//! changes values. A [`Search`] restricts what may be used, or replaces the tournament by encoding
//! all combinations: both serve to measure how good the choices are.
//!
//! `profile.rs` has candidates and weights, `sample.rs` samples and searches, `estimate.rs` the
//! estimates of tiers and bins. `ChunkEncoder` runs the tournament and tries its winner first for
//! the next chunk; `bins/choice.rs` has the combinations of bins.

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
pub(super) use sample::{Sample, SampledPart, SampledRanges};
pub use sample::{Search, Technique};
