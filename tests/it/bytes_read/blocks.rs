//! Chunks in blocks: which bytes are read, in how many requests, and when they are checked.
//!
//! A sample costs the block that contains it, and the block index of its chunk the first time. A
//! gather of more than three quarters of a chunk reads the chunk whole in one request, and so does
//! any read of a small chunk.

use super::counting_source::CountingSource;
use super::{CountingReader, ELEMENTS, HEADER_BYTES, SAMPLES, file_of, requests_and_bytes};
use std::sync::atomic::Ordering;
use tensilo::facts::ChunkBlocks;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, ErrorKind, OpenOptions, Profile, Reader, Schema, Shape,
    Verification, Writer, WriterOptions,
};
use tensilo_testing::mix;

/// Ten samples of 768 bytes.
const BLOCK_BYTES: u64 = 7680;
/// The block index of nine blocks: 8 bytes, 12 for each block, and 4, in multiples of 64.
const BLOCK_INDEX_BYTES: u64 = 128;
/// The first read of a chunk, which finds its block index.
const FIRST_READ_BYTES: u64 = 1024;
/// 85 samples.
const CHUNK_BYTES: u64 = HEADER_BYTES + BLOCK_INDEX_BYTES + 85 * 768;

/// Opens a file whose index has been read once.
fn open(verification: Verification, profile: Profile) -> CountingReader {
    let file = file_of(&WriterOptions::new().profile(profile), SAMPLES, ELEMENTS);
    let opened = CountingReader::new(OpenOptions::new().verification(verification), file);
    let column = opened.column("x").unwrap();
    assert!(column.cursor().read_slice(SAMPLES - 1, &mut [0_i32; ELEMENTS]).is_ok());
    opened
}

fn blocks(opened: &CountingReader, chunk: u64) -> ChunkBlocks {
    opened.column("x").unwrap().blocks(chunk).unwrap().unwrap()
}

fn is_sample(i: u64, found: &[i32]) -> bool {
    let first = i as i32 * ELEMENTS as i32;
    found.iter().copied().eq(first..first + ELEMENTS as i32)
}

/// Reads a sample with a fresh cursor.
fn read(opened: &CountingReader, i: u64) -> (u64, u64) {
    let mut out = [0; ELEMENTS];
    let counts = requests_and_bytes(opened, || {
        assert_eq!(opened.column("x").unwrap().cursor().read_slice(i, &mut out).unwrap(), Some(ELEMENTS));
    });
    assert!(is_sample(i, &out), "{i}");
    counts
}

/// Returns the bytes of the block of a sample of chunk 1.
fn block_of(opened: &CountingReader, i: u64) -> u64 {
    let block = blocks(opened, 1).blocks.into_iter().find(|block| block.samples.contains(&i)).unwrap();
    block.file_range.end - block.file_range.start
}

#[test]
fn a_sample_read_fetches_its_block_and_the_block_index_only_once() {
    for verification in [Verification::FirstTouch, Verification::Always] {
        let opened = open(verification, Profile::Raw);
        assert_eq!((block_of(&opened, 100), block_of(&opened, 169)), (BLOCK_BYTES, 5 * 768));
        assert_eq!(read(&opened, 100), (2, FIRST_READ_BYTES + BLOCK_BYTES), "{verification:?}");
        // the block index is cached, and says where the chunk is
        assert_eq!(read(&opened, 101), (1, BLOCK_BYTES), "{verification:?}");
        assert_eq!(read(&opened, 169), (1, 5 * 768), "{verification:?}");
    }
}

/// Samples of incompressible floats, so that the chunk is long even when encoded, and not read
/// whole.
#[test]
fn an_encoded_sample_is_read_by_its_block_too() {
    let values: Vec<i32> = (0..170 * ELEMENTS as u64).map(|i| (mix(1, i) & 0x00FF_FFFF) as i32).collect();
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::fixed(&[ELEMENTS as u32]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(Profile::Fast)).unwrap();
    writer.push_batch(&[ColumnBatch::fixed(170, &values)]).unwrap();
    let opened = CountingReader::new(OpenOptions::new(), CountingSource::new(writer.into_bytes().unwrap()));
    let column = opened.column("x").unwrap();
    assert!(column.chunk(1).unwrap().unwrap().encoding.contains("-tiers"));
    let block = block_of(&opened, 100);
    let mut out = [0; ELEMENTS];
    column.cursor().read_slice(0, &mut out).unwrap(); // checks the page of the index
    for (i, expected) in [(100, (2, FIRST_READ_BYTES + block)), (101, (1, block)), (100, (1, block))] {
        let counts = requests_and_bytes(&opened, || assert!(column.cursor().read_slice(i, &mut out).is_ok()));
        assert_eq!(counts, expected, "{i}");
        assert_eq!(out, values[i as usize * ELEMENTS..][..ELEMENTS]);
    }
}

