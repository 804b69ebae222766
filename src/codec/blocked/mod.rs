//! Blocks (chapter 5.12): a part is divided into blocks, so that reading a sample costs one block
//! instead of a whole chunk.
//!
//! To verify a checksum, a reader must read all bytes that it covers. Without blocks, reading a
//! sample of 2 KiB would therefore mean reading, checking and decoding its whole chunk. Smaller
//! chunks do not help, because each has its own header, index entry and tables. Blocks share the
//! tables of their part and cost 12 bytes each.
//!
//! ```text
//! index_bytes | block_count | tables | entry 0, 1, .. | zeros | index_crc | block 0 | block 1 | ..
//!                                      entry: end, stored_end, block_crc
//! ```
//!
//! To write a part:
//!
//! 1. Choose where blocks end, at about 8 KiB of decoded elements and at the ends of samples.
//! 2. Plan the whole part. The encoding chooses tables that suit all blocks.
//! 3. Encode each block on its own with these tables. Prediction restarts, and nothing refers to
//!    another block. Pad the block to the alignment of the encoding, and record its ends and its
//!    CRC.
//! 4. When the body is complete, set `index_crc`, which covers the body up to that field, including
//!    the part table, validity and shape.
//!
//! To read some elements, parse the block index, and find the first and the last block by a binary
//! search of the ends. For each block, check its entry, compare its CRC, and decode it. Entries
//! store ends, which must ascend, so blocks cannot overlap. Only the entries that are used are
//! checked, because checking all entries would cost as much as reading a sample.
//!
//! A part that is a single block has no block index. It consists of tables, zeros up to the
//! alignment, and the block; the checksum of the chunk covers all of them. Small chunks use this
//! form. The decoder of a block does not distinguish the two forms. Blocks have no checkpoints,
//! because counting from the start of a block costs less than checkpoints would.
//!
//! `part.rs` has the stored bytes of a part and the block index. `encoding.rs` has the interfaces
//! of encodings, and makes encodings of parts from encodings of blocks. `raw.rs` has the two
//! trivial encodings, and `stored_block.rs` exports blocks to other decoders.

mod encoding;
mod part;
mod raw;
mod stored_block;

#[cfg(feature = "zstd")]
pub(super) use encoding::NO_TABLE;
pub(super) use encoding::{BlockCodec, BlockEncoder, Blocked, Encoder, VisitPlan, WORD_LIMITS, table_number};
pub(crate) use part::{
    BLOCK_INDEX_HEADER_BYTES, Block, Codec, Encoding, MIN_BLOCKED_BYTES, StoredPart, block_index_bytes,
    check_block_index, first_block_elements,
};
pub(super) use part::{BlockLimits, max_block_index_bytes, seal};
pub(super) use raw::{Constant, RawBlocks};
pub use stored_block::{BlockScratch, StoredBlock};
