//! Proves that the smallest and the largest files work, or that the error names the limit. Memory
//! is that of a few chunks or of the largest sample, never that of the file.

use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensilo::ErrorKind::{BadArgument, OverLimit};
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Writer,
    WriterOptions, limits,
};
use tensilo_testing::{Alone, alone};

const MIB: usize = 1 << 20;

/// The profile that encodes, if this build has one.
const ENCODED: Profile = if cfg!(feature = "zstd") { Profile::BitshuffleZstd } else { Profile::Raw };
const PROFILES: &[Profile] = if cfg!(feature = "zstd") { &Profile::ALL } else { &[Profile::Raw] };

// ---- helpers

fn in_memory(schema: Schema, profile: Profile) -> Writer<Stream<Vec<u8>>> {
    Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(profile)).expect("a valid schema")
}

fn finish(writer: Writer<Stream<Vec<u8>>>) -> Vec<u8> {
    writer.finish().expect("a sink that takes all").sink.0
}

fn assert_intact(source: &impl Source) {
    let report = verify(source, VerifyOptions::new().decode(true)).expect("a readable source");
    assert!(report.damages.is_empty(), "{:?}", report.damages.first());
}

/// A file on disk, not made durable: these files are large.
struct OnDisk(tempfile::TempDir);

impl OnDisk {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("large.tsl")
    }

    fn writer(&self, schema: Schema, options: &WriterOptions) -> Writer<Stream<BufWriter<std::fs::File>>> {
        let file = BufWriter::new(std::fs::File::create(self.path()).expect("a new file"));
        Writer::new(Stream(file), schema, options).expect("a valid schema")
    }
}

fn u8_column(shape: Shape) -> Schema {
    Schema::new([ColumnSchema::tensor("x", DType::U8, shape)])
}

// ---- nothing, and one

#[test]
fn a_file_without_samples_is_a_file() {
    let _alone = alone();
    for &profile in PROFILES {
        let columns = DType::ALL.map(|dtype| {
            let shape = if dtype.is_string() { Shape::ragged() } else { Shape::fixed(&[2]) };
            ColumnSchema::tensor(dtype.name(), dtype, shape).nullable()
        });
        let reader = Reader::from_bytes(finish(in_memory(Schema::new(columns), profile))).expect("an intact file");
        assert_intact(reader.source());
        assert_eq!((reader.sample_count(), reader.commit_count(), reader.is_finished()), (0, 1, true));
        let mut buffer = ColumnBuffer::new();
        for column in reader.columns() {
            assert_eq!((column.facts().chunk_count, column.facts().encodings.len()), (0, 0));
            assert!(column.chunk(0).expect("no I/O").is_none());
            assert_eq!(column.cursor().read(0).map(|_| ()).expect_err("no sample").kind(), BadArgument);
            column.cursor().range_into(0..0, &mut buffer).expect("nothing is there");
            column.cursor().gather_into(&[], &mut buffer).expect("nothing is asked for");
            assert_eq!(buffer.sample_count(), 0);
        }
    }
}

#[test]
fn a_file_of_one_sample_of_each_type_is_read_as_it_was_written() {
    let _alone = alone();
    for &profile in PROFILES {
        for dtype in DType::ALL {
            let shape =
                if dtype.is_string() { Shape::ragged() } else { Shape::fixed(&[8 / dtype.element_bytes() as u32]) };
            let bytes = *b"\0\x01\0\x01\x01\0\x01\0";
            let extents: &[u32] = if dtype.is_string() { &[8] } else { &[] };
            let mut writer = in_memory(Schema::new([ColumnSchema::tensor("x", dtype, shape)]), profile);
            writer.push_batch(&[ColumnBatch::from_bytes(dtype, 1, extents, &bytes)]).expect("a good sample");
            let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
            assert_intact(reader.source());
            let mut cursor = reader.column("x").expect("the column").cursor();
            assert_eq!(cursor.read(0).expect("the sample").bytes(), bytes, "{dtype}");
        }
    }
}

