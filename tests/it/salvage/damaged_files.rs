//! Many files with random damage, and disks with unreadable sectors.

use super::check_values;
use crate::common::Table;
use crate::common::blocked::{BlockedChunk, blocked_chunks};
use crate::common::damage::{ChunkLocation, Damage, chunks, regions};
use crate::common::files::FilePlan;
use crate::support::intact::assert_intact;
use std::io;
use std::ops::Range;
use tensilo::facts::FileId;
use tensilo::salvage::{LostSamples, RewriteOptions, SalvageOptions, Salvaged, UNCONFIRMED, salvage};
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::{Reader, WriterOptions};
use tensilo_testing::{Random, env_or};

/// Returns how many damaged files the test makes; thousands before a release.
fn file_count() -> u64 {
    env_or("TENSILO_SALVAGE_FILES", 300)
}

/// Checks a salvaged file against the intact one.
fn check_salvaged(salvaged: &Salvaged, intact: &[u8], damaged: &[u8], table: &Table) -> u64 {
    let reader = &salvaged.reader;
    assert_eq!(reader.schema(), &table.schema);
    assert!(reader.sample_count() <= table.sample_count as u64);
    let is_left = |chunk: &&ChunkLocation| damaged.get(chunk.bytes.clone()) == Some(&intact[chunk.bytes.clone()]);
    let locations = chunks(intact);
    let left: Vec<&ChunkLocation> = locations.iter().filter(is_left).collect();
    let in_blocks = blocked_chunks(intact);
    let damaged_chunks: Vec<&BlockedChunk> = in_blocks.iter().filter(|chunk| !is_left(&&chunk.location)).collect();
    for (column, (name, lost)) in salvaged.losses.columns.iter().enumerate() {
        assert_eq!(*name, table.schema.columns[column].name);
        let chunks = left.iter().filter(|c| c.column == column).map(|c| c.samples.clone());
        let damaged_chunks = damaged_chunks.iter().filter(|chunk| chunk.location.column == column);
        let samples = damaged_chunks.flat_map(|chunk| chunk.samples_left(intact, damaged));
        let left: Vec<Range<u64>> = chunks.chain(samples.map(|i| i..i + 1)).collect();
        check_losses(lost, &left, reader.sample_count());
        check_values(reader, column, lost, table);
    }
    left.len() as u64
}

/// Checks that exactly the samples without an intact chunk or block are lost.
fn check_losses(lost: &LostSamples, left: &[Range<u64>], sample_count: u64) {
    let is_left = |i: u64| left.iter().any(|samples| samples.contains(&i));
    for i in 0..sample_count {
        assert_eq!(lost.contains(i), !is_left(i), "sample {i}: {left:?}, {lost:?}");
    }
    assert!(left.iter().all(|samples| samples.end <= sample_count), "{left:?} of {sample_count}");
    assert_eq!(lost.count() + left.iter().map(|samples| samples.end - samples.start).sum::<u64>(), sample_count);
}

/// Writes the remaining samples to new files, with nulls for the lost samples and without them.
fn check_rewritten(salvaged: &Salvaged, table: &Table) {
    let written = |options| {
        let options: RewriteOptions<'_> = options;
        let summary = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).expect("memory");
        summary.sink.0
    };
    let mut expected = table.head(salvaged.reader.sample_count() as usize);
    for (column, (_, lost)) in salvaged.losses.columns.iter().enumerate() {
        expected.schema.columns[column].nullable |= !lost.is_empty();
        let of_lost = (0..).zip(&mut expected.columns[column]).filter(|(i, _)| lost.contains(*i));
        of_lost.for_each(|(_, sample)| *sample = None);
    }
    check_file(&written(RewriteOptions::new()), &expected, salvaged.reader.file_id());
    let lost = salvaged.losses.of_all();
    let mut expected = Table { schema: table.schema.clone(), sample_count: lost.intact_count() as usize, ..expected };
    for samples in &mut expected.columns {
        let left = (0..).zip(samples.drain(..)).filter(|(i, _)| !lost.contains(*i));
        *samples = left.map(|(_, sample)| sample).collect();
    }
    check_file(&written(RewriteOptions::new().drop_lost(true)), &expected, salvaged.reader.file_id());
}

fn check_file(file: &[u8], expected: &Table, old_id: FileId) {
    assert_intact(&InMemory(file));
    let reader = Reader::from_bytes(file.to_vec()).expect("a whole file");
    assert_ne!(reader.file_id(), old_id);
    let mut schema = reader.schema().clone();
    schema.columns.iter_mut().for_each(|column| drop(column.metadata.remove(UNCONFIRMED)));
    assert_eq!((&schema, reader.sample_count()), (&expected.schema, expected.sample_count as u64));
    for column in 0..expected.columns.len() {
        check_values(&reader, column, &LostSamples::default(), expected);
    }
}

/// Returns whether any region that has the schema is intact.
fn has_intact_schema(intact: &[u8], damaged: &[u8]) -> bool {
    let locations = regions(intact, &[b"\x89TSL", b"TSLF"]);
    locations.iter().any(|location| damaged.get(location.clone()) == Some(&intact[location.clone()]))
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
            eprintln!("file {seed}: {damage:?}");
            if !damaged.is_empty() {
                damage.apply(&mut damaged, &foreign, random);
            }
        }
        match salvage(InMemory(damaged.to_vec()), SalvageOptions::new().deep(random.one_in(2))) {
            Ok(salvaged) if salvaged.reader.file_id() == Reader::from_bytes(foreign.to_vec()).unwrap().file_id() => {
                counts[2] += 1
            }
            Ok(salvaged) => {
                counts[0] += check_salvaged(&salvaged, &intact, &damaged, &table);
                check_rewritten(&salvaged, &table);
            }
            Err(error) => {
                assert!(!has_intact_schema(&intact, &damaged), "file {seed}: {error}");
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

/// A disk: read by position, with some unreadable sectors.
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

/// Unreadable sectors cost the chunks that garbage in their place would cost, and no others. In a
/// chunk in blocks, they cost all blocks, because salvage reads a chunk as a whole.
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
        for chunk in blocked_chunks(&intact) {
            let is_bad =
                |bad: &Range<usize>| bad.start < chunk.location.bytes.end && chunk.location.bytes.start < bad.end;
            if bad.iter().any(is_bad) {
                garbage[chunk.blocks[0].bytes.start - 1] ^= 0xFF; // in the checksum of the block index
            }
        }
        let expected = salvage(InMemory(garbage.to_vec()), SalvageOptions::new());
        let found = salvage(Disk { file: intact, bad }, SalvageOptions::new().deep(true));
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
