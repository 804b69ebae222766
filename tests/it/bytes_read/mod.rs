//! Tests how many bytes a read by position fetches, and when a chunk is checked. This file has
//! chunks without blocks, `blocks.rs` those with blocks.
//!
//! Every read of the source is counted, so the thresholds of the reader are exact here: a sample
//! counts as at least 1 KiB, a cursor reads a whole chunk after single reads of more than an eighth
//! of it, and a gather reads samples individually up to three quarters of their chunk.

mod blocks;
mod counting_source;

use counting_source::CountingSource;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{
    Column, ColumnBatch, ColumnBuffer, ColumnSchema, DType, ErrorKind, OpenOptions, Profile, Reader, Schema, Shape,
    Verification, Writer, WriterOptions,
};

const SAMPLES: u64 = 1000;
const ELEMENTS: usize = 192;

/// Opens a file of samples of 768 bytes in chunks of 85.
fn open(verification: Verification) -> CountingReader {
    open_profile(verification, Profile::Raw)
}

fn open_profile(verification: Verification, profile: Profile) -> CountingReader {
    CountingReader::new(OpenOptions::new().verification(verification), file(profile, SAMPLES, ELEMENTS))
}

/// A reader and the source that it reads.
struct CountingReader {
    reader: Reader,
    source: Arc<CountingSource>,
}

impl CountingReader {
    fn new(options: OpenOptions, file: CountingSource) -> Self {
        let source = Arc::new(file);
        Self { reader: options.open_source(source.clone()).unwrap(), source }
    }

    fn column(&self, name: &str) -> tensilo::Result<Column> {
        self.reader.column(name)
    }
}

/// Writes samples of `elements` elements in chunks of at most 64 KiB, without blocks.
fn file(profile: Profile, samples: u64, elements: usize) -> CountingSource {
    file_of(&WriterOptions::new().profile(profile).block_bytes(None), samples, elements)
}

/// Writes samples of `elements` elements, which count up from 0.
fn file_of(options: &WriterOptions, samples: u64, elements: usize) -> CountingSource {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::fixed(&[elements as u32]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, options).unwrap();
    let values: Vec<i32> = (0..samples as i32 * elements as i32).collect();
    writer.push_batch(&[ColumnBatch::fixed(samples as usize, &values)]).unwrap();
    CountingSource::new(writer.into_bytes().unwrap())
}

/// Returns the number of bytes that `work` reads from the file.
fn bytes_read(reader: &CountingReader, work: impl FnOnce()) -> u64 {
    requests_and_bytes(reader, work).1
}

/// Returns the requests and the bytes with which `work` reads from the file.
fn requests_and_bytes(reader: &CountingReader, work: impl FnOnce()) -> (u64, u64) {
    let counts = || [&reader.source.requests, &reader.source.bytes].map(|count| count.load(Ordering::Relaxed));
    let before = counts();
    work();
    let after = counts();
    (after[0] - before[0], after[1] - before[1])
}

/// A sample whose index entry is cached.
const SAMPLE_BYTES: u64 = 768;
const CHUNK_BYTES: u64 = 85 * 768;

#[test]
fn raw_samples_are_read_individually_once_their_chunk_was_checked() {
    let mut out = [0; ELEMENTS];
    for (verification, first) in [(Verification::FirstTouch, CHUNK_BYTES), (Verification::Never, 64 + 768)] {
        let reader = open(verification);
        let column = reader.column("x").unwrap();
        column.cursor().read_slice(999, &mut out).unwrap(); // checks the page of the index
        let mut read = |i: u64| {
            bytes_read(&reader, || {
                assert_eq!(column.cursor().read_slice(i, &mut out).unwrap(), Some(ELEMENTS));
                assert_eq!(out[7], i as i32 * ELEMENTS as i32 + 7);
            })
        };
        let touched = read(100);
        assert!((first..first + 128).contains(&touched), "{verification:?}: {touched} bytes for the first sample");
        assert_eq!(read(101), SAMPLE_BYTES, "{verification:?}");
        let sample = bytes_read(&reader, || assert!(column.cursor().read(102).is_ok()));
        assert_eq!(sample, SAMPLE_BYTES, "{verification:?}");
    }
}

