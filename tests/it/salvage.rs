//! Proves that every intact chunk of a damaged file is recovered under its own sample numbers, that
//! all other samples are reported as lost, and that no read gives a wrong value.

use crate::common::config;
use crate::common::damage::{ChunkPlace, Damage, chunks, regions};
use crate::common::files::FilePlan;
use crate::common::{Table, full_shape, stored_bytes};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::ops::Range;
use tensilo::facts::FileId;
use tensilo::salvage::{LostSamples, OnLoss, RewriteOptions, SalvageOptions, Salvaged, salvage};
use tensilo::sink::Stream;
use tensilo::source::{InMemory, PositionedFile, Source};
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBatch, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Verification, Writer,
    WriterOptions,
};
use tensilo_testing::Random;

/// How many damaged files the long test makes; for a release some thousands.
fn file_count() -> u64 {
    let asked = std::env::var("TENSILO_SALVAGE_FILES").ok();
    asked.map_or(300, |count| count.parse().expect("TENSILO_SALVAGE_FILES is a number"))
}

type Opened<'a> = Salvaged;

/// Checks a salvaged file against the intact one.
fn check_salvaged(salvaged: &Opened<'_>, intact: &[u8], damaged: &[u8], table: &Table) -> u64 {
    let reader = &salvaged.reader;
    assert_eq!(reader.schema(), &table.schema);
    assert!(reader.sample_count() <= table.sample_count as u64);
    let is_left = |chunk: &&ChunkPlace| damaged.get(chunk.bytes.clone()) == Some(&intact[chunk.bytes.clone()]);
    let places = chunks(intact);
    let left: Vec<&ChunkPlace> = places.iter().filter(is_left).collect();
    for (column, (name, lost)) in salvaged.losses.columns.iter().enumerate() {
        assert_eq!(*name, table.schema.columns[column].name);
        let left: Vec<Range<u64>> = left.iter().filter(|c| c.column == column).map(|c| c.samples.clone()).collect();
        check_losses(lost, &left, reader.sample_count());
        check_values(reader, column, lost, table);
    }
    left.len() as u64
}

/// Checks that exactly the samples without an intact chunk are lost.
fn check_losses(lost: &LostSamples, left: &[Range<u64>], sample_count: u64) {
    let is_left = |i: u64| left.iter().any(|samples| samples.contains(&i));
    for i in 0..sample_count {
        assert_eq!(lost.contains(i), !is_left(i), "sample {i}: {left:?}, {lost:?}");
    }
    assert!(left.iter().all(|samples| samples.end <= sample_count), "{left:?} of {sample_count}");
    assert_eq!(lost.count() + left.iter().map(|samples| samples.end - samples.start).sum::<u64>(), sample_count);
}

/// Samples that are left are as they were, the others are refused, and the error names them.
fn check_values(reader: &Reader, column: usize, lost: &LostSamples, table: &Table) {
    let schema = &table.schema.columns[column];
    let mut cursor = reader.column_at(column).expect("a column").cursor();
    for i in 0..reader.sample_count() {
        let due = &table.columns[column][i as usize];
        match cursor.read(i) {
            Ok(sample) => {
                assert_eq!(sample.is_null(), due.is_none(), "sample {i}");
                assert_eq!(sample.shape(), full_shape(schema, due), "sample {i}");
                assert_eq!(sample.bytes(), stored_bytes(schema, due), "sample {i}");
                assert!(!lost.contains(i), "sample {i} was read and is lost");
            }
            Err(error) => {
                assert!(lost.contains(i), "sample {i}: {error}");
                let range = lost.ranges().iter().find(|range| range.contains(&i));
                assert_eq!(error.samples().as_ref(), range, "{error}");
            }
        }
    }
}

