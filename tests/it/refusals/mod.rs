//! Tests that a sample or schema that cannot be written is refused with its reason and position,
//! and leaves no trace in the file. A sink that fails leaves the last commit, or nothing.

mod failing_sinks;
mod reads;
mod samples;
mod schemas;

use crate::common::plan::options;
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Error, ErrorKind, Extent, Result, Schema, Shape, Value, Writer};

fn create(schema: Schema) -> Result<Writer<Stream<Vec<u8>>>> {
    Writer::new(Stream(Vec::new()), schema, &options().chunk_bytes(64))
}

fn refused<T>(result: Result<T>, kind: ErrorKind, column: Option<&str>) -> Error {
    let Err(error) = result else { panic!("was not refused") };
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.column(), column, "{error}");
    error
}

const COLUMNS: [&str; 8] = ["f32", "bool", "text", "bytes", "ragged", "two vary", "nullable", "empty"];

fn schema() -> Schema {
    use Extent::{Fixed, Varying};
    Schema::new([
        ColumnSchema::tensor("f32", DType::F32, Shape::fixed(&[2])),
        ColumnSchema::tensor("bool", DType::Bool, Shape::fixed(&[2])),
        ColumnSchema::utf8("text"),
        ColumnSchema::bytes("bytes"),
        ColumnSchema::tensor("ragged", DType::I32, Shape::new([Varying, Fixed(3)])).nullable(),
        ColumnSchema::tensor("two vary", DType::U16, Shape::new([Varying, Fixed(2), Varying])),
        ColumnSchema::tensor("nullable", DType::Bool, Shape::fixed(&[3])).nullable(),
        ColumnSchema::tensor("empty", DType::F64, Shape::new([Fixed(0), Varying])),
    ])
}

/// Returns a valid sample.
fn good() -> [Value<'static>; 8] {
    [
        Value::tensor(&[1.0_f32, f32::NAN]),
        Value::tensor(&[0_u8, 1]),
        Value::text("t\u{e9}xt"),
        Value::bytes(&[0xFF, 0]),
        Value::tensor(&[1_i32, 2, 3, 4, 5, 6]),
        Value::ragged(&[1_u16, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], &[2, 3]),
        Value::NULL,
        Value::ragged::<f64>(&[], &[4_000_000_000]),
    ]
}

fn finish(writer: Writer<Stream<Vec<u8>>>) -> Vec<u8> {
    writer.into_bytes().expect("a sink that takes all")
}

/// Writes a file of `samples` valid samples.
fn good_file(samples: usize) -> Vec<u8> {
    let mut writer = create(schema()).expect("a valid schema");
    for _ in 0..samples {
        writer.push(&good()).expect("a good sample");
    }
    finish(writer)
}
