//! Tests that appending gives the file that a single writer would have written, and that a file
//! that cannot be continued stays unchanged.
//!
//! Files come from this release, from the vectors of the specification, and from writers that
//! stopped at any byte. An intact uncommitted tail is refused unless the caller discards it,
//! because it may be data that a killed writer left; a damaged tail is cut off.

use crate::common::damage::chunks;
use crate::common::data::arbitrary_table;
use crate::common::plan::{arbitrary_plan, options, push_all, push_batch};
use crate::common::{config, vectors};
use crate::support::build::seal;
use crate::support::on_disk::OnDisk;
use proptest::prelude::*;
use std::fs;
use tensilo::sink::{AtomicFile, Stream};
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBuffer, ColumnSchema, DType, Error, ErrorKind, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions,
};

/// Appends to a file.
fn append(file: &OnDisk) -> tensilo::Result<Writer<tensilo::sink::AppendFile>> {
    Writer::append(file.path(), &options())
}

/// Returns the error of an append that leaves the file unchanged.
fn refused(file: &OnDisk) -> Error {
    let before = file.bytes();
    let error = append(file).map(|_| ()).expect_err("a file that cannot be appended to");
    assert_eq!(error.path(), Some(file.path().as_path()), "{error}");
    assert!(file.bytes() == before, "a refused file was changed");
    error
}

/// Verifies a finished file with decoding; returns the messages.
fn findings(bytes: &[u8]) -> Vec<String> {
    let report = verify(&InMemory(bytes), VerifyOptions::new().deep(true)).expect("memory can be read");
    report.findings.iter().map(|damage| damage.error.to_string()).collect()
}

/// Writes samples of one column, with one commit for each of `commits`. The last commit finishes
/// the file.
fn numbers(commits: &[u32]) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[4]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(Profile::Raw)).unwrap();
    for (i, &samples) in commits.iter().enumerate() {
        if i > 0 {
            writer.commit().unwrap();
        }
        push_numbers(&mut writer, samples).unwrap();
    }
    writer.into_bytes().unwrap()
}

fn push_numbers<K: tensilo::sink::Sink>(writer: &mut Writer<K>, samples: u32) -> tensilo::Result<()> {
    for _ in 0..samples {
        let i = writer.sample_count() as u32;
        writer.push(&[Value::tensor(&[i, i + 1, i + 2, i + 3])])?;
    }
    Ok(())
}

fn check_numbers(bytes: &[u8], samples: u64) {
    let reader = Reader::from_bytes(bytes.to_vec()).unwrap();
    assert_eq!(reader.sample_count(), samples);
    let mut cursor = reader.column("x").unwrap().cursor();
    for i in 0..samples as u32 {
        assert_eq!(cursor.read(i.into()).unwrap().as_slice::<u32>().unwrap(), [i, i + 1, i + 2, i + 3]);
    }
}

proptest! {
    #![proptest_config(config(96))]

    /// Equal bytes imply equal facts, runs, offsets and cast errors.
    #[test]
    fn appending_gives_the_bytes_that_one_writer_gives(
        table in arbitrary_table(200),
        plan in arbitrary_plan(),
        cuts in prop::collection::vec(0..=200_usize, 1..4),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(table.sample_count)).collect();
        cuts.sort_unstable();
        let first = table.head(cuts[0]);

        let mut one = Writer::new(Stream(Vec::new()), table.schema.clone(), &plan.options()).unwrap();
        push_all(&mut one, &first, &plan).unwrap();
        for range in cuts.iter().zip(cuts.iter().skip(1).chain([&table.sample_count])) {
            one.commit().unwrap();
            push_batch(&mut one, &table, *range.0..*range.1).unwrap();
        }
        let expected = one.into_bytes().unwrap();

        let file = OnDisk::new(b"");
        let begun = AtomicFile::create(file.path(), true).unwrap();
        let mut writer = Writer::new(begun, table.schema.clone(), &plan.options()).unwrap();
        push_all(&mut writer, &first, &plan).unwrap();
        writer.commit().unwrap();
        drop(writer);
        for (i, range) in cuts.iter().zip(cuts.iter().skip(1).chain([&table.sample_count])).enumerate() {
            let mut writer = Writer::append(file.path(), &plan.options().alignment(64)).unwrap();
            prop_assert_eq!(writer.schema(), &table.schema);
            prop_assert_eq!(writer.sample_count(), *range.0 as u64);
            push_batch(&mut writer, &table, *range.0..*range.1).unwrap();
            if i + 1 < cuts.len() {
                writer.commit().unwrap();
            } else {
                let summary = writer.finish().unwrap();
                prop_assert_eq!(summary.file_bytes, expected.len() as u64);
            }
        }
        prop_assert!(file.bytes() == expected, "the bytes differ");
        prop_assert_eq!(findings(&expected), Vec::<String>::new());
    }
}

