//! Bins (chapters 5.13 to 5.15): an entropy code that vector instructions can decode, and the
//! mappings and options that prepare integers for it.
//!
//! A bin is a range of `2^K` integers that begins at a multiple of its length. An integer is coded
//! in two steps: rANS codes its bin, and `K` raw bits store its offset in the bin. Bins are narrow
//! where integers cluster and wide where integers are noise. With up to 64 bins, the code follows
//! the distribution even among integers of the same bit length.
//!
//! To encode a part:
//!
//! 1. *Gaps*: if one value fills whole stretches, store where they are, and code only the other
//!    elements.
//! 2. *Mapping*: if elements are coarser than their type, such as prices stored as f64, replace
//!    each with a small integer, its *number*. Elements that their number does not reproduce are
//!    patches, which are stored unchanged.
//! 3. *Prediction*: replace numbers with the zigzag residuals of a transform, or of fitted
//!    *filters*.
//! 4. *Window*: choose which 16 bits of the integers the bins code. Bytes below the window are
//!    stored raw. Bits above it are zero, except in a few *outliers*, which are stored with their
//!    positions.
//! 5. *Bins and classes*: partition the window into at most 64 bins. Assign each group of 64
//!    integers to one of up to four classes, and scale the frequencies of the bins in a class to a
//!    sum of 256.
//! 6. *rANS*: integer `i` of each group belongs to state `i`. Encode from the last group to the
//!    first, and write the stream from its end to its start, so that a decoder reads the groups and
//!    the stream forwards.
//!
//! Decoding undoes these layers in reverse. The 64 states of a group advance independently of each
//! other. The lower byte of a state is looked up in a table of 256 entries to find its bin, and the
//! state is multiplied by the frequency of the bin. States that have become too small then take the
//! next bytes of the stream, in order. Each group depends on the group before it, so two blocks are
//! decoded at once: one block advances while the other waits.
//!
//! Four invariants hold. Tables belong to the part, and a block needs no other block. Bins cover
//! the window without gaps. The frequencies of a class add up to 256. At the end of a block, the
//! stream is used up and the states have their initial values from the encoder; a reader
//! refuses a block that ends in any other way.
//!
//! Contexts for single elements, more classes and transposed rows were tried and rejected. They
//! save at most 3 %, only in a few data sets, and cost more look-ups, encoding time or code.
//!
//! `tables.rs` has the stored form of bins, `mapping.rs` the code that all mappings share,
//! `dictionaries.rs` and `multiples.rs` the mappings, and `options.rs` and `filters.rs` the
//! options. `codec.rs` combines the layers. Writers choose the mapping, options and transform in
//! `choice.rs`, and the bins and classes in `plan.rs`. This file has the errors for all rules about
//! bins.

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

/// Parses the field `number_bytes` of a mapping.
fn number_width(bytes: u8, max_bytes: usize) -> Result<Width> {
    let width = Width::from_bytes(bytes.into()).filter(|width| width.bytes() <= max_bytes);
    width.ok_or_else(|| {
        malformed_mapping(&format!("number_bytes is {bytes}; it must be 1, 2, 4 or 8, and at most {max_bytes}"))
    })
}
