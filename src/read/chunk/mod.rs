//! One chunk: read, checked, and opened as far as a read needs it.
//!
//! A chunk is in one of three states ([`open_chunk`]): its position is known; its block index and
//! tables are parsed and checked; or its values are decoded. A read of one sample takes the second
//! state and decodes a block; a read of most of a chunk takes the third. What was checked is noted
//! for the whole file, block by block, so that no byte is checked twice unless the policy of the
//! reader asks for that. Chunks of files in memory whose values are stored raw are used in place.

pub(in crate::read) mod chunk_bytes;
pub(in crate::read) mod copied_chunk;
pub(in crate::read) mod facts;
pub(in crate::read) mod open_chunk;
pub(in crate::read) mod part_ranges;
