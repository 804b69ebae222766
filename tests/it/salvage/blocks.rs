//! Damaged chunks in blocks: the samples of intact blocks are recovered.
//!
//! Each block has its own checksum, so a damaged block costs only the samples that have a byte in
//! it. Without its block index, a chunk is lost.

use super::salvage_file;
use crate::common::blocked::{BlockedChunk, blocked_chunks};
use crate::common::damage::seal_chunk;
use std::ops::Range;
use tensilo::salvage::{LostSamples, SalvageOptions, salvage};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::stages::ReadPlan;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Error, Profile, Schema, Shape, Verification, Writer, WriterOptions,
};
use tensilo_testing::mix;

/// Returns a file of one column, and its first chunk.
fn file_of(profile: Profile, column: ColumnSchema, samples: ColumnBatch<'_>) -> (Vec<u8>, BlockedChunk) {
    let options = WriterOptions::new().profile(profile);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), &options).expect("a writer");
    writer.push_batch(&[samples]).expect("samples");
    let file = writer.into_bytes().expect("a file");
    let chunk = blocked_chunks(&file).swap_remove(0);
    (file, chunk)
}

/// Returns a number that no encoding makes much shorter.
fn number(i: u64) -> u32 {
    mix(1, i) as u32 >> 8
}

/// Returns 128 samples of 1 KiB in chunks of 64 samples, each of 8 blocks.
fn numbers(profile: Profile) -> (Vec<u8>, BlockedChunk) {
    let values: Vec<u32> = (0..128 * 256).map(number).collect();
    let column = ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[256]));
    let (file, chunk) = file_of(profile, column, ColumnBatch::fixed(128, &values));
    assert_eq!((chunk.location.samples.clone(), chunk.blocks.len()), (0..64, 8));
    (file, chunk)
}

/// Returns the first and the last sample of each lost range of the only column.
fn lost(file: &[u8], decode: bool) -> Vec<(u64, u64)> {
    let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new().deep(decode)).expect("a schema");
    ends(&salvaged.losses.of(&["x"]).expect("a column"))
}

fn ends(lost: &LostSamples) -> Vec<(u64, u64)> {
    lost.ranges().iter().map(|range| (range.start, range.end - 1)).collect()
}

/// A cached chunk has lost samples, too: every read refuses them, even without checks.
#[test]
fn lost_samples_of_a_cached_chunk_are_refused() {
    let (mut file, chunk) = numbers(Profile::Raw);
    file[chunk.blocks[2].bytes.start] ^= 1;
    let is_refusal = |error: &Error| (error.rule(), error.samples()) == (Some("R-4.2"), Some(16..24));
    for verification in [Verification::FirstTouch, Verification::Always, Verification::Never] {
        let options = SalvageOptions::new().verification(verification);
        let salvaged = salvage(InMemory(file.clone()), options).expect("a schema");
        assert_eq!(ends(&salvaged.losses.of_all()), [(16, 23)]);
        let column = salvaged.reader.column("x").expect("a column");
        let mut cursor = column.cursor();
        for i in 0..128 {
            let read = cursor.read(i).map(|sample| sample.as_slice::<u32>().expect("numbers")[0]);
            match read {
                Ok(first) => assert_eq!(first, number(i * 256), "sample {i}"),
                Err(error) => assert!((16..24).contains(&i) && is_refusal(&error), "sample {i}: {error}"),
            }
            assert_eq!(column.view(i).is_err(), (16..24).contains(&i), "sample {i}");
        }
        let mut out = ColumnBuffer::new();
        for samples in [0..64, 0..17, 23..100, 16..24] {
            assert!(is_refusal(&cursor.range_into(samples, &mut out).expect_err("lost samples")));
        }
        let mut plan = ReadPlan::new();
        for samples in [[3, 16], [23, 24], [127, 20]] {
            assert!(is_refusal(&cursor.gather_into(&samples, &mut out).expect_err("a lost sample")));
            assert!(is_refusal(&plan.select(std::slice::from_ref(&column), &samples).expect_err("a lost sample")));
        }
        cursor.gather_into(&[15, 24, 127, 0], &mut out).expect("samples that are left");
        assert_eq!(out.values::<u32>().expect("numbers")[256], number(24 * 256));
        cursor.range_into(24..30, &mut out).expect("samples that are left");
        assert_eq!(column.facts().chunk_count, 2);
    }
}

/// If the block index or every block is damaged, nothing of the chunk is left.
#[test]
fn a_chunk_without_its_block_index_is_lost() {
    let (file, chunk) = numbers(Profile::Balanced);
    for at in [chunk.location.bytes.start + 64, chunk.blocks[0].bytes.start - 1] {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        assert_eq!(lost(&damaged, false), [(0, 63)]);
    }
    let mut damaged = file.clone();
    chunk.blocks.iter().for_each(|block| damaged[block.bytes.start] ^= 1);
    assert_eq!(lost(&damaged, false), [(0, 63)]);
    // the checksum of the chunk is wrong; the checksums of block index and blocks are correct
    let mut damaged = file;
    let header = chunk.location.bytes.start;
    damaged[header + 56] ^= 1;
    let crc = crc32fast::hash(&damaged[header..header + 60]);
    damaged[header + 60..header + 64].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(lost(&damaged, false), [(0, 63)]);
}

