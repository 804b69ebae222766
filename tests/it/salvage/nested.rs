//! Nested columns of damaged files.

use super::salvage_file;
use crate::common::blocked::blocked_chunks;
use crate::common::config;
use crate::common::damage::{ChunkLocation, Damage, chunks, seal_chunk};
use crate::common::plan::options;
use crate::nested::check::check_file;
use crate::nested::model::{Entry, Plan, arbitrary_plan, entries_of, entry_of, push_all, with_all_extents};
use crate::support::intact::assert_intact;
use proptest::prelude::*;
use tensilo::salvage::{LostSamples, OnLoss, RewriteOptions, SalvageOptions, Salvaged, salvage};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::{ColumnBuffer, DType, Extent, Reader, Schema, Writer, WriterOptions};
use tensilo_testing::Random;

/// The fields of a list of structs, or any columns.
pub(super) struct Lists {
    pub plans: Vec<Plan>,
    pub samples: Vec<Vec<Entry>>,
}

impl Lists {
    fn new(plans: Vec<Plan>) -> Self {
        let samples = plans.iter().map(Plan::entries).collect();
        Self { plans, samples }
    }

    fn sample_count(&self) -> usize {
        self.plans[0].sample_count
    }

    fn columns(&self, range: std::ops::Range<usize>) -> Vec<(&Plan, &[Entry])> {
        self.plans.iter().zip(&self.samples).map(|(plan, samples)| (plan, &samples[range.clone()])).collect()
    }

    fn schema(&self) -> Schema {
        let column = |(i, plan): (usize, &Plan)| {
            let mut column = plan.schema(&format!("column {i}"));
            let path = format!("fields{}.column {i}", "[]".repeat(column.levels.len()));
            column.metadata.insert("tensilo.path".to_owned(), path);
            column
        };
        Schema::new(self.plans.iter().enumerate().map(column))
    }

    /// Writes the lists in two commits.
    pub fn write(&self, options: &WriterOptions) -> Vec<u8> {
        let mut writer = Writer::new(Stream(Vec::new()), self.schema(), options).expect("a writer");
        let (cut, count) = (self.sample_count() / 2, self.sample_count());
        push_all(&mut writer, &self.columns(0..cut), 16);
        writer.commit().expect("memory");
        push_all(&mut writer, &self.columns(cut..count), 16);
        writer.into_bytes().expect("memory")
    }
}

pub(super) fn several_columns() -> impl Strategy<Value = Lists> {
    (prop::collection::vec(arbitrary_plan(), 1..4), 1..60_usize).prop_map(|(plans, sample_count)| {
        Lists::new(plans.into_iter().map(|plan| Plan { sample_count, ..plan }).collect())
    })
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.plans.fmt(f)
    }
}

/// Checks that exactly the samples of damaged chunks and blocks are lost, and that all others read
/// correctly.
fn check_salvaged(salvaged: &Salvaged, lists: &Lists, intact: &[u8], damaged: &[u8]) {
    let locations = chunks(intact);
    let is_left =
        |location: &&ChunkLocation| damaged.get(location.bytes.clone()) == Some(&intact[location.bytes.clone()]);
    let left: Vec<&ChunkLocation> = locations.iter().filter(is_left).collect();
    let in_blocks = blocked_chunks(intact);
    for (number, (_, lost)) in salvaged.losses.columns.iter().enumerate() {
        let of_column: Vec<_> = left.iter().filter(|location| location.column == number).collect();
        let damaged_chunks =
            in_blocks.iter().filter(|chunk| chunk.location.column == number && !is_left(&&chunk.location));
        let in_blocks: Vec<u64> = damaged_chunks.flat_map(|chunk| chunk.samples_left(intact, damaged)).collect();
        for i in 0..salvaged.reader.sample_count() {
            let is_left = of_column.iter().any(|location| location.samples.contains(&i)) || in_blocks.contains(&i);
            assert_eq!(lost.contains(i), !is_left, "sample {i}");
        }
        check_column(&salvaged.reader, number, lost, &lists.plans[number], &lists.samples[number]);
    }
}

fn check_column(reader: &Reader, number: usize, lost: &LostSamples, plan: &Plan, samples: &[Entry]) {
    let mut cursor = reader.column_at(number).expect("a column").cursor();
    for i in 0..reader.sample_count() {
        match cursor.read_list(i) {
            Ok(list) => assert_eq!(entry_of(list), with_all_extents(plan, &samples[i as usize]), "sample {i}"),
            Err(error) => assert!(lost.contains(i), "sample {i}: {error}"),
        }
    }
    let all: Vec<u64> = (0..reader.sample_count()).rev().collect();
    let (mut left, mut buffer) = (Vec::new(), ColumnBuffer::new());
    lost.resolve(&all, OnLoss::Skip, &mut left).expect("skipping never fails");
    cursor.gather_into(&left, &mut buffer).expect("what is not lost");
    let expected: Vec<Entry> = left.iter().map(|&i| samples[i as usize].clone()).collect();
    assert_eq!(entries_of(plan, &buffer), expected);
}

