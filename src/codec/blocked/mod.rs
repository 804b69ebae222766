//! Chapter 5: encodings of blocks, each decoded without the others.
//!
//! An encoding implements the traits of `block_codec.rs` for one block. `one_block.rs` and
//! `encoding.rs` make encodings of parts of it: of a part that is one block, and of one in several,
//! each with a checksum (5.12). `front.rs` is what precedes several blocks, and `part.rs` a part of
//! which perhaps only front and some blocks were read. `ends.rs` decides where writers end blocks.

mod bin_choice;
mod bin_layers;
mod bins;
mod block_codec;
mod combination;
mod encoding;
mod ends;
mod exponents;
mod front;
mod one_block;
mod part;
mod raw;
mod residuals;
mod tiers;
mod two_blocks;

pub(super) use bins::BinBlocks;
#[cfg(feature = "zstd")]
pub(super) use block_codec::NO_TABLE;
#[cfg(feature = "zstd")]
pub(super) use block_codec::VisitPlan;
pub(super) use block_codec::{Block, BlockCodec, BlockEncoder, table_number};
pub(super) use combination::BinChoice;
pub(super) use encoding::Blocked;
pub(super) use ends::{block_ends, number_ends};
pub(super) use exponents::ExponentBlocks;
pub(crate) use front::{FRONT_HEAD_BYTES, check_front, first_block_elements, front_bytes};
pub(super) use front::{most_front_bytes, seal};
pub(super) use one_block::OneBlock;
pub(crate) use part::{BlockedCodec, BlockedPart};
pub(super) use raw::RawBlocks;
pub(super) use residuals::ResidualBlocks;
pub(super) use tiers::{KeptTables, TABLE_BYTES as TIER_TABLE_BYTES, wrong_length};

/// The stored bytes of a chunk from which on its blocks are read alone, by position: a shorter one
/// is read whole, with one request.
pub(crate) const LEAST_IN_BLOCKS: usize = 8 << 10;