#[test]
fn few_samples_of_a_chunk_are_gathered_individually_and_many_with_their_chunk() {
    let reader = open(Verification::FirstTouch);
    let column = reader.column("x").unwrap();
    let mut cursor = column.cursor();
    let mut out = vec![0; ELEMENTS * SAMPLES as usize];
    let all: Vec<u64> = (0..SAMPLES).collect();
    cursor.gather_slice(&all, &mut out).unwrap();
    for (step, max_bytes) in [(40, 25 * 768 + 12 * 32), (1, SAMPLES * 768 + 12 * (64 + 32))] {
        let some: Vec<u64> = (0..SAMPLES).step_by(step).collect();
        let mut cursor = column.cursor();
        let out = &mut out[..some.len() * ELEMENTS];
        let bytes = bytes_read(&reader, || assert_eq!(cursor.gather_slice(&some, out).unwrap(), 0));
        assert!(bytes <= max_bytes, "every {step}: {bytes} bytes, more than {max_bytes}");
        assert!(out.chunks_exact(ELEMENTS).zip(&some).all(|(sample, &i)| sample[0] == i as i32 * ELEMENTS as i32));
    }
}

#[test]
fn reading_in_order_reads_each_chunk_once_and_hardly_more() {
    let reader = open(Verification::FirstTouch);
    let column = reader.column("x").unwrap();
    let (mut cursor, mut out) = (column.cursor(), [0; ELEMENTS]);
    let mut read_all = || (0..SAMPLES).for_each(|i| assert!(cursor.read_slice(i, &mut out).is_ok()));
    read_all();
    let bytes = bytes_read(&reader, read_all);
    assert!(bytes < SAMPLES * 768 + CHUNK_BYTES / 4, "{bytes} bytes");
}

/// The header of a chunk. Its index entry is cached.
const HEADER_BYTES: u64 = 64;

/// Opens three raw chunks of 64 KiB, checked, with samples of `sample_bytes`.
fn checked(sample_bytes: u64) -> CountingReader {
    checked_of(3 * (64 << 10) / sample_bytes, sample_bytes)
}

fn checked_of(samples: u64, sample_bytes: u64) -> CountingReader {
    let reader = CountingReader::new(OpenOptions::new(), file(Profile::Raw, samples, sample_bytes as usize / 4));
    reader.column("x").unwrap().cursor().range_into(0..samples, &mut ColumnBuffer::new()).unwrap();
    reader
}

#[test]
fn a_chunk_is_read_whole_after_single_reads_of_more_than_an_eighth_of_it() {
    // a sample counts as at least 1 KiB; a sample that is its whole chunk is read straight to its
    // destination, without a copy
    for (sample_bytes, straight, single_reads) in
        [(64, false, 9), (1024, true, 9), (4096, false, 3), (4096, true, 3), (64 << 10, false, 1), (64 << 10, true, 20)]
    {
        let reader = checked(sample_bytes);
        let column = reader.column("x").unwrap();
        let (mut cursor, mut out) = (column.cursor(), vec![0_i32; sample_bytes as usize / 4]);
        let sample = column.chunk(1).unwrap().unwrap().samples.start;
        for time in 0..20 {
            let bytes = bytes_read(&reader, || match straight {
                true => assert!(cursor.read_slice(sample, &mut out).is_ok()),
                false => out.copy_from_slice(cursor.read(sample).unwrap().as_slice().unwrap()),
            });
            let expected = match time {
                0 => sample_bytes,
                _ if time < single_reads => sample_bytes,
                _ if time == single_reads => HEADER_BYTES + (64 << 10),
                _ => 0,
            };
            assert_eq!(bytes, expected, "{sample_bytes} bytes, straight: {straight}, time {time}");
            assert_eq!(out[0], sample as i32 * out.len() as i32);
        }
    }
}