/// Writes the remaining samples to new files: with nulls for the lost samples, and without them.
fn check_rewritten(salvaged: &Opened<'_>, table: &Table) {
    let written = |options| {
        let options: RewriteOptions<'_> = options;
        let summary = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).expect("memory");
        summary.sink.0
    };
    let mut due = table.head(salvaged.reader.sample_count() as usize);
    for (column, (_, lost)) in salvaged.losses.columns.iter().enumerate() {
        due.schema.columns[column].nullable |= !lost.is_empty();
        let of_lost = (0..).zip(&mut due.columns[column]).filter(|(i, _)| lost.contains(*i));
        of_lost.for_each(|(_, sample)| *sample = None);
    }
    check_file(&written(RewriteOptions::new()), &due, salvaged.reader.file_id());
    let lost = salvaged.losses.of_all();
    let mut due = Table { schema: table.schema.clone(), sample_count: lost.intact_count() as usize, ..due };
    for samples in &mut due.columns {
        let left = (0..).zip(samples.drain(..)).filter(|(i, _)| !lost.contains(*i));
        *samples = left.map(|(_, sample)| sample).collect();
    }
    check_file(&written(RewriteOptions::new().leave_out(true)), &due, salvaged.reader.file_id());
}

fn check_file(file: &[u8], due: &Table, old_id: FileId) {
    let report = verify(&InMemory(file), VerifyOptions::new().decode(true)).expect("a source in memory");
    assert!(report.damages.is_empty(), "{:?}", report.damages);
    let reader = Reader::from_bytes(file.to_vec()).expect("a whole file");
    assert_ne!(reader.file_id(), old_id);
    assert_eq!((reader.schema(), reader.sample_count()), (&due.schema, due.sample_count as u64));
    for column in 0..due.columns.len() {
        check_values(&reader, column, &LostSamples::default(), due);
    }
}

/// Whether anything that tells the schema is as it was.
fn tells_its_schema(intact: &[u8], damaged: &[u8]) -> bool {
    let places = regions(intact, &[b"\x89TSL", b"TSLF"]);
    places.iter().any(|place| damaged.get(place.clone()) == Some(&intact[place.clone()]))
}

#[test]
fn all_intact_chunks_of_damaged_files_are_recovered_and_nothing_else() {
    let mut counts = [0; 3];
    for seed in 0..file_count() {
        let random = &mut Random(seed);
        let (table, intact) = FilePlan::arbitrary(random).write("");
        let (_, foreign) = FilePlan::arbitrary(random).write("foreign");
        let mut damaged = intact.clone();
        for _ in 0..1 + random.below(3) {
            let damage = Damage::ALL[random.below(Damage::ALL.len() as u64) as usize];
            if !damaged.is_empty() {
                damage.apply(&mut damaged, &foreign, random);
            }
        }
        match salvage(InMemory(damaged.to_vec()), SalvageOptions::new().decode(random.one_in(2))) {
            Ok(salvaged) if salvaged.reader.file_id() == Reader::from_bytes(foreign.to_vec()).unwrap().file_id() => {
                counts[2] += 1
            }
            Ok(salvaged) => {
                counts[0] += check_salvaged(&salvaged, &intact, &damaged, &table);
                check_rewritten(&salvaged, &table);
            }
            Err(error) => {
                assert!(!tells_its_schema(&intact, &damaged), "file {seed}: {error}");
                counts[1] += 1;
            }
        }
    }
    let [chunks, hopeless, foreign] = counts;
    println!(
        "{} damaged files: {chunks} intact chunks, all recovered; {hopeless} without any schema; {foreign} became another file",
        file_count()
    );
    assert!(chunks > file_count() && hopeless + foreign < file_count() / 4);
}

/// So many numbers in chunks of one, with a commit after every `step`.
fn numbers(count: u64, step: u64, salt: u64) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U64, Shape::scalar())]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(8).origin(salt.to_le_bytes());
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a writer");
    for i in 0..count {
        writer.push(&[Value::tensor(&[i])]).expect("a sample");
        if (i + 1) % step == 0 {
            writer.commit().expect("memory");
        }
    }
    writer.finish().expect("a file").sink.0
}