#[test]
fn a_file_without_columns_has_no_samples_whatever_is_pushed() {
    let _alone = alone();
    let mut writer = in_memory(Schema::default(), ENCODED);
    let one = ColumnBatch::fixed(1, &[1_u8]);
    assert_eq!(writer.push(&[Value::NULL]).expect_err("there is no column").kind(), BadArgument);
    assert_eq!(writer.push_batch(&[one]).expect_err("there is no column").kind(), BadArgument);
    writer.push_batch(&[]).expect("a batch for each of no columns");
    assert_eq!(writer.sample_count(), 0);
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_intact(reader.source());
    assert_eq!((reader.sample_count(), reader.columns().count()), (0, 0));
    assert!(reader.column("x").is_err());
}

// ---- many columns

/// Counts how often it is read, and how many bytes.
struct Counted {
    bytes: Vec<u8>,
    reads: AtomicUsize,
    bytes_read: AtomicUsize,
}

impl Source for Counted {
    fn byte_count(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(out.len(), Ordering::Relaxed);
        InMemory(&self.bytes).read_exact_at(offset, out)
    }
}

fn counted(bytes: Vec<u8>) -> (Reader, usize, usize) {
    let source = Arc::new(Counted { bytes, reads: AtomicUsize::new(0), bytes_read: AtomicUsize::new(0) });
    let reader = tensilo::OpenOptions::new().open(source.clone()).expect("an intact file");
    let (reads, bytes) = (source.reads.load(Ordering::Relaxed), source.bytes_read.load(Ordering::Relaxed));
    (reader, reads, bytes)
}

#[test]
fn ten_thousand_columns_are_opened_with_a_few_reads_and_read_right() {
    let _alone = alone();
    const COLUMNS: u32 = 10_000;
    let columns = (0..COLUMNS).map(|i| ColumnSchema::tensor(format!("column {i}"), DType::U32, Shape::scalar()));
    let mut writer = in_memory(Schema::new(columns), ENCODED);
    for sample in 0..3 {
        let elements: Vec<[u32; 1]> = (0..COLUMNS).map(|i| [i * 7 + sample]).collect();
        let values: Vec<Value> = elements.iter().map(|element| Value::tensor(element)).collect();
        writer.push(&values).expect("a good sample");
    }
    let (reader, reads, _) = counted(finish(writer));
    assert!(reads <= 6, "{reads} reads to open a file");
    assert_intact(reader.source());
    let mut out = [0];
    for (i, column) in (0..COLUMNS).zip(reader.columns()) {
        let mut cursor = column.cursor();
        for sample in 0..3 {
            assert_eq!(cursor.read_into(sample.into(), &mut out).expect("a sample"), Some(1));
            assert_eq!(out[0], i * 7 + sample);
        }
    }
    assert_eq!(reader.column("column 9999").expect("the last").schema().name, "column 9999");
}

#[test]
fn opening_costs_the_same_for_any_number_of_samples() {
    let _alone = alone();
    let file = |samples: u32| {
        let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(64);
        let mut writer = Writer::new(Stream(Vec::new()), u8_column(Shape::scalar()), &options).expect("a valid schema");
        writer
            .push_batch(&[ColumnBatch::fixed(samples as usize, &vec![1_u8; samples as usize])])
            .expect("good samples");
        finish(writer)
    };
    let (_, reads, bytes) = counted(file(64));
    for samples in [65, 10_000, 1_000_000] {
        let (reader, more_reads, more_bytes) = counted(file(samples));
        assert_eq!(reader.sample_count(), u64::from(samples));
        assert_eq!((more_reads, more_bytes), (reads, bytes), "{samples} samples");
    }
}

// ---- large samples

