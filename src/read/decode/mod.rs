//! Decodes chunks to the memory of the caller.
//!
//! A [`decoder`] has one chunk open and decodes the tasks of a plan: without I/O, on any thread, in
//! reused memory. Samples of a fixed shape go straight to their destination ([`output`]). Ragged
//! and nested samples are staged until the lengths of all samples are known ([`staging`]). For
//! several threads, a plan is divided into [`segments`] whose destinations do not overlap, so no
//! lock is needed.

pub(in crate::read) mod decoder;
pub(in crate::read) mod output;
pub(in crate::read) mod segments;
pub(in crate::read) mod staging;