/// Damages the chunks of the samples in `lost`, in a file of one column and one sample a chunk;
/// returns the losses.
fn lost_samples(sample_count: u64, lost: &BTreeSet<u64>) -> LostSamples {
    let mut file = numbers(sample_count, u64::MAX, 0);
    let places = chunks(&file);
    lost.iter().for_each(|&i| file[places[i as usize].bytes.end - 1] ^= 1);
    let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new()).expect("a schema");
    salvaged.losses.of(&["x"]).expect("a column")
}

proptest! {
    #![proptest_config(config(64))]

    /// Compares losses with sets of samples.
    #[test]
    fn policies_agree_with_sets(
        sample_count in 1..60_u64,
        flips in prop::collection::vec(0..60_u64, 0..60),
        asked in prop::collection::vec(0..60_u64, 0..40),
    ) {
        let lost: BTreeSet<u64> = flips.into_iter().filter(|&i| i < sample_count).collect();
        let intact: Vec<u64> = (0..sample_count).filter(|i| !lost.contains(i)).collect();
        let asked: Vec<u64> = asked.into_iter().filter(|&i| i < sample_count).collect();
        let found = lost_samples(sample_count, &lost);
        prop_assert_eq!(found.ranges().iter().flat_map(Clone::clone).collect::<BTreeSet<_>>(), lost.clone());
        prop_assert!(found.ranges().windows(2).all(|pair| pair[0].end < pair[1].start));
        prop_assert_eq!((found.count(), found.intact_count()), (lost.len() as u64, intact.len() as u64));
        for i in 0..=sample_count {
            prop_assert_eq!(found.intact_before(i), intact.iter().filter(|&&left| left < i).count() as u64);
            prop_assert_eq!(found.touches(&(i..i + 3)), (i..i + 3).any(|i| lost.contains(&i)));
            prop_assert!(!found.touches(&(i..i)));
        }
        for n in 0..=intact.len() {
            prop_assert_eq!(found.intact(n as u64), intact.get(n).copied());
        }
        let mut out = vec![7];
        let first_lost = asked.iter().find(|i| lost.contains(i));
        match found.resolve(&asked, OnLoss::Error, &mut out) {
            Ok(()) => prop_assert!(first_lost.is_none() && out == asked),
            Err(error) => {
                prop_assert!(error.samples().is_some_and(|samples| samples.contains(first_lost.expect("a lost one"))));
                prop_assert_eq!(&out, &[7]);
            }
        }
        found.resolve(&asked, OnLoss::Skip, &mut out).expect("skipping never fails");
        prop_assert_eq!(&out, &asked.iter().copied().filter(|i| !lost.contains(i)).collect::<Vec<_>>());
        let substituted = found.resolve(&asked, OnLoss::Substitute, &mut out);
        prop_assert_eq!(substituted.is_ok(), first_lost.is_none() || !intact.is_empty());
        if substituted.is_ok() {
            prop_assert_eq!(out.len(), asked.len());
            for (&i, &read) in asked.iter().zip(&out) {
                let is_right = if lost.contains(&i) { intact.contains(&read) } else { read == i };
                prop_assert!(is_right, "{} for {}", read, i);
            }
        }
    }
}

#[test]
fn a_substitute_is_the_same_in_every_release() {
    let lost = lost_samples(1000, &(100..200).collect());
    let read: Vec<_> = (98..106).map(|i| lost.substitute(i).expect("some are left")).collect();
    assert_eq!(read, [98, 99, 324, 811, 700, 628, 446, 231]);
}

