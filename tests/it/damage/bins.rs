//! Chunks of bins, without a mapping and with each, as vectors and writers make them.

use super::files::blocked_files;
use super::in_blocks::flip;
use super::{Sample, is_long, read_all, read_one};
use crate::common::blocked::{BLOCKED_BINS, blocked_chunks};
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

/// All samples that are not lost; of lost ones, `None`.
fn read_left(salvaged: &Salvaged) -> Vec<Vec<Option<Sample>>> {
    let columns = salvaged.reader.columns().zip(&salvaged.losses.columns);
    let of_column = |(column, (_, lost)): (Column, &(String, LostSamples))| {
        let mut cursor = column.cursor();
        let mut read = |i| (!lost.contains(i)).then(|| read_one(&mut cursor, i).unwrap());
        (0..salvaged.reader.sample_count()).map(&mut read).collect()
    };
    columns.map(of_column).collect()
}

/// Every block is destroyed in turn, and the checksum of every front: all other samples come back.
#[test]
fn a_block_of_bins_loses_its_samples_and_a_front_those_of_its_chunk() {
    let (mut block_count, mut front_count) = (0, 0);
    for (name, file) in blocked_files() {
        let intact = read_all(&file);
        for chunk in blocked_chunks(&file).iter().filter(|chunk| chunk.encoding == BLOCKED_BINS) {
            let all: Vec<u64> = chunk.place.samples.clone().collect();
            let front_end = chunk.blocks[0].bytes.start;
            let front = [(front_end - 1..front_end, &all)];
            let blocks = chunk.blocks.iter().map(|block| (block.bytes.clone(), &block.samples));
            for (bytes, lost) in blocks.chain(front) {
                let mut damaged = file.clone();
                damaged[bytes.clone()].iter_mut().for_each(|byte| *byte = !*byte);
                // decoding would find most of it, too
                let options = SalvageOptions::new().decode(front_count % 2 == 1);
                let salvaged = salvage(InMemory(damaged), options).unwrap();
                for (column, (found, intact)) in read_left(&salvaged).iter().zip(&intact).enumerate() {
                    let is_lost = |i: u64| column == chunk.place.column && lost.contains(&i);
                    let due = (0..).zip(intact).map(|(i, sample)| (!is_lost(i)).then(|| sample.clone()));
                    assert!(due.eq(found.iter().cloned()), "{name}, column {column}, {bytes:?}");
                }
            }
            block_count += chunk.blocks.len();
            front_count += 1;
        }
    }
    println!("{block_count} blocks and {front_count} fronts of bins destroyed: nothing else is lost");
    assert!(block_count > 300 && front_count > 100, "{block_count} blocks, {front_count} fronts");
}
