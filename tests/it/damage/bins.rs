//! Chunks of bins, without a mapping, with each mapping, and with each option, from vectors and
//! from writers.

use super::files::blocked_files;
use super::in_blocks::flip;
use super::{Sample, is_long, read_all, read_one};
use crate::common::blocked::{BLOCKED_BINS, blocked_chunks};
use std::collections::BTreeSet;
use tensilo::Column;
use tensilo::salvage::{LostSamples, SalvageOptions, Salvaged, salvage};
use tensilo::source::InMemory;

#[test]
fn a_flip_in_one_block_of_bins_costs_no_sample_of_another() {
    let [flips, in_blocks, saved] = flip(|encoding| encoding == BLOCKED_BINS);
    println!("{flips} single-bit flips of chunks of bins, {in_blocks} of them in a block: {saved} samples not lost");
    assert!(flips > if is_long() { 1_000_000 } else { 10_000 });
    assert!(in_blocks > flips / 2 && saved > 10 * in_blocks);
}

/// The offset of the byte `mapping` in the tables.
const MAPPING: usize = 23;
// The bits of `mapping` that are options.
const GAPS: u8 = 16;
const OUTLIERS: u8 = 32;
const FILTERS: u8 = 64;

/// Returns all samples; lost ones are `None`.
fn read_left(salvaged: &Salvaged) -> Vec<Vec<Option<Sample>>> {
    let columns = salvaged.reader.columns().zip(&salvaged.losses.columns);
    let of_column = |(column, (_, lost)): (Column, &(String, LostSamples))| {
        let mut cursor = column.cursor();
        let mut read = |i| (!lost.contains(i)).then(|| read_one(&mut cursor, i).unwrap());
        (0..salvaged.reader.sample_count()).map(&mut read).collect()
    };
    columns.map(of_column).collect()
}

/// Destroys every block in turn, and the checksum of every block index: all other samples can still
/// be read.
#[test]
fn a_damaged_block_of_bins_loses_its_samples_and_a_block_index_those_of_its_chunk() {
    let (mut block_count, mut block_index_count) = (0, 0);
    let (mut written, mut in_vectors) = (BTreeSet::new(), BTreeSet::new());
    for (name, file) in blocked_files() {
        let intact = read_all(&file);
        let mappings = if name.ends_with(".hex") { &mut in_vectors } else { &mut written };
        for chunk in blocked_chunks(&file).iter().filter(|chunk| chunk.encoding == BLOCKED_BINS) {
            mappings.insert(file[chunk.tables.start + MAPPING]);
            let all: Vec<u64> = chunk.location.samples.clone().collect();
            let block_index_end = chunk.blocks[0].bytes.start;
            let block_index = [(block_index_end - 1..block_index_end, &all)];
            let blocks = chunk.blocks.iter().map(|block| (block.bytes.clone(), &block.samples));
            for (bytes, lost) in blocks.chain(block_index) {
                let mut damaged = file.clone();
                damaged[bytes.clone()].iter_mut().for_each(|byte| *byte = !*byte);
                // decoding would also find most of these faults
                let options = SalvageOptions::new().deep(block_index_count % 2 == 1);
                let salvaged = salvage(InMemory(damaged), options).unwrap();
                for (column, (found, intact)) in read_left(&salvaged).iter().zip(&intact).enumerate() {
                    let is_lost = |i: u64| column == chunk.location.column && lost.contains(&i);
                    let expected = (0..).zip(intact).map(|(i, sample)| (!is_lost(i)).then(|| sample.clone()));
                    assert!(expected.eq(found.iter().cloned()), "{name}, column {column}, {bytes:?}");
                }
            }
            block_count += chunk.blocks.len();
            block_index_count += 1;
        }
    }
    println!("{block_count} blocks and {block_index_count} block indexes of bins destroyed: nothing else is lost");
    println!("the byte `mapping` of written chunks: {written:?}; of vectors: {in_vectors:?}");
    // outliers have no dictionary, whose numbers are too short
    let expected = [0, 1, 2, 3, GAPS, GAPS | 1, GAPS | 2, GAPS | 3, OUTLIERS, OUTLIERS | 2, OUTLIERS | 3];
    let all = [OUTLIERS | GAPS, OUTLIERS | GAPS | 2];
    // filters have no outliers
    let filters = [0, 1, 2, 3, GAPS].map(|others| FILTERS | others);
    assert!(expected.iter().chain(&all).chain(&filters).all(|mapping| in_vectors.contains(mapping)), "{in_vectors:?}");
    let is_written = |option: u8| written.iter().any(|mapping| mapping & option != 0);
    assert!([0, 2].iter().all(|mapping| written.contains(&(FILTERS | mapping))), "{written:?}");
    assert!([GAPS, OUTLIERS, FILTERS].into_iter().all(is_written), "{written:?}");
    assert!(block_count > 300 && block_index_count > 100, "{block_count} blocks, {block_index_count} block indexes");
}
