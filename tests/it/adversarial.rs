//! Tests with data that is hard to encode, in every profile: a file exceeds the raw file by at most
//! a fixed overhead, and its bytes depend only on the data and the options.
//!
//! Columns of arbitrary types, shapes and patterns are written several times, with any number of
//! threads. The limit is computed from the format: headers, index entries, padding and block
//! indexes of the chunks, plus the encodings that the footer lists.

use crate::common::config;
use crate::common::data::value_mask;
use crate::common::plan::profiles;
use crate::support::intact::assert_intact;
use proptest::collection::vec;
use proptest::prelude::*;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Writer, WriterOptions,
};
use tensilo_testing::{Pattern, mix};

/// The maximum number of encodings that the footer lists for a column, besides raw.
const MAX_ENCODINGS: u64 = 14;
/// The decoded bytes of a block.
const BLOCK_BYTES: u64 = 8192;

/// A column and its samples.
#[derive(Clone, Debug)]
struct Column {
    dtype: DType,
    shape: Shape,
    /// A sample is null where random bits are divisible by this; 0: not nullable.
    null_rate: u64,
    pattern: Pattern,
    seed: u64,
}

/// The samples of a column, null where `validity` says so.
struct Data {
    extents: Vec<u32>,
    values: Vec<u8>,
    validity: Vec<u8>,
}

impl Data {
    fn as_batch(&self, column: &Column, samples: usize) -> ColumnBatch<'_> {
        let batch = ColumnBatch::from_bytes(column.dtype, samples, &self.extents, &self.values);
        if column.null_rate > 0 { batch.with_validity(&self.validity) } else { batch }
    }
}

impl Column {
    fn schema(&self, i: usize) -> ColumnSchema {
        let column = ColumnSchema::tensor(format!("column {i}"), self.dtype, self.shape.clone());
        if self.null_rate > 0 { column.nullable() } else { column }
    }

    fn data(&self, samples: usize) -> Data {
        let mut data = Data { extents: Vec::new(), values: Vec::new(), validity: vec![0; samples.div_ceil(8)] };
        let mut nulls = Vec::new();
        for i in 0..samples {
            let is_null = self.null_rate > 0 && mix(self.seed, i as u64).is_multiple_of(self.null_rate);
            data.validity[i / 8] |= u8::from(!is_null) << (i % 8);
            let mut count = 1;
            for (dimension, extent) in (0..).zip(self.shape.extents()) {
                count *= match *extent {
                    Extent::Fixed(extent) => extent as usize,
                    Extent::Varying => {
                        let extent = if is_null { 0 } else { mix(self.seed ^ dimension, i as u64) as u32 % 20 };
                        data.extents.push(extent);
                        extent as usize
                    }
                };
            }
            nulls.extend(std::iter::repeat_n(is_null, count));
        }
        data.values = self.pattern.elements(self.dtype.element_bytes(), nulls.len(), self.seed);
        for (element, is_null) in data.values.chunks_exact_mut(self.dtype.element_bytes()).zip(nulls) {
            match self.dtype {
                _ if is_null => element.fill(0),
                DType::Utf8 => element[0] &= 0x7F,
                dtype => element[0] &= value_mask(dtype) as u8,
            }
        }
        data
    }
}

fn columns() -> impl Strategy<Value = Column> {
    let varying = [Extent::Varying, Extent::Fixed(3), Extent::Varying];
    let fixed = [&[][..], &[3], &[128], &[12, 40], &[5, 7, 3]].map(Shape::fixed);
    let shapes = [fixed.to_vec(), vec![Shape::ragged(), Shape::new(varying)]].concat();
    (
        prop::sample::select(DType::ALL.to_vec()),
        prop::sample::select(shapes),
        prop::sample::select(vec![0, 1, 2, 30]),
        prop::sample::select(Pattern::ALL.to_vec()),
        any::<u64>(),
    )
        .prop_map(|(dtype, shape, null_rate, pattern, seed)| {
            let shape = if dtype.is_string() { Shape::ragged() } else { shape };
            Column { dtype, shape, null_rate, pattern, seed }
        })
}

fn write(columns: &[Column], data: &[Data], samples: usize, options: &WriterOptions) -> Vec<u8> {
    let schema = Schema::new((0..).zip(columns).map(|(i, column)| column.schema(i)));
    let mut writer = Writer::new(Stream(Vec::new()), schema, options).expect("valid options");
    // `data` has all samples or none
    if samples > 0 {
        let batches: Vec<_> = columns.iter().zip(data).map(|(column, data)| data.as_batch(column, samples)).collect();
        writer.push_batch(&batches).expect("samples of this schema");
    }
    writer.into_bytes().expect("a sink that takes all")
}

