//! Chapter 5.13: bins. An element is the bin of its window, coded by rANS, and its offset in it.
//!
//! `tables.rs` has what the front states, `stored_block.rs` the sections of a block.

mod class_codes;
mod stored_block;
mod tables;

pub(super) use stored_block::{StoredBins, WindowScratch};
pub(super) use tables::{BinTables, KeptBins, table_bytes};
