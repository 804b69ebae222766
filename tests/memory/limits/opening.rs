//! Number of reads that open a file of many columns or many samples.

use super::{ENCODED, finish, in_memory, u8_column};
use crate::support::intact::assert_intact;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::exclusive_test;

/// Counts reads and bytes.
struct CountingSource {
    bytes: Vec<u8>,
    reads: AtomicUsize,
    bytes_read: AtomicUsize,
}

impl Source for CountingSource {
    fn byte_count(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(out.len(), Ordering::Relaxed);
        InMemory(&self.bytes).read_exact_at(offset, out)
    }
}

fn counted(bytes: Vec<u8>) -> (Reader, usize, usize) {
    let source = Arc::new(CountingSource { bytes, reads: AtomicUsize::new(0), bytes_read: AtomicUsize::new(0) });
    let reader = tensilo::OpenOptions::new().open_source(source.clone()).expect("an intact file");
    let (reads, bytes) = (source.reads.load(Ordering::Relaxed), source.bytes_read.load(Ordering::Relaxed));
    (reader, reads, bytes)
}

#[test]
fn ten_thousand_columns_are_opened_with_a_few_reads_and_read_right() {
    let _exclusive_test = exclusive_test();
    const COLUMNS: u32 = 10_000;
    let columns = (0..COLUMNS).map(|i| ColumnSchema::tensor(format!("column {i}"), DType::U32, Shape::scalar()));
    let mut writer = in_memory(Schema::new(columns), ENCODED);
    for sample in 0..3 {
        let elements: Vec<[u32; 1]> = (0..COLUMNS).map(|i| [i * 7 + sample]).collect();
        let values: Vec<Value> = elements.iter().map(|element| Value::tensor(element)).collect();
        writer.push(&values).expect("a good sample");
    }
    let (reader, reads, _) = counted(finish(writer));
    assert!(reads <= 6, "{reads} reads to open a file");
    assert_intact(reader.source());
    let mut out = [0];
    for (i, column) in (0..COLUMNS).zip(reader.columns()) {
        let mut cursor = column.cursor();
        for sample in 0..3 {
            assert_eq!(cursor.read_slice(sample.into(), &mut out).expect("a sample"), Some(1));
            assert_eq!(out[0], i * 7 + sample);
        }
    }
    assert_eq!(reader.column("column 9999").expect("the last").schema().name, "column 9999");
}

#[test]
fn opening_costs_the_same_for_any_number_of_samples() {
    let _exclusive_test = exclusive_test();
    let file = |samples: u32| {
        let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(64);
        let mut writer = Writer::new(Stream(Vec::new()), u8_column(Shape::scalar()), &options).expect("a valid schema");
        writer
            .push_batch(&[ColumnBatch::fixed(samples as usize, &vec![1_u8; samples as usize])])
            .expect("good samples");
        finish(writer)
    };
    let (_, reads, bytes) = counted(file(64));
    for samples in [65, 10_000, 1_000_000] {
        let (reader, more_reads, more_bytes) = counted(file(samples));
        assert_eq!(reader.sample_count(), u64::from(samples));
        assert_eq!((more_reads, more_bytes), (reads, bytes), "{samples} samples");
    }
}
