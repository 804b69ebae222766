//! Tests that every read path gives what was written, for any schema, any data and any way to
//! write.
//!
//! [`crate::common`] generates tables, keeps a simple model of them, and compares every call with
//! the model. The same bytes must come out whatever the batches, the threads and the sink.

use crate::common::check::check;
use crate::common::data::{arbitrary_column, arbitrary_table, table};
use crate::common::plan::{WritePlan, arbitrary_plan, profiles, write, write_to};
use crate::common::{Table, config};
use crate::support::faulty_sink::FaultySink;
use crate::support::intact::assert_intact;
use crate::support::on_disk::OnDisk;
use crate::support::reversed::Reversed;
use proptest::prelude::*;
use std::sync::Arc;
use tensilo::sink::Stream;
use tensilo::source::{InMemory, PositionedFile, Source};
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Element, Extent, Metadata, OpenOptions, Profile, Reader, Schema,
    Shape, Value, Verification, Writer, WriterOptions,
};

const POLICIES: [Verification; 3] = [Verification::FirstTouch, Verification::Always, Verification::Never];

fn open<S: Source + 'static>(source: S, policy: Verification) -> Reader {
    OpenOptions::new().verification(policy).open_source(source).expect("an intact file")
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn every_read_path_over_every_source_agrees_with_the_model(
        table in arbitrary_table(300),
        plan in arbitrary_plan(),
        seed in any::<u64>(),
        policy in prop::sample::select(POLICIES.to_vec()),
    ) {
        let bytes = write(&table, &plan);
        let on_disk = OnDisk::new(&bytes);
        check(&open(InMemory(Arc::<[u8]>::from(bytes.as_slice())), policy), &table, &plan, seed);
        let positioned = PositionedFile::open(on_disk.path()).expect("a file");
        check(&open(positioned, policy), &table, &plan, seed.wrapping_add(1));
        let fragment_bytes = [1, 7, 100, 4096, usize::MAX][seed as usize % 5];
        let gap_bytes = seed % 3 * 1000;
        let reversed = Reversed { file: bytes.clone(), fragment_bytes, gap_bytes, max_in_flight: 4 };
        check(&open(reversed, policy), &table, &plan, seed.wrapping_add(4));
        #[cfg(feature = "mmap")]
        {
            // SAFETY: the file is in a folder that only this test knows, and does not change.
            let mapped = unsafe { tensilo::source::MappedFile::open(on_disk.path()) }.expect("a file");
            check(&open(mapped, policy), &table, &plan, seed.wrapping_add(2));
        }
        let reader = open(InMemory(bytes), policy);
        check(&reader, &table, &plan, seed.wrapping_add(3));
        assert_intact(reader.source());
        prop_assert!(reader.is_finished());
        prop_assert_eq!(reader.tail_bytes(), 0);
        prop_assert_eq!(reader.commit_count() as usize, plan.commits(table.sample_count).len() + 1);
    }

    /// Each chunk has many samples that end anywhere between the groups and checkpoints of tiers.
    /// Most are decoded or read individually.
    #[test]
    fn samples_read_individually_agree_with_the_model(
        column in arbitrary_column(),
        extents in prop_oneof![Just(vec![]), prop::collection::vec(1..=150_u32, 1), prop::collection::vec(1..=13_u32, 2)],
        varying in any::<bool>(),
        samples in 100..=600_usize,
        plan in arbitrary_plan(),
        chunk_bytes in 4_096..=65_536_usize,
        seed in any::<u64>(),
        policy in prop::sample::select(POLICIES.to_vec()),
    ) {
        let mut column = column;
        if !matches!(column.dtype, DType::Bytes | DType::Utf8) {
            column.shape = extents.into_iter().map(Extent::Fixed).collect();
            if let Some(first) = column.shape.first_mut().filter(|_| varying) {
                *first = Extent::Varying;
            }
        }
        let (table, plan) = (table(&[column], Metadata::new(), samples), WritePlan { chunk_bytes, ..plan });
        let bytes = write(&table, &plan);
        let on_disk = OnDisk::new(&bytes);
        let positioned = PositionedFile::open(on_disk.path()).expect("a file");
        check(&open(positioned, policy), &table, &plan, seed);
        check(&open(InMemory(bytes), policy), &table, &plan, seed.wrapping_add(1));
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_grouping_of_samples_or_on_threads(
        table in arbitrary_table(300),
        plan in arbitrary_plan(),
        batch in 1..=400_usize,
        threads in 1..=3_usize,
    ) {
        let bytes = write(&table, &plan);
        prop_assert_eq!(&write(&table, &plan), &bytes, "written twice");
        let one_by_one = WritePlan { threads: 1, ..plan.regrouped(table.sample_count, 0) };
        prop_assert!(write(&table, &one_by_one) == bytes, "one sample at a time");
        let batches = WritePlan { threads, ..plan.regrouped(table.sample_count, batch) };
        prop_assert!(write(&table, &batches) == bytes, "batches of {} by {} threads", batch, threads);
    }

    #[test]
    fn each_commit_is_itself_a_file_of_the_samples_before_it(table in arbitrary_table(120), plan in arbitrary_plan()) {
        let mut sink = RecordingSink::default();
        write_to(&mut sink, &table, &plan, &plan.options()).expect("a valid table");
        let commits = plan.commits(table.sample_count);
        prop_assert_eq!(sink.ends.len(), commits.len() + 1);
        for (number, (&end, &samples)) in sink.ends.iter().zip(&commits).enumerate() {
            let reader = Reader::from_bytes(sink.bytes[..end].to_vec()).expect("a commit");
            check(&reader, &table.head(samples), &plan, 7);
            prop_assert!(!reader.is_finished());
            prop_assert_eq!(reader.commit_count() as usize, number + 1);
            // bytes that a killed writer leaves after a commit change nothing
            let next = sink.ends[number + 1];
            let cut = end + (next - end) / 2;
            let reader = Reader::from_bytes(sink.bytes[..cut].to_vec()).expect("a commit and a tail");
            prop_assert_eq!(reader.sample_count(), samples as u64);
            prop_assert_eq!(reader.tail_bytes(), (cut - end) as u64);
        }
    }

    #[test]
    fn a_sink_that_takes_a_few_bytes_at_a_time_gets_the_same_file(
        table in arbitrary_table(60),
        plan in arbitrary_plan(),
    ) {
        let mut sink = FaultySink::stingy();
        let summary = write_to(&mut sink, &table, &plan, &plan.options()).expect("a valid table");
        prop_assert_eq!(summary.file_bytes, summary.sink.bytes.len() as u64);
        prop_assert!(sink.bytes == write(&table, &plan));
    }

    #[test]
    fn a_file_is_identified_by_its_schema_options_and_origin(table in arbitrary_table(3), plan in arbitrary_plan()) {
        let id = |table: &Table, plan: &WritePlan, origin: &str| {
            let options = plan.options().origin(origin);
            write_to(Stream(Vec::new()), table, plan, &options).expect("a valid table").file_id
        };
        let same = id(&table, &plan, "a");
        prop_assert_eq!(id(&table, &WritePlan { threads: 3, ..plan.clone() }, "a"), same);
        prop_assert_eq!(id(&table, &plan.regrouped(table.sample_count, 0), "a"), same);
        prop_assert_ne!(id(&table, &plan, "b"), same);
        prop_assert_ne!(id(&table, &plan, ""), same);
        let other = WritePlan { chunk_bytes: plan.chunk_bytes + 1, ..plan.clone() };
        prop_assert_ne!(id(&table, &other, "a"), same);
        if plan.profile.block_bytes().is_some() {
            let other = WritePlan { block_bytes: Some(plan.block_bytes.map_or(1024, |bytes| bytes + 1)), ..plan.clone() };
            prop_assert_ne!(id(&table, &other, "a"), same);
        }
        let mut other = table.clone();
        other.schema.metadata.insert("another".to_owned(), String::new());
        prop_assert_ne!(id(&other, &plan, "a"), same);
    }

    /// Gathered samples can be pushed unchanged, and the copy of the file has the same values.
    #[test]
    fn gathered_batches_can_be_written_again(table in arbitrary_table(100), plan in arbitrary_plan()) {
        let bytes = write(&table, &plan);
        let reader = Reader::from_bytes(bytes).expect("an intact file");
        let mut rows = reader.rows(&table.names()).expect("columns of the file");
        let mut buffers = Vec::new();
        rows.range_into(0..reader.sample_count(), &mut buffers).expect("samples of the file");
        let copy = WritePlan { steps: Vec::new(), ..plan };
        let mut writer =
            tensilo::Writer::new(Stream(Vec::new()), table.schema.clone(), &copy.options()).expect("a valid schema");
        let batches: Vec<_> = buffers.iter().map(tensilo::ColumnBuffer::as_batch).collect();
        writer.push_batch(&batches).expect("samples of this schema");
        let copied = writer.into_bytes().expect("a sink that takes all");
        prop_assert!(copied == write(&table, &copy));
    }
}