/// Another writer made the vectors: they have tables and flags, are finished or not, and use every
/// encoding.
#[test]
fn every_valid_vector_is_continued_with_its_own_samples() {
    let mut continued = 0;
    for vector in vectors::vectors(true) {
        let name = vectors::file_of(&vector);
        let old = vectors::bytes(name);
        let file = OnDisk::new(&old);
        if name.contains("unknown-ro-compat") {
            let error = refused(&file);
            assert_eq!(error.kind(), ErrorKind::TooNew, "{error}");
            assert!(error.to_string().contains("newer tensilo"), "{error}");
            continue;
        }
        if name.contains("unknown-dtypes") {
            assert_eq!(refused(&file).kind(), ErrorKind::TooNew);
            continue;
        }
        if name.contains("chunk-in-footer") {
            continue; // no samples, and its cast facts look like the header of a chunk
        }
        let reader = Reader::from_bytes(old.to_vec()).unwrap();
        let mut columns = vec![ColumnBuffer::new(); reader.schema().columns.len()];
        for (column, buffer) in reader.columns().zip(&mut columns) {
            column.cursor().range_into(0..reader.sample_count(), buffer).unwrap();
        }
        let cast = reader.schema().columns.iter().any(|column| column.cast.is_some());
        let mut writer = append(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        if name.contains("cast-numbers") {
            // source types; a decimal is pushed as the float that it became
            let sample = [Value::tensor(&[16_777_217_i64]), Value::tensor(&[-128_i8]), Value::tensor(&[1.5, 0.1])];
            writer.push(&sample).unwrap();
        } else if cast {
            let samples = [1.00390625, 1e39, 1e-39, 0.5, 3.3]; // listed in the manifest
            samples.iter().for_each(|sample: &f64| writer.push(&[Value::tensor(&[*sample])]).unwrap());
        } else {
            let batches: Vec<_> = columns.iter().map(ColumnBuffer::as_batch).collect();
            writer.push_batch(&batches).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let before = Reader::open(file.path()).unwrap();
        assert_eq!((before.sample_count(), before.commit_count()), (reader.sample_count(), reader.commit_count()));
        writer.finish().unwrap();
        let new = file.bytes();
        assert!(new.starts_with(&old), "{name}: what was written before has changed");
        assert_eq!(findings(&new), Vec::<String>::new(), "{name}");
        let again = Reader::from_bytes(new.to_vec()).unwrap();
        let expected =
            if reader.schema().columns.is_empty() { reader.sample_count() } else { 2 * reader.sample_count() };
        assert_eq!(again.sample_count(), expected, "{name}");
        assert_eq!(again.commit_count(), reader.commit_count() + 1, "{name}");
        for (column, first) in again.columns().zip(&columns) {
            for from in [0, reader.sample_count()] {
                let mut found = ColumnBuffer::new();
                column.cursor().range_into(from..from + reader.sample_count(), &mut found).unwrap();
                assert!(found.bytes() == first.bytes() && found.validity() == first.validity(), "{name}");
            }
            let (facts, before) = (column.facts(), reader.column(&column.schema().name).unwrap().facts());
            assert_eq!(facts.null_count, 2 * before.null_count, "{name}");
            if let (Some(cast), Some(before)) = (facts.cast, before.cast) {
                assert_eq!(cast.to_infinite, 2 * before.to_infinite, "{name}");
                assert_eq!(cast.max_rel_error, before.max_rel_error, "{name}");
            }
        }
        continued += 1;
    }
    assert!(continued > 30, "only {continued} vectors");
}

#[test]
fn invalid_vectors_are_refused_unchanged_or_continued() {
    let (mut refused, mut continued) = (0, 0);
    for vector in vectors::vectors(false) {
        let old = vectors::bytes(vectors::file_of(&vector));
        let file = OnDisk::new(&old);
        match append(&file) {
            Ok(mut writer) => {
                // whether they succeed depends on the fault, but they do not panic
                let _ = writer.push(&[Value::NULL]);
                let _ = writer.finish();
                continued += 1;
            }
            Err(_) => {
                assert!(file.bytes() == old, "{} was changed", vectors::file_of(&vector));
                refused += 1;
            }
        }
    }
    assert!(refused > 50 && continued > 50, "{refused} refused, {continued} continued");
}

// ---- bytes after the last commit

#[test]
fn an_intact_tail_is_preserved_unless_it_is_discarded() {
    let whole = numbers(&[10, 20_000]);
    let first = numbers(&[10]).len();
    assert_eq!(Reader::from_bytes(whole[..first].to_vec()).unwrap().sample_count(), 10);
    // the end of the second commit is cut off at several points; its first chunk starts at `first`
    let first_chunk = chunks(&whole).into_iter().map(|chunk| chunk.bytes).find(|bytes| bytes.start >= first).unwrap();
    for end in [first_chunk.end, first_chunk.end + 1, whole.len() / 2, whole.len() - 65, whole.len() - 64] {
        let file = OnDisk::new(&whole[..end]);
        let error = refused(&file);
        assert_eq!(
            (error.kind(), error.rule(), error.offset()),
            (ErrorKind::Corrupt, Some("R-2.7"), Some(first as u64))
        );
        let text = error.to_string();
        for part in [&format!("{} bytes", end - first), "tensilo salvage", "discard_tail"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let mut writer = Writer::append(file.path(), &options().discard_tail(true)).unwrap();
        assert_eq!(file.bytes().len(), end, "nothing is truncated before something is written");
        push_numbers(&mut writer, 5).unwrap();
        writer.finish().unwrap();
        assert_eq!(findings(&file.bytes()), Vec::<String>::new());
        check_numbers(&file.bytes(), 15);
    }
}

#[test]
fn a_tail_without_an_intact_chunk_is_cut_off() {
    let whole = numbers(&[10, 20_000]);
    let first = numbers(&[10]).len();
    let mut garbage = whole[..first].to_vec();
    garbage.extend(std::iter::repeat_n(b"TSLC no chunk", 10_000).flatten());
    let mut foreign = whole[..first].to_vec();
    // not at the offsets that their headers state
    foreign.extend([0; 64].iter().chain(&numbers(&[30])[first..]));
    let mut damaged = whole[..first + 65_000].to_vec(); // ends within the first chunk
    damaged[first + 100] ^= 1;
    for tail in [garbage, foreign, damaged, whole[..first + 1].to_vec()] {
        let file = OnDisk::new(&tail);
        let mut writer = append(&file).unwrap();
        push_numbers(&mut writer, 5).unwrap();
        writer.finish().unwrap();
        assert_eq!(findings(&file.bytes()), Vec::<String>::new());
        check_numbers(&file.bytes(), 15);
    }
}

#[test]
fn without_a_commit_every_byte_of_the_file_is_unchanged() {
    let old = numbers(&[10, 30]);
    for samples in [0, 1, 100, 200_000] {
        let file = OnDisk::new(&old);
        let mut writer = Writer::append(file.path(), &WriterOptions::new().profile(Profile::Raw)).unwrap();
        push_numbers(&mut writer, samples).unwrap();
        let longest = file.bytes().len();
        assert_eq!(longest > old.len(), samples > 100_000, "what was pushed is on disk");
        drop(writer);
        assert!(file.bytes() == old, "{samples} samples");
        // after a commit, it is at that commit
        let mut writer = append(&file).unwrap();
        push_numbers(&mut writer, 7).unwrap();
        writer.commit().unwrap();
        let committed = file.bytes();
        push_numbers(&mut writer, samples).unwrap();
        drop(writer);
        assert!(file.bytes() == committed, "{samples} samples");
        check_numbers(&committed, 47);
    }
}

#[test]
fn an_empty_append_that_is_finished_only_finishes() {
    let file = OnDisk::new(b"");
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[4]))]);
    let mut writer = Writer::new(AtomicFile::create(file.path(), true).unwrap(), schema, &options()).unwrap();
    push_numbers(&mut writer, 3).unwrap();
    writer.commit().unwrap();
    drop(writer);
    assert!(!Reader::open(file.path()).unwrap().is_finished());
    append(&file).unwrap().finish().unwrap();
    assert!(Reader::open(file.path()).unwrap().is_finished());
    check_numbers(&file.bytes(), 3);
    assert_eq!(findings(&file.bytes()), Vec::<String>::new());
}