#[test]
fn samples_are_gathered_individually_up_to_three_quarters_of_their_chunk() {
    for (sample_bytes, requested, expected) in [
        (1024, 48, 48 * 1024),
        (1024, 49, HEADER_BYTES + (64 << 10)),
        (64 << 10, 1, 64 << 10),
        (64 << 10, 2, HEADER_BYTES + (64 << 10)), // the same sample twice
    ] {
        let reader = checked(sample_bytes);
        let column = reader.column("x").unwrap();
        let chunk = column.chunk(1).unwrap().unwrap().samples;
        let requested: Vec<u64> = (0..requested).map(|i| chunk.start + i % (chunk.end - chunk.start)).collect();
        let mut out = ColumnBuffer::new();
        let bytes = bytes_read(&reader, || column.cursor().gather_into(&requested, &mut out).unwrap());
        assert_eq!(bytes, expected, "{} of {sample_bytes} bytes", requested.len());
    }
}

#[test]
fn a_small_chunk_is_read_whole() {
    let reader = checked_of(2, 64);
    let column = reader.column("x").unwrap();
    let bytes = bytes_read(&reader, || assert!(column.cursor().read(0).is_ok()));
    assert_eq!(bytes, HEADER_BYTES + 2 * 64);
}

#[test]
fn unread_chunks_are_prefetched_together() {
    let reader = open(Verification::FirstTouch);
    let column = reader.column("x").unwrap();
    column.chunk_of(0).unwrap(); // reads the page of the index
    let prefetched = |samples: &[u64]| {
        column.cursor().gather_into(samples, &mut ColumnBuffer::new()).unwrap();
        std::mem::take(&mut *reader.source.prefetched.lock().unwrap())
    };
    let chunk_ranges = |samples: &[u64]| -> Vec<Range<u64>> {
        let bodies = samples.iter().map(|&i| column.chunk_of(i).unwrap().file_range);
        bodies.map(|body| body.start - HEADER_BYTES..body.end).collect()
    };
    assert_eq!(prefetched(&[500, 2, 1]), chunk_ranges(&[2, 500]));
    assert_eq!(prefetched(&[0, 300, 900]), chunk_ranges(&[300, 900]));
    assert_eq!(prefetched(&[3, 301, 901]), []);
}

#[test]
fn ranges_of_whole_chunks_are_read_straight_to_their_destination() {
    let reader = checked(1024);
    let column = reader.column("x").unwrap();
    for (samples, expected) in [
        (64..128, 64 << 10),                  // a chunk, straight to its destination
        (64..127, HEADER_BYTES + (64 << 10)), // more than three quarters of it
        (65..128, HEADER_BYTES + (64 << 10)), // the same
        (64..112, 48 << 10),                  // three quarters
        (0..192, 192 << 10),                  // all
        (96..160, HEADER_BYTES + (96 << 10)), // half of one and all of the next, entered from it
    ] {
        let mut out = ColumnBuffer::new();
        let bytes = bytes_read(&reader, || column.cursor().range_into(samples.clone(), &mut out).unwrap());
        assert_eq!(bytes, expected, "{samples:?}");
        let first = samples.start as i32 * 256;
        assert!(out.values::<i32>().unwrap().iter().copied().eq(first..samples.end as i32 * 256));
    }
}