/// Records where each commit ended.
#[derive(Default)]
struct RecordingSink {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl std::io::Write for &mut RecordingSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tensilo::sink::Sink for &mut RecordingSink {
    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn publish(&mut self) -> std::io::Result<()> {
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

#[test]
fn a_reader_is_shared_by_threads() {
    use proptest::strategy::{Strategy, ValueTree};
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..4 {
        let (table, plan) = (arbitrary_table(200), arbitrary_plan()).new_tree(&mut runner).expect("a table").current();
        let reader = open(InMemory(write(&table, &plan)), Verification::FirstTouch);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (reader, table, plan) = (&reader, &table, &plan);
                scope.spawn(move || check(reader, table, plan, seed));
            }
        });
    }
}

/// Chunks of such samples have no values, so reading them individually fetches nothing.
#[test]
fn samples_without_elements_take_nulls_from_their_own_chunk() {
    let column = ColumnSchema::tensor("empty", DType::F32, Shape::fixed(&[0])).nullable();
    let options = WriterOptions::new().profile(Profile::Raw);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), &options).expect("a valid schema");
    for chunk in 0..4 {
        for _ in 0..8 {
            let value = if chunk % 2 == 0 { Value::NULL } else { Value::tensor::<f32>(&[]) };
            writer.push(&[value]).expect("a sample of the schema");
        }
        writer.commit().expect("a sink that takes all");
    }
    let bytes = writer.into_bytes().expect("a sink that takes all");
    for policy in POLICIES {
        let reader = open(Reversed { file: bytes.clone(), fragment_bytes: 7, gap_bytes: 0, max_in_flight: 2 }, policy);
        let mut cursor = reader.column("empty").expect("a column of the file").cursor();
        let (mut buffer, all) = (ColumnBuffer::new(), Vec::from_iter(0..32));
        for _ in 0..3 {
            // from here on, the cursor caches a chunk with nulls
            cursor.gather_into(&[0], &mut buffer).expect("an intact file");
            assert_eq!(buffer.null_count(), 1, "gather of one sample, {policy:?}");
            cursor.range_into(0..32, &mut buffer).expect("an intact file");
            assert_eq!(buffer.null_count(), 16, "range, {policy:?}");
            cursor.gather_into(&[0], &mut buffer).expect("an intact file");
            cursor.gather_into(&all, &mut buffer).expect("an intact file");
            assert_eq!(buffer.null_count(), 16, "gather, {policy:?}");
        }
    }
}