#[test]
fn losses_of_several_columns_add_up() {
    let names = ["a", "b", "c"].map(|name| ColumnSchema::tensor(name, DType::U64, Shape::scalar()));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(80);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(names), &options).expect("a writer");
    (0..50_u64)
        .for_each(|i| writer.push(&[Value::tensor(&[i]), Value::tensor(&[i]), Value::tensor(&[i])]).expect("a sample"));
    let mut file = writer.finish().expect("a file").sink.0;
    for place in chunks(&file)
        .into_iter()
        .filter(|place| [(0, 10), (1, 20), (1, 40)].contains(&(place.column, place.samples.start)))
    {
        file[place.bytes.start + 64] ^= 0x80;
    }
    let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new()).expect("a schema");
    let of = |columns: &[&str]| salvaged.losses.of(columns).map(|lost| lost.ranges().to_vec());
    assert_eq!(of(&["a"]).unwrap(), vec![10..20]);
    assert_eq!(of(&["b"]).unwrap(), [20..30, 40..50]);
    assert_eq!(of(&["a", "b"]).unwrap(), [10..30, 40..50]);
    assert_eq!(of(&["c"]).unwrap(), []);
    assert_eq!(salvaged.losses.of_all().ranges(), [10..30, 40..50]);
    assert!(!salvaged.losses.is_empty());
    assert_eq!(of(&["d"]).unwrap_err().kind(), tensilo::ErrorKind::BadArgument);
}

/// Samples that other columns lose are taken out of a chunk one by one, with their shapes.
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
    let mut file = writer.finish().expect("a file").sink.0;
    let damaged = chunks(&file).into_iter().find(|chunk| (chunk.column, chunk.samples.start) == (0, 4));
    file[damaged.expect("a chunk").bytes.start + 64] ^= 1;
    let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new()).expect("a schema");
    assert_eq!(salvaged.losses.of_all().ranges().first(), Some(&(4..6)));
    let leave_out = RewriteOptions::new().leave_out(true);
    let written = salvaged.write_to(Stream(Vec::new()), &options, leave_out).expect("a copy");
    let reader = Reader::from_bytes(written.sink.0).expect("a file");
    let mut cursor = reader.column("ragged").expect("a column").cursor();
    for (at, i) in (0..4).chain(6..12).enumerate() {
        let sample = cursor.read(at as u64).expect("a sample");
        assert_eq!(sample.shape(), sides(i));
        assert!(sample.bytes().iter().all(|byte| *byte == i as u8), "{i}: {:?}", sample.bytes());
    }
    assert_eq!(reader.sample_count(), 10);
}

#[test]
fn a_file_that_is_whole_has_lost_nothing_and_its_end_is_known() {
    let (table, file) = FilePlan::arbitrary(&mut Random(1)).write("");
    let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new().decode(true)).expect("a whole file");
    assert!(salvaged.losses.is_empty() && salvaged.header_is_intact && salvaged.end_is_known);
    assert_eq!(salvaged.committed_samples, Some(table.sample_count as u64));
    let reader = Reader::from_bytes(file.to_vec()).expect("a whole file");
    for (column, salvaged) in reader.columns().zip(salvaged.reader.columns()) {
        assert_eq!(column.facts(), salvaged.facts());
    }
    let cut = &file[..file.len() - 64];
    let salvaged = salvage(InMemory(cut.to_vec()), SalvageOptions::new()).expect("a schema");
    assert!(!salvaged.end_is_known && salvaged.losses.is_empty());
}

/// The majority of intact chunks decides, and no other regions: neither the header, nor the many
/// footers behind.
#[test]
fn a_file_that_was_partly_overwritten_by_another_is_still_itself() {
    let (file, other) = (numbers(100, u64::MAX, 1), numbers(90, 1, 2));
    let header = regions(&file, &[b"\x89TSL"])[0].clone();
    let mut mixed = other.clone();
    mixed[header.end..file.len()].copy_from_slice(&file[header.end..]);
    let salvaged = salvage(InMemory(mixed.to_vec()), SalvageOptions::new()).expect("a schema");
    assert_eq!(salvaged.reader.file_id(), Reader::from_bytes(file.to_vec()).expect("a file").file_id());
    assert!(salvaged.losses.is_empty() && !salvaged.header_is_intact && salvaged.end_is_known);
    assert_eq!(salvaged.reader.sample_count(), 100);
    mixed[..header.end].fill(0);
    let salvaged = salvage(InMemory(mixed.to_vec()), SalvageOptions::new()).expect("a schema");
    assert_eq!((salvaged.losses.is_empty(), salvaged.reader.sample_count()), (true, 100));
}