/// Long runs are read without the headers between them, although these are shorter than the gap.
#[test]
fn long_runs_are_read_straight_and_short_ones_together() {
    let opened = checked(1024);
    let column = opened.reader.column("x").unwrap();
    opened.source.gap_bytes.store(HEADER_BYTES, Ordering::Relaxed);
    for (samples, expected) in [
        ((16..112).collect(), 96 << 10), // 48 KiB of each of two chunks
        ((48..80).collect(), 32 << 10),  // 16 KiB of each
        ((50..78).collect(), HEADER_BYTES + (28 << 10)),
        ((56..72).chain([80]).collect(), HEADER_BYTES + (17 << 10)),
        ((48..64).rev().collect::<Vec<u64>>(), 16 << 10),
    ] {
        let (mut cursor, mut found) = (column.cursor(), vec![0; samples.len() * 256]);
        let bytes = bytes_read(&opened, || assert_eq!(cursor.gather_slice(&samples, &mut found).unwrap(), 0));
        let elements = samples.iter().flat_map(|&i| i as i32 * 256..(i as i32 + 1) * 256);
        assert!(elements.eq(found), "{samples:?}");
        assert_eq!(bytes, expected, "{samples:?}");
    }
}

#[test]
fn the_first_of_several_runs_that_cannot_be_read_is_named() {
    let opened = checked(1024);
    let column = opened.reader.column("x").unwrap();
    opened.source.gap_bytes.store(HEADER_BYTES, Ordering::Relaxed);
    let [second, third] = [1, 2].map(|chunk| column.chunk(chunk).unwrap().unwrap().file_range);
    *opened.source.broken.lock().unwrap() = second.start..third.end;
    let long = 130..170;
    for (samples, expected) in [
        (long.clone().collect(), third.start + 2 * 1024),
        ((64..68).chain(long.clone()).collect(), second.start), // the first run is short
        ((64..96).chain(long).collect::<Vec<u64>>(), second.start), // both are long
    ] {
        let mut found = vec![0; samples.len() * 256];
        let error = column.cursor().gather_slice(&samples, &mut found).unwrap_err();
        assert_eq!(error.offset(), Some(expected), "{error}");
    }
}

#[test]
fn the_chunk_in_which_a_range_ends_stays_cached_unless_a_read_before_it_fails() {
    let opened = checked(1024);
    let column = opened.reader.column("x").unwrap();
    opened.source.gap_bytes.store(HEADER_BYTES, Ordering::Relaxed);
    let [second, third] = [1, 2].map(|chunk| column.chunk(chunk).unwrap().unwrap().file_range);
    let (mut cursor, mut out) = (column.cursor(), ColumnBuffer::new());
    for (broken, samples, expected) in [
        (0..0, 60..70, Ok(HEADER_BYTES + (68 << 10))),
        (0..0, 70..100, Ok(0)),
        (third.clone(), 100..130, Err(Some(third.start - HEADER_BYTES))),
        (0..0, 100..130, Ok(HEADER_BYTES + (92 << 10))),
        (second.start..third.end, 120..130, Err(Some(second.start + (56 << 10)))),
        (0..0, 130..192, Ok(0)), // the second chunk failed, so the third is still cached
    ] {
        *opened.source.broken.lock().unwrap() = broken;
        let mut result = Ok(());
        let bytes = bytes_read(&opened, || result = cursor.range_into(samples.clone(), &mut out));
        assert_eq!(result.map(|()| bytes).map_err(|error| error.offset()), expected, "{samples:?}");
    }
    assert!(out.values::<i32>().unwrap().iter().copied().eq(130 * 256..192 * 256));
}

/// The last byte of a chunk changes after one of its samples was read.
#[test]
fn bytes_that_change_are_noticed_if_the_policy_checks_them() {
    for profile in [Profile::Raw, Profile::Fast] {
        for (verification, of_touched, of_untouched) in [
            (Verification::FirstTouch, false, true),
            (Verification::Always, true, true),
            (Verification::Never, false, false),
        ] {
            let reader = open_profile(verification, profile);
            let column = reader.column("x").unwrap();
            let mut out = [0; ELEMENTS];
            column.cursor().read_slice(100, &mut out).unwrap();
            for (sample, noticed) in [(100, of_touched), (200, of_untouched)] {
                let body = column.chunk_of(sample).unwrap().file_range;
                reader.source.flipped_byte.store(body.end - 1, Ordering::Relaxed);
                let result = column.cursor().read_slice(column.chunk_of(sample).unwrap().samples.end - 1, &mut out);
                match result {
                    Err(error) if noticed => {
                        assert_eq!((error.kind(), error.rule()), (ErrorKind::Corrupt, Some("R-2.6")))
                    }
                    // values that were not checked may be wrong or fail to decode
                    _ => assert!(
                        !noticed && (result.is_ok() || profile != Profile::Raw),
                        "{profile:?}, {verification:?}, {result:?}"
                    ),
                }
            }
        }
    }
}

