//! Chapter 5.13: bins. An element is the bin of its window, coded by rANS, and its offset in it.
//!
//! `tables.rs` has what the front states, `stored_block.rs` the sections of a block, `mappings`
//! integers that stand for elements, and `options` which elements are coded. Writers choose bins in
//! `partition.rs`, and classes and frequencies in `classes.rs`; `plan.rs` has the result.

mod class_codes;
mod classes;
mod frequencies;
mod mappings;
mod options;
mod partition;
mod plan;
mod stored_block;
mod tables;

pub(super) use mappings::{
    Bases, FoundPalettes, MappedBlock, MappedScratch, Mapping, Multiple, Numbers, PaletteOrder, Quotient,
    WantedPalettes, find_multiple, find_palettes, find_quotients, find_upper_bits,
};
pub(super) use options::{FilterBlock, FilterPlan, Gaps, Marks, Present};
pub(super) use plan::{BinPlan, PlannedPart, planes_of};
pub(super) use stored_block::{StoredBins, WindowScratch};
pub(super) use tables::{BinTables, KeptBins, table_bytes};
