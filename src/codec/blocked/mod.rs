//! Chapter 5.12: parts in one block or in several.
//!
//! `front.rs` has what precedes the blocks, and `part.rs` the stored bytes of a part, perhaps only
//! the front and some blocks. `forms.rs` makes encodings of parts out of encodings of blocks;
//! `raw.rs` has the two that need no coding.

mod forms;
mod front;
mod part;
mod raw;
mod stored_block;

pub(super) use forms::Blocked;
pub(super) use front::{BlockLimits, FrontWriter, most_front_bytes, seal};
pub(crate) use front::{FRONT_HEAD_BYTES, LEAST_IN_BLOCKS, check_front, first_block_elements, front_bytes};
pub(crate) use part::{Block, Codec, Encoding, StoredPart};
pub(super) use raw::{Constant, RawBlocks};
pub use stored_block::{BlockScratch, StoredBlock};
