//! From the bytes of a chunk to the memory of the caller.
//!
//! A [`decoder`] holds one chunk and decodes tasks of a plan: no I/O, any thread, in memory that it
//! reuses. Samples of a fixed shape go straight to their destination. Ragged ones are staged until
//! the lengths of all are known. A plan is divided into [`segments`] whose destinations do not
//! overlap, so that threads need no lock.

pub(in crate::read) mod decoder;
pub(in crate::read) mod output;
pub(in crate::read) mod segments;
pub(in crate::read) mod staging;