/// Returns the maximum number of bytes that a file may have beyond its decoded bytes: the file
/// without samples, and a fixed overhead for each chunk and column.
fn max_overhead(file: &[u8], empty: &[u8]) -> u64 {
    let reader = Reader::from_bytes(file.to_vec()).expect("a file");
    let of_column = |chunks: u64| {
        let (header, alignment, part_table, padding_of_parts, entry) = (64, 64, 64, 2 * 64, 32);
        let (page, run, encodings) = (128, 40, MAX_ENCODINGS * 16);
        chunks * (header + alignment + part_table + padding_of_parts + entry)
            + chunks.div_ceil(126) * page
            + run
            + encodings
    };
    let of_columns = reader.columns().map(|column| of_column(column.facts().chunk_count) + block_index_bytes(&column));
    empty.len() as u64 + 64 + of_columns.sum::<u64>()
}

/// Returns the maximum bytes of the block indexes of raw chunks: one of any two adjacent blocks has
/// at least half the bytes of a block.
fn block_index_bytes(column: &tensilo::Column) -> u64 {
    let chunks = (0..).map_while(|chunk| column.chunk(chunk).expect("an index"));
    let in_blocks = chunks.filter(|chunk| chunk.encoding == "raw in blocks");
    let max_blocks = |raw_bytes: u64| raw_bytes / (BLOCK_BYTES / 2) + 1;
    in_blocks.map(|chunk| (8 + 12 * max_blocks(chunk.raw_bytes) + 4).next_multiple_of(64)).sum()
}

fn assert_holds(file: &[u8], columns: &[Column], data: &[Data], samples: usize) {
    assert_intact(&InMemory(file));
    let reader = Reader::from_bytes(file.to_vec()).expect("a file");
    let mut buffer = ColumnBuffer::new();
    for ((found, expected), column) in reader.columns().zip(data).zip(columns) {
        found.cursor().range_into(0..samples as u64, &mut buffer).expect("samples of the file");
        assert!(buffer.bytes() == expected.values, "{column:?}: other values");
        assert_eq!(buffer.varying_extents(), expected.extents, "{column:?}");
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn every_profile_is_deterministic_and_adds_little(
        columns in vec(columns(), 1..=3),
        samples in prop_oneof![12 => 0..=300_usize, 4 => 300..=3_000_usize, 1 => 20_000..=40_000_usize],
        chunk_bytes in prop::sample::select(vec![300, 5_000, 64 << 10, 256 << 10]),
    ) {
        // few samples suffice if they have many elements
        let limit = columns.iter().map(|column| column.shape.inner_elements().unwrap_or(1) as usize).max().unwrap_or(1);
        let samples = samples.min(120_000 / limit.max(1));
        let data: Vec<Data> = columns.iter().map(|column| column.data(samples)).collect();
        let raw = WriterOptions::new().profile(Profile::Raw).chunk_bytes(chunk_bytes);
        let raw = write(&columns, &data, samples, &raw).len();
        for profile in profiles() {
            let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
            let file = write(&columns, &data, samples, &options);
            for threads in [1, 2, 5] {
                let again = write(&columns, &data, samples, &options.clone().threads(threads));
                prop_assert!(again == file, "{:?}: {} threads", profile, threads);
            }
            let unchecked = write(&columns, &data, samples, &options.clone().check_chunks(false));
            prop_assert!(unchecked == file, "{:?}: without checks", profile);
            assert_holds(&file, &columns, &data, samples);
            let facts = Reader::from_bytes(file.to_vec()).expect("a file");
            let decoded: u64 = facts.columns().map(|column| column.facts().raw_bytes).sum();
            let limit = decoded + max_overhead(&file, &write(&columns, &[], 0, &options));
            prop_assert!(file.len() as u64 <= limit, "{:?}: {} bytes, not {} at most", profile, file.len(), limit);
            // the footer may name more encodings
            let encodings = columns.len() * MAX_ENCODINGS as usize * 16;
            prop_assert!(file.len() <= raw + encodings + 64, "{:?}: {} bytes, raw {}", profile, file.len(), raw);
        }
    }
}
