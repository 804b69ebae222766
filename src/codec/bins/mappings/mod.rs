//! Chapter 5.14: mappings, from the numbers that bins code to elements.
//!
//! `palette.rs`, `quotient.rs` and `multiple.rs` are the mappings: their fields, how they decode,
//! and how writers find them. `mapping.rs` is any of them, as a reader meets it in a block;
//! `numbers.rs` makes the numbers of a part.

mod mapping;
mod multiple;
mod numbers;
mod palette;
mod quotient;

pub(crate) use mapping::{MappedBlock, Mapping, Widths};
pub(crate) use multiple::{Multiple, find_multiple, find_upper_bits};
pub(crate) use numbers::{Bases, Numbers};
pub(crate) use palette::{FoundPalettes, PaletteOrder, WantedPalettes, find_palettes};
pub(crate) use quotient::{MappedScratch, Quotient, find_quotients};
