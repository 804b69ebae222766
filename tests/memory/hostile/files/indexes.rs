//! Pages of the index.

use super::Refusal::Reading;
use super::{Row, base, patched, row, two_chunks};
use crate::support::build::{patch, region_range};
use tensilo::facts::RegionKind::IndexPage;

pub fn indexes() -> Vec<Row> {
    let page = |at: usize, bytes: &[u8]| patched(IndexPage, at, bytes);
    let own_offset = (region_range(&base(), IndexPage).start as u64).to_le_bytes();
    let mut overlapping = two_chunks();
    let entry = region_range(&overlapping, IndexPage).start + 64;
    let first = overlapping[entry..entry + 8].to_vec();
    patch(&mut overlapping, IndexPage, 64 + 32, &first);
    vec![
        row("a page with 2^32 - 1 entries", page(40, &[0xFF; 4]), Reading("R-6.1", "R-6.1")),
        row("a page of 4 GiB", page(44, &[0xFF; 4]), Reading("R-2.5", "R-2.5")),
        row("a page of column 2^32 - 1", page(4, &[0xFF; 4]), Reading("R-6.1", "R-6.1")),
        row("an entry that is its own page", page(64, &own_offset), Reading("R-6.2", "R-2.2")),
        row(
            "an entry at the end of the address space",
            page(64, &(u64::MAX - 63).to_le_bytes()),
            Reading("R-6.2", "R-2.5"),
        ),
        row("an entry of 4 GiB", page(80, &[0xFF; 4]), Reading("R-6.2", "R-2.5")),
        row("an entry with another length", page(80, &15_u32.to_le_bytes()), Reading("R-6.2", "R-6.2")),
        row("an entry of 2^32 - 1 samples", page(84, &[0xFF; 4]), Reading("R-6.2", "R-6.2")),
        row("an entry of no samples", page(84, &[0; 4]), Reading("R-6.2", "R-6.2")),
        row("an entry with another checksum", page(88, &[0; 4]), Reading("R-6.2", "R-6.2")),
        row("an entry with another encoding", page(92, &[1, 0]), Reading("R-6.2", "R-6.2")),
        row("an entry that claims parts", page(94, &[1, 0]), Reading("R-6.2", "R-6.2")),
        row("an entry that begins at sample 2^64 - 1", page(72, &[0xFF; 8]), Reading("R-6.1", "R-6.1")),
        row("two entries of one chunk", overlapping, Reading("R-6.2", "R-6.2")),
    ]
}