// ---- who may append

#[test]
fn a_refreshed_reader_does_not_check_again_what_was_checked() {
    let open = |file: &OnDisk| Reader::open(file.path()).unwrap();
    let read = |reader: &Reader, i| reader.column("x").unwrap().cursor().read(i).map(|_| ()).map_err(|e| e.kind());
    let flip = |file: &OnDisk, value: u32| {
        let mut bytes = file.bytes();
        let sample: Vec<u8> = (value..value + 4).flat_map(u32::to_le_bytes).collect();
        let at = bytes.windows(16).position(|window| window == sample).expect("raw chunks");
        bytes[at] ^= 1;
        fs::write(file.path(), bytes).unwrap(); // the same file, by its identity
    };
    let file = OnDisk::new(&numbers(&[5, 5]));
    let earlier = open(&file);
    read(&earlier, 2).unwrap();
    let mut writer = Writer::append(file.path(), &WriterOptions::new().profile(Profile::Raw)).unwrap();
    push_numbers(&mut writer, 5).unwrap();
    writer.finish().unwrap();
    let copy = OnDisk::new(&file.bytes());
    for value in [2, 7, 12] {
        flip(&file, value);
    }
    flip(&copy, 2);
    let later = earlier.refresh(open(&file));
    assert_eq!((earlier.sample_count(), later.sample_count()), (10, 15));
    assert_eq!(read(&later, 2), Ok(()), "the first chunk was checked");
    for i in [7, 12] {
        assert_eq!(read(&later, i), Err(ErrorKind::Corrupt), "sample {i} was not");
    }
    assert_eq!(read(&open(&file), 2), Err(ErrorKind::Corrupt));
    assert_eq!(read(&earlier.refresh(open(&copy)), 2), Err(ErrorKind::Corrupt), "another file");
    assert_eq!(read(&later.refresh(open(&file)), 2), Ok(()), "a refreshed reader can refresh another");
}