/// Writes the remaining samples to new files, with nulls for the lost samples and without them.
fn check_rewritten(salvaged: &Salvaged, lists: &Lists) {
    let count = salvaged.reader.sample_count();
    let all_lost = salvaged.losses.of_all();
    for drop_lost in [false, true] {
        let options = RewriteOptions::new().drop_lost(drop_lost);
        let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).expect("memory").sink.0;
        assert_intact(&InMemory(&written));
        let (mut plans, mut expected) = (lists.plans.clone(), Vec::new());
        for ((plan, samples), (_, lost)) in plans.iter_mut().zip(&lists.samples).zip(&salvaged.losses.columns) {
            let sample = |i: u64| if lost.contains(i) { Entry::Null } else { samples[i as usize].clone() };
            let is_left = |i: &u64| !drop_lost || !all_lost.contains(*i);
            expected.push((0..count).filter(is_left).map(sample).collect::<Vec<Entry>>());
            plan.nullable[0] |= !drop_lost && !lost.is_empty();
        }
        let reader = Reader::from_bytes(written).expect("a whole file");
        let columns: Vec<(&Plan, &[Entry])> =
            plans.iter().zip(&expected).map(|(plan, expected)| (plan, &expected[..])).collect();
        check_file(&reader, &columns);
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn all_lists_of_intact_chunks_are_recovered_and_no_others(
        lists in several_columns(),
        chunk_bytes in 20..400_usize,
        damages in prop::collection::vec(0..Damage::ALL.len(), 1..4),
        seed in any::<u64>(),
        decode in any::<bool>(),
    ) {
        let intact = lists.write(&options().chunk_bytes(chunk_bytes));
        let mut damaged = intact.clone();
        let random = &mut Random(seed);
        for damage in damages {
            if !damaged.is_empty() {
                Damage::ALL[damage].apply(&mut damaged, &intact, random);
            }
        }
        if let Ok(salvaged) = salvage(InMemory(damaged.clone()), SalvageOptions::new().deep(decode)) {
            check_salvaged(&salvaged, &lists, &intact, &damaged);
            check_rewritten(&salvaged, &lists);
        }
    }
}

/// Returns lists of texts and of numbers, in chunks of a few samples each.
fn struct_of_two() -> Lists {
    let plan = |dtype, shape: &[Extent], seed| Plan {
        dtype,
        shape: shape.to_vec(),
        nullable: vec![false, true, true],
        sample_count: 40,
        seed,
    };
    Lists::new(vec![plan(DType::Utf8, &[Extent::Varying], 5), plan(DType::I16, &[], 6)])
}

/// Damages any byte of a chunk: header, part table, validity, shape, padding and values.
#[test]
fn each_byte_of_a_chunk_costs_its_samples_and_no_others() {
    let lists = struct_of_two();
    let intact = lists.write(&options().chunk_bytes(100));
    for number in 0..lists.plans.len() {
        let location = chunks(&intact).into_iter().filter(|location| location.column == number).nth(1).expect("chunks");
        for at in location.bytes.clone() {
            let mut damaged = intact.clone();
            damaged[at] ^= 0x10;
            let salvaged = salvage_file(&damaged);
            for (column, (_, lost)) in salvaged.losses.columns.iter().enumerate() {
                let expected = if column == number { vec![location.samples.clone()] } else { Vec::new() };
                assert_eq!(lost.ranges(), expected, "column {column}, byte {at} of {:?}", location.bytes);
            }
            if at % 16 == 0 {
                check_salvaged(&salvaged, &lists, &intact, &damaged);
                check_rewritten(&salvaged, &lists);
            }
        }
    }
}

/// A faulty writer: the checksum is correct for parts that do not decode.
#[test]
fn chunks_that_do_not_decode_are_lost_if_salvage_decodes() {
    let lists = struct_of_two();
    let intact = lists.write(&WriterOptions::new().profile(tensilo::Profile::Raw).chunk_bytes(100));
    let mut lost_count = 0;
    for number in 0..lists.plans.len() {
        let location = chunks(&intact).into_iter().find(|location| location.column == number).expect("a chunk");
        for at in location.bytes.start + 64..location.bytes.end {
            let mut damaged = intact.clone();
            damaged[at] ^= 0x81;
            seal_chunk(&mut damaged, location.bytes.start);
            let Ok(salvaged) = salvage(InMemory(damaged), SalvageOptions::new().deep(true)) else {
                continue; // an encoding of a newer release
            };
            let lost = &salvaged.losses.columns[number].1;
            assert!(lost.is_empty() || lost.ranges() == [location.samples.clone()], "byte {at}: {lost:?}");
            assert!(salvaged.losses.columns[1 - number].1.is_empty());
            lost_count += lost.count();
            // samples that are not lost can be read and written again, whatever their values
            let mut buffer = ColumnBuffer::new();
            let left: Vec<u64> = (0..40).filter(|i| !lost.contains(*i)).collect();
            salvaged.reader.column_at(number).unwrap().cursor().gather_into(&left, &mut buffer).expect("intact");
            for drop_lost in [false, true] {
                let options = RewriteOptions::new().drop_lost(drop_lost);
                let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).expect("memory");
                assert_intact(&InMemory(&written.sink.0));
            }
        }
    }
    assert!(lost_count > 0);
}