#[test]
fn a_page_of_the_index_tells_of_samples_that_nothing_else_tells_of() {
    let mut file = numbers(50, u64::MAX, 1);
    regions(&file, &[b"TSLF", b"TSLE"]).into_iter().for_each(|place| file[place].fill(0));
    let chunks = regions(&file, &[b"TSLC"]);
    file[chunks[49].clone()].fill(0);
    let of = |file: &[u8]| {
        let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new()).expect("a schema");
        assert!(!salvaged.end_is_known && salvaged.committed_samples.is_none());
        let lost = salvaged.losses.of_all();
        (salvaged.reader.sample_count(), lost.ranges().iter().map(|range| (range.start, range.end)).collect::<Vec<_>>())
    };
    assert_eq!(of(&file), (50, vec![(49, 50)]));
    regions(&file, &[b"TSLI"]).into_iter().for_each(|place| file[place].fill(0));
    assert_eq!(of(&file), (49, vec![]));
}

#[test]
fn the_end_of_a_file_that_was_not_finished_is_not_known() {
    let file = numbers(10, 5, 1);
    let trailers = regions(&file, &[b"TSLE"]);
    for (trailer, due) in [(0, 5), (1, 10)] {
        let committed = &file[..trailers[trailer].end];
        let salvaged = salvage(InMemory(committed.to_vec()), SalvageOptions::new()).expect("a schema");
        assert_eq!((salvaged.reader.sample_count(), salvaged.committed_samples), (due, Some(due)));
        assert!(salvaged.losses.is_empty() && !salvaged.end_is_known && !salvaged.reader.is_finished());
    }
    assert!(salvage(InMemory(file.to_vec()), SalvageOptions::new()).expect("a schema").end_is_known);
}

#[test]
fn progress_ends_when_all_bytes_were_looked_at() {
    let (_, file) = FilePlan::arbitrary(&mut Random(1)).write("");
    let bodies: u64 = chunks(&file).iter().map(|chunk| chunk.bytes.len() as u64 - 64).sum();
    for decode in [false, true] {
        let mut calls = Vec::new();
        let mut progress = |done, total| {
            calls.push((done, total));
            ControlFlow::Continue(())
        };
        let options = SalvageOptions::new().decode(decode).progress(&mut progress);
        salvage(InMemory(file.to_vec()), options).expect("a whole file");
        assert!(calls.len() > chunks(&file).len() && calls.is_sorted(), "{calls:?}");
        let bytes = file.len() as u64;
        let &(done, total) = calls.last().expect("calls");
        assert_eq!(done, total, "{calls:?}");
        assert!(if decode { total >= bytes + bodies } else { total == bytes }, "{calls:?}");
        // the first pass goes through the file
        assert!(
            calls.iter().any(|&(done, _)| 0 < done && done < bytes) && calls.contains(&(bytes, bytes)),
            "{calls:?}"
        );
    }
}

