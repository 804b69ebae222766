//! The table.

use crate::support::build::{ABSENT, Build, Chunk, FILE_ID, Part, column, patch, place_of, seal};
use crate::support::regions::u64_at;
use std::fmt;
use tensilo::facts::RegionKind::{Chunk as ChunkRegion, Footer, Header, IndexPage, Trailer};

/// The check that must refuse a file first, with its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Opening(&'static str),
    /// It opens, and a verification names this first.
    Verifying(&'static str),
    /// As `Verifying`, but only one that decodes.
    Decoding(&'static str),
    /// As `Decoding`, and reading names the second.
    Reading(&'static str, &'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opening(rule) => write!(f, "opening, {rule}"),
            Self::Verifying(rule) => write!(f, "verify, {rule}"),
            Self::Decoding(rule) => write!(f, "verify with decoding, {rule}"),
            Self::Reading(deep, read) => write!(f, "verify with decoding, {deep}; reading, {read}"),
        }
    }
}

use Refused::{Decoding, Opening, Reading, Verifying};

pub struct Row {
    pub name: &'static str,
    pub file: Vec<u8>,
    pub refused: Refused,
}

fn row(name: &'static str, file: Vec<u8>, refused: Refused) -> Row {
    Row { name, file, refused }
}

const U8: u8 = 9;
const F32: u8 = 3;
const U64: u8 = 12;
const BOOL: u8 = 13;
const UTF8: u8 = 15;
const VARYING: u32 = u32::MAX;
const MOST: u32 = u32::MAX - 0xFFFF;
const CONSTANT: u16 = 1;
const ZSTD: u16 = 3;

fn bytes(extents: &[u32]) -> Vec<u8> {
    column("x", U8, false, extents)
}

/// Two samples of eight bytes, raw.
fn base() -> Vec<u8> {
    let mut build = Build::new(&[bytes(&[8])]);
    build.chunk(&Chunk::of_values(2, (0, 16, b"0123456789abcdef")));
    build.finish(0, &[(0, 1)])
}

/// Two chunks of it.
fn two_chunks() -> Vec<u8> {
    let mut build = Build::new(&[bytes(&[8])]);
    build.chunk(&Chunk::of_values(1, (0, 8, b"01234567")));
    build.chunk(&Chunk::of_values(1, (0, 8, b"89abcdef")));
    build.finish(0, &[(0, 2)])
}

fn patched(kind: tensilo::facts::RegionKind, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = base();
    patch(&mut file, kind, at, bytes);
    file
}

/// Places in the footer's body of [`base`]: after content id, schema and tables, the facts of the
/// column, then its run.
const FACTS: usize = 64 + 16 + 4 + 8 + 17 + 4;
const RUN: usize = FACTS + 40 + 16;

/// A file whose only column and chunk are these.
fn one_chunk(column: Vec<u8>, chunk: &Chunk) -> Vec<u8> {
    let mut build = Build::new(&[column]);
    build.chunk(chunk);
    build.finish(0, &[(chunk.encoding, 1)])
}