/// Raw samples are read without their block once the checksum of every block has matched.
#[test]
fn raw_samples_are_read_individually_once_all_blocks_of_their_chunk_were_checked() {
    let opened = open(Verification::FirstTouch, Profile::Raw);
    for (number, i) in (85..170).step_by(10).enumerate() {
        let block_index = if number == 0 { (1, FIRST_READ_BYTES) } else { (0, 0) };
        let block = if i < 165 { BLOCK_BYTES } else { 5 * 768 };
        assert_eq!(read(&opened, i), (block_index.0 + 1, block_index.1 + block), "{i}");
    }
    for i in [85, 100, 169] {
        assert_eq!(read(&opened, i), (1, 768), "{i}");
    }
    // a gather of all samples checks all blocks at once
    let all: Vec<u64> = (0..SAMPLES).collect();
    opened.column("x").unwrap().cursor().gather_into(&all, &mut ColumnBuffer::new()).unwrap();
    assert_eq!(read(&opened, 300), (1, 768));
    // samples that are checked each time are read with their blocks
    let opened = open(Verification::Always, Profile::Raw);
    for i in 85..170 {
        read(&opened, i);
    }
    assert_eq!(read(&opened, 100), (1, BLOCK_BYTES));
    // samples that are never checked are read individually once the header is known
    let opened = open(Verification::Never, Profile::Raw);
    assert_eq!(read(&opened, 100), (2, HEADER_BYTES + 768));
}

#[test]
fn a_cursor_caches_its_last_block_and_reads_the_chunk_if_it_needs_much_of_it() {
    let opened = open(Verification::FirstTouch, Profile::Raw);
    let (column, mut out) = (opened.column("x").unwrap(), [0; ELEMENTS]);
    let mut cursor = column.cursor();
    for (i, expected) in [
        (100, (2, FIRST_READ_BYTES + BLOCK_BYTES)),
        (104, (0, 0)),
        (95, (0, 0)),
        (110, (1, BLOCK_BYTES)),
        (100, (1, BLOCK_BYTES)),
        (101, (0, 0)),
        (102, (0, 0)),
        (103, (0, 0)),
        (125, (1, CHUNK_BYTES)), // more than an eighth was read: a sample counts as 1 KiB
        (150, (0, 0)),
    ] {
        let counts = requests_and_bytes(&opened, || assert!(cursor.read_slice(i, &mut out).is_ok()));
        assert!(is_sample(i, &out));
        assert_eq!(counts, expected, "{i}");
    }
}

/// Gathers with a fresh cursor.
fn gather(opened: &CountingReader, samples: &[u64]) -> (u64, u64) {
    let mut out = ColumnBuffer::new();
    let mut cursor = opened.column("x").unwrap().cursor();
    let counts = requests_and_bytes(opened, || cursor.gather_into(samples, &mut out).unwrap());
    let values = out.values::<i32>().unwrap();
    assert!(values.chunks_exact(ELEMENTS).zip(samples).all(|(values, &i)| is_sample(i, values)), "{samples:?}");
    counts
}

#[test]
fn samples_are_gathered_by_their_blocks_up_to_three_quarters_of_their_chunk() {
    let opened = open(Verification::FirstTouch, Profile::Raw);
    for (samples, expected) in [
        (vec![0, 1, 2], (2, FIRST_READ_BYTES + BLOCK_BYTES)),
        (vec![2, 15, 0], (1, 2 * BLOCK_BYTES)),
        (vec![25, 0, 3], (2, 2 * BLOCK_BYTES)),
        (vec![86, 160, 87], (3, FIRST_READ_BYTES + 2 * BLOCK_BYTES)),
        // a sample counts as 1 KiB
        ((170..217).collect(), (2, FIRST_READ_BYTES + 5 * BLOCK_BYTES)),
        ((255..303).collect(), (1, CHUNK_BYTES)),
    ] {
        assert_eq!(gather(&opened, &samples), expected, "{samples:?}");
    }
}

