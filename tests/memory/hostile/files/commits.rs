//! Footers and trailers.

use super::Refusal::{Opening, Reading, Verifying};
use super::{FACTS, RUN, Row, base, patched, row};
use crate::support::build::{Build, patch, region_range, seal, seal_after};
use tensilo::facts::RegionKind::{Footer, IndexPage, Trailer};

pub fn footers() -> Vec<Row> {
    let footer = |at: usize, bytes: &[u8]| patched(Footer, at, bytes);
    let run = |field: usize, value: u64| footer(RUN + 8 * field, &value.to_le_bytes());
    vec![
        row("a footer of 256 MiB in a small file", footer(44, &(256_u32 << 20).to_le_bytes()), Opening("R-7.7")),
        row("a footer of 4 GiB", footer(44, &[0xFF; 4]), Opening("R-2.5")),
        row("a schema of 4 GiB in the footer", footer(64 + 16, &[0xFF; 4]), Opening("R-7.2")),
        row("another content id", footer(64, &[0xFF; 16]), Verifying("R-7.9")),
        row("2^32 - 1 tables", footer(FACTS - 4, &[0xFF; 4]), Opening("R-7.2")),
        row("65,536 missing tables", footer(FACTS - 4, &65_536_u32.to_le_bytes()), Opening("R-7.2")),
        row("2^32 - 1 runs", footer(FACTS + 32, &[0xFF; 4]), Opening("R-7.2")),
        row("65,536 missing runs", footer(FACTS + 32, &65_536_u32.to_le_bytes()), Opening("R-7.2")),
        row("65,535 missing encodings", footer(FACTS + 36, &[0xFF; 2]), Opening("R-7.2")),
        row("an unknown encoding", footer(FACTS + 40, &[0xFF; 2]), Reading("R-7.6", "R-7.6")),
        row("65,536 runs of the same page", many_runs(65_536), Opening("R-7.3")),
        row("2^64 - 1 chunks", run(3, u64::MAX), Opening("R-7.3")),
        row("2^40 chunks of one sample", chunks_of_one(1 << 40), Opening("R-7.3")),
        row("2^64 - 1 samples", footer(48, &[0xFF; 8]), Opening("R-7.5")),
        row("2^63 - 1 samples in one chunk", one_run_of(i64::MAX as u64), Opening("R-7.3")),
        row("commit 2^32 - 1", footer(4, &[0xFF; 4]), Opening("R-7.5")),
        row("an index that is the header", run(0, 0), Reading("R-7.4", "R-2.2")),
        row("an index that is its footer", run(0, region_range(&base(), Footer).start as u64), Opening("R-7.3")),
        row("an index at the end of the address space", run(0, u64::MAX - 63), Opening("R-7.3")),
        row("an index where no region starts", run(0, 77), Reading("R-7.4", "R-2.1")),
    ]
}

/// Returns a file whose footer counts `samples` samples in one run of one chunk.
fn one_run_of(samples: u64) -> Vec<u8> {
    let mut file = patched(Footer, RUN + 16, &samples.to_le_bytes());
    patch(&mut file, Footer, RUN + 32, &[0; 4]);
    patch(&mut file, Footer, 48, &samples.to_le_bytes());
    file
}

fn chunks_of_one(chunks: u64) -> Vec<u8> {
    let mut file = one_run_of(chunks);
    patch(&mut file, Footer, RUN + 24, &chunks.to_le_bytes());
    patch(&mut file, Footer, RUN + 32, &1_u32.to_le_bytes());
    patch(&mut file, Footer, FACTS + 24, &chunks.to_le_bytes());
    file
}

/// Returns a file of zeros with a footer that counts a million chunks of one sample.
pub fn chunks_of_zeros() -> Vec<u8> {
    let count = 1_000_000_u64;
    let mut file = chunks_of_one(count);
    let footer = file.split_off(region_range(&file, Footer).start);
    file.resize(34 << 20, 0);
    let at = file.len();
    file.extend(footer);
    file[at + 24..at + 32].copy_from_slice(&(at as u64).to_le_bytes());
    seal(&mut file, at);
    file
}

