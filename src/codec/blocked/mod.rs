//! Chapter 5.12: parts in one block or in several.
//!
//! `part.rs` has the stored bytes of a part, perhaps only the front and some blocks. `encoding.rs`
//! has the interfaces of encodings, and makes encodings of parts out of encodings of blocks;
//! `raw.rs` has the two that need no coding. `stored_block.rs` is a block for other decoders.

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
