//! New files from the samples that damaged files still have.

use super::salvage_file;
use crate::common::damage::{chunks, regions};
use std::fs;
use tensilo::salvage::{RewriteOptions, SalvageOptions, UNCONFIRMED, salvage};
use tensilo::sink::Stream;
use tensilo::source::PositionedFile;
use tensilo::{
    ColumnBatch, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Verification, Writer,
    WriterOptions,
};
use tensilo_testing::Folder;

/// Samples that other columns lost are taken out of a chunk one by one, with their shapes.
#[test]
fn samples_of_two_varying_dimensions_are_left_out() {
    let shape = Shape::new([Extent::Varying, Extent::Varying]);
    let lost = ColumnSchema::tensor("lost", DType::U8, Shape::fixed(&[80]));
    let schema = Schema::new([lost, ColumnSchema::tensor("ragged", DType::U8, shape)]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(160);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a writer");
    let sides = |i: u32| [i % 4, 1 + i % 3];
    let extents: Vec<u32> = (0..12).flat_map(sides).collect();
    let values: Vec<u8> = (0..12).flat_map(|i| vec![i as u8; sides(i).iter().product::<u32>() as usize]).collect();
    let columns = [
        ColumnBatch::from_bytes(DType::U8, 12, &[], &[7; 12 * 80]),
        ColumnBatch::from_bytes(DType::U8, 12, &extents, &values),
    ];
    writer.push_batch(&columns).expect("samples");
    let mut file = writer.into_bytes().expect("a file");
    let damaged = chunks(&file).into_iter().find(|chunk| (chunk.column, chunk.samples.start) == (0, 4));
    file[damaged.expect("a chunk").bytes.start + 64] ^= 1;
    let salvaged = salvage_file(&file);
    assert_eq!(salvaged.losses.of_all().ranges().first(), Some(&(4..6)));
    let drop_lost = RewriteOptions::new().drop_lost(true);
    let written = salvaged.write_to(Stream(Vec::new()), &options, drop_lost).expect("a copy");
    let reader = Reader::from_bytes(written.sink.0).expect("a file");
    let mut cursor = reader.column("ragged").expect("a column").cursor();
    for (at, i) in (0..4).chain(6..12).enumerate() {
        let sample = cursor.read(at as u64).expect("a sample");
        assert_eq!(sample.extents(), sides(i));
        assert!(sample.bytes().iter().all(|byte| *byte == i as u8), "{i}: {:?}", sample.bytes());
    }
    assert_eq!(reader.sample_count(), 10);
}

/// Values that were cast once are not cast again: their bits and the facts of the cast stay.
#[test]
fn casts_are_neither_done_again_nor_forgotten() {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::Bf16, Shape::scalar()).cast_from(DType::F32)]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().chunk_bytes(20)).expect("a writer");
    for i in 0..40 {
        writer.push(&[Value::tensor(&[1.0 / i as f32])]).expect("a sample");
    }
    let mut file = writer.into_bytes().expect("a file");
    let facts =
        |file: &[u8]| Reader::from_bytes(file.to_vec()).expect("a file").column("x").expect("a column").facts().cast;
    let expected = facts(&file);
    assert!(expected.expect("a cast").max_rel_error > 0.0);
    let location = chunks(&file)[2].clone();
    file[location.bytes.start] ^= 1;
    let salvaged = salvage_file(&file);
    for drop_lost in [false, true] {
        let options = RewriteOptions::new().drop_lost(drop_lost);
        let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).expect("memory").sink.0;
        assert_eq!(facts(&written), expected);
        let reader = Reader::from_bytes(written.to_vec()).expect("a file");
        let bits = |reader: &Reader, i: u64| reader.column("x").unwrap().cursor().read(i).unwrap().bytes().to_vec();
        let skipped = if drop_lost { 10 } else { 0 };
        for i in (0..20).chain(30..40) {
            let there = if i < 20 { i } else { i - skipped };
            let of_old = salvaged.reader.column("x").unwrap().cursor().read(i).unwrap().bytes().to_vec();
            assert_eq!(bits(&reader, there), of_old, "sample {i}");
        }
    }
}

