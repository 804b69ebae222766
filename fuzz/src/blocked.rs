//! Parts in blocks (chapter 5.12 of the specification): prepares them, and checks their readers.
//!
//! A sample must have the same value however it is read: from memory or by position, with its
//! block, in a range, or with the whole chunk. If a chunk does not decode, a sample may still be
//! readable, but must not depend on earlier reads.
//!
//! A chunk is read block by block only from 8 KiB of stored bytes, which is longer than the
//! fuzzer's inputs. [`repeated`] therefore repeats the blocks of an input until they are long
//! enough.

use super::decode::Parts;
use super::open::Positional;
use super::regions::{
    BLOCK_ENTRY_BYTES, INDEX_CRC_BYTES, block_align, block_index, block_index_align, number, put, seal_block_index,
};
use tensilo::{Column, ColumnBuffer, OpenOptions, Reader, Verification};

/// Chunks of at least this many stored bytes are read block by block, unless the file is in memory.
const BLOCKWISE_READ_BYTES: usize = 8 << 10;
/// The maximum number of decoded bytes after repetition.
const MAX_REPEATED_BYTES: usize = 128 << 10;

/// Returns how often the blocks must be repeated to be read block by block. Returns `None` if the
/// block index does not parse, or if decoding the result would take too long.
pub fn repetitions(stored: &[u8], encoding: u16, raw_bytes: usize) -> Option<usize> {
    let block_index = block_index(stored, encoding)?;
    let times = BLOCKWISE_READ_BYTES.div_ceil((stored.len() - block_index.bytes).max(1));
    (times.saturating_mul(raw_bytes) <= MAX_REPEATED_BYTES).then_some(times)
}

/// Corrects the end of the last block of a part of `elements`. Otherwise readers would refuse every
/// changed length, and see nothing else.
pub fn put_last_end(stored: &mut [u8], encoding: u16, elements: usize) {
    let Some(block_index) = block_index(stored, encoding) else { return };
    let stored_end = stored.len() - block_index.bytes;
    if let Some(last) = block_index.block_count.checked_sub(1) {
        let entry = block_index.entries_start + BLOCK_ENTRY_BYTES * last;
        put(stored, entry, 4, elements as u64);
        put(stored, entry + 4, 4, stored_end as u64);
    }
}

/// Repeats the blocks `times` times, and corrects all checksums. The stored bytes are the whole
/// body of the chunk, because it has no validity and no shape.
pub fn repeated(stored: &[u8], encoding: u16, times: usize) -> Vec<u8> {
    let mut new = stored.to_vec();
    let parsed = block_index(stored, encoding).filter(|block_index| times > 1 && block_index.block_count > 0);
    if let Some(block_index) = parsed {
        let (of_index, of_blocks) = (block_index_align(encoding), block_align(encoding));
        let entries_end = block_index.entries_start + BLOCK_ENTRY_BYTES * block_index.block_count;
        let entries = &stored[block_index.entries_start..entries_end];
        let last = &entries[entries.len() - BLOCK_ENTRY_BYTES..];
        new.truncate(block_index.entries_start);
        for repetition in 0..times as u64 {
            for entry in entries.chunks_exact(BLOCK_ENTRY_BYTES) {
                let mut entry: [u8; BLOCK_ENTRY_BYTES] = entry.try_into().unwrap();
                let stored = number(last, 4, 4).next_multiple_of(of_blocks as u64);
                for (field, of_all) in [(0, number(last, 0, 4)), (4, stored)] {
                    let end = number(&entry, field, 4) + repetition * of_all;
                    put(&mut entry, field, 4, end);
                }
                new.extend(entry);
            }
        }
        new.resize((new.len() + INDEX_CRC_BYTES).next_multiple_of(of_index), 0);
        let block_index_bytes = new.len() as u64;
        put(&mut new, 0, 4, block_index_bytes);
        put(&mut new, 4, 4, block_index.block_count as u64 * times as u64);
        for _ in 0..times {
            new.resize(
                block_index_bytes as usize + (new.len() - block_index_bytes as usize).next_multiple_of(of_blocks),
                0,
            );
            new.extend(&stored[block_index.bytes..]);
        }
    }
    seal_block_index(&mut new, 0, encoding);
    new
}

/// Reads the file by position and block by block, and compares. `expected` has the values of each
/// chunk, or `None` if the chunk does not decode.
pub fn check(parts: &Parts<'_>, file: &[u8], expected: &[Option<Vec<u8>>; 2], dice: u32) {
    let in_memory = Reader::from_bytes(file.to_vec()).unwrap().column_at(0).unwrap();
    let verification = [Verification::FirstTouch, Verification::Always, Verification::Never][dice as usize % 3];
    let reader = OpenOptions::new().verification(verification).open_source(Positional(file.to_vec())).unwrap();
    let by_position = reader.column_at(0).unwrap();
    let mut cursor = by_position.cursor();
    let mut buffer = ColumnBuffer::new();
    for chunk in [1, 0, 1] {
        match &expected[chunk] {
            Some(expected) => parts.check_sound(&mut cursor, chunk, expected, &mut buffer),
            // a sample that both can read must be the same
            None => parts.check_broken(&in_memory, &mut cursor, chunk),
        }
    }
    for (chunk, expected) in expected.iter().enumerate() {
        for column in [&in_memory, &by_position] {
            check_blocks(parts, column, chunk, expected.as_deref());
            if let Some(expected) = expected {
                check_ranges(parts, column, chunk, expected, dice);
            }
        }
    }
    if dice.is_multiple_of(64) {
        let explained = in_memory.explain(0);
        assert!(explained.is_ok() || expected[0].is_none(), "{explained:?}");
    }
}

/// Reads the samples of individual blocks, at most about eight of them.
fn check_blocks(parts: &Parts<'_>, column: &Column, chunk: usize, expected: Option<&[u8]>) {
    let blocks = match (column.blocks(chunk as u64), expected) {
        (Ok(blocks), _) => blocks.expect("a chunk in blocks"),
        (Err(_), None) => return,
        (Err(error), Some(_)) => panic!("the blocks of a chunk that decodes are not found: {error}"),
    };
    let mut buffer = ColumnBuffer::new();
    for block in blocks.blocks.iter().step_by(1 + blocks.blocks.len() / 8) {
        let read = column.cursor().range_into(block.samples.clone(), &mut buffer);
        if let Some(expected) = expected {
            read.unwrap();
            assert_eq!(buffer.bytes(), parts.slice(chunk, expected, &block.samples), "{block:?}");
        }
    }
    if let Some(expected) = expected {
        assert_eq!(blocks.blocks.iter().map(|block| block.raw_bytes).sum::<u64>(), expected.len() as u64);
    }
}

/// Reads ranges of samples, and compares each with the slice of the whole chunk.
fn check_ranges(parts: &Parts<'_>, column: &Column, chunk: usize, expected: &[u8], dice: u32) {
    let all = parts.chunk(chunk);
    let count = all.end - all.start;
    let mut buffer = ColumnBuffer::new();
    for turn in 0..4 {
        let [a, b] = [2 * turn, 2 * turn + 1].map(|shift| u64::from(dice.rotate_left(4 * shift) >> 16) % (count + 1));
        let range = all.start + a.min(b)..all.start + a.max(b);
        column.cursor().range_into(range.clone(), &mut buffer).unwrap();
        assert_eq!(buffer.bytes(), parts.slice(chunk, expected, &range), "{range:?}");
    }
}