/// Verification reports adjacent blocks as one damage.
#[test]
fn damaged_blocks_are_named_with_what_they_cost() {
    let (mut file, chunk) = numbers(Profile::Balanced);
    [1, 2, 6].into_iter().for_each(|block| file[chunk.blocks[block].bytes.end - 1] ^= 1);
    for decode in [false, true] {
        assert_eq!(lost(&file, decode), [(8, 23), (48, 55)]);
        let report = verify(&InMemory(&file), VerifyOptions::new().deep(decode)).expect("memory can be read");
        let found: Vec<_> =
            report.findings.iter().map(|damage| (damage.samples.clone(), damage.error.rule())).collect();
        assert_eq!(found, [(Some(8..24), Some("R-5.16")), (Some(48..56), Some("R-5.16"))]);
        let bytes = |blocks: Range<usize>| {
            let blocks = &chunk.blocks[blocks];
            blocks[0].bytes.start as u64..blocks[blocks.len() - 1].bytes.end as u64
        };
        assert_eq!((&report.findings[0].file_range, &report.findings[1].file_range), (&bytes(1..3), &bytes(6..7)));
        let message = |i: usize| report.findings[i].error.message().to_owned();
        assert!(
            message(0).ends_with("; 16 of 64 samples of the chunk are lost (blocks 2 to 3 of 8)"),
            "{}",
            message(0)
        );
        assert!(message(1).ends_with("; 8 of 64 samples of the chunk are lost (block 7 of 8)"), "{}", message(1));
        assert_eq!(report.chunk_count, 1);
    }
}

/// A faulty writer: the checksums of a block are correct for bytes that do not decode.
#[test]
fn blocks_that_do_not_decode_are_lost_if_salvage_decodes() {
    let (mut file, chunk) = numbers(Profile::Fast);
    file[chunk.blocks[5].bytes.start..][..2].fill(0xFF); // codes in tier 2
    chunk.seal_block(&mut file, 5);
    seal_chunk(&mut file, chunk.location.bytes.start);
    let sealed = file.clone();
    file[chunk.blocks[1].bytes.start + 9] ^= 1;
    assert_eq!(lost(&file, false), [(8, 15)]);
    assert_eq!(lost(&file, true), [(8, 15), (40, 47)]);
    let findings = |file: &[u8], decode: bool| {
        let report = verify(&InMemory(file), VerifyOptions::new().deep(decode)).expect("memory can be read");
        report.findings.iter().map(|damage| damage.samples.clone()).collect::<Vec<_>>()
    };
    assert_eq!(findings(&file, false), [Some(8..16)]);
    assert_eq!(findings(&file, true), [Some(8..16), Some(40..48)]);
    assert!(findings(&sealed, true).contains(&Some(0..64)));
}

/// A faulty writer: an intact block has an invalid bool. Nothing tells which sample it costs.
#[test]
fn all_samples_left_of_a_chunk_are_valid_if_salvage_decodes() {
    let values = [1; 40_000];
    let column = ColumnSchema::tensor("x", DType::Bool, Shape::fixed(&[100]));
    let samples = ColumnBatch::from_bytes(DType::Bool, 400, &[], &values);
    let (mut file, chunk) = file_of(Profile::Raw, column, samples);
    let damaged = chunk.blocks[3].samples.clone();
    // invalid, but lost anyway
    let damage = |file: &mut [u8]| file[chunk.blocks[3].bytes.start] = 7;
    let lost_samples = (damaged[0], damaged[damaged.len() - 1]);
    let mut damaged = file.clone();
    damage(&mut damaged);
    assert_eq!(lost(&damaged, true), [lost_samples]);
    file[chunk.blocks[1].bytes.start] = 2;
    chunk.seal_block(&mut file, 1);
    seal_chunk(&mut file, chunk.location.bytes.start);
    damage(&mut file);
    assert_eq!(lost(&file, false), [lost_samples]);
    assert_eq!(lost(&file, true), [(0, 399)]);
}

/// Empty samples have no byte in a block, so they are not lost with their neighbors.
#[test]
fn empty_samples_between_lost_ones_are_not_lost() {
    let lengths: Vec<u32> = (0..600).map(|i| if i % 3 == 1 { 0 } else { 60 }).collect();
    let text: Vec<u8> = (0..400 * 60_u32).map(|i| b'a' + (i.wrapping_mul(i) % 23) as u8).collect();
    let samples = ColumnBatch::from_bytes(DType::Utf8, 600, &lengths, &text);
    let (mut file, chunk) = file_of(Profile::Raw, ColumnSchema::utf8("x"), samples);
    let block = &chunk.blocks[1];
    assert!(block.samples.len() > 100 && block.samples.iter().all(|i| i % 3 != 1));
    file[block.bytes.start + 100] ^= 1;
    let salvaged = salvage_file(&file);
    let found: &LostSamples = &salvaged.losses.columns[0].1;
    assert!(found.ranges().iter().cloned().flatten().eq(block.samples.iter().copied()));
    let mut cursor = salvaged.reader.column("x").expect("a column").cursor();
    let empty = (0..600).filter(|i| i % 3 == 1);
    empty.for_each(|i| assert_eq!(cursor.read(i).expect("an empty sample").as_str().expect("text"), Some("")));
}
