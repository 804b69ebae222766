//! Parts of chunks: Zstandard frames, shapes and values, streams of tiers.

use super::Refusal::{Decoding, Reading};
use super::block_indexes::tier_tables;
use super::{
    BOOL, CONSTANT, EXPONENT_TIERS, F32, MAX_CHUNK_BYTES, NO_TABLE, PLANES_ZSTD, RESIDUAL_TIERS, Row, U8, UTF8,
    VARYING, ZSTD, bytes, one_chunk, row,
};
use crate::support::build::{ABSENT, Build, Chunk, Part, column};

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

pub fn frames() -> Vec<Row> {
    let chunk = |raw: u32, frame: &[u8]| {
        let stored = [&NO_TABLE[..], frame].concat();
        one_chunk(bytes(&[raw]), &Chunk::of_values(1, (ZSTD, raw, &stored)))
    };
    let both = |rule| Reading(rule, rule);
    let window = |byte: u8| chunk(128 << 10, &bomb(PLAIN, byte, 128 << 10, 1));
    vec![
        row(
            "a frame that claims 4 GiB",
            chunk(MAX_CHUNK_BYTES, &bomb(PLAIN, SMALL_WINDOW, MAX_CHUNK_BYTES.into(), 1)),
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
        row("a frame with a window of 9 MiB", window(13 << 3 | 1), both("R-5.5")),
        row("a frame with a window of 3.75 GiB", window(21 << 3 | 7), both("R-5.5")),
        row("a frame with a dictionary", chunk(128 << 10, &bomb(PLAIN | 1, SMALL_WINDOW, 128 << 10, 1)), both("R-5.5")),
        row(
            "a stream of planes that claims 1 GiB",
            chunk_of_planes(MAX_CHUNK_BYTES / 8 * 8),
            Reading("R-5.5", "OverLimit"),
        ),
    ]
}

/// Byte planes; one of them claims to be huge.
fn chunk_of_planes(raw: u32) -> Vec<u8> {
    let frame = bomb(PLAIN, SMALL_WINDOW, u64::from(raw) / 4, 1);
    let mut stored = vec![0; 16];
    stored.extend([8, 0, 0, 0, 0, 0, 0, 0]);
    for (length, packing) in [(1_u32, 1_u32), (1, 1), (1, 1), (frame.len() as u32, 2)] {
        stored.extend([length.to_le_bytes(), packing.to_le_bytes()].concat());
    }
    stored.extend([0; 3]);
    stored.extend(frame);
    one_chunk(column("x", F32, false, &[raw / 4]), &Chunk::of_values(1, (PLANES_ZSTD, raw, &stored)))
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub fn parts() -> Vec<Row> {
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
    let zeros = Chunk::of_values(1, (CONSTANT, MAX_CHUNK_BYTES, &[0]));
    vec![
        row("texts that end before they begin", text(&[8, 3, 8], values(8)), Decoding("R-4.7")),
        row("a text before the last that reaches beyond the values", text(&[0, 100, 3], values(3)), Decoding("R-4.7")),
        row("texts that reach beyond the values", text(&[4, 9], values(8)), both("R-4.5")),
        row("texts of 2^32 - 1 missing bytes", text(&[u32::MAX, u32::MAX], values(8)), both("R-4.5")),
        row(
            "a text of 4 GiB of a byte that is not UTF-8",
            text(&[MAX_CHUNK_BYTES - 4], (CONSTANT, MAX_CHUNK_BYTES - 4, &[0xFF])),
            Decoding("R-4.9"),
        ),
        row("16 extents whose product is 2^64 and more", deep(&[u32::MAX - 1; 16], 0), both("R-4.7")),
        row("16 extents whose product wraps to 0", deep(&[1 << 4; 16], 0), both("R-4.7")),
        row("an extent of 2^32 - 1 next to a zero", deep(&[u32::MAX, 0], 0), both("R-4.7")),
        row("a part of 4 GiB in a small chunk", part_table(32, &[0xFF; 4]), both("R-4.4")),
        row("a shape of 4 GiB in a small chunk", part_table(16, &[0xFF; 4]), both("R-4.4")),
        row("parts that decode to 2^32 bytes more than their chunk", part_table(4, &[0xFF; 4]), both("R-4.4")),
        row(
            "4 GiB of one invalid bool",
            one_chunk(
                column("x", BOOL, false, &[MAX_CHUNK_BYTES]),
                &Chunk::of_values(1, (CONSTANT, MAX_CHUNK_BYTES, &[2])),
            ),
            Decoding("R-4.9"),
        ),
        row("4 GiB of zeros where 8 are expected", one_chunk(bytes(&[8]), &zeros), Reading("R-4.5", "OverLimit")),
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

/// Returns tiers of one block (chapters 5.7 to 5.9).
pub fn tiers() -> Vec<Row> {
    let both = |rule| Reading(rule, rule);
    let too_large = |rule| Reading(rule, "OverLimit");
    let stream = |encoding: u16, counts: [u16; 3], rest: usize, raw: u32| {
        let mut stored = tier_tables().to_vec();
        stored.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        stored.resize(stored.len() + 2 + rest, 0);
        one_chunk(bytes(&[raw]), &Chunk::of_values(1, (encoding, raw, &stored)))
    };
    let cut = |encoding: u16| {
        let stored = &tier_tables()[..47];
        one_chunk(bytes(&[64]), &Chunk::of_values(1, (encoding, 64, stored)))
    };
    vec![
        row("65,535 escapes from each tier", stream(EXPONENT_TIERS, [u16::MAX; 3], 64, 64), both("R-5.17")),
        row("65,535 literals", stream(RESIDUAL_TIERS, [0, 0, u16::MAX], 64, 64), both("R-5.17")),
        row(
            "4 GiB of elements in tiers of 64 bytes",
            stream(EXPONENT_TIERS, [0; 3], 64, MAX_CHUNK_BYTES),
            too_large("R-5.14"),
        ),
        row(
            "4 GiB of residuals in tiers of 64 bytes",
            stream(RESIDUAL_TIERS, [0; 3], 64, MAX_CHUNK_BYTES),
            too_large("R-5.14"),
        ),
        row("65,536 elements in one block of tiers", stream(EXPONENT_TIERS, [0; 3], 8192, 65_536), both("R-5.14")),
        row("65,535 elements in tiers of 64 bytes", stream(RESIDUAL_TIERS, [0; 3], 64, 65_535), both("R-5.17")),
        // tier 1 takes 8 bytes, tier 2 one byte and its padding, tier 3 one byte
        row("more escapes than symbols", stream(EXPONENT_TIERS, [1, 1, 0], 17, 64), both("R-5.9")),
        row("tables of exponent tiers that are cut off", cut(EXPONENT_TIERS), both("R-5.17")),
        row("tables of residual tiers that are cut off", cut(RESIDUAL_TIERS), both("R-5.17")),
    ]
}
