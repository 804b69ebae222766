//! Chapters 5.13 to 5.15: bins. An element is the bin of its window, coded by rANS, and its offset
//! in it.
//!
//! `tables.rs` has what a file stores: the tables of a part, and the sections of a block.
//! `mapping.rs` is any of the mappings, integers that stand for elements; `dictionaries.rs` and
//! `multiples.rs` have them. `options.rs` and `filters.rs` say which elements are coded, and how
//! they are predicted. `codec.rs` puts the layers together. Writers choose mapping, options and
//! transform in `choice.rs`, and bins, classes and frequencies in `plan.rs`.
//!
//! The errors of all rules of bins are here.

mod choice;
mod codec;
mod dictionaries;
mod filters;
mod mapping;
mod multiples;
mod options;
mod plan;
mod tables;

pub(super) use codec::BinBlocks;
pub(super) use dictionaries::DictionaryPlan;
pub(super) use filters::FilterPlan;
pub(super) use mapping::Numbers;
pub(super) use multiples::MappedScratch;
pub(super) use options::{Marks, Present};
pub(super) use plan::{BinChoice, BinPlan};
pub(super) use tables::{BinTableCache, WindowScratch};

use crate::kernel::Width;
use crate::{Error, Result};

#[cold]
fn cut() -> Error {
    malformed_tables("they do not end where table_bytes says")
}

#[cold]
fn malformed_tables(what: &str) -> Error {
    Error::corrupt("R-5.18", format!("the tables of bins: {what}"))
}

#[cold]
fn malformed_block(what: &str) -> Error {
    Error::corrupt("R-5.19", format!("a block of bins: {what}"))
}

#[cold]
fn malformed_mapping(what: &str) -> Error {
    Error::corrupt("R-5.20", format!("the mapping of bins: {what}"))
}

#[cold]
fn malformed_mapped(what: &str) -> Error {
    Error::corrupt("R-5.21", format!("a block of bins with a mapping: {what}"))
}

#[cold]
fn malformed_option(what: &str) -> Error {
    Error::corrupt("R-5.22", format!("the options of bins: {what}"))
}

#[cold]
fn malformed_marks(what: &str) -> Error {
    Error::corrupt("R-5.23", format!("a block of bins with options: {what}"))
}

/// Returns a mapping's field of the bytes of a number.
fn number_width(bytes: u8, max_bytes: usize) -> Result<Width> {
    let width = Width::from_bytes(bytes.into()).filter(|width| width.bytes() <= max_bytes);
    width.ok_or_else(|| malformed_mapping(&format!("numbers of {bytes} bytes")))
}