/// Returns that many runs of one chunk, all at the page of the first, with a trailer.
fn many_runs(count: u32) -> Vec<u8> {
    let mut file = base();
    let page = region_range(&file, IndexPage).start as u64;
    let footer = region_range(&file, Footer);
    let mut body = file[footer.start + 64..footer.start + RUN].to_vec();
    body[FACTS - 64 + 24..FACTS - 64 + 32].copy_from_slice(&u64::from(count).to_le_bytes());
    body[FACTS - 64 + 32..FACTS - 64 + 36].copy_from_slice(&count.to_le_bytes());
    for run in 0..u64::from(count) {
        body.extend([page, 2 * run, 2, 1, 2].into_iter().flat_map(u64::to_le_bytes));
    }
    file.truncate(footer.start);
    let mut build = Build::after(&file);
    let samples = 2 * u64::from(count);
    let footer = build.region(b"TSLF", [0; 4], &[0; 12], &samples.to_le_bytes(), &body);
    build.region(b"TSLE", [1, 0, 0, 0], &[&footer.to_le_bytes()[..], &[0; 4]].concat(), &[0; 8], &[]);
    build.file
}

pub fn trailers() -> Vec<Row> {
    let file = base();
    let trailer = region_range(&file, Trailer).start as u64;
    let at = |field_offset: usize, value: u64| patched(Trailer, field_offset, &value.to_le_bytes());
    vec![
        row("a trailer that is its own predecessor", at(48, trailer), Verifying("R-7.7")),
        row("a trailer that is its own footer", at(32, trailer), Opening("R-2.2")),
        row("a footer at the end of the address space", at(32, u64::MAX - 63), Opening("R-2.5")),
        row("a trailer with a body of 4 GiB", patched(Trailer, 44, &[0xFF; 4]), Opening("R-2.5")),
        row("10,000 trailers without footers", fake_trailers(&file, 10_000, u64::MAX), Verifying("R-2.7")),
        row(
            "10,000 trailers of one footer",
            fake_trailers(&file, 10_000, region_range(&file, Footer).start as u64),
            Verifying("R-2.7"),
        ),
        row("5,000 trailers of nested footers", nested_footers(&file, 5_000), Verifying("R-2.7")),
    ]
}

/// Returns a file followed by trailers that point to `footer`.
fn fake_trailers(file: &[u8], count: usize, footer: u64) -> Vec<u8> {
    let mut build = Build::after(file);
    for _ in 0..count {
        build.region(b"TSLE", [1, 0, 0, 0], &[&footer.to_le_bytes()[..], &[0; 4]].concat(), &[0; 8], &[]);
    }
    build.file
}

/// Returns a file followed by the headers of many footers, and as many trailers. Each footer ends
/// at its trailer, so checking every body would read the file half as often as there are footers.
fn nested_footers(file: &[u8], count: usize) -> Vec<u8> {
    let mut build = Build::after(file);
    let footers: Vec<u64> = (0..count).map(|_| build.region(b"TSLF", [0; 4], &[0; 12], &[0; 8], &[])).collect();
    for &footer in &footers {
        let end = build.file.len() as u64;
        build.region(b"TSLE", [1, 0, 0, 0], &[&footer.to_le_bytes()[..], &[0; 4]].concat(), &[0; 8], &[]);
        let at = footer as usize;
        build.file[at + 44..at + 48].copy_from_slice(&((end - footer - 64) as u32).to_le_bytes());
        // the checksum in the header only: computing a correct one for the body would take as long
        // here
        build.file[at + 56..at + 60].copy_from_slice(&[0xAB; 4]);
        let crc = crc32fast::hash(&build.file[at..at + 60]);
        build.file[at + 60..at + 64].copy_from_slice(&crc.to_le_bytes());
        seal_after(&mut build.file, end as usize, crc);
    }
    build.file
}