fn headers() -> Vec<Row> {
    let of_columns = |columns: &[Vec<u8>]| Build::new(columns).finish(0, &[]);
    let raw_column = |record: &[u8]| of_columns(&[record.to_vec()]);
    let mut two_gigabytes = column("x", U8, false, &[]);
    two_gigabytes[..4].copy_from_slice(&(1_u32 << 31).to_le_bytes());
    vec![
        row("2^32 - 1 columns", patched(Header, 64, &[0xFF; 4]), Opening("R-3.6")),
        row("65,536 columns, of which one is there", patched(Header, 64, &65_536_u32.to_le_bytes()), Opening("R-3.3")),
        row("a name of 2 GiB", raw_column(&two_gigabytes), Opening("R-3.4")),
        row("2^32 - 1 entries of metadata", patched(Header, 68, &[0xFF; 4]), Opening("R-3.4")),
        row(
            "65,536 entries of metadata that are not there",
            patched(Header, 68, &65_536_u32.to_le_bytes()),
            Opening("R-3.3"),
        ),
        row("rank 255", raw_column(&column("x", U8, false, &[1; 255])), Opening("R-3.6")),
        row("16 extents of 2^32 - 2", raw_column(&column("x", U64, false, &[u32::MAX - 1; 16])), Opening("R-3.6")),
        row("extents whose product is 2^64", raw_column(&column("x", U8, false, &[1 << 16; 4])), Opening("R-3.6")),
        row("a schema of 4 GiB", patched(Header, 44, &[0xFF; 4]), Opening("R-2.5")),
        row("a schema of 16 MiB in a small file", patched(Header, 44, &(16_u32 << 20).to_le_bytes()), Opening("R-2.5")),
        row("alignment 2^31", patched(Header, 48, &(1_u32 << 31).to_le_bytes()), Opening("R-3.2")),
        row("alignment 0", patched(Header, 48, &[0; 4]), Opening("R-3.2")),
        row("unknown incompatible flags", patched(Header, 32, &[0xFF; 4]), Opening("R-9.1")),
    ]
}

fn footers() -> Vec<Row> {
    let footer = |at: usize, bytes: &[u8]| patched(Footer, at, bytes);
    let run = |field: usize, value: u64| footer(RUN + 8 * field, &value.to_le_bytes());
    vec![
        row("a footer of 256 MiB in a small file", footer(44, &(256_u32 << 20).to_le_bytes()), Opening("R-7.7")),
        row("a footer of 4 GiB", footer(44, &[0xFF; 4]), Opening("R-2.5")),
        row("a schema of 4 GiB in the footer", footer(64 + 16, &[0xFF; 4]), Opening("R-7.2")),
        row("another content id", footer(64, &[0xFF; 16]), Verifying("R-7.9")),
        row("2^32 - 1 tables", footer(FACTS - 4, &[0xFF; 4]), Opening("R-7.2")),
        row("65,536 tables that are not there", footer(FACTS - 4, &65_536_u32.to_le_bytes()), Opening("R-7.2")),
        row("2^32 - 1 runs", footer(FACTS + 32, &[0xFF; 4]), Opening("R-7.2")),
        row("65,536 runs that are not there", footer(FACTS + 32, &65_536_u32.to_le_bytes()), Opening("R-7.2")),
        row("65,535 encodings that are not there", footer(FACTS + 36, &[0xFF; 2]), Opening("R-7.2")),
        row("an unknown encoding", footer(FACTS + 40, &[0xFF; 2]), Opening("R-7.6")),
        row("65,536 runs of the same page", many_runs(65_536), Opening("R-7.3")),
        row("2^64 - 1 chunks", run(3, u64::MAX), Opening("R-7.3")),
        row("2^40 chunks of one sample", chunks_of_one(1 << 40), Opening("R-7.3")),
        row("2^64 - 1 samples", footer(48, &[0xFF; 8]), Opening("R-7.5")),
        row("2^63 - 1 samples in one chunk", one_run_of(i64::MAX as u64), Opening("R-7.3")),
        row("commit 2^32 - 1", footer(4, &[0xFF; 4]), Opening("R-7.5")),
        row("an index that is the header", run(0, 0), Reading("R-7.4", "R-2.2")),
        row("an index that is its footer", run(0, place_of(&base(), Footer).start as u64), Opening("R-7.3")),
        row("an index at the end of the address space", run(0, u64::MAX - 63), Opening("R-7.3")),
        row("an index in the middle of nowhere", run(0, 77), Reading("R-7.4", "R-2.1")),
    ]
}

/// The footer counts `samples` samples, in one run and one chunk.
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

