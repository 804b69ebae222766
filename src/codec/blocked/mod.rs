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
pub(super) use encoding::{BlockCodec, BlockEncoder, Blocked, Encoder, VisitPlan, WORDS, table_number};
pub(crate) use part::{
    Block, Codec, Encoding, FRONT_HEAD_BYTES, LEAST_IN_BLOCKS, StoredPart, check_front, first_block_elements,
    front_bytes,
};
pub(super) use part::{BlockLimits, most_front_bytes, seal};
pub(super) use raw::{Constant, RawBlocks};
pub use stored_block::{BlockScratch, StoredBlock};
