//! Invalid blocks: kernels refuse the blocks that the library refuses, and decode the others to the
//! same elements. Sanitizers check that nothing outside of a block is read, and nothing outside of
//! its elements written.

use super::{check_block, open, readable_columns};
use std::collections::BTreeMap;
use tensilo::ColumnBuffer;
use tensilo::stages::{BlockSamples, Decoder, FetchedBytes, ReadPlan};
use tensilo_testing::{vector, vector_files};

/// Calls `check` with each block of tiers or bins of the vectors.
pub fn each_block(mut check: impl FnMut(BlockSamples<'_>)) {
    for name in vector_files().keys().filter(|name| name.starts_with("valid/") && name.ends_with(".hex")) {
        let Ok(reader) = open(vector(name)) else { continue };
        for column in readable_columns(&reader) {
            let mut plan = ReadPlan::new();
            plan.select_range(std::slice::from_ref(&column), 0..reader.sample_count()).unwrap();
            let mut bytes = FetchedBytes::new();
            plan.fetch(&mut bytes).unwrap();
            let mut visit = |samples: BlockSamples<'_>| {
                if samples.block.encoding() > 1 {
                    check(samples);
                }
                Ok(())
            };
            Decoder::new().visit_blocks(&plan, &bytes, 0, &mut ColumnBuffer::new(), &mut visit).unwrap();
        }
    }
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

#[test]
fn damaged_blocks_are_refused_as_the_library_does() {
    let mut random = Random(1);
    let mut seen = BTreeMap::new();
    let mut counts = [0, 0];
    each_block(|samples| {
        let block = samples.block;
        // blocks with the same tables are alike: two are enough
        let times = seen.entry((block.encoding(), block.tables().to_vec())).or_insert(0);
        *times += 1;
        if *times > 2 {
            return;
        }
        assert!(check_block(&block));
        for _ in 0..60 {
            let mut bytes = block.bytes().to_vec();
            match random.below(8) {
                0 => bytes.truncate(random.below(bytes.len())),
                1 => bytes.extend((0..=random.below(3)).map(|_| 0)),
                2 => {
                    let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                    bytes[to] = bytes[from];
                }
                _ => {
                    for _ in 0..=random.below(3) {
                        // the sections with counts are at the start, states and marks near it
                        let end = if random.below(2) == 0 { bytes.len() } else { bytes.len().min(40) };
                        bytes[random.below(end)] ^= 1 << random.below(8);
                    }
                }
            }
            counts[usize::from(check_block(&block.with_bytes(&bytes)))] += 1;
        }
    });
    let [refused, valid] = counts;
    assert!(refused > 1000 && valid > 1000, "{refused} refused, {valid} valid");
}

#[test]
fn arbitrary_bytes_are_safe() {
    let mut random = Random(2);
    let mut seen = std::collections::BTreeSet::new();
    each_block(|samples| {
        let block = samples.block;
        if !seen.insert((block.encoding(), block.tables().to_vec())) {
            return;
        }
        for _ in 0..20 {
            let length = random.below(3 * block.bytes().len() + 20);
            let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            check_block(&block.with_bytes(&bytes));
        }
    });
}