/// Values that were cast once are not cast again: their bits and the facts of the cast stay.
#[test]
fn casts_are_neither_done_again_nor_forgotten() {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::Bf16, Shape::scalar()).cast_from(DType::F32)]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().chunk_bytes(20)).expect("a writer");
    for i in 0..40 {
        writer.push(&[Value::tensor(&[1.0 / i as f32])]).expect("a sample");
    }
    let mut file = writer.finish().expect("a file").sink.0;
    let facts =
        |file: &[u8]| Reader::from_bytes(file.to_vec()).expect("a file").column("x").expect("a column").facts().cast;
    let due = facts(&file);
    assert!(due.expect("a cast").max_rel_error > 0.0);
    let place = chunks(&file)[2].clone();
    file[place.bytes.start] ^= 1;
    let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new()).expect("a schema");
    for leave_out in [false, true] {
        let options = RewriteOptions::new().leave_out(leave_out);
        let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).expect("memory").sink.0;
        assert_eq!(facts(&written), due);
        let reader = Reader::from_bytes(written.to_vec()).expect("a file");
        let bits = |reader: &Reader, i: u64| reader.column("x").unwrap().cursor().read(i).unwrap().bytes().to_vec();
        let skipped = if leave_out { 10 } else { 0 };
        for i in (0..20).chain(30..40) {
            let there = if i < 20 { i } else { i - skipped };
            let of_old = salvaged.reader.column("x").unwrap().cursor().read(i).unwrap().bytes().to_vec();
            assert_eq!(bits(&reader, there), of_old, "sample {i}");
        }
    }
}

/// A copy of a chunk gets a new checksum, which must not vouch for bytes that changed after they
/// were checked.
#[test]
fn what_decays_after_it_was_found_intact_is_not_written_again() {
    let columns =
        [("a", DType::U8), ("b", DType::U16)].map(|(name, dtype)| ColumnSchema::tensor(name, dtype, Shape::scalar()));
    let options = WriterOptions::new().chunk_bytes(20);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(columns), &options).expect("a writer");
    for i in 0..40 {
        writer.push(&[Value::tensor(&[i as u8]), Value::tensor(&[i as u16])]).expect("a sample");
    }
    let mut file = writer.finish().expect("a file").sink.0;
    let of_column = |column| chunks(&file).into_iter().find(|chunk| chunk.column == column).expect("a chunk").bytes;
    let (decaying, lost) = (of_column(0).end - 1, of_column(1).end - 1);
    file[lost] ^= 1;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("decaying.tsl");
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
        for leave_out in [false, true] {
            let options = RewriteOptions::new().leave_out(leave_out);
            let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options);
            let error = written.expect_err("decayed");
            assert_eq!((error.rule(), error.samples()), (Some("R-2.6"), Some(0..20)), "{error}");
        }
    }
}

/// A disk: read by position, some of its sectors not at all.
struct Disk {
    file: Vec<u8>,
    bad: Vec<Range<usize>>,
}

impl Source for Disk {
    fn byte_count(&self) -> u64 {
        self.file.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let read = offset as usize..offset as usize + out.len();
        if self.bad.iter().any(|bad| bad.start < read.end && read.start < bad.end) {
            return Err(io::Error::other("bad sector"));
        }
        out.copy_from_slice(&self.file[read]);
        Ok(())
    }
}

/// Unreadable sectors cost the chunks in them, and no others, as garbage would.
#[test]
fn sectors_that_cannot_be_read_are_damage_and_no_failure() {
    for seed in 0..file_count() / 3 {
        let random = &mut Random(seed);
        let (table, intact) = FilePlan::arbitrary(random).write("");
        let mut bad: Vec<Range<usize>> = Vec::new();
        for _ in 0..random.below(4) {
            let at = random.below(intact.len().div_ceil(4096) as u64) as usize * 4096;
            bad.push(at..(at + 4096).min(intact.len()));
        }
        let mut garbage = intact.clone();
        bad.iter().for_each(|bad| garbage[bad.clone()].fill(0xA5));
        let expected = salvage(InMemory(garbage.to_vec()), SalvageOptions::new());
        let found = salvage(Disk { file: intact, bad }, SalvageOptions::new().decode(true));
        let (Ok(expected), Ok(found)) = (&expected, &found) else {
            assert!(expected.is_err() && found.is_err(), "file {seed}");
            continue;
        };
        assert_eq!(found.losses, expected.losses, "file {seed}");
        assert_eq!(found.reader.sample_count(), expected.reader.sample_count());
        for column in 0..table.columns.len() {
            check_values(&found.reader, column, &found.losses.columns[column].1, &table);
        }
    }
}
