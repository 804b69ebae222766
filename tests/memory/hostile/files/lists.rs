//! Lists of nested columns, in files of a few hundred bytes.

use super::Refusal::Reading;
use super::{BOOL, CONSTANT, MAX_CHUNK_BYTES, Row, U8, UTF8, VARYING, row};
use crate::support::build::{ABSENT, Build, Chunk, Part, nested_column};

fn one_chunk(record: Vec<u8>, chunk: &Chunk, nulls: u64) -> Vec<u8> {
    let mut build = Build::new(&[record]);
    build.chunk(chunk);
    // the encodings of validity, shape and values, if present
    let part = |at: usize| u16::from_le_bytes(chunk.body[at + 8..at + 10].try_into().unwrap());
    let used = [0, 16, 32].map(part);
    let count = |id: u16| (id, u64::from(chunk.encoding == id));
    let encodings: Vec<_> = [0, CONSTANT].into_iter().filter(|id| used.contains(id)).map(count).collect();
    build.finish(nulls, &encodings)
}

fn texts() -> Vec<u8> {
    nested_column("x", UTF8, true, &[VARYING], &[true])
}

fn bytes() -> Vec<u8> {
    nested_column("x", U8, true, &[], &[true])
}

/// Returns shapes and validities that state more than a chunk may have.
pub fn lists() -> Vec<Row> {
    let both = |rule| Reading(rule, rule);
    let chunk = |samples, parts: [Part; 3]| Chunk::of_parts(samples, parts);
    let max_extent = MAX_CHUNK_BYTES / 4 - 1;
    let shape = max_extent.to_le_bytes();
    let empty = nested_column("x", BOOL, false, &[0], &[false]);
    let deep = nested_column("x", U8, false, &[], &[false; 16]);
    let empty_items = |count: u32| {
        let shape = count.to_le_bytes();
        one_chunk(empty.clone(), &chunk(1, [ABSENT, (0, 4, &shape), ABSENT]), 0)
    };
    // 16 levels of one list each; the last list has all items
    let levels: Vec<u8> = [1_u32; 15].iter().chain(&[MAX_CHUNK_BYTES - 64]).flat_map(|end| end.to_le_bytes()).collect();
    vec![
        row(
            "a list of 2^30 texts of one length",
            one_chunk(texts(), &chunk(1, [ABSENT, (CONSTANT, 4 * max_extent, &shape), (CONSTANT, 4, b"x")]), 0),
            Reading("R-4.12", "OverLimit"),
        ),
        row(
            "a list of 2^30 nulls, in a bitmap",
            one_chunk(bytes(), &chunk(1, [(CONSTANT, 1 << 27, &[1]), (0, 4, &shape), (CONSTANT, max_extent, &[0])]), 0),
            Reading("R-4.12", "OverLimit"),
        ),
        row("a list of 2^32 - 1 items without elements", empty_items(u32::MAX), both("R-4.12")),
        row("a list of 2^24 + 1 items without elements", empty_items((1 << 24) + 1), both("R-4.12")),
        row(
            "a list of 4 GiB at level 16",
            one_chunk(deep, &chunk(1, [ABSENT, (0, 64, &levels), (CONSTANT, MAX_CHUNK_BYTES - 64, b"x")]), 0),
            Reading("nothing", "OverLimit"),
        ),
        row(
            "two samples with lists of 64 MiB",
            one_chunk(texts(), &chunk(2, [ABSENT, (CONSTANT, 1 << 26, &[0; 4]), (0, 1, b"x")]), 0),
            both("R-4.10"),
        ),
        row(
            "a list that ends before it begins",
            one_chunk(bytes(), &chunk(2, [ABSENT, (0, 8, &[9, 0, 0, 0, 2, 0, 0, 0]), (0, 2, b"ab")]), 0),
            both("R-4.7"),
        ),
        row(
            "a null list of 2^16 nulls",
            one_chunk(
                bytes(),
                &chunk(1, [(CONSTANT, 1 + (1 << 13), &[0]), (0, 4, &[0, 0, 1, 0]), (CONSTANT, 1 << 16, &[0])]),
                1,
            ),
            both("R-4.8"),
        ),
    ]
}

/// Returns valid files.
pub fn intact() -> Vec<(&'static str, Vec<u8>)> {
    let ends = 1_u32 << 24;
    let empty = Chunk::of_parts(1, [ABSENT, (0, 4, &ends.to_le_bytes()), ABSENT]);
    let nulls = Chunk::of_parts(1, [(CONSTANT, 1 + (1 << 21), &[1]), (0, 4, &(ends - 7).to_le_bytes()), ABSENT]);
    let empty_column = || nested_column("x", BOOL, false, &[0], &[false]);
    let null_column = || nested_column("x", BOOL, false, &[0], &[true]);
    vec![
        ("a list of 2^24 items without elements", one_chunk(empty_column(), &empty, 0)),
        ("a list of 2^24 - 7 items without elements, most of them null", one_chunk(null_column(), &nulls, 0)),
    ]
}