#[test]
fn chunks_that_decode_to_more_than_the_limit_are_refused_and_those_at_it_are_not() {
    let mut out = [0; ELEMENTS];
    for profile in [Profile::Raw, Profile::Fast] {
        for (limit, refused) in [(CHUNK_BYTES, false), (CHUNK_BYTES - 1, true)] {
            let reader =
                OpenOptions::new().max_chunk_bytes(limit as u32).open_source(file(profile, SAMPLES, ELEMENTS)).unwrap();
            let column = reader.column("x").unwrap();
            assert_eq!(column.chunk(0).unwrap().unwrap().raw_bytes, CHUNK_BYTES);
            let first = column.cursor().read_slice(0, &mut out).map_err(|error| error.kind());
            assert_eq!(first, if refused { Err(ErrorKind::OverLimit) } else { Ok(Some(ELEMENTS)) }, "{profile:?}");
            // the last chunk is smaller
            assert_eq!(column.cursor().read_slice(SAMPLES - 1, &mut out).unwrap(), Some(ELEMENTS), "{profile:?}");
        }
    }
}

/// A decoder caches the chunk of the previous plan. If the next plan fetches the chunk again, its
/// bytes may have changed.
#[test]
fn a_chunk_that_is_fetched_again_is_checked_again_by_the_policy_that_always_checks() {
    for (verification, expected) in [(Verification::FirstTouch, None), (Verification::Always, Some("R-2.6"))] {
        let opened = open(verification);
        let columns = [opened.column("x").unwrap()];
        let (mut plan, mut bytes, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
        let mut read = || {
            let whole: Vec<u64> = (85..170).rev().collect();
            plan.select(&columns, &whole).unwrap();
            assert!(plan.fetched_bytes() >= CHUNK_BYTES);
            plan.fetch(&mut bytes).unwrap();
            decoder.decode(&plan, &bytes, &mut [ColumnBuffer::new()])
        };
        read().unwrap();
        let chunk = columns[0].chunk(1).unwrap().unwrap();
        opened.source.flipped_byte.store(chunk.file_range.start, Ordering::Relaxed);
        assert_eq!(read().err().and_then(|error| error.rule()), expected, "{verification:?}");
        opened.source.flipped_byte.store(u64::MAX, Ordering::Relaxed);
        read().unwrap();
    }
}

/// Views check the chunk, too, although nothing is copied.
#[test]
fn views_of_damaged_chunks_are_refused_by_policies_that_check() {
    let intact = file(Profile::Raw, SAMPLES, ELEMENTS).file;
    let chunk = Reader::from_bytes(intact.0.clone()).unwrap().column("x").unwrap().chunk(1).unwrap().unwrap();
    let mut damaged = intact.0.clone();
    damaged[chunk.file_range.end as usize - 1] ^= 1;
    for (verification, refuses) in
        [(Verification::FirstTouch, true), (Verification::Always, true), (Verification::Never, false)]
    {
        let reader = OpenOptions::new().verification(verification).open_source(InMemory(damaged.clone())).unwrap();
        let column = reader.column("x").unwrap();
        for _ in 0..2 {
            let rule = column.view(chunk.samples.start).map(|view| view.is_some());
            assert_eq!(rule.map_err(|error| error.rule()), if refuses { Err(Some("R-2.6")) } else { Ok(true) });
            assert!(column.view(chunk.samples.end).unwrap().is_some(), "the next chunk is intact");
        }
    }
}
