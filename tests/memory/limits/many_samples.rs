//! Many samples, and the maximum number of commits.

use super::{ENCODED, MIB, finish, in_memory, large_file, noise, u8_column};
use crate::support::intact::assert_intact;
use crate::support::on_disk::OnDisk;
use tensilo::ErrorKind::OverLimit;
use tensilo::verify::VerifyOptions;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, WriterOptions, limits,
};
use tensilo_testing::{ExclusiveTest, exclusive_test};

/// Returns the value of sample `i`: long runs, with a stretch of noise now and then.
fn tiny(i: usize) -> u8 {
    if (i >> 16).is_multiple_of(16) { noise(i) } else { (i >> 16) as u8 }
}

fn check_hundred_million(exclusive_test: &ExclusiveTest, profile: Profile) {
    const SAMPLES: usize = 100_000_000;
    const BATCH: usize = 1_000_000;
    let disk = OnDisk::absent();
    let ((), peak) = exclusive_test.peak_bytes(|| {
        let mut writer =
            large_file(&disk, u8_column(Shape::scalar()), &WriterOptions::new().profile(profile).threads(2));
        let mut batch = vec![0_u8; BATCH];
        for start in (0..SAMPLES).step_by(BATCH) {
            batch.iter_mut().zip(start..).for_each(|(value, i)| *value = tiny(i));
            writer.push_batch(&[ColumnBatch::fixed(BATCH, &batch)]).expect("good samples");
        }
        writer.finish().expect("disk space");
    });
    assert!(peak < 16 * MIB, "{} MiB to write 100 MB in batches of 1 MB", peak / MIB);
    let (reader, peak) = exclusive_test.peak_bytes(|| Reader::open(disk.path()).expect("an intact file"));
    assert!(peak < MIB / 4, "{peak} bytes to open a file");
    assert_eq!(reader.sample_count(), SAMPLES as u64);
    let column = reader.column("x").expect("the column");
    let facts = column.facts();
    assert_eq!((facts.raw_bytes, facts.chunk_count), (SAMPLES as u64, SAMPLES.div_ceil(65_536) as u64));
    let mut cursor = column.cursor();
    let mut out = [0_u8];
    let probes = (0..20_000).map(|i: usize| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % SAMPLES);
    for i in probes.clone().take(500).chain([0, SAMPLES - 1, 65_535, 65_536, 126 * 65_536 - 1, 126 * 65_536]) {
        cursor.read_slice(i as u64, &mut out).expect("a sample");
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
        exclusive_test.peak_bytes(|| reader.verify(VerifyOptions::new().deep(true)).expect("a readable file"));
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(peak < 16 * MIB, "{} MiB to verify a file", peak / MIB);
}

#[test]
fn a_hundred_million_tiny_samples_in_raw_chunks() {
    let exclusive_test = exclusive_test();
    check_hundred_million(&exclusive_test, Profile::Raw);
}

#[test]
#[cfg(feature = "zstd")]
fn a_hundred_million_tiny_samples_in_encoded_chunks() {
    let exclusive_test = exclusive_test();
    check_hundred_million(&exclusive_test, ENCODED);
}

#[test]
fn samples_without_bytes_are_counted_and_chunks_of_them_are_bounded() {
    let exclusive_test = exclusive_test();
    let samples = limits::CHUNK_SAMPLES as usize + 3_000_000;
    let mut writer = in_memory(u8_column(Shape::fixed(&[3, 0])), ENCODED);
    let ((), peak) = exclusive_test
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
        assert_eq!((sample.extents(), sample.bytes().len(), sample.is_null()), ([3, 0].as_slice(), 0, false));
    }
    assert_eq!(cursor.gather_slice::<u8>(&[5, samples as u64 - 1, 5], &mut []).expect("samples"), 0);
}

#[test]
fn ten_million_empty_ragged_and_null_samples_are_read_right() {
    let _exclusive_test = exclusive_test();
    const SAMPLES: usize = 10_000_000;
    let schema = Schema::new([
        ColumnSchema::utf8("empty"),
        ColumnSchema::tensor("null", DType::F64, Shape::fixed(&[0])).nullable(),
        ColumnSchema::bytes("null bytes").nullable(),
    ]);
    let mut writer = in_memory(schema, ENCODED);
    let batch = SAMPLES / 10;
    let extents = vec![0; batch];
    // every third sample is null: a repeating bitmap of 24 bits
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

#[test]
fn more_commits_than_the_format_allows_are_refused_and_the_file_can_still_be_finished() {
    let _exclusive_test = exclusive_test();
    let mut writer = in_memory(u8_column(Shape::scalar()), Profile::Raw);
    writer.push(&[Value::tensor(&[1_u8])]).expect("a good sample");
    for commit in 1..limits::CHUNK_RUNS {
        writer.commit().unwrap_or_else(|error| panic!("commit {commit}: {error}"));
    }
    writer.push(&[Value::tensor(&[2_u8])]).expect("a good sample");
    let error = writer.commit().expect_err("the last commit is reserved for finish");
    assert_eq!(error.kind(), OverLimit);
    assert!(error.to_string().contains("65536"), "it does not name the limit: {error}");
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_eq!((reader.commit_count(), reader.sample_count()), (65_536, 2));
    assert!(reader.is_finished());
    assert_eq!(reader.column("x").expect("the column").cursor().read(1).expect("a sample").bytes(), [2]);
    assert_intact(reader.source());
}

#[test]
fn columns_without_texts_do_not_wait_for_a_dictionary() {
    let exclusive_test = exclusive_test();
    let disk = OnDisk::absent();
    let ((), peak) = exclusive_test.peak_bytes(|| {
        let mut writer = large_file(&disk, Schema::new([ColumnSchema::utf8("x").nullable()]), &WriterOptions::new());
        let (lengths, validity) = (vec![0; 100_000], vec![0; 12_500]);
        for _ in 0..100 {
            let nulls = ColumnBatch::ragged(lengths.len(), &lengths, &[0_u8; 0]).with_validity(&validity);
            writer.push_batch(&[nulls]).expect("good samples");
        }
        writer.finish().expect("disk space");
    });
    assert!(peak < 16 * MIB, "{} MiB to write 10 million nulls", peak / MIB);
}
