//! Where a sample is: from its index to the entry of its chunk.
//!
//! A column's chunks are in runs of the footer. If all chunks of a run have as many samples, the
//! entry is a division; otherwise a bisection over the pages of the index. A page is checked when
//! it is first touched. A salvaged file has no pages that could be trusted: its chunks are a list
//! in memory, in which samples may be lost.

pub(in crate::read) mod bitmap;
pub(in crate::read) mod chunk_location;
pub(in crate::read) mod listed;
pub(in crate::read) mod lookup;
pub(in crate::read) mod losses;
