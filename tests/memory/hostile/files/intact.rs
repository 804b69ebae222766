//! Valid files, some of them much larger when decoded.

use super::{
    BOOL, CONSTANT, F32, MAX_CHUNK_BYTES, U8, UTF8, VARYING, base, bytes, filters, lists, mapped, options, two_chunks,
};
use crate::support::build::{ABSENT, Build, Chunk, column};

/// Returns valid files, some of them much larger when decoded.
pub fn intact() -> Vec<(&'static str, Vec<u8>)> {
    let finish = |columns: &[Vec<u8>], chunk: &Chunk, count: usize, nulls: u64, encodings: &[(u16, u64)]| {
        let mut build = Build::new(columns);
        for _ in 0..count {
            build.chunk(chunk);
        }
        build.finish(nulls, encodings)
    };
    let constant = |dtype: u8, element: &[u8]| {
        let extent = MAX_CHUNK_BYTES / element.len() as u32;
        let chunk = Chunk::of_values(1, (CONSTANT, MAX_CHUNK_BYTES, element));
        finish(&[column("x", dtype, false, &[extent])], &chunk, 4, 0, &[(CONSTANT, 4)])
    };
    let empty = Chunk::of_values(1 << 24, (0, 0, &[]));
    let empty_texts = Chunk::of_parts(1 << 23, [ABSENT, (CONSTANT, 1 << 25, &[0; 4]), ABSENT]);
    let null_texts = Chunk::of_parts(1 << 23, [(CONSTANT, 1 << 20, &[0]), (CONSTANT, 1 << 25, &[0; 4]), ABSENT]);
    let nulls = Chunk::of_parts(1 << 24, [(CONSTANT, 1 << 21, &[0]), ABSENT, (CONSTANT, 1 << 24, &[0])]);
    let text = Chunk::of_parts(
        1,
        [ABSENT, (0, 4, &(MAX_CHUNK_BYTES - 4).to_le_bytes()), (CONSTANT, MAX_CHUNK_BYTES - 4, b"x")],
    );
    let files = vec![
        ("the file that most others derive from", base()),
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
    ];
    files
        .into_iter()
        .chain(lists::intact())
        .chain(mapped::intact())
        .chain(options::intact())
        .chain(filters::intact())
        .collect()
}
