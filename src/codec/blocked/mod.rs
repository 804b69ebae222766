//! Chapter 5.12: encodings whose stored bytes are a front and blocks, each decoded and checked
//! without the others.
//!
//! `front.rs` is the front; `part.rs` a part of which perhaps only front and some blocks were read.
//! An encoding of one block implements the traits of `block_codec.rs`; `encoding.rs` makes it one
//! of chapter 5. `ends.rs` decides where writers end blocks.

mod bin_choice;
mod bin_layers;
mod bins;
mod block_codec;
mod combination;
mod encoding;
mod ends;
mod exponents;
mod front;
mod part;
mod raw;
mod residuals;
mod tiers;
mod two_blocks;

pub(super) use bins::BinBlocks;
#[cfg(feature = "zstd")]
pub(super) use block_codec::NO_TABLE;
pub(super) use block_codec::{Block, BlockCodec, BlockEncoder, table_number};
pub(super) use combination::BinChoice;
pub(super) use encoding::Blocked;
pub(super) use ends::block_ends;
pub(super) use exponents::ExponentBlocks;
pub(crate) use front::{FRONT_HEAD_BYTES, check_front, first_block_elements, front_bytes};
pub(super) use front::{most_front_bytes, seal};
pub(crate) use part::{BlockedCodec, BlockedPart};
pub(super) use raw::RawBlocks;
pub(super) use residuals::ResidualBlocks;
pub(super) use tiers::{KeptTables, wrong_length};

/// The stored bytes of a chunk from which on its blocks are read alone, by position: a shorter one
/// is read whole, with one request.
pub(crate) const LEAST_IN_BLOCKS: usize = 8 << 10;
