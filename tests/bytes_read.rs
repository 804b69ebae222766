//! How much of a file is read for a sample, and when it is checked, where it is read by position.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use tensilo::{
    ColumnBatch, ColumnSchema, DType, ErrorKind, InMemory, OpenOptions, Profile, Reader, Schema, Shape, Source, Stream,
    Verification, Writer, WriterOptions,
};

/// A file that is read by position, counts, and can decay.
struct Counted {
    file: InMemory<Vec<u8>>,
    bytes: AtomicU64,
    /// Where a bit has changed.
    decayed: AtomicU64,
}

impl Source for Counted {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.file.read_exact_at(offset, out)?;
        let decayed = self.decayed.load(Ordering::Relaxed).checked_sub(offset);
        if let Some(byte) = decayed.and_then(|at| out.get_mut(usize::try_from(at).ok()?)) {
            *byte ^= 1;
        }
        Ok(())
    }
}

const SAMPLES: u64 = 1000;
const ELEMENTS: usize = 192;

/// Samples of 768 bytes in chunks of 85.
fn open(verification: Verification) -> Reader<Counted> {
    open_profile(verification, Profile::Raw)
}

fn open_profile(verification: Verification, profile: Profile) -> Reader<Counted> {
    OpenOptions::new().verification(verification).open(file(profile)).unwrap()
}

fn file(profile: Profile) -> Counted {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::fixed(&[ELEMENTS as u32]))]);
    let options = WriterOptions::new().profile(profile);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let values: Vec<i32> = (0..SAMPLES as i32 * ELEMENTS as i32).collect();
    writer.push_batch(&[ColumnBatch::fixed(SAMPLES as usize, &values)]).unwrap();
    let file = InMemory(writer.finish().unwrap().sink.0);
    Counted { file, bytes: AtomicU64::new(0), decayed: AtomicU64::new(u64::MAX) }
}

/// The bytes that `work` reads from the file.
fn bytes_read(reader: &Reader<Counted>, work: impl FnOnce()) -> u64 {
    let before = reader.source().bytes.load(Ordering::Relaxed);
    work();
    reader.source().bytes.load(Ordering::Relaxed) - before
}

/// A sample and the entry of its chunk in the index.
const ALONE: u64 = 768 + 32;
const CHUNK: u64 = 85 * 768;

#[test]
fn raw_samples_are_read_alone_once_their_chunk_was_checked() {
    let mut out = [0; ELEMENTS];
    for (verification, first) in [(Verification::FirstTouch, CHUNK), (Verification::Never, 64 + 768)] {
        let reader = open(verification);
        let column = reader.column("x").unwrap();
        column.cursor().read_into(999, &mut out).unwrap(); // checks the page of the index
        let mut read = |i: u64| {
            bytes_read(&reader, || {
                assert_eq!(column.cursor().read_into(i, &mut out).unwrap(), Some(ELEMENTS));
                assert_eq!(out[7], i as i32 * ELEMENTS as i32 + 7);
            })
        };
        let touched = read(100);
        assert!((first..first + 128).contains(&touched), "{verification:?}: {touched} bytes for the first sample");
        assert_eq!(read(101), ALONE, "{verification:?}");
        let sample = bytes_read(&reader, || assert!(column.cursor().read(102).is_ok()));
        assert_eq!(sample, ALONE, "{verification:?}");
    }
}

#[test]
fn few_samples_of_a_chunk_are_gathered_alone_and_many_with_their_chunk() {
    let reader = open(Verification::FirstTouch);
    let column = reader.column("x").unwrap();
    let mut cursor = column.cursor();
    let mut out = vec![0; ELEMENTS * SAMPLES as usize];
    let all: Vec<u64> = (0..SAMPLES).collect();
    cursor.gather_slice(&all, &mut out).unwrap();
    for (step, most) in [(40, 25 * 768 + 12 * 32), (1, SAMPLES * 768 + 12 * (64 + 32))] {
        let some: Vec<u64> = (0..SAMPLES).step_by(step).collect();
        let mut cursor = column.cursor();
        let out = &mut out[..some.len() * ELEMENTS];
        let bytes = bytes_read(&reader, || assert_eq!(cursor.gather_slice(&some, out).unwrap(), 0));
        assert!(bytes <= most, "every {step}: {bytes} bytes, more than {most}");
        assert!(out.chunks_exact(ELEMENTS).zip(&some).all(|(sample, &i)| sample[0] == i as i32 * ELEMENTS as i32));
    }
}

#[test]
fn reading_in_order_reads_each_chunk_once_and_hardly_more() {
    let reader = open(Verification::FirstTouch);
    let column = reader.column("x").unwrap();
    let (mut cursor, mut out) = (column.cursor(), [0; ELEMENTS]);
    let mut read_all = || (0..SAMPLES).for_each(|i| assert!(cursor.read_into(i, &mut out).is_ok()));
    read_all();
    let bytes = bytes_read(&reader, read_all);
    assert!(bytes < SAMPLES * 768 + CHUNK / 4, "{bytes} bytes");
}

/// The last byte of chunks changes after one of them was read.
#[test]
fn what_decays_is_noticed_when_the_policy_checks_it() {
    for profile in [Profile::Raw, Profile::Fast] {
        for (verification, of_touched, of_untouched) in [
            (Verification::FirstTouch, false, true),
            (Verification::Always, true, true),
            (Verification::Never, false, false),
        ] {
            let reader = open_profile(verification, profile);
            let column = reader.column("x").unwrap();
            let mut out = [0; ELEMENTS];
            column.cursor().read_into(100, &mut out).unwrap();
            for (sample, noticed) in [(100, of_touched), (200, of_untouched)] {
                let body = column.chunk_of(sample).unwrap().file_range;
                reader.source().decayed.store(body.end - 1, Ordering::Relaxed);
                let result = column.cursor().read_into(column.chunk_of(sample).unwrap().samples.end - 1, &mut out);
                match result {
                    Err(error) if noticed => {
                        assert_eq!((error.kind(), error.rule()), (ErrorKind::Corrupt, Some("R-2.6")))
                    }
                    // values that were not checked may be wrong, or not even decode
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
        for (limit, refused) in [(CHUNK, false), (CHUNK - 1, true)] {
            let reader = OpenOptions::new().max_chunk_bytes(limit as u32).open(file(profile)).unwrap();
            let column = reader.column("x").unwrap();
            assert_eq!(column.chunk(0).unwrap().unwrap().raw_bytes, CHUNK);
            let first = column.cursor().read_into(0, &mut out).map_err(|error| error.kind());
            assert_eq!(first, if refused { Err(ErrorKind::OverLimit) } else { Ok(Some(ELEMENTS)) }, "{profile:?}");
            // the last chunk is smaller
            assert_eq!(column.cursor().read_into(SAMPLES - 1, &mut out).unwrap(), Some(ELEMENTS), "{profile:?}");
        }
    }
}