const SAMPLES: usize = 200;
const ELEMENTS: usize = 24;

/// Reads each sample with a fresh cursor, so that little more of the chunk is decoded.
fn check_each<T: Element + PartialEq + std::fmt::Debug>(reader: &Reader, name: &str, values: &[T], profile: Profile) {
    let column = reader.column(name).expect("a column of the file");
    let mut out = vec![T::default(); ELEMENTS];
    for (i, sample) in values.chunks_exact(ELEMENTS).enumerate() {
        out.fill(T::default()); // not a value of the file
        assert_eq!(column.cursor().read_slice(i as u64, &mut out).expect("an intact file"), Some(ELEMENTS));
        assert_eq!(out, sample, "{i} of {name}, {profile:?}");
    }
}

#[test]
fn any_sample_of_a_chunk_can_be_read_first() {
    // values that are rarer the smaller they are, as in embeddings; close to each other; and all
    // equal
    let bits = |i: u32| i.wrapping_mul(0x9E37_79B9_u32).rotate_left(13).wrapping_mul(0x85EB_CA6B);
    let floats: Vec<f32> = (0..(SAMPLES * ELEMENTS) as u32)
        .map(|i| f32::from_bits((bits(i) & 0x807F_FFFF) | (127 - bits(i).leading_zeros()) << 23))
        .collect();
    let integers: Vec<i64> = (0..floats.len() as u32).map(|i| i64::from(1000 * i + (bits(i) >> 28) + 1)).collect();
    let equal = vec![7_i16; SAMPLES * ELEMENTS];
    let tensor = |name, dtype| ColumnSchema::tensor(name, dtype, Shape::fixed(&[ELEMENTS as u32]));
    let schema =
        Schema::new([tensor("floats", DType::F32), tensor("integers", DType::I64), tensor("equal", DType::I16)]);
    for profile in profiles() {
        let options = WriterOptions::new().profile(profile);
        let mut writer = Writer::new(Stream(Vec::new()), schema.clone(), &options).expect("a valid schema");
        let batch = [
            ColumnBatch::fixed(SAMPLES, &floats),
            ColumnBatch::fixed(SAMPLES, &integers),
            ColumnBatch::fixed(SAMPLES, &equal),
        ];
        writer.push_batch(&batch).expect("samples of this schema");
        let reader = Reader::from_bytes(writer.into_bytes().expect("a sink that takes all")).expect("a file");
        if profile == Profile::Fast {
            let encodings = reader.columns().map(|column| column.chunk(0).expect("intact").expect("a chunk").encoding);
            assert!(encodings.eq(["exponent-tiers in blocks", "residual-tiers in blocks", "constant"]));
        }
        check_each(&reader, "floats", &floats, profile);
        check_each(&reader, "integers", &integers, profile);
        check_each(&reader, "equal", &equal, profile);
    }
}
