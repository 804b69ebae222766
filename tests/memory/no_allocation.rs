//! Tests what the documentation promises about allocations: views allocate nothing, reads and
//! gathers allocate nothing once they are warm, and opening allocates the same for any number of
//! samples.
//!
//! Counts calls of Rust's allocator on the thread of the test. A Zstandard context takes its memory
//! from C when it is created, which is before counting starts.

use half::bf16;
use tensilo::nested::ListBatch;
use tensilo::sink::Stream;
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{
    Column, ColumnBatch, ColumnBuffer, ColumnSchema, Cursor, DType, Profile, Reader, Schema, Shape, Writer,
    WriterOptions,
};
use tensilo_testing::{Allocations, allocations_of, exclusive_test};

/// Runs `work` once to warm up, then again, which must allocate nothing.
fn assert_allocates_nothing(what: &str, mut work: impl FnMut()) {
    work();
    let (counted, ()) = allocations_of(work);
    assert_eq!(counted, Allocations { count: 0, bytes: 0 }, "{what}");
}

const SAMPLES: u64 = 1000;

/// Writes a fixed, a nullable and a ragged column, in many chunks.
fn file(profile: Profile, sample_count: u64, chunk_bytes: usize) -> Vec<u8> {
    let schema = Schema::new([
        ColumnSchema::tensor("fixed", DType::Bf16, Shape::fixed(&[16])),
        ColumnSchema::tensor("nullable", DType::U16, Shape::scalar()).nullable(),
        ColumnSchema::tensor("ragged", DType::F32, Shape::ragged()),
    ]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let count = usize::try_from(sample_count).unwrap();
    let fixed: Vec<bf16> = (0..16 * count).map(|i| bf16::from_f32((i % 37) as f32)).collect();
    let nullable: Vec<u16> = (0..count).map(|i| (i % 51) as u16).collect();
    let validity: Vec<u8> = (0..count.div_ceil(8)).map(|i| if i % 3 == 0 { 0xFE } else { 0xFF }).collect();
    let extents: Vec<u32> = (0..count).map(|i| (i % 9) as u32).collect();
    let ragged: Vec<f32> = (0..extents.iter().sum()).map(|i| (i % 101) as f32).collect();
    let batches = [
        ColumnBatch::fixed(count, &fixed),
        ColumnBatch::fixed(count, &nullable).with_validity(&validity),
        ColumnBatch::ragged(count, &extents, &ragged),
    ];
    writer.push_batch(&batches).unwrap();
    writer.into_bytes().unwrap()
}

/// Writes a nested column with nulls at every level but the first, in many chunks.
fn nested_file(profile: Profile, chunk_bytes: usize) -> Vec<u8> {
    let items = ColumnSchema::tensor("nested", DType::U16, Shape::ragged()).nullable();
    let schema = Schema::new([items.list().nullable().list()]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let count = usize::try_from(SAMPLES).unwrap();
    // each sample has three lists: of one item, of two, and a null one
    let inner: Vec<u32> = (0..3 * count).map(|i| [1, 2, 0][i % 3]).collect();
    let inner_bits: Vec<u8> =
        (0..(3 * count).div_ceil(8)).map(|i| [0b1101_1011, 0b1011_0110, 0b0110_1101][i % 3]).collect();
    let extents: Vec<u32> = (0..3 * count).map(|i| if i % 24 == 7 { 0 } else { (i % 4) as u32 }).collect();
    let bits: Vec<u8> = (0..(3 * count).div_ceil(8)).map(|i| if i % 3 == 0 { 0x7F } else { 0xFF }).collect();
    let values: Vec<u16> = (0..extents.iter().sum()).map(|i| (i % 53) as u16).collect();
    let outer = vec![3; count];
    let levels = [ListBatch::new(&outer), ListBatch::new(&inner).with_validity(&inner_bits)];
    let items = ColumnBatch::ragged(3 * count, &extents, &values).with_validity(&bits);
    writer.push_batch(&[items.in_lists(&levels)]).unwrap();
    writer.into_bytes().unwrap()
}

/// Returns samples in an order that changes chunks often.
fn jumps() -> impl Iterator<Item = u64> {
    (0..SAMPLES).map(|i| i * 617 % SAMPLES)
}

/// Reads a nested column in every way.
fn read_lists(what: &str, reader: &Reader) {
    let what = |call: &str| format!("{what}, {call}");
    let column = reader.column("nested").unwrap();
    let mut cursor = column.cursor();
    assert_allocates_nothing(&what("view_list"), || jumps().for_each(|i| assert!(column.view_list(i).is_ok())));
    assert_allocates_nothing(&what("read_list"), || {
        for i in jumps() {
            let list = cursor.read_list(i).unwrap();
            assert!(list.list(1).unwrap().items().all(|item| item.is_ok()));
        }
    });
    let indices: Vec<u64> = jumps().take(256).collect();
    let mut buffer = ColumnBuffer::new();
    assert_allocates_nothing(&what("gather_into"), || cursor.gather_into(&indices, &mut buffer).unwrap());
    assert_allocates_nothing(&what("range_into"), || cursor.range_into(100..900, &mut buffer).unwrap());
    cursor.gather_into(&[SAMPLES], &mut buffer).unwrap_err();
    let (counted, ()) = allocations_of(|| cursor.gather_into(&indices, &mut buffer).unwrap());
    assert_eq!(counted.count, 0, "{}", what("after a refusal"));
}

/// Reads a column in every way.
fn read_everything(what: &str, reader: &Reader) {
    let indices: Vec<u64> = jumps().take(256).collect();
    for column in reader.columns() {
        let what = |call: &str| format!("{what}, column {}, {call}", column.schema().name);
        let mut cursor = column.cursor();
        assert_allocates_nothing(&what("view"), || jumps().for_each(|i| assert!(column.view(i).is_ok())));
        assert_allocates_nothing(&what("read"), || jumps().for_each(|i| assert!(cursor.read(i).is_ok())));
        let mut buffer = ColumnBuffer::new();
        assert_allocates_nothing(&what("gather_into"), || cursor.gather_into(&indices, &mut buffer).unwrap());
        assert_allocates_nothing(&what("range_into"), || cursor.range_into(100..900, &mut buffer).unwrap());
    }
    let mut rows = reader.rows(&["fixed", "nullable", "ragged"]).unwrap();
    let mut buffers = Vec::new();
    assert_allocates_nothing(what, || rows.gather_into(&indices, &mut buffers).unwrap());
    assert_allocates_nothing(what, || rows.range_into(100..900, &mut buffers).unwrap());
    read_typed(what, &mut reader.column("fixed").unwrap().cursor(), &indices);
}

/// Reads into a slice of the caller.
fn read_typed(what: &str, cursor: &mut Cursor, indices: &[u64]) {
    let mut out = [bf16::ZERO; 16 * 256];
    assert_allocates_nothing(&format!("{what}, read_slice"), || {
        for &i in indices {
            assert_eq!(cursor.read_slice(i, &mut out).unwrap(), Some(16));
        }
    });
    assert_allocates_nothing(&format!("{what}, gather_slice"), || {
        assert_eq!(cursor.gather_slice(indices, &mut out).unwrap(), 0);
    });
}

#[test]
fn reading_allocates_nothing_once_warm() {
    let _exclusive_test = exclusive_test();
    // chunks that are always decoded whole, and chunks whose samples are decoded individually
    for (profile, chunk_bytes) in Profile::ALL.into_iter().flat_map(|profile| [(profile, 1024), (profile, 8192)]) {
        let bytes = file(profile, SAMPLES, chunk_bytes);
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, &bytes).unwrap();
        read_everything(
            &format!("{profile:?}, chunks of {chunk_bytes}, in memory"),
            &Reader::from_bytes(bytes).unwrap(),
        );
        let positional: Reader = Reader::open(&path).unwrap();
        read_everything(&format!("{profile:?}, chunks of {chunk_bytes}, by position"), &positional);
    }
}

#[test]
fn reading_lists_allocates_nothing_once_warm() {
    let _exclusive_test = exclusive_test();
    for (profile, chunk_bytes) in Profile::ALL.into_iter().flat_map(|profile| [(profile, 1024), (profile, 8192)]) {
        let bytes = nested_file(profile, chunk_bytes);
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let what = format!("{profile:?}, chunks of {chunk_bytes}");
        read_lists(&format!("{what}, in memory"), &Reader::from_bytes(bytes).unwrap());
        read_lists(&format!("{what}, by position"), &Reader::open(&path).unwrap());
    }
}

#[test]
fn views_allocate_their_bitmaps_once() {
    let _exclusive_test = exclusive_test();
    let bytes = file(Profile::Raw, SAMPLES, 1024);
    let reader = Reader::from_bytes(bytes.to_vec()).unwrap();
    let column = reader.column("fixed").unwrap();
    let (counted, ()) = allocations_of(|| {
        for i in 0..SAMPLES {
            assert!(column.view(i).unwrap().is_some());
        }
    });
    // the two bitmaps of the column, allocated when the first page and the first chunk are checked
    assert_eq!(counted.count, 2, "views that check pages and chunks");
}

/// A plan that is refilled keeps its memory, and so do its bytes and its decoder.
#[test]
fn stages_allocate_nothing_once_warm() {
    let _exclusive_test = exclusive_test();
    let jumps: Vec<u64> = jumps().collect();
    for profile in Profile::ALL {
        let bytes = [file(profile, SAMPLES, 4096), nested_file(profile, 4096)];
        let on_disk = bytes.each_ref().map(|bytes| {
            let path = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&path, bytes).unwrap();
            Reader::open(&path).unwrap()
        });
        for reader in bytes.map(|bytes| Reader::from_bytes(bytes).unwrap()).into_iter().chain(on_disk) {
            let columns: Vec<Column> = reader.columns().collect();
            let (mut plan, mut fetched, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
            let mut out = vec![ColumnBuffer::new(); columns.len()];
            assert_allocates_nothing(&format!("{profile:?}, samples"), || {
                // the first round checks all chunks; raw samples are then read individually
                for indices in [&jumps[..], &jumps[..300]] {
                    plan.select(&columns, indices).unwrap();
                    plan.fetch(&mut fetched).unwrap();
                    decoder.decode(&plan, &fetched, &mut out).unwrap();
                }
            });
            assert_allocates_nothing(&format!("{profile:?}, range"), || {
                plan.select_range(&columns, 100..900).unwrap();
                plan.fetch(&mut fetched).unwrap();
                decoder.decode(&plan, &fetched, &mut out).unwrap();
            });
        }
    }
}

#[test]
fn opening_allocates_the_same_for_any_number_of_samples() {
    let _exclusive_test = exclusive_test();
    for profile in Profile::ALL {
        let [few, many] = [1000, 100_000].map(|count| {
            let bytes = file(profile, count, 1024);
            let (counted, reader) = allocations_of(|| Reader::from_bytes(bytes).unwrap());
            let chunks: u64 = reader.columns().map(|column| column.facts().chunk_count).sum();
            (counted, chunks)
        });
        let ((few, few_chunks), (many, many_chunks)) = (few, many);
        assert!(many_chunks > 50 * few_chunks);
        assert_ne!(few.count, 0, "the allocator counts");
        assert_eq!(few.count, many.count, "{profile:?}: allocations");
        // the footer of the larger file may name one more encoding for each column
        assert!(many.bytes.abs_diff(few.bytes) <= 3 * 64, "{profile:?}: {few:?} and {many:?}");
    }
}