/// If the schema has no room for the note of unconfirmed samples, it gets a shorter note or none.
#[test]
fn a_note_that_does_not_fit_does_not_prevent_a_copy() {
    let file = |metadata: Vec<(String, String)>| {
        let mut schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::scalar())]);
        schema.columns[0].metadata.extend(metadata);
        let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(1);
        let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a writer");
        (0..5).for_each(|i| writer.push(&[Value::tensor(&[i as u8])]).expect("a sample"));
        writer.into_bytes().expect("a file")
    };
    let padded = |bytes| vec![("padding".to_owned(), " ".repeat(bytes))];
    let empty = file(padded(0));
    let schema_bytes = u32::from_le_bytes(empty[44..48].try_into().expect("4 bytes"));
    let room = |room: usize| padded((16 << 20) - schema_bytes as usize - room);
    let entries = |count: usize| (0..count).map(|i| (i.to_string(), String::new())).collect::<Vec<_>>();
    // an entry has two lengths of 4 bytes
    let entry = 8 + UNCONFIRMED.len();
    for (what, metadata, expected) in [
        ("room for both ranges", room(entry + 10), Some("0..2, 3..5")),
        ("a byte less", room(entry + 9), Some("0..5")),
        ("room for one range", room(entry + 4), Some("0..5")),
        ("a byte less than that", room(entry + 3), None),
        ("no room", room(0), None),
        ("room for an entry", entries(65_535), Some("0..2, 3..5")),
        ("the maximum number of entries", entries(65_536), None),
    ] {
        let mut file = file(metadata);
        let lost = chunks(&file)[2].bytes.clone();
        let end = regions(&file, &[b"TSLI"])[0].start;
        file[lost].fill(0);
        file.truncate(end);
        let salvaged = salvage_file(&file);
        assert_eq!(salvaged.unconfirmed.of_all().ranges(), [0..2, 3..5], "{what}");
        let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), RewriteOptions::new());
        let reader = Reader::from_bytes(written.expect(what).sink.0).expect("a file");
        let note = reader.schema().columns[0].metadata.get(UNCONFIRMED).cloned();
        assert_eq!(note.as_deref(), expected, "{what}");
    }
}

/// A copy of a chunk gets a new checksum, which must not be computed from bytes that changed after
/// they were checked.
#[test]
fn bytes_that_change_after_they_were_checked_are_not_written_again() {
    let columns =
        [("a", DType::U8), ("b", DType::U16)].map(|(name, dtype)| ColumnSchema::tensor(name, dtype, Shape::scalar()));
    let options = WriterOptions::new().chunk_bytes(20);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(columns), &options).expect("a writer");
    for i in 0..40 {
        writer.push(&[Value::tensor(&[i as u8]), Value::tensor(&[i as u16])]).expect("a sample");
    }
    let mut file = writer.into_bytes().expect("a file");
    let of_column = |column| chunks(&file).into_iter().find(|chunk| chunk.column == column).expect("a chunk").bytes;
    let (decaying, lost) = (of_column(0).end - 1, of_column(1).end - 1);
    file[lost] ^= 1;
    let folder = Folder::new();
    let path = folder.path("decaying.tsl");
    for verification in [Verification::FirstTouch, Verification::Always, Verification::Never] {
        fs::write(&path, &file).expect("a file");
        let source = PositionedFile::open(&path).expect("the file");
        let salvaged = salvage(source, SalvageOptions::new().verification(verification)).expect("a schema");
        let lost = salvaged.losses.of_all();
        assert!(lost.count() == 10 && (0..10).all(|i| lost.contains(i)));
        salvaged.reader.column("a").expect("a column").cursor().read(0).expect("an intact sample");
        let mut decayed = file.clone();
        decayed[decaying] ^= 1;
        fs::write(&path, &decayed).expect("the same file");
        let noticed = salvaged.reader.column("a").expect("a column").cursor().read(1).err();
        let is_checked = noticed.is_some_and(|error| error.rule() == Some("R-2.6"));
        assert_eq!(is_checked, verification == Verification::Always, "{verification:?}");
        for drop_lost in [false, true] {
            let options = RewriteOptions::new().drop_lost(drop_lost);
            let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options);
            let error = written.expect_err("decayed");
            assert_eq!((error.rule(), error.samples()), (Some("R-2.6"), Some(0..20)), "{error}");
        }
    }
}
