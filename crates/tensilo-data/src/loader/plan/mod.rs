//! The first stage: which samples, which files, which chunks of them.
//!
//! A step of the [`schedule`] is arithmetic on the order, so that any thread can take any step. Its
//! samples are sorted and divided among the files that have them ([`segments`]), and each file gets a
//! [`ReadPlan`](tensilo::stages::ReadPlan).
//!
//! Where a file is an object or on a network, opening it takes a round trip, and so do finding its
//! chunks by the index and reading their block indexes; and a batch may have samples of hundreds of
//! files. So all files take each step before any takes the next one ([`files`]): a step prefetches
//! what the next one reads, and by then the answers are on their way together. The number of round
//! trips does not depend on the number of files, and no thread waits for each.

pub(in crate::loader) mod columns;
pub(in crate::loader) mod files;
pub(in crate::loader) mod schedule;
pub(in crate::loader) mod segments;