/// As many runs of one chunk, all at the page of the first. With its trailer.
fn many_runs(count: u32) -> Vec<u8> {
    let mut file = base();
    let page = place_of(&file, IndexPage).start as u64;
    let footer = place_of(&file, Footer);
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

fn trailers() -> Vec<Row> {
    let file = base();
    let trailer = place_of(&file, Trailer).start as u64;
    let at = |place: usize, value: u64| patched(Trailer, place, &value.to_le_bytes());
    vec![
        row("a trailer that is its own predecessor", at(48, trailer), Verifying("R-7.7")),
        row("a trailer that is its own footer", at(32, trailer), Opening("R-2.2")),
        row("a footer at the end of the address space", at(32, u64::MAX - 63), Opening("R-2.5")),
        row("a trailer with a body of 4 GiB", patched(Trailer, 44, &[0xFF; 4]), Opening("R-2.5")),
        row("10,000 trailers without footers", fake_trailers(&file, 10_000, u64::MAX), Verifying("R-2.7")),
        row(
            "10,000 trailers of one footer",
            fake_trailers(&file, 10_000, place_of(&file, Footer).start as u64),
            Verifying("R-2.7"),
        ),
        row("5,000 trailers of nested footers", nested_footers(&file, 5_000), Verifying("R-2.7")),
    ]
}

/// A file, and behind it trailers that point to `footer`.
fn fake_trailers(file: &[u8], count: usize, footer: u64) -> Vec<u8> {
    let mut build = Build::after(file);
    for _ in 0..count {
        build.region(b"TSLE", [1, 0, 0, 0], &[&footer.to_le_bytes()[..], &[0; 4]].concat(), &[0; 8], &[]);
    }
    build.file
}

/// Returns a file, followed by the heads of many footers, followed by as many trailers. The first
/// footer ends at the first trailer and so on: checking all their bodies would read the file half
/// as often as the number of footers.
fn nested_footers(file: &[u8], count: usize) -> Vec<u8> {
    let mut build = Build::after(file);
    let footers: Vec<u64> = (0..count).map(|_| build.region(b"TSLF", [0; 4], &[0; 12], &[0; 8], &[])).collect();
    for &footer in &footers {
        let end = build.file.len() as u64;
        build.region(b"TSLE", [1, 0, 0, 0], &[&footer.to_le_bytes()[..], &[0; 4]].concat(), &[0; 8], &[]);
        let at = footer as usize;
        build.file[at + 44..at + 48].copy_from_slice(&((end - footer - 64) as u32).to_le_bytes());
        // of the head alone: a checksum of the body that is right would take as long here
        build.file[at + 56..at + 60].copy_from_slice(&[0xAB; 4]);
        let crc = crc32fast::hash(&build.file[at..at + 60]);
        build.file[at + 60..at + 64].copy_from_slice(&crc.to_le_bytes());
    }
    build.file
}

fn indexes() -> Vec<Row> {
    let page = |at: usize, bytes: &[u8]| patched(IndexPage, at, bytes);
    let own_place = (place_of(&base(), IndexPage).start as u64).to_le_bytes();
    let mut overlapping = two_chunks();
    let entry = place_of(&overlapping, IndexPage).start + 64;
    let first = overlapping[entry..entry + 8].to_vec();
    patch(&mut overlapping, IndexPage, 64 + 32, &first);
    vec![
        row("a page with 2^32 - 1 entries", page(40, &[0xFF; 4]), Reading("R-6.1", "R-6.1")),
        row("a page of 4 GiB", page(44, &[0xFF; 4]), Reading("R-2.5", "R-2.5")),
        row("a page of column 2^32 - 1", page(4, &[0xFF; 4]), Reading("R-6.1", "R-6.1")),
        row("an entry that is its own page", page(64, &own_place), Reading("R-6.2", "R-2.2")),
        row(
            "an entry at the end of the address space",
            page(64, &(u64::MAX - 63).to_le_bytes()),
            Reading("R-6.2", "R-2.5"),
        ),
        row("an entry of 4 GiB", page(80, &[0xFF; 4]), Reading("R-6.2", "R-2.5")),
        row("an entry of another length", page(80, &15_u32.to_le_bytes()), Reading("R-6.2", "R-6.2")),
        row("an entry of 2^32 - 1 samples", page(84, &[0xFF; 4]), Reading("R-6.2", "R-6.2")),
        row("an entry of no samples", page(84, &[0; 4]), Reading("R-6.2", "R-6.2")),
        row("an entry with another checksum", page(88, &[0; 4]), Reading("R-6.2", "R-6.2")),
        row("an entry of another encoding", page(92, &[1, 0]), Reading("R-6.2", "R-6.2")),
        row("an entry that claims parts", page(94, &[1, 0]), Reading("R-6.2", "R-6.2")),
        row("an entry that begins at sample 2^64 - 1", page(72, &[0xFF; 8]), Reading("R-6.1", "R-6.1")),
        row("two entries of one chunk", overlapping, Reading("R-6.2", "R-6.2")),
    ]
}

fn chunk_heads() -> Vec<Row> {
    let chunk = |at: usize, bytes: &[u8]| patched(ChunkRegion, at, bytes);
    vec![
        row("a chunk of 4 GiB in a small file", chunk(44, &[0xFF; 4]), Reading("R-2.5", "R-2.5")),
        row("a chunk of column 2^32 - 1", chunk(4, &[0xFF; 4]), Reading("R-4.1", "R-4.1")),
        row("a chunk of 2^32 - 1 samples", chunk(40, &[0xFF; 4]), Reading("R-4.1", "R-4.1")),
        row("a chunk of no samples", chunk(40, &[0; 4]), Reading("R-4.1", "R-4.1")),
        row("a chunk that decodes to 2^32 - 1 bytes", chunk(48, &[0xFF; 4]), Reading("R-4.1", "R-4.1")),
        row(
            "a chunk of two samples that decodes to 4 GiB",
            chunk(48, &MOST.to_le_bytes()),
            Reading("R-4.10", "R-4.10"),
        ),
        row("a chunk that begins at sample 2^64 - 1", chunk(32, &[0xFF; 8]), Reading("R-4.2", "R-6.2")),
        row("a chunk that begins at sample 2^30", chunk(32, &(1_u64 << 30).to_le_bytes()), Reading("R-4.2", "R-6.2")),
        row("chunks and garbage in turn", chunks_and_garbage(5_000), Verifying("R-2.1")),
        row("a chunk in the body of another", nested_chunk(), Verifying("R-6.2")),
    ]
}

/// Empty chunks, 64 bytes each, and 64 bytes between any two that are none.
fn chunks_and_garbage(count: usize) -> Vec<u8> {
    let mut build = Build::new(&[bytes(&[0])]);
    for _ in 0..count {
        build.chunk(&Chunk::of_values(1, (0, 0, &[])));
        build.file.extend([0x55; 64]);
    }
    build.finish(0, &[(0, count as u64)])
}

/// The index lists a chunk inside the body of another.
fn nested_chunk() -> Vec<u8> {
    let mut inner = Build::new(&[bytes(&[64])]);
    inner.file.resize(192, 0); // where the body of the first chunk will be
    inner.chunk(&Chunk::of_values(1, (0, 64, &[7; 64])));
    let body: [u8; 128] = inner.file[192..].try_into().unwrap();
    let mut build = Build::new(&[bytes(&[64])]);
    build.chunk(&Chunk::of_values(2, (0, 128, &body)));
    let mut file = build.finish(0, &[(0, 1)]);
    let inner_crc = &body[56..60];
    patch(&mut file, IndexPage, 64, &192_u64.to_le_bytes());
    patch(&mut file, IndexPage, 80, &64_u32.to_le_bytes());
    patch(&mut file, IndexPage, 84, &1_u32.to_le_bytes());
    patch(&mut file, IndexPage, 88, inner_crc);
    file
}

/// A frame of blocks that repeat a byte, with this window and content size.
fn bomb(descriptor: u8, window: u8, content: u64, blocks: u32) -> Vec<u8> {
    let mut frame = 0xFD2F_B528_u32.to_le_bytes().to_vec();
    frame.extend([descriptor, window]);
    frame.extend(content.to_le_bytes());
    for block in 1..=blocks {
        let header = u32::from(block == blocks) | 1 << 1 | (128 << 10) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// Content size in 8 bytes, no checksum, no dictionary.
const PLAIN: u8 = 0b1100_0000;
/// A window of 128 KiB.
const SMALL_WINDOW: u8 = 7 << 3;

fn frames() -> Vec<Row> {
    let chunk = |raw: u32, frame: &[u8]| one_chunk(bytes(&[raw]), &Chunk::of_values(1, (ZSTD, raw, frame)));
    let both = |rule| Reading(rule, rule);
    let window = |byte: u8| chunk(128 << 10, &bomb(PLAIN, byte, 128 << 10, 1));
    vec![
        row(
            "a frame that claims 4 GiB",
            chunk(MOST, &bomb(PLAIN, SMALL_WINDOW, MOST.into(), 1)),
            Reading("R-5.5", "OverLimit"),
        ),
        row(
            "a frame that decodes to less than it claims",
            chunk(1 << 20, &bomb(PLAIN, SMALL_WINDOW, 1 << 20, 7)),
            both("R-5.5"),
        ),
        row(
            "a frame that decodes to more than it claims",
            chunk(1 << 20, &bomb(PLAIN, SMALL_WINDOW, 1 << 20, 4000)),
            both("R-5.5"),
        ),
        row(
            "a frame that claims more than the chunk",
            chunk(1 << 20, &bomb(PLAIN, SMALL_WINDOW, 1 << 40, 8)),
            both("R-5.5"),
        ),
        row("a frame with a window of 3.75 TiB", window(0xFF), both("R-5.5")),
        row("a frame with a window of 2^31 + 2^28", window(21 << 3 | 1), both("R-5.5")),
        row("a frame with a window of 3.75 GiB", window(21 << 3 | 7), both("R-5.5")),
        row("a frame with a dictionary", chunk(128 << 10, &bomb(PLAIN | 1, SMALL_WINDOW, 128 << 10, 1)), both("R-5.5")),
        row("a stream of planes that claims 1 GiB", chunk_of_planes(MOST / 8 * 8), Reading("R-5.5", "OverLimit")),
    ]
}

/// Byte planes, one of which claims to be huge.
fn chunk_of_planes(raw: u32) -> Vec<u8> {
    let frame = bomb(PLAIN, SMALL_WINDOW, u64::from(raw) / 4, 1);
    let mut stored = vec![0; 16];
    stored.extend([8, 0, 0, 0, 0, 0, 0, 0]);
    for (length, packing) in [(1_u32, 1_u32), (1, 1), (1, 1), (frame.len() as u32, 2)] {
        stored.extend([length.to_le_bytes(), packing.to_le_bytes()].concat());
    }
    stored.extend([0; 3]);
    stored.extend(frame);
    one_chunk(column("x", F32, false, &[raw / 4]), &Chunk::of_values(1, (6, raw, &stored)))
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn parts() -> Vec<Row> {
    let both = |rule| Reading(rule, rule);
    let text = |ends: &[u32], values: Part| {
        let shape = numbers(ends);
        let chunk = Chunk::of_parts(ends.len() as u32, [ABSENT, (0, shape.len() as u32, &shape), values]);
        one_chunk(column("x", UTF8, false, &[VARYING]), &chunk)
    };
    let deep = |extents: &[u32], end: u32| {
        let shape = numbers(&[&[end], extents].concat());
        let chunk = Chunk::of_parts(1, [ABSENT, (0, shape.len() as u32, &shape), ABSENT]);
        one_chunk(column("x", U8, false, &vec![VARYING; extents.len()]), &chunk)
    };
    let part_table = |at: usize, bytes: &[u8]| {
        let mut chunk = Chunk::of_parts(2, [ABSENT, (0, 8, &[4, 0, 0, 0, 8, 0, 0, 0]), (0, 8, b"01234567")]);
        chunk.body[at..at + bytes.len()].copy_from_slice(bytes);
        one_chunk(column("x", UTF8, false, &[VARYING]), &chunk)
    };
    let values = |bytes: u32| (0_u16, bytes, &b"01234567"[..bytes as usize]);
    let zeros = Chunk::of_values(1, (CONSTANT, MOST, &[0]));
    vec![
        row("texts that end before they begin", text(&[8, 3, 8], values(8)), Decoding("R-4.7")),
        row(
            "a text that reaches beyond the values, which the last does not",
            text(&[0, 100, 3], values(3)),
            Decoding("R-4.7"),
        ),
        row("texts that reach beyond the values", text(&[4, 9], values(8)), both("R-4.5")),
        row("texts of 2^32 - 1 bytes that are not there", text(&[u32::MAX, u32::MAX], values(8)), both("R-4.5")),
        row(
            "a text of 4 GiB, of a byte that is no text",
            text(&[MOST - 4], (CONSTANT, MOST - 4, &[0xFF])),
            Decoding("R-4.9"),
        ),
        row("16 extents whose product is 2^64 and more", deep(&[u32::MAX - 1; 16], 0), both("R-4.7")),
        row("16 extents whose product wraps to 0", deep(&[1 << 4; 16], 0), both("R-4.7")),
        row("an extent of 2^32 - 1 beside a zero", deep(&[u32::MAX, 0], 0), both("R-4.7")),
        row("a part of 4 GiB in a small chunk", part_table(32, &[0xFF; 4]), both("R-4.4")),
        row("a shape of 4 GiB in a small chunk", part_table(16, &[0xFF; 4]), both("R-4.4")),
        row("parts that decode to 2^32 bytes more than their chunk", part_table(4, &[0xFF; 4]), both("R-4.4")),
        row(
            "4 GiB of the same bool, which is none",
            one_chunk(column("x", BOOL, false, &[MOST]), &Chunk::of_values(1, (CONSTANT, MOST, &[2]))),
            Decoding("R-4.9"),
        ),
        row("4 GiB of zeros where 8 are due", one_chunk(bytes(&[8]), &zeros), Reading("R-4.5", "OverLimit")),
        row("2^24 nulls that have values", nulls_with_values(), Decoding("R-4.8")),
    ]
}

/// All samples of a large chunk are null and have the value 1.
fn nulls_with_values() -> Vec<u8> {
    let chunk = Chunk::of_parts(1 << 24, [(CONSTANT, 1 << 21, &[0]), ABSENT, (CONSTANT, 1 << 24, &[1])]);
    let mut build = Build::new(&[column("x", U8, true, &[])]);
    build.chunk(&chunk);
    build.finish(1 << 24, &[(CONSTANT, 1)])
}

/// Streams of chapters 5.7 to 5.9.
fn tiers() -> Vec<Row> {
    let both = |rule| Reading(rule, rule);
    let too_large = |rule| Reading(rule, "OverLimit");
    let stream = |encoding: u16, escapes: [u32; 3], spacing: u8, rest: usize, raw: u32| {
        let mut stored = vec![0; 16];
        stored.extend([1, 1, 1, spacing]);
        stored.extend(numbers(&escapes));
        stored.extend([0; 32]);
        stored.resize(64 + rest, 0);
        one_chunk(bytes(&[raw]), &Chunk::of_values(1, (encoding, raw, &stored)))
    };
    vec![
        row("2^32 - 1 escapes from each tier", stream(4, [u32::MAX; 3], 31, 64, 64), both("R-5.10")),
        row("2^32 - 1 literals", stream(5, [0, 0, u32::MAX], 31, 64, 64), both("R-5.11")),
        row("4 GiB of elements in tiers of 64 bytes", stream(4, [0; 3], 31, 64, MOST), too_large("R-5.10")),
        row("4 GiB of residuals in tiers of 64 bytes", stream(5, [0; 3], 31, 64, MOST), too_large("R-5.11")),
        row("a checkpoint for each of 2^32 groups", stream(4, [0; 3], 6, 64, MOST), too_large("R-5.10")),
        row("more symbols escape than are there", stream(4, [1, 1, 0], 31, 24, 64), both("R-5.9")),
    ]
}

/// All hostile files.
pub fn all() -> Vec<Row> {
    [headers(), footers(), trailers(), indexes(), chunk_heads(), frames(), parts(), tiers()]
        .into_iter()
        .flatten()
        .collect()
}

/// Files that are as they should be, some of them much larger when they are decoded.
pub fn intact() -> Vec<(&'static str, Vec<u8>)> {
    let finish = |columns: &[Vec<u8>], chunk: &Chunk, count: usize, nulls: u64, encodings: &[(u16, u64)]| {
        let mut build = Build::new(columns);
        for _ in 0..count {
            build.chunk(chunk);
        }
        build.finish(nulls, encodings)
    };
    let constant = |dtype: u8, element: &[u8]| {
        let extent = MOST / element.len() as u32;
        let chunk = Chunk::of_values(1, (CONSTANT, MOST, element));
        finish(&[column("x", dtype, false, &[extent])], &chunk, 4, 0, &[(CONSTANT, 4)])
    };
    let empty = Chunk::of_values(1 << 24, (0, 0, &[]));
    let empty_texts = Chunk::of_parts(1 << 23, [ABSENT, (CONSTANT, 1 << 25, &[0; 4]), ABSENT]);
    let null_texts = Chunk::of_parts(1 << 23, [(CONSTANT, 1 << 20, &[0]), (CONSTANT, 1 << 25, &[0; 4]), ABSENT]);
    let nulls = Chunk::of_parts(1 << 24, [(CONSTANT, 1 << 21, &[0]), ABSENT, (CONSTANT, 1 << 24, &[0])]);
    let text = Chunk::of_parts(1, [ABSENT, (0, 4, &(MOST - 4).to_le_bytes()), (CONSTANT, MOST - 4, b"x")]);
    vec![
        ("the file that most others are made of", base()),
        ("two chunks", two_chunks()),
        ("4 samples of 4 GiB, all floats the same", constant(F32, &[1, 2, 3, 4])),
        ("4 samples of 4 GiB of bools", constant(BOOL, &[1])),
        ("a text of 4 GiB", finish(&[column("x", UTF8, false, &[VARYING])], &text, 1, 0, &[(0, 0), (CONSTANT, 1)])),
        ("6 chunks of 2^24 empty samples", finish(&[bytes(&[0])], &empty, 6, 0, &[(0, 6)])),
        (
            "6 chunks of 2^23 empty texts",
            finish(&[column("x", UTF8, false, &[VARYING])], &empty_texts, 6, 0, &[(0, 6), (CONSTANT, 0)]),
        ),
        (
            "6 chunks of 2^23 null texts",
            finish(&[column("x", UTF8, true, &[VARYING])], &null_texts, 6, 6 << 23, &[(0, 6), (CONSTANT, 0)]),
        ),
        ("6 chunks of 2^24 nulls", finish(&[column("x", U8, true, &[])], &nulls, 6, 6 << 24, &[(CONSTANT, 6)])),
    ]
}

#[test]
fn places_in_the_footer_are_those_that_are_patched() {
    let file = base();
    let footer = &file[place_of(&file, Footer)];
    let page = place_of(&file, IndexPage).start as u64;
    assert_eq!(u64_at(footer, FACTS), 16, "decoded bytes");
    assert_eq!([0, 1, 2, 3, 4].map(|field| u64_at(footer, RUN + 8 * field)), [page, 0, 2, 1, 2], "the run");
    assert_eq!(&file[8..24], FILE_ID);
    let mut sealed = file.clone();
    seal(&mut sealed, 0);
    assert_eq!(sealed, file);
}
