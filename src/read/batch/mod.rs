//! Many samples at once: plan, fetch, decode.
//!
//! A [`plan`] sorts the samples, finds the chunk of each, and decides what is read of it: the
//! whole chunk, some blocks, or the samples' own bytes. Its ranges are coalesced into requests
//! ([`coalesce`](crate::open::coalesce)), which a source reads at the same time, and then each task
//! is decoded to where its samples belong. [`gather`] does all of that in one call and decodes some
//! requests before it reads the next ones; [`stages`] give each step to a caller who runs it
//! elsewhere. The first sample that fails determines the error, whatever was read first.

pub(in crate::read) mod gather;
#[cfg(feature = "rayon")]
pub(in crate::read) mod parallel;
pub(in crate::read) mod plan;
pub mod stages;
pub(in crate::read) mod tasks;
pub(in crate::read) mod waves;
