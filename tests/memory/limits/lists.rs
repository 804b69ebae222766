//! The longest lists that the format allows, in files of a few hundred bytes.

use super::{ENCODED, MIB, finish, in_memory};
use crate::support::build::{ABSENT, Build, Chunk, nested_column};
use crate::support::intact::assert_intact;
use std::time::Instant;
use tensilo::ErrorKind::OverLimit;
use tensilo::nested::ListBatch;
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::InMemory;
use tensilo::verify::VerifyOptions;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, OpenOptions, Profile, Reader, Schema, Shape, Writer, WriterOptions,
    limits,
};
use tensilo_testing::exclusive_test;

const U8: u8 = 9;
const VARYING: u32 = u32::MAX;
const SIDE: u32 = limits::VALIDITY_AND_SHAPE_BYTES;
const CONSTANT: u16 = 1;

/// Returns files of one sample: a list whose shape or validity has the maximum length.
fn files() -> [(&'static str, Vec<u8>, usize); 3] {
    let one = |record, chunk: &Chunk, encodings: &[(u16, u64)]| {
        let mut build = Build::new(&[record]);
        build.chunk(chunk);
        build.finish(0, encodings)
    };
    let texts = SIDE / 4 - 1;
    let shape = texts.to_le_bytes();
    let ends = Chunk::of_parts(1, [ABSENT, (CONSTANT, SIDE, &shape), (CONSTANT, texts, b"x")]);
    let lists = SIDE / 4 - 1;
    let inner = Chunk::of_parts(1, [ABSENT, (CONSTANT, SIDE, &shape), (CONSTANT, lists, b"x")]);
    // the sample is present, and so is one of eight items
    let items = (SIDE - 5) * 8 - 7;
    let bits = items.to_le_bytes();
    let nulls = Chunk::of_parts(1, [(CONSTANT, SIDE - 4, &[1]), (0, 4, &bits), (CONSTANT, items, &[0])]);
    let utf8 = nested_column("x", 15, false, &[VARYING], &[false]);
    let deep = nested_column("x", U8, false, &[], &[false, false]);
    let bytes = nested_column("x", U8, false, &[], &[true]);
    [
        ("2^24 - 1 texts", one(utf8, &ends, &[(CONSTANT, 1)]), texts as usize),
        ("2^24 - 1 lists", one(deep, &inner, &[(CONSTANT, 1)]), lists as usize),
        ("2^29 - 47 nulls", one(bytes, &nulls, &[(0, 0), (CONSTANT, 1)]), items as usize),
    ]
}

#[test]
fn the_longest_lists_take_only_a_few_times_their_limit_of_memory() {
    let exclusive_test = exclusive_test();
    for (name, file, items) in files() {
        let size = file.len();
        let side = SIDE as usize;
        let reader = Reader::from_bytes(file.clone()).expect(name);
        let column = reader.column("x").expect(name);
        let measured = |what: &str, max: usize, work: &dyn Fn()| {
            let start = Instant::now();
            let ((), peak) = exclusive_test.peak_bytes(work);
            println!("{name}, {size} bytes: {what}: {} MiB, {:?}", peak / MIB, start.elapsed());
            assert!(peak <= max + MIB, "{name}: {what}: {} MiB, expected at most {}", peak / MIB, max / MIB);
        };
        measured("verify", side, &|| {
            let report = reader.verify(VerifyOptions::new().deep(true)).expect(name);
            assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
        });
        measured("salvage", side, &|| {
            let options = SalvageOptions::new().deep(true);
            assert!(salvage(InMemory(file.clone()), options).expect(name).losses.is_empty());
        });
        let limited = OpenOptions::new().max_chunk_bytes(SIDE / 4).open_source(InMemory(file.clone())).expect(name);
        let error = limited.column("x").expect(name).cursor().read_list(0).map(|_| ()).expect_err(name);
        assert_eq!(error.kind(), OverLimit);
        if items > 1 << 24 {
            continue; // its values would take 512 MiB
        }
        measured("read_list", side + items, &|| {
            let mut cursor = column.cursor();
            let list = cursor.read_list(0).expect(name);
            assert!(!list.is_null() && !list.is_empty());
        });
        measured("gather", 8 * side + 2 * items, &|| {
            let mut buffer = ColumnBuffer::new();
            column.cursor().gather_into(&[0], &mut buffer).expect(name);
            assert_eq!(buffer.item_count(), items);
        });
    }
}

/// Nulls are staged as bits, not as words.
#[test]
fn gathering_many_nulls_takes_their_values_and_bits() {
    let exclusive_test = exclusive_test();
    let items = (1_u32 << 24) - 7;
    let nulls =
        Chunk::of_parts(1, [(CONSTANT, 1 + (1 << 21), &[1]), (0, 4, &items.to_le_bytes()), (CONSTANT, items, &[0])]);
    let mut build = Build::new(&[nested_column("x", U8, false, &[], &[true])]);
    build.chunk(&nulls);
    let reader = Reader::from_bytes(build.finish(0, &[(0, 0), (CONSTANT, 1)])).expect("an intact file");
    let column = reader.column("x").expect("the column");
    let (buffer, peak) = exclusive_test.peak_bytes(|| {
        let mut buffer = ColumnBuffer::new();
        column.cursor().gather_into(&[0], &mut buffer).expect("a list");
        buffer
    });
    assert_eq!((buffer.item_count(), buffer.null_count()), (items as usize, items as usize / 8 * 7));
    assert!(peak < 64 * MIB, "{} MiB for values of 16 MiB and nulls of 2 MiB", peak / MIB);
}

fn lists(dtype: DType, shape: Shape, levels: usize) -> Schema {
    let items = ColumnSchema::tensor("x", dtype, shape).nullable();
    Schema::new([(0..levels).fold(items, |column, _| column.list())])
}

fn push_empty(writer: &mut Writer<tensilo::sink::Stream<Vec<u8>>>, lengths: &[u32]) -> tensilo::Result<()> {
    let items = lengths.iter().map(|&length| length as usize).sum();
    let levels = [ListBatch::new(lengths)];
    writer.push_batch(&[ColumnBatch::fixed::<u8>(items, &[]).in_lists(&levels)])
}

/// Items without elements take no bytes, so only their number fills a chunk.
#[test]
fn chunks_of_items_without_elements_are_cut_at_their_limit() {
    let _exclusive_test = exclusive_test();
    let max = limits::EMPTY_ITEMS;
    let schema = Schema::new([ColumnSchema::tensor("x", DType::Bool, Shape::fixed(&[0])).list()]);
    let mut writer = in_memory(schema, Profile::Raw);
    let lengths = [max, 0, 1, max - 1, 0, 5, max];
    push_empty(&mut writer, &lengths[..3]).expect("lists of items without elements");
    push_empty(&mut writer, &lengths[3..]).expect("lists of items without elements");
    for too_long in [max + 1, u32::MAX] {
        let error = push_empty(&mut writer, &[1, too_long]).expect_err("a list above the limit");
        assert_eq!(error.kind(), OverLimit);
        assert!(error.to_string().contains("16777216 items"), "{error}");
    }
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_intact(reader.source());
    let column = reader.column("x").expect("the column");
    assert_eq!(column.facts().chunk_count, 4);
    let mut cursor = column.cursor();
    for (i, &length) in (0..).zip(&lengths) {
        let list = cursor.read_list(i).expect("a list");
        assert_eq!((list.is_null(), list.len()), (false, length as usize), "sample {i}");
    }
    let mut buffer = ColumnBuffer::new();
    cursor.range_into(0..lengths.len() as u64, &mut buffer).expect("all lists");
    assert_eq!(buffer.item_count() as u64, lengths.iter().map(|&length| u64::from(length)).sum::<u64>());
}

/// The validity of many nulls in few lists is longer than shape and values.
#[test]
fn chunks_of_null_items_without_elements_reach_the_limit_of_a_chunk() {
    let exclusive_test = exclusive_test();
    let mut writer = in_memory(lists(DType::Bool, Shape::fixed(&[0]), 1), ENCODED);
    let (length, batches) = (1_u32 << 20, 520); // more than 64 MiB of bits
    let nulls = vec![0; length as usize / 8];
    let ((), peak) = exclusive_test.peak_bytes(|| {
        for _ in 0..batches {
            let lengths = [length];
            let levels = [ListBatch::new(&lengths)];
            let items = ColumnBatch::fixed::<u8>(length as usize, &[]).with_validity(&nulls);
            writer.push_batch(&[items.in_lists(&levels)]).expect("a list of nulls");
        }
    });
    assert!(peak < 32 * MIB, "{} MiB to write {batches} bitmaps of 128 KiB", peak / MIB);
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_intact(reader.source());
    let mut buffer = ColumnBuffer::new();
    reader.column("x").expect("the column").cursor().gather_into(&[519, 0], &mut buffer).expect("lists");
    assert_eq!((buffer.item_count(), buffer.null_count()), (2 << 20, 2 << 20));
}

/// Lists without items, in one sample.
#[test]
fn a_sample_of_more_lists_than_the_format_allows_is_refused() {
    let _exclusive_test = exclusive_test();
    let schema = lists(DType::U8, Shape::scalar(), 2);
    let options = WriterOptions::new().profile(Profile::Raw).check_chunks(false);
    let mut writer = Writer::new(tensilo::sink::Stream(Vec::new()), schema, &options).expect("a valid schema");
    let inner = vec![0; SIDE as usize / 4];
    let push = |writer: &mut Writer<_>, count: usize| {
        let outer = [count as u32];
        let levels = [ListBatch::new(&outer), ListBatch::new(&inner[..count])];
        writer.push_batch(&[ColumnBatch::fixed::<u8>(0, &[]).in_lists(&levels)])
    };
    let error = push(&mut writer, inner.len()).expect_err("more than 64 MiB of lists");
    assert_eq!(error.kind(), OverLimit);
    assert!(error.to_string().contains("67108864 bytes"), "{error}");
    // four bytes for each list and for the sample, without validity because none is null
    let max = inner.len() - 1;
    push(&mut writer, max).expect("64 MiB of lists");
    push(&mut writer, 3).expect("three lists");
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_intact(reader.source());
    let column = reader.column("x").expect("the column");
    assert_eq!(column.cursor().read_list(0).expect("a list").len(), max);
    assert_eq!(column.cursor().read_list(1).expect("a list").len(), 3);
}