#[test]
fn gathers_of_many_chunks_read_each_block_index_once() {
    let opened = open(Verification::FirstTouch, Profile::Raw);
    let some: Vec<u64> = (0..SAMPLES).step_by(40).collect();
    // samples 80 and 760 are in blocks of five; the block index of the last of twelve chunks was
    // read before
    let (block_indexes, blocks) = (11, some.len() as u64);
    let bytes = blocks * BLOCK_BYTES - 2 * (BLOCK_BYTES / 2);
    assert_eq!(gather(&opened, &some), (block_indexes + blocks, block_indexes * FIRST_READ_BYTES + bytes));
    assert_eq!(gather(&opened, &some), (blocks, bytes));
}

/// Blocks with a gap that the source would rather read than skip are read in one request.
#[test]
fn blocks_that_are_near_each_other_are_read_together() {
    let opened = open(Verification::FirstTouch, Profile::Raw);
    gather(&opened, &[0]);
    opened.source.gap_bytes.store(BLOCK_BYTES, Ordering::Relaxed);
    assert_eq!(gather(&opened, &[0, 25, 55]), (2, 4 * BLOCK_BYTES));
}

#[test]
fn whole_chunks_are_read_by_one_request_without_their_block_index_first() {
    let opened = open(Verification::FirstTouch, Profile::Raw);
    let column = opened.column("x").unwrap();
    let (mut cursor, mut out) = (column.cursor(), ColumnBuffer::new());
    for (samples, expected) in [
        (0..85, (1, CHUNK_BYTES)),
        (1..85, (0, 0)), // cached
        (85..170, (1, CHUNK_BYTES)),
        (170..190, (1, CHUNK_BYTES)), // the rest will probably be read too
        (190..200, (0, 0)),
    ] {
        let counts = requests_and_bytes(&opened, || cursor.range_into(samples.clone(), &mut out).unwrap());
        assert_eq!(counts, expected, "{samples:?}");
        assert!(out.values::<i32>().unwrap().iter().copied().eq(samples.start as i32 * 192..samples.end as i32 * 192));
    }
}

#[test]
fn a_small_chunk_in_blocks_is_read_whole() {
    let options = WriterOptions::new().profile(Profile::Raw).block_bytes(1024);
    for (samples, read_whole) in [(7, true), (8, false)] {
        let opened = CountingReader::new(OpenOptions::new(), file_of(&options, samples, 256));
        let column = opened.column("x").unwrap();
        assert_eq!(column.blocks(0).unwrap().unwrap().blocks.len() as u64, samples);
        let counts = requests_and_bytes(&opened, || assert!(column.cursor().read(3).is_ok()));
        let block_index = (12 * samples + 12).next_multiple_of(64);
        let expected =
            if read_whole { (1, HEADER_BYTES + block_index + samples * 1024) } else { (2, FIRST_READ_BYTES + 1024) };
        assert_eq!(counts, expected, "{samples} samples");
    }
}

/// Prefetching a chunk would read all of it, so its block index is prefetched, with the block that
/// is probably needed.
#[test]
fn block_index_and_block_are_prefetched_once_for_chunks_read_by_block() {
    let opened = open(Verification::FirstTouch, Profile::Raw);
    let prefetched = |samples: &[u64]| {
        gather(&opened, samples);
        std::mem::take(&mut *opened.source.prefetched.lock().unwrap())
    };
    let chunk = |i: u64| opened.column("x").unwrap().chunk(i).unwrap().unwrap().file_range;
    let block_index = |i: u64| chunk(i).start - HEADER_BYTES..chunk(i).start - HEADER_BYTES + 1024;
    assert_eq!(prefetched(&[2, 1])[0], block_index(0));
    let found = prefetched(&[1, 500]);
    assert_eq!((found.len(), &found[0]), (2, &block_index(500 / 85)));
    let block = blocks(&opened, 500 / 85).blocks.into_iter().find(|block| block.samples.contains(&500)).unwrap();
    let expected = block.file_range;
    assert!(found[1].start <= expected.start && expected.end <= found[1].end, "{expected:?} is not in {:?}", found[1]);
    assert!(found[1].end - found[1].start <= 11 << 10);
    assert_eq!(prefetched(&[500, 2, 1]), []);
    let whole = chunk(1).start - HEADER_BYTES..chunk(1).end;
    assert_eq!(prefetched(&(85..170).collect::<Vec<u64>>()), [whole]);
}

