//! Chapter 5.14: mappings, from the numbers that bins code to elements.
//!
//! `palette.rs`, `quotient.rs` and `multiple.rs` are the mappings, `mapping.rs` any of them, and
//! `mapped_block.rs` the sections of a block before its bins. Writers find mappings in the files
//! named `*_writer.rs`, and make numbers in `numbers.rs`.

mod faults;
mod mapped_block;
mod mapping;
mod multiple;
mod multiple_writer;
mod numbers;
mod palette;
mod palette_writer;
mod quotient;
mod quotient_numbers;
mod quotient_writer;

pub(super) use faults::cut;
pub(in crate::codec) use mapped_block::MappedBlock;
pub(in crate::codec) use mapping::Mapping;
pub(in crate::codec) use multiple::Multiple;
pub(in crate::codec) use multiple_writer::{find_multiple, find_upper_bits};
pub(in crate::codec) use numbers::{Bases, Numbers};
pub(in crate::codec) use palette_writer::{FoundPalettes, PaletteOrder, WantedPalettes, find_palettes};
pub(in crate::codec) use quotient::MappedScratch;
pub(in crate::codec) use quotient::Quotient;
pub(in crate::codec) use quotient_writer::find_quotients;