/// Returns a byte that depends on its offset. Such bytes do not compress.
fn noise(at: usize) -> u8 {
    ((at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_sample_larger_than_a_gibibyte_is_written_and_read() {
    let alone = alone();
    let size = (1 << 30) + 12_345;
    let disk = OnDisk::new();
    let options = WriterOptions::new().profile(Profile::Raw);
    let large: Vec<u8> = (0..size).map(noise).collect();
    let ((), peak) = alone.peak_bytes(|| {
        let mut writer = disk.writer(u8_column(Shape::ragged()), &options);
        writer.push(&[Value::tensor(&[1_u8, 2])]).expect("a small sample");
        writer.push(&[Value::tensor(&large)]).expect("a large sample");
        writer.push(&[Value::tensor(&[3_u8])]).expect("a small sample");
        assert_eq!(writer.finish().expect("room").sample_count, 3);
    });
    assert!(peak < 3 * size, "{} MiB to write a sample of {} MiB", peak / MIB, size / MIB);
    let reader = Reader::open(disk.path()).expect("an intact file");
    let column = reader.column("x").expect("the column");
    let chunk = column.chunk_of(1).expect("the chunk");
    assert_eq!(chunk.samples, 1..2, "a sample larger than a chunk stands alone");
    let mut cursor = column.cursor();
    assert_eq!(cursor.read(0).expect("a sample").bytes(), [1, 2]);
    assert_eq!(cursor.read(2).expect("a sample").bytes(), [3]);
    let found = cursor.read(1).expect("a sample");
    assert_eq!(found.shape(), [size as u32]);
    assert!(found.bytes() == large, "the large sample differs");
}

#[test]
#[cfg(feature = "zstd")]
fn an_encoded_sample_larger_than_any_chunk_of_several_is_written_and_read() {
    let _alone = alone();
    let elements = 17 << 20; // of 4 bytes: 68 MiB
    let shape = Shape::fixed(&[elements]);
    let disk = OnDisk::new();
    let large: Vec<u32> = (0..elements).map(|i| i / 1_000).collect();
    let mut writer =
        disk.writer(Schema::new([ColumnSchema::tensor("x", DType::U32, shape).nullable()]), &WriterOptions::new());
    writer.push(&[Value::tensor(&large)]).expect("a large sample");
    writer.push(&[Value::NULL]).expect("a null as large");
    writer.finish().expect("room");
    let reader = Reader::open(disk.path()).expect("an intact file");
    assert!(reader.file_bytes() < u64::from(elements), "it was not encoded");
    assert_intact(reader.source());
    let mut out = vec![1; elements as usize];
    let mut cursor = reader.column("x").expect("the column").cursor();
    assert_eq!(cursor.read_into(0, &mut out).expect("a sample"), Some(elements as usize));
    assert!(out == large);
    assert_eq!(cursor.read_into(1, &mut out).expect("a null"), None);
    assert!(out.iter().all(|element| *element == 0));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_sample_over_the_limit_of_the_format_is_refused_before_it_is_copied() {
    let alone = alone();
    // zeroed memory that nobody touches is never taken from the machine
    let too_large = vec![0_u8; limits::CHUNK_BYTES as usize + 1];
    let mut writer = in_memory(u8_column(Shape::ragged()), Profile::Raw);
    let (error, peak) = alone.peak_bytes(|| writer.push(&[Value::tensor(&too_large)]).expect_err("over the limit"));
    assert_eq!((error.kind(), error.column()), (OverLimit, Some("x")));
    assert!(error.to_string().contains("4294901760"), "it does not name the limit: {error}");
    assert!(peak < MIB, "{peak} bytes were allocated");
    let shapes = [Shape::fixed(&[1 << 31, 3]), Shape::new([Extent::Varying, Extent::Fixed(1 << 31), Extent::Fixed(3)])];
    for shape in shapes {
        let create =
            || Writer::new(Stream(Vec::new()), u8_column(shape), &WriterOptions::new().profile(ENCODED)).map(|_| ());
        let (error, peak) = alone.peak_bytes(|| create().expect_err("over the limit"));
        assert_eq!(error.kind(), OverLimit, "{error}");
        assert!(error.to_string().contains("4294901760"), "it does not name the limit: {error}");
        assert!(peak < MIB, "{peak} bytes were allocated");
    }
}

// ---- many samples

/// The value of sample `i`: long runs, and now and then a stretch of noise.
fn tiny(i: usize) -> u8 {
    if (i >> 16).is_multiple_of(16) { noise(i) } else { (i >> 16) as u8 }
}

fn check_hundred_million(alone: &Alone, profile: Profile) {
    const SAMPLES: usize = 100_000_000;
    const BATCH: usize = 1_000_000;
    let disk = OnDisk::new();
    let ((), peak) = alone.peak_bytes(|| {
        let mut writer = disk.writer(u8_column(Shape::scalar()), &WriterOptions::new().profile(profile).threads(2));
        let mut batch = vec![0_u8; BATCH];
        for start in (0..SAMPLES).step_by(BATCH) {
            batch.iter_mut().zip(start..).for_each(|(value, i)| *value = tiny(i));
            writer.push_batch(&[ColumnBatch::fixed(BATCH, &batch)]).expect("good samples");
        }
        writer.finish().expect("room");
    });
    assert!(peak < 16 * MIB, "{} MiB to write 100 MB in batches of 1 MB", peak / MIB);
    let (reader, peak) = alone.peak_bytes(|| Reader::open(disk.path()).expect("an intact file"));
    assert!(peak < MIB / 4, "{peak} bytes to open a file");
    assert_eq!(reader.sample_count(), SAMPLES as u64);
    let column = reader.column("x").expect("the column");
    let facts = column.facts();
    assert_eq!((facts.raw_bytes, facts.chunk_count), (SAMPLES as u64, SAMPLES.div_ceil(65_536) as u64));
    let mut cursor = column.cursor();
    let mut out = [0_u8];
    let probes = (0..20_000).map(|i: usize| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % SAMPLES);
    for i in probes.clone().take(500).chain([0, SAMPLES - 1, 65_535, 65_536, 126 * 65_536 - 1, 126 * 65_536]) {
        cursor.read_into(i as u64, &mut out).expect("a sample");
        assert_eq!(out[0], tiny(i), "sample {i}");
    }
    let indices: Vec<u64> = probes.clone().map(|i| i as u64).collect();
    let mut gathered = vec![0; indices.len()];
    cursor.gather_slice(&indices, &mut gathered).expect("samples of the file");
    assert!(gathered.iter().zip(probes).all(|(found, i)| *found == tiny(i)));
    let mut buffer = ColumnBuffer::new();
    cursor.range_into(99_000_000..SAMPLES as u64, &mut buffer).expect("samples of the file");
    assert!(buffer.bytes().iter().zip(99_000_000..).all(|(found, i)| *found == tiny(i)));
    let (report, peak) =
        alone.peak_bytes(|| reader.verify(VerifyOptions::new().decode(true)).expect("a readable file"));
    assert!(report.damages.is_empty(), "{:?}", report.damages);
    assert!(peak < 16 * MIB, "{} MiB to verify a file", peak / MIB);
}

#[test]
fn a_hundred_million_tiny_samples_in_raw_chunks() {
    let alone = alone();
    check_hundred_million(&alone, Profile::Raw);
}

#[test]
#[cfg(feature = "zstd")]
fn a_hundred_million_tiny_samples_in_encoded_chunks() {
    let alone = alone();
    check_hundred_million(&alone, ENCODED);
}

#[test]
fn samples_without_bytes_are_counted_and_chunks_of_them_are_bounded() {
    let alone = alone();
    let samples = limits::CHUNK_SAMPLES as usize + 3_000_000;
    let mut writer = in_memory(u8_column(Shape::fixed(&[3, 0])), ENCODED);
    let ((), peak) = alone
        .peak_bytes(|| writer.push_batch(&[ColumnBatch::fixed::<u8>(samples, &[])]).expect("samples without bytes"));
    assert!(peak < MIB, "{peak} bytes for samples without bytes");
    let bytes = finish(writer);
    assert!(bytes.len() < 2_000, "{} bytes", bytes.len());
    let reader = Reader::from_bytes(bytes).expect("an intact file");
    assert_intact(reader.source());
    assert_eq!(reader.sample_count(), samples as u64);
    let column = reader.column("x").expect("the column");
    assert_eq!(column.facts().chunk_count, 2);
    assert_eq!(
        column.chunk(0).expect("an intact index").expect("a chunk").samples,
        0..u64::from(limits::CHUNK_SAMPLES)
    );
    let mut cursor = column.cursor();
    for i in [0, 16_777_215, 16_777_216, samples as u64 - 1] {
        let sample = cursor.read(i).expect("a sample");
        assert_eq!((sample.shape(), sample.bytes().len(), sample.is_null()), ([3, 0].as_slice(), 0, false));
    }
    assert_eq!(cursor.gather_slice::<u8>(&[5, samples as u64 - 1, 5], &mut []).expect("samples"), 0);
}

#[test]
fn ten_million_empty_ragged_and_null_samples_are_read_right() {
    let _alone = alone();
    const SAMPLES: usize = 10_000_000;
    let schema = Schema::new([
        ColumnSchema::utf8("empty"),
        ColumnSchema::tensor("null", DType::F64, Shape::fixed(&[0])).nullable(),
        ColumnSchema::bytes("null bytes").nullable(),
    ]);
    let mut writer = in_memory(schema, ENCODED);
    let batch = SAMPLES / 10;
    let extents = vec![0; batch];
    // every third sample is null: a bitmap of 24 bits, again and again
    let validity: Vec<u8> = [0b1101_1011, 0b1011_0110, 0b0110_1101].into_iter().cycle().take(batch / 8).collect();
    let is_null = |i: usize| validity[i % batch / 8] >> (i % 8) & 1 == 0;
    for _ in 0..10 {
        let empty = ColumnBatch::ragged::<u8>(batch, &extents, &[]);
        let null = ColumnBatch::fixed::<f64>(batch, &[]).with_validity(&validity);
        writer.push_batch(&[empty, null, empty.with_validity(&validity)]).expect("good samples");
    }
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_intact(reader.source());
    assert_eq!(reader.sample_count(), SAMPLES as u64);
    let nulls = (0..SAMPLES).filter(|&i| is_null(i)).count() as u64;
    let null_counts: Vec<u64> = reader.columns().map(|column| column.facts().null_count).collect();
    assert_eq!(null_counts, [0, nulls, nulls]);
    let mut cursors: Vec<_> = reader.columns().map(|column| column.cursor()).collect();
    for i in (0..SAMPLES).step_by(99_991).chain([SAMPLES - 1]) {
        let found: Vec<bool> = cursors
            .iter_mut()
            .map(|cursor| {
                let sample = cursor.read(i as u64).expect("a sample");
                assert_eq!(sample.bytes(), b"");
                sample.is_null()
            })
            .collect();
        assert_eq!(found, [false, is_null(i), is_null(i)], "sample {i}");
    }
}

// ---- many commits

#[test]
fn more_commits_than_the_format_allows_are_refused_and_the_file_can_still_be_finished() {
    let _alone = alone();
    let mut writer = in_memory(u8_column(Shape::scalar()), Profile::Raw);
    writer.push(&[Value::tensor(&[1_u8])]).expect("a good sample");
    for commit in 1..limits::RUNS {
        writer.commit().unwrap_or_else(|error| panic!("commit {commit}: {error}"));
    }
    writer.push(&[Value::tensor(&[2_u8])]).expect("a good sample");
    let error = writer.commit().expect_err("the last commit is that of finish");
    assert_eq!(error.kind(), OverLimit);
    assert!(error.to_string().contains("65536"), "it does not name the limit: {error}");
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_eq!((reader.commit_count(), reader.sample_count()), (65_536, 2));
    assert!(reader.is_finished());
    assert_eq!(reader.column("x").expect("the column").cursor().read(1).expect("a sample").bytes(), [2]);
    assert_intact(reader.source());
}