#[test]
fn a_second_writer_is_refused_while_the_first_one_is_open() {
    let file = OnDisk::new(&numbers(&[10]));
    let mut first = append(&file).unwrap();
    let error = refused(&file);
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("another writer"), "{error}");
    push_numbers(&mut first, 5).unwrap();
    first.commit().unwrap();
    refused(&file);
    drop(first);
    append(&file).unwrap();
}

#[test]
#[cfg(unix)]
fn the_writer_of_a_new_file_is_not_disturbed_after_its_first_commit() {
    let file = OnDisk::new(b"");
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[4]))]);
    let mut writer = Writer::new(AtomicFile::create(file.path(), true).unwrap(), schema, &options()).unwrap();
    push_numbers(&mut writer, 3).unwrap();
    writer.commit().unwrap();
    assert!(refused(&file).to_string().contains("another writer"));
    push_numbers(&mut writer, 3).unwrap();
    writer.finish().unwrap();
    let mut writer = append(&file).unwrap();
    push_numbers(&mut writer, 3).unwrap();
    writer.finish().unwrap();
    check_numbers(&file.bytes(), 9);
}

#[test]
fn files_that_cannot_be_opened_are_refused() {
    let whole = numbers(&[10]);
    assert_eq!(refused(&OnDisk::new(b"")).kind(), ErrorKind::Corrupt);
    assert_eq!(
        refused(&OnDisk::new(b"a text of some length that is not a tensilo file, with 64 bytes....")).rule(),
        Some("R-2.2")
    );
    refused(&OnDisk::new(&whole[..whole.len() - 1]));
    let missing = OnDisk::new(b"");
    fs::remove_file(missing.path()).unwrap();
    let error = append(&missing).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(missing.path().as_path())));
    assert!(!missing.path().exists(), "nothing was created");
    fs::create_dir(missing.path()).unwrap();
    assert_eq!(append(&missing).map(|_| ()).unwrap_err().kind(), ErrorKind::Io);
}

// ---- impossible facts

/// Returns the file with 8 bytes of the last footer's body replaced. All checksums are correct, but
/// the content id is not. `at` counts from the facts of the first column.
fn with_fact(mut file: Vec<u8>, at: usize, value: u64) -> Vec<u8> {
    let u32_at = |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let trailer = file.len() - 64;
    let footer = u32_at(&file, trailer + 32);
    let body = footer + 64;
    let facts = body + 16 + 4 + u32_at(&file, body + 16) + 4;
    file[facts + at..facts + at + 8].copy_from_slice(&value.to_le_bytes());
    seal(&mut file, footer);
    file
}

#[test]
fn impossible_facts_are_not_carried_on() {
    let whole = numbers(&[10]);
    for (at, value, what) in
        [(8, u64::MAX, "bytes"), (8, whole.len() as u64, "bytes"), (16, 1, "null"), (16, u64::MAX, "null")]
    {
        let file = OnDisk::new(&with_fact(whole.clone(), at, value));
        let error = refused(&file);
        assert_eq!(
            (error.kind(), error.rule(), error.column()),
            (ErrorKind::Corrupt, Some("R-7.4"), Some("x")),
            "{error}"
        );
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// The footer states no limit for decoded bytes.
#[test]
fn an_overflow_of_decoded_bytes_is_an_error() {
    let old = with_fact(numbers(&[10]), 0, u64::MAX - 15);
    let file = OnDisk::new(&old);
    let mut writer = append(&file).unwrap();
    push_numbers(&mut writer, 1).unwrap();
    let error = writer.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverLimit, "{error}");
    assert!(writer.commit().is_err() && push_numbers(&mut writer, 1).is_err(), "a writer that has failed continues");
    drop(writer);
    assert!(file.bytes() == old);
}