/// The last byte of a chunk changes after one of its samples was read.
#[test]
fn bytes_that_change_are_noticed_if_the_policy_checks_them() {
    for (verification, of_touched, of_untouched) in [
        (Verification::FirstTouch, false, true),
        (Verification::Always, true, true),
        (Verification::Never, false, false),
    ] {
        let opened = open(verification, Profile::Raw);
        let column = opened.column("x").unwrap();
        let mut out = [0; ELEMENTS];
        column.cursor().read_slice(169, &mut out).unwrap();
        for (sample, noticed) in [(169, of_touched), (254, of_untouched)] {
            let body = column.chunk_of(sample).unwrap().file_range;
            opened.source.flipped_byte.store(body.end - 1, Ordering::Relaxed);
            match column.cursor().read_slice(sample, &mut out) {
                Err(error) => {
                    assert!(noticed, "{verification:?}: {error}");
                    assert_eq!((error.kind(), error.rule()), (ErrorKind::Corrupt, Some("R-5.16")));
                }
                Ok(_) => assert!(!noticed, "{verification:?}, sample {sample}"),
            }
            // another block of the same chunk
            assert!(column.cursor().read_slice(sample - 5, &mut out).is_ok() && is_sample(sample - 5, &out));
        }
    }
}

#[test]
fn a_damaged_block_index_is_noticed_if_the_policy_checks_it() {
    for (verification, expected) in [
        (Verification::FirstTouch, Some("R-5.15")),
        (Verification::Always, Some("R-5.15")),
        (Verification::Never, None), // samples are read individually
    ] {
        let opened = open(verification, Profile::Raw);
        let column = opened.column("x").unwrap();
        let block_index = column.blocks(1).unwrap().unwrap().block_index;
        opened.source.flipped_byte.store(block_index.end - 1, Ordering::Relaxed);
        let result = column.cursor().read_slice(100, &mut [0_i32; ELEMENTS]);
        assert_eq!(result.err().and_then(|error| error.rule()), expected, "{verification:?}");
        assert!(is_read(&opened, 200), "another chunk");
    }
}

fn is_read(opened: &CountingReader, i: u64) -> bool {
    let mut out = [0; ELEMENTS];
    opened.column("x").unwrap().cursor().read_slice(i, &mut out).is_ok() && is_sample(i, &out)
}

/// Views check the block of a sample, too, although nothing is copied.
#[test]
fn views_of_damaged_blocks_are_refused_by_policies_that_check() {
    let intact = file_of(&WriterOptions::new().profile(Profile::Raw), SAMPLES, ELEMENTS).file;
    let chunk = Reader::from_bytes(intact.0.clone()).unwrap().column("x").unwrap().chunk(1).unwrap().unwrap();
    let mut damaged = intact.0.clone();
    damaged[chunk.file_range.end as usize - 1] ^= 1;
    for (verification, expected) in [
        (Verification::FirstTouch, Err(Some("R-5.16"))),
        (Verification::Always, Err(Some("R-5.16"))),
        (Verification::Never, Ok(true)),
    ] {
        let reader = OpenOptions::new().verification(verification).open_source(InMemory(damaged.clone())).unwrap();
        let column = reader.column("x").unwrap();
        for _ in 0..2 {
            let view = column.view(169).map(|view| view.is_some());
            assert_eq!(view.map_err(|error| error.rule()), expected, "{verification:?}");
            assert!(column.view(164).unwrap().is_some(), "the block before it is intact");
            assert!(column.view(170).unwrap().is_some(), "the next chunk is intact");
        }
    }
}
