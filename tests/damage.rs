//! No damage goes unnoticed: every truncation and every single-bit flip of every valid vector, and of files that this crate writes in every
//! encoding, is refused by `verify`, and no read returns a wrong value.

#[path = "support/vectors.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use support::{bytes, file_of, vectors};
use tensilo::{
    ColumnBatch, ColumnSchema, DType, InMemory, Profile, Reader, Schema, Shape, Stream, VerifyOptions, Writer,
    WriterOptions, verify,
};

/// A sample as it was read: null, or extents and bytes.
type Read = Option<(Vec<u32>, Vec<u8>)>;

fn is_refused(file: &[u8]) -> bool {
    verify(&InMemory(file), VerifyOptions::new()).map_or(true, |report| !report.damages.is_empty())
}

fn read_sample<B: AsRef<[u8]> + Send + Sync>(
    reader: &Reader<InMemory<B>>,
    column: usize,
    i: u64,
) -> tensilo::Result<Read> {
    let mut cursor = reader.column_at(column).unwrap().cursor();
    let sample = cursor.read(i)?;
    Ok((!sample.is_null()).then(|| (sample.shape().to_vec(), sample.bytes().to_vec())))
}

/// All samples of all columns of an intact file.
fn read_all(file: &[u8]) -> Vec<Vec<Read>> {
    let reader = Reader::from_bytes(file).unwrap();
    let columns = 0..reader.schema().columns.len();
    let samples = |column| (0..reader.sample_count()).map(move |i| (column, i));
    columns.map(|column| samples(column).map(|(c, i)| read_sample(&reader, c, i).unwrap()).collect()).collect()
}

/// Reads of a damaged file give an error or what the intact file gives.
fn assert_no_wrong_value(damaged: &[u8], intact: &[Vec<Read>], what: &str) {
    let Ok(reader) = Reader::from_bytes(damaged) else { return };
    for (column, samples) in intact.iter().enumerate() {
        let mut cursor = reader.column_at(column).unwrap().cursor();
        for (i, due) in (0..).zip(samples) {
            let Ok(sample) = cursor.read(i) else { continue };
            let found = (!sample.is_null()).then(|| (sample.shape(), sample.bytes()));
            let due = due.as_ref().map(|(shape, bytes)| (shape.as_slice(), bytes.as_slice()));
            assert!(found == due, "{what}: column {column}, sample {i} is wrong and was not refused");
        }
    }
}

/// Together they write every encoding.
const PROFILES: [Profile; 3] = [Profile::Fast, Profile::Small, Profile::BitshuffleZstd];

/// A small file of columns that suit different encodings.
fn written(profile: Profile) -> Vec<u8> {
    const SAMPLES: u32 = 20;
    let noise = |i: u32| i.wrapping_mul(0x9E37_79B9).rotate_left(i % 31).wrapping_mul(0x85EB_CA6B) >> 8;
    let schema = Schema::new([
        ColumnSchema::tensor("weights", DType::Bf16, Shape::fixed(&[20])),
        ColumnSchema::tensor("ramp", DType::I32, Shape::fixed(&[7])),
        ColumnSchema::tensor("skewed", DType::U8, Shape::fixed(&[60])),
        ColumnSchema::tensor("same", DType::U16, Shape::scalar()).nullable(),
        ColumnSchema::utf8("text"),
    ]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(profile)).unwrap();
    let values = |count: u32, bytes: usize, value: &dyn Fn(u32) -> u32| -> Vec<u8> {
        (0..count * SAMPLES).flat_map(|i| value(i).to_ne_bytes().into_iter().take(bytes)).collect()
    };
    let weights = values(20, 2, &|i| 0x3F00 | (noise(i) % 0x100) | (noise(i + 7) % 2) << 15);
    let ramp = values(7, 4, &|i| 1000 * i + noise(i) % 50);
    let skewed = values(60, 1, &|i| (noise(i) % 97).min(noise(i + 1) % 97).min(noise(i + 2) % 97));
    let (same, text) = (values(1, 2, &|_| 0), "the same words again, ".repeat(20));
    let extents = vec![text.len() as u32 / SAMPLES; SAMPLES as usize];
    let samples = SAMPLES as usize;
    let fixed = |dtype, values| ColumnBatch::from_bytes(dtype, samples, &[], values);
    let batches = [
        fixed(DType::Bf16, &weights),
        fixed(DType::I32, &ramp),
        fixed(DType::U8, &skewed),
        fixed(DType::U16, &same).with_validity(&[0x5A; 3]),
        ColumnBatch::from_bytes(DType::Utf8, samples, &extents, &text.as_bytes()[..samples * extents[0] as usize]),
    ];
    writer.push_batch(&batches).unwrap();
    writer.finish().unwrap().sink.0
}

fn encodings(file: &[u8]) -> Vec<String> {
    let reader = Reader::from_bytes(file).unwrap();
    reader.columns().flat_map(|column| column.facts().encodings).map(|(encoding, _)| encoding).collect()
}

#[test]
fn the_files_written_here_have_every_encoding() {
    let found: BTreeSet<String> = PROFILES.iter().flat_map(|&profile| encodings(&written(profile))).collect();
    let due = ["bitshuffle-zstd", "constant", "exponent-tiers", "planes-zstd", "raw", "residual-tiers", "zstd"];
    assert_eq!(found.iter().collect::<Vec<_>>(), due);
}

/// Runs `test` for each vector of at most 64 KiB and each written file, the largest first, on all cores.
fn for_each_file(test: impl Fn(&str, &[u8]) + Sync) {
    let vectors = vectors(true);
    let mut files: Vec<(&str, Vec<u8>)> =
        vectors.iter().map(|vector| (file_of(vector), bytes(file_of(vector)))).collect();
    assert!(files.len() >= 30, "the vectors are missing");
    files.extend(PROFILES.map(|profile| (profile.name(), written(profile))));
    files.retain(|(_, file)| file.len() <= 64 << 10);
    files.sort_by_key(|(_, file)| std::cmp::Reverse(file.len()));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((name, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    test(name, file);
                }
            });
        }
    });
}

#[test]
fn every_bit_flip_is_refused() {
    for_each_file(|name, file| {
        let intact = read_all(file);
        let mut damaged = file.to_vec();
        for bit in 0..file.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(is_refused(&damaged), "{name}: flipped bit {bit} was not noticed");
            assert_no_wrong_value(&damaged, &intact, &format!("{name}, bit {bit}"));
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
    });
}

/// A file cut off where an earlier writer had finished is the file that writer finished (chapter 7.3): no format can tell.
fn is_an_earlier_finish(cut: &[u8]) -> bool {
    Reader::from_bytes(cut).is_ok_and(|reader| reader.is_finished() && reader.tail_bytes() == 0)
}

#[test]
fn every_truncation_is_refused() {
    for_each_file(|name, file| {
        let intact = read_all(file);
        let mut earlier = 0;
        for length in 0..file.len() {
            let cut = &file[..length];
            if is_an_earlier_finish(cut) {
                earlier += 1;
            } else {
                assert!(is_refused(cut), "{name}: cut to {length} bytes was not noticed");
            }
            assert_no_wrong_value(cut, &intact, &format!("{name}, cut to {length}"));
        }
        let appended = usize::from(name.contains("append-after-finish"));
        assert_eq!(earlier, appended, "{name}: only an append after a finish has an earlier finish");
    });
}
