//! Chunks in blocks: a flipped bit in a block costs exactly the samples that have a byte in it. A
//! flipped bit in the block index costs at most the samples of the chunk.

use super::files::{blocked_files, for_each};
use super::{Sample, is_long, is_noticed, read_all, read_one};
use crate::common::blocked::{BLOCKED_BINS, BlockedChunk, blocked_chunks};
use crate::support::positional::Positional;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use tensilo::salvage::{RewriteOptions, SalvageOptions, Salvaged, salvage};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBatch, ColumnSchema, DType, OpenOptions, Profile, Reader, Result, Schema, Shape, Writer, WriterOptions,
};
use tensilo_testing::mix;

/// Returns the distance between flipped bits, an odd number, so that all bits of a byte get their
/// turn. Each flip reads all samples, so chunks of bins with thousands of lists get few.
fn step(chunk: &BlockedChunk) -> usize {
    let has_many = chunk.location.samples.end - chunk.location.samples.start > 1000;
    match (is_long(), chunk.encoding) {
        (true, BLOCKED_BINS) if has_many => 997,
        (true, BLOCKED_BINS) => 1,
        (true, _) => 3,
        (false, BLOCKED_BINS) if has_many => 9973,
        (false, _) => 97,
    }
}

/// Returns whether samples are read after this bit was flipped. Losses are checked for every bit.
fn is_read(bit: usize) -> bool {
    !is_long() || bit.is_multiple_of(5)
}

/// Reads a sample with a fresh cursor, so that no chunk is decoded whole.
fn read_individually(reader: &Reader, column: usize, i: u64) -> Result<Sample> {
    read_one(&mut reader.column_at(column).unwrap().cursor(), i)
}

/// A file with a flipped bit in a chunk.
struct FlippedChunk<'a> {
    intact: &'a [Vec<Sample>],
    chunk: &'a BlockedChunk,
    /// The samples that are lost.
    lost: &'a [u64],
    what: String,
}

impl FlippedChunk<'_> {
    /// Checks that verification names exactly what is lost.
    fn check_verified(&self, damaged: &[u8], bytes: &Range<usize>, decode: bool) {
        let report = verify(&InMemory(damaged), VerifyOptions::new().deep(decode)).unwrap();
        let [damage] = &report.findings[..] else { panic!("{}: {:?}", self.what, report.findings) };
        let (first, last) = (self.lost[0], self.lost[self.lost.len() - 1]);
        assert_eq!(damage.samples, Some(first..last + 1), "{}", self.what);
        assert_eq!(damage.file_range, bytes.start as u64..bytes.end as u64, "{}", self.what);
        assert_eq!(damage.error.offset(), Some(bytes.start as u64), "{}", self.what);
    }

    /// Checks that exactly `self.lost` is lost.
    fn check_losses(&self, salvaged: &Salvaged) {
        for (column, (_, lost)) in salvaged.losses.columns.iter().enumerate() {
            let expected = if column == self.chunk.location.column { self.lost } else { &[] };
            assert!(lost.ranges().iter().cloned().flatten().eq(expected.iter().copied()), "{}: {lost:?}", self.what);
        }
    }

    /// Checks that a reader returns the samples that are not lost and refuses the others. Reads the
    /// neighbors of lost samples, and some more.
    fn check_reads(&self, reader: &Reader, salt: u64) {
        let (column, samples) = (self.chunk.location.column, self.chunk.location.samples.clone());
        let is_lost = |i: u64| self.lost.binary_search(&i).is_ok();
        let is_next = |i: u64| is_lost(i) != is_lost(i.saturating_sub(1)) || is_lost(i) != is_lost(i + 1);
        let chosen = |i: u64| is_next(i) || (i + salt).is_multiple_of(samples.end - samples.start);
        for i in samples.clone().filter(|&i| chosen(i)) {
            let expected = &self.intact[column][i as usize];
            match read_individually(reader, column, i) {
                Ok(found) => assert!(found == *expected && !is_lost(i), "{}: sample {i}", self.what),
                Err(error) => assert!(is_lost(i), "{}: sample {i}: {error}", self.what),
            }
        }
    }
}

/// Flips bits of chunks in blocks of these encodings and checks what is lost. Returns the number of
/// flips, how many of them hit a block, and how many samples of the chunks were not lost.
pub fn flip(is_chosen: fn(u16) -> bool) -> [u64; 3] {
    let counts = [(); 3].map(|()| AtomicU64::new(0));
    for_each(&blocked_files(), |name, file| {
        let intact = read_all(file);
        let mut damaged = file.to_vec();
        for chunk in blocked_chunks(file).into_iter().filter(|chunk| is_chosen(chunk.encoding)) {
            let all: Vec<u64> = chunk.location.samples.clone().collect();
            let bytes = &chunk.location.bytes;
            for bit in (bytes.start * 8..bytes.end * 8).step_by(step(&chunk)) {
                damaged[bit / 8] ^= 1 << (bit % 8);
                let block = chunk.blocks.iter().find(|block| block.bytes.contains(&(bit / 8)));
                let lost = block.map_or(&all, |block| &block.samples);
                let what = format!("{name}, column {}, bit {bit}", chunk.location.column);
                let flipped = FlippedChunk { intact: &intact, chunk: &chunk, lost, what };
                match block {
                    Some(block) if lost.len() < all.len() => {
                        flipped.check_verified(&damaged, &block.bytes, bit % 64 == 0);
                    }
                    _ => assert!(is_noticed(&damaged), "{}", flipped.what),
                }
                let options = SalvageOptions::new().deep(bit % 128 == 0);
                let salvaged = salvage(InMemory(damaged.clone()), options).unwrap();
                flipped.check_losses(&salvaged);
                if is_read(bit) {
                    flipped.check_reads(&salvaged.reader, bit as u64);
                }
                if is_read(bit) && block.is_some() {
                    flipped.check_reads(&Reader::from_bytes(damaged.clone()).unwrap(), bit as u64);
                }
                counts[0].fetch_add(1, Ordering::Relaxed);
                counts[1].fetch_add(u64::from(block.is_some()), Ordering::Relaxed);
                counts[2].fetch_add((all.len() - lost.len()) as u64, Ordering::Relaxed);
                damaged[bit / 8] ^= 1 << (bit % 8);
            }
        }
    });
    counts.map(AtomicU64::into_inner)
}

