//! Reads many samples at once: plan, fetch, decode.
//!
//! Reading samples one by one costs a request and a decode for each sample. A batch pays that cost
//! once per chunk:
//!
//! 1. *Plan* ([`plan`], [`tasks`]). The samples are sorted, so that each chunk is visited once. A
//!    task is created for each chunk; it records which bytes to read (the whole chunk, some blocks,
//!    or only the samples' own bytes) and which positions of the batch they fill.
//! 2. *Fetch* ([`waves`]). The byte ranges of all tasks and columns are coalesced into requests
//!    ([`coalesce`](crate::open::coalesce)), which a source serves in parallel. Requests follow the
//!    order of the file, not the order of the batch.
//! 3. *Decode*. Each task is decoded straight to the positions of its samples. Tasks are
//!    independent, so any thread can decode any of them.
//!
//! [`gather`] runs all steps in one call, and decodes the bytes of some requests before it sends
//! the next ones. [`stages`] exposes the steps to callers that schedule them themselves. Whatever
//! the order of the I/O, a call returns the error of the first failing sample.

pub(in crate::read) mod gather;
#[cfg(feature = "rayon")]
pub(in crate::read) mod parallel;
pub(in crate::read) mod plan;
pub mod stages;
pub(in crate::read) mod tasks;
pub(in crate::read) mod waves;
