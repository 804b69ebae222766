//! Tests that salvage recovers every intact chunk of a damaged file under its own sample numbers,
//! reports all other samples as lost, and never lets a read return a wrong value silently.

mod blocks;
mod damaged_files;
mod facts;
mod links;
mod losses;
mod nested;
mod rewriting;
mod stale;

use crate::common::{Table, full_shape, stored_bytes};
use tensilo::salvage::{LostSamples, SalvageOptions, Salvaged, salvage};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

/// Salvages a file with an intact schema.
fn salvage_file(file: &[u8]) -> Salvaged {
    salvage(InMemory(file.to_vec()), SalvageOptions::new()).expect("a schema")
}

/// Checks that the remaining samples are unchanged, and that each error names lost samples.
fn check_values(reader: &Reader, column: usize, lost: &LostSamples, table: &Table) {
    let schema = &table.schema.columns[column];
    let mut cursor = reader.column_at(column).expect("a column").cursor();
    for i in 0..reader.sample_count() {
        let expected = &table.columns[column][i as usize];
        match cursor.read(i) {
            Ok(sample) => {
                assert_eq!(sample.is_null(), expected.is_none(), "sample {i}");
                assert_eq!(sample.extents(), full_shape(schema, expected), "sample {i}");
                assert_eq!(sample.bytes(), stored_bytes(schema, expected), "sample {i}");
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

/// Returns a file of `count` numbers in chunks of one, with a commit after every `step`.
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
    writer.into_bytes().expect("a file")
}