#[test]
fn a_flip_in_one_block_costs_no_sample_of_another() {
    let [flips, in_blocks, saved] = flip(|encoding| encoding != BLOCKED_BINS);
    println!("{flips} single-bit flips of chunks in blocks, {in_blocks} of them in a block: {saved} samples not lost");
    assert!(flips > if is_long() { 800_000 } else { 20_000 });
    assert!(in_blocks > flips / 2 && saved > 10 * in_blocks);
}

/// Chunks of more than 16 KiB, whose blocks are read individually.
#[test]
fn a_file_read_by_position_gives_the_samples_of_the_other_blocks() {
    let mut count = 0;
    for (name, file) in blocked_files() {
        let intact = read_all(&file);
        let mut damaged = file.clone();
        for chunk in blocked_chunks(&file).iter().filter(|chunk| chunk.location.bytes.len() > 17 << 10) {
            for block in &chunk.blocks {
                let bit = 8 * block.bytes.start + count * 4099 % (8 * block.bytes.len());
                damaged[bit / 8] ^= 1 << (bit % 8);
                let what = format!("{name}, column {}, bit {bit}", chunk.location.column);
                let flipped = FlippedChunk { intact: &intact, chunk, lost: &block.samples, what };
                let reader = OpenOptions::new().open_source(Positional(damaged.clone())).unwrap();
                flipped.check_reads(&reader, bit as u64);
                let salvaged = salvage(Positional(damaged.clone()), SalvageOptions::new()).unwrap();
                flipped.check_losses(&salvaged);
                flipped.check_reads(&salvaged.reader, bit as u64);
                damaged[bit / 8] ^= 1 << (bit % 8);
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} blocks");
}

/// Readers note the checked blocks of such chunks in groups. Damage costs no other block of its
/// group.
#[test]
fn a_damaged_block_of_a_chunk_of_many_costs_no_sample_of_another() {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::F32, Shape::fixed(&[128]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(256 << 10).block_bytes(1024);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let values: Vec<f32> = (0..512 * 128).map(|i| mix(5, i) as f32).collect();
    writer.push_batch(&[ColumnBatch::fixed(512, &values)]).unwrap();
    let file = writer.into_bytes().unwrap();
    let intact = read_all(&file);
    let chunks = blocked_chunks(&file);
    let [chunk] = &chunks[..] else { panic!("{} chunks", chunks.len()) };
    assert_eq!(chunk.blocks.len(), 256);
    for (number, block) in chunk.blocks.iter().enumerate() {
        let mut damaged = file.clone();
        damaged[block.bytes.start + number] ^= 1 << (number % 8);
        let what = format!("block {number}");
        let flipped = FlippedChunk { intact: &intact, chunk, lost: &block.samples, what };
        flipped.check_reads(&Reader::from_bytes(damaged.clone()).unwrap(), number as u64);
        flipped.check_reads(&OpenOptions::new().open_source(Positional(damaged)).unwrap(), number as u64);
    }
}

/// Damages two blocks of every chunk, then writes the remaining samples to a new file, with lost
/// samples as nulls or left out.
#[test]
fn samples_left_of_damaged_chunks_can_be_rewritten() {
    let mut lost_count = 0;
    for (name, file) in blocked_files() {
        let intact = read_all(&file);
        let mut damaged = file.clone();
        for chunk in blocked_chunks(&file) {
            let count = chunk.blocks.len();
            for block in [count / 3, count - 1] {
                damaged[chunk.blocks[block].bytes.end - 1] ^= 0x20;
            }
        }
        let salvaged = salvage(InMemory(damaged), SalvageOptions::new().deep(true)).unwrap();
        let all_lost = salvaged.losses.of_all();
        for drop_lost in [false, true] {
            let options = RewriteOptions::new().drop_lost(drop_lost);
            let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).unwrap().sink.0;
            assert!(verify(&InMemory(&written), VerifyOptions::new().deep(true)).unwrap().findings.is_empty());
            let found = read_all(&written);
            for ((column, (_, lost)), found) in salvaged.losses.columns.iter().enumerate().zip(found) {
                let left = (0..).zip(&intact[column]).filter(|&(i, _)| !drop_lost || !all_lost.contains(i));
                let expected = left.map(|(i, sample)| if lost.contains(i) { None } else { sample.clone() });
                assert!(expected.eq(found), "{name}, column {column}, leave out: {drop_lost}");
                lost_count += lost.count();
            }
        }
    }
    assert!(lost_count > 1000, "{lost_count} samples");
}
