//! The table of files: the fault of each, and the check that must refuse it first.
//!
//! Files come from the builder in `support`, with correct checksums. The named fault is therefore
//! the first thing a reader can object to, and a row fails if another check refuses the file
//! earlier.

mod bins;
mod block_indexes;
mod chunks;
mod commits;
mod filters;
mod indexes;
mod intact;
mod lists;
mod mapped;
mod options;
mod parts;
mod schemas;

pub use commits::chunks_of_zeros;
pub use intact::intact;

use crate::support::build::{Build, Chunk, FILE_ID, column, patch, region_range, seal};
use crate::support::regions::u64_at;
use std::fmt;
use tensilo::facts::RegionKind::{self, Footer, IndexPage};

/// The check that must refuse a file first, with its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Opening(&'static str),
    /// The file opens, and verification names this rule first.
    Verifying(&'static str),
    /// As `Verifying`, but only if it decodes.
    Decoding(&'static str),
    /// As `Decoding`, and reading names the second rule.
    Reading(&'static str, &'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening(rule) => write!(f, "opening, {rule}"),
            Self::Verifying(rule) => write!(f, "verify, {rule}"),
            Self::Decoding(rule) => write!(f, "verify with decoding, {rule}"),
            Self::Reading(deep, read) => write!(f, "verify with decoding, {deep}; reading, {read}"),
        }
    }
}

pub struct Row {
    pub name: String,
    pub file: Vec<u8>,
    pub refused: Refusal,
}

fn row(name: impl Into<String>, file: Vec<u8>, refused: Refusal) -> Row {
    Row { name: name.into(), file, refused }
}

const U8: u8 = 9;
const U16: u8 = 10;
const F32: u8 = 3;
const F64: u8 = 4;
const U64: u8 = 12;
const BOOL: u8 = 13;
const UTF8: u8 = 15;
const VARYING: u32 = u32::MAX;
const MAX_CHUNK_BYTES: u32 = u32::MAX - 0xFFFF;
const CONSTANT: u16 = 1;
const ZSTD: u16 = 2;
const EXPONENT_TIERS: u16 = 4;
const RESIDUAL_TIERS: u16 = 5;
const BINS: u16 = 6;
const PLANES_ZSTD: u16 = 7;
/// The bit of an encoding that marks blocks.
const BLOCKS: u16 = 1 << 8;
/// The number of the table of frames that need no dictionary.
const NO_TABLE: [u8; 4] = [0xFF; 4];

fn bytes(extents: &[u32]) -> Vec<u8> {
    column("x", U8, false, extents)
}

/// Two samples of eight bytes, raw.
fn base() -> Vec<u8> {
    let mut build = Build::new(&[bytes(&[8])]);
    build.chunk(&Chunk::of_values(2, (0, 16, b"0123456789abcdef")));
    build.finish(0, &[(0, 1)])
}

/// Returns a file of two such chunks.
fn two_chunks() -> Vec<u8> {
    let mut build = Build::new(&[bytes(&[8])]);
    build.chunk(&Chunk::of_values(1, (0, 8, b"01234567")));
    build.chunk(&Chunk::of_values(1, (0, 8, b"89abcdef")));
    build.finish(0, &[(0, 2)])
}

fn patched(kind: RegionKind, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = base();
    patch(&mut file, kind, at, bytes);
    file
}

/// Offsets in the footer of [`base`]: the facts of the column follow content id, schema and tables,
/// and its run follows them.
const FACTS: usize = 64 + 16 + 4 + 8 + 17 + 4;
const RUN: usize = FACTS + 40 + 16;

/// Returns a file of this column and this chunk only.
fn one_chunk(column: Vec<u8>, chunk: &Chunk) -> Vec<u8> {
    let mut build = Build::new(&[column]);
    build.chunk(chunk);
    build.finish(0, &[(chunk.encoding, 1)])
}

/// Returns all hostile files.
pub fn all() -> Vec<Row> {
    let structure = [schemas::headers(), commits::footers(), commits::trailers(), indexes::indexes()];
    let chunks = [chunks::chunk_headers(), parts::frames(), parts::parts(), parts::tiers(), lists::lists()];
    let blocks =
        [block_indexes::block_indexes(), bins::bins(), mapped::mappings(), options::options(), filters::filters()];
    structure.into_iter().chain(chunks).chain(blocks).flatten().collect()
}

#[test]
fn the_patched_offsets_in_the_footer_are_those_of_their_fields() {
    let file = base();
    let footer = &file[region_range(&file, Footer)];
    let page = region_range(&file, IndexPage).start as u64;
    assert_eq!(u64_at(footer, FACTS), 16, "decoded bytes");
    assert_eq!([0, 1, 2, 3, 4].map(|field| u64_at(footer, RUN + 8 * field)), [page, 0, 2, 1, 2], "the run");
    assert_eq!(&file[8..20], FILE_ID);
    let mut sealed = file.clone();
    seal(&mut sealed, 0);
    assert_eq!(sealed, file);
}
