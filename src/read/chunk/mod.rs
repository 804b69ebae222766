//! One chunk: found, read, verified, and opened as far as a read needs it.
//!
//! An open chunk is in one of three states ([`open_chunk`]): its samples are read individually; its
//! block index is in memory and blocks are read as samples need them; or the whole body is in
//! memory. If the file is not in memory, reading one sample uses the first state for raw chunks
//! that were verified before, and the second for chunks with blocks. Reading most of a chunk uses
//! the third. Verified blocks are recorded for the whole file, so that no byte is verified twice,
//! unless the policy of the reader is [`Verification::Always`]. If a file is in memory and the
//! parts of a chunk are stored raw, they are used in place ([`part_ranges`]).
//!
//! [`Verification::Always`]: crate::Verification::Always

pub(in crate::read) mod chunk_bytes;
pub(in crate::read) mod copied_chunk;
pub(in crate::read) mod facts;
pub(in crate::read) mod open_chunk;
pub(in crate::read) mod part_ranges;
