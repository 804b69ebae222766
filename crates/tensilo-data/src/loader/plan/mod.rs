//! The first stage: which samples, in which files, in which chunks.
//!
//! A step of the [`schedule`] is computed from its number and the order, so any thread can take any
//! step. Its samples are sorted and divided among the files that have them ([`segments`]), and each
//! segment gets a [`ReadPlan`](tensilo::stages::ReadPlan).
//!
//! A plan has steps of its own, because each read depends on the one before: open the file, read
//! the index pages that locate the chunks, and read the block indexes of the chunks. For objects
//! and for files on a network, each of these is a round trip, and a batch can have samples from
//! hundreds of files. So the plans of all files complete a step before any of them starts the next
//! one ([`files`]). Each step prefetches the ranges that the next step reads, so the requests of
//! all files are in flight together. The number of round trips then does not depend on the number
//! of files, and no thread waits for the files one by one.

pub(in crate::loader) mod columns;
pub(in crate::loader) mod files;
pub(in crate::loader) mod schedule;
pub(in crate::loader) mod segments;
