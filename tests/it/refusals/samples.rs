//! Tests of samples that do not fit their column, one by one and in batches.

use super::{COLUMNS, create, finish, good, good_file, refused, schema};
use tensilo::ErrorKind::{self, BadArgument, OverLimit, WrongType};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Schema, Shape, Value, Writer, WriterOptions};

fn with(column: &str, value: Value<'static>) -> Vec<Value<'static>> {
    let mut sample = good().to_vec();
    let number = COLUMNS.iter().position(|name| *name == column).expect("a column");
    sample[number] = value;
    sample
}

/// Returns samples that are wrong in one column each.
fn wrong_samples() -> Vec<(&'static str, ErrorKind, Vec<Value<'static>>)> {
    let case = |column, value| (column, BadArgument, with(column, value));
    let wrong_type = |column, value| (column, WrongType, with(column, value));
    vec![
        wrong_type("f32", Value::tensor(&[1.0_f64, 2.0])),
        wrong_type("f32", Value::tensor(&[1_i32, 2])),
        wrong_type("f32", Value::tensor(&[0_u8; 8])),
        case("f32", Value::tensor(&[1.0_f32])),
        case("f32", Value::tensor(&[1.0_f32; 3])),
        case("f32", Value::tensor::<f32>(&[])),
        case("f32", Value::ragged(&[1.0_f32, 2.0], &[2])),
        case("f32", Value::NULL),
        wrong_type("f32", Value::text("12345678")),
        case("bool", Value::tensor(&[0_u8, 2])),
        case("bool", Value::tensor(&[255_u8, 0])),
        wrong_type("bool", Value::tensor(&[0_i8, 1])),
        case("text", Value::tensor(&[0xFF_u8])),
        case("text", Value::tensor(&[b'a', 0xC3])),
        case("text", Value::tensor(&[0xED_u8, 0xA0, 0x80])),
        wrong_type("text", Value::bytes(b"text")),
        case("text", Value::NULL),
        case("text", Value::ragged(b"text", &[3])),
        wrong_type("bytes", Value::text("text")),
        wrong_type("bytes", Value::tensor(&[1_i8])),
        case("ragged", Value::tensor(&[1_i32, 2, 3, 4])),
        case("ragged", Value::ragged(&[1_i32, 2, 3], &[2])),
        case("ragged", Value::ragged(&[1_i32, 2, 3], &[1, 1])),
        case("ragged", Value::ragged(&[1_i32, 2, 3], &[])),
        case("two vary", Value::tensor(&[1_u16, 2, 3, 4])),
        case("two vary", Value::ragged(&[1_u16, 2, 3, 4], &[2])),
        case("two vary", Value::ragged(&[1_u16, 2, 3, 4], &[1, 1])),
        case("two vary", Value::ragged(&[1_u16, 2, 3, 4], &[0, 4_000_000_000])),
        case("two vary", Value::NULL),
        case("nullable", Value::tensor(&[0_u8, 1, 2])),
        case("empty", Value::ragged(&[1.0_f64], &[1])),
        ("ragged", OverLimit, with("ragged", Value::ragged::<i32>(&[], &[u32::MAX]))),
        ("two vary", OverLimit, with("two vary", Value::ragged::<u16>(&[], &[u32::MAX, 0]))),
        ("empty", OverLimit, with("empty", Value::ragged::<f64>(&[], &[u32::MAX]))),
    ]
}

#[test]
fn wrong_samples_are_refused_by_column_and_nothing_of_them_is_written() {
    let mut writer = create(schema()).expect("a valid schema");
    writer.push(&good()).expect("a good sample");
    for (number, (column, kind, sample)) in wrong_samples().into_iter().enumerate() {
        let Err(error) = writer.push(&sample) else { panic!("wrong sample {number} of {column} was taken") };
        assert_eq!((error.kind(), error.column()), (kind, Some(column)), "wrong sample {number}: {error}");
        assert_eq!(writer.sample_count(), 1);
        let mut other = create(schema()).expect("a valid schema");
        assert!(other.push(&sample).is_err());
        other.push(&good()).expect("a writer that refused a sample continues");
        assert!(finish(other) == good_file(1), "wrong sample {number} of {column} left something behind");
    }
    writer.push(&good()).expect("a writer that refused a sample continues");
    assert!(finish(writer) == good_file(2));
}

#[test]
fn a_wrong_number_of_columns_is_refused() {
    let mut writer = create(schema()).expect("a valid schema");
    refused(writer.push(&[]), BadArgument, None);
    refused(writer.push(&good()[..7]), BadArgument, None);
    refused(writer.push(&[good().as_slice(), &[Value::NULL]].concat()), BadArgument, None);
    refused(writer.push_batch(&[]), BadArgument, None);
    assert!(finish(writer) == good_file(0));
}

#[test]
fn wrong_batches_are_refused_by_column_and_nothing_of_them_is_written() {
    let schema = Schema::new([
        ColumnSchema::tensor("fixed", DType::I16, Shape::fixed(&[2])),
        ColumnSchema::tensor("ragged", DType::I16, Shape::ragged()).nullable(),
        ColumnSchema::utf8("text"),
    ]);
    let fixed = ColumnBatch::fixed(3, &[1_i16, 2, 3, 4, 5, 6]);
    let ragged = ColumnBatch::ragged(3, &[1, 0, 2], &[1_i16, 2, 3]).with_validity(&[0b101]);
    let text = ColumnBatch::ragged(3, &[2, 0, 1], b"abc");
    let text_cut_in_a_char = ColumnBatch::ragged(3, &[2, 1, 1], "a\u{e9}b".as_bytes());
    let wrong: [(&str, [ColumnBatch; 3]); 13] = [
        ("fixed", [ColumnBatch::fixed(3, &[1_i16, 2, 3, 4, 5]), ragged, text]),
        ("fixed", [ColumnBatch::fixed(3, &[1_u16, 2, 3, 4, 5, 6]), ragged, text]),
        ("fixed", [fixed.with_validity(&[0b011]), ragged, text]),
        ("fixed", [ColumnBatch::ragged(3, &[2, 2, 2], &[1_i16, 2, 3, 4, 5, 6]), ragged, text]),
        ("ragged", [fixed, ColumnBatch::ragged(2, &[1, 2], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ColumnBatch::ragged(4, &[1, 0, 2, 0], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ColumnBatch::ragged(3, &[1, 2], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ColumnBatch::ragged(3, &[1, 1, 2], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ragged.with_validity(&[]), text]),
        ("ragged", [fixed, ragged.with_validity(&[0b011]), text]),
        ("text", [fixed, ragged, ColumnBatch::ragged(3, &[1, 1, 1], &[b'a', 0x80, b'b'])]),
        ("text", [fixed, ragged, text_cut_in_a_char]),
        ("text", [fixed, ragged, ColumnBatch::fixed(3, b"abc")]),
    ];
    let whole = {
        let mut writer = create(schema.clone()).expect("a valid schema");
        writer.push_batch(&[fixed, ragged, text]).expect("good batches");
        finish(writer)
    };
    for (number, (column, batches)) in wrong.into_iter().enumerate() {
        let mut writer = create(schema.clone()).expect("a valid schema");
        let Err(error) = writer.push_batch(&batches) else { panic!("wrong batch {number} was taken") };
        let expected = if number == 1 { WrongType } else { BadArgument }; // u16 for i16
        assert_eq!((error.kind(), error.column()), (expected, Some(column)), "wrong batch {number}: {error}");
        assert_eq!(writer.sample_count(), 0);
        writer.push_batch(&[fixed, ragged, text]).expect("a writer that refused a batch continues");
        assert!(finish(writer) == whole, "wrong batch {number} left something behind");
    }
}

#[test]
fn values_of_null_samples_are_ignored() {
    let column = |dtype| Schema::new([ColumnSchema::tensor("x", dtype, Shape::fixed(&[2])).nullable()]);
    let file = |dtype, values: &[u8]| {
        let mut writer = create(column(dtype)).expect("a valid schema");
        let batch = ColumnBatch::from_bytes(dtype, 3, &[], values).with_validity(&[0b101]);
        writer.push_batch(&[batch]).map(|()| finish(writer))
    };
    for dtype in [DType::Bool, DType::U8, DType::I8] {
        let zeros = file(dtype, &[0, 1, 0, 0, 1, 1]).expect("a good batch");
        assert!(file(dtype, &[0, 1, 7, 255, 1, 1]).expect("a good batch") == zeros, "{dtype}");
    }
    // but not the values next to them
    refused(file(DType::Bool, &[0, 2, 0, 0, 1, 1]), BadArgument, Some("x"));
    refused(file(DType::Bool, &[0, 1, 0, 0, 1, 2]), BadArgument, Some("x"));
}

#[test]
fn a_sample_larger_than_a_chunk_may_be_is_refused_without_its_memory() {
    let ragged = |inner: u32| ColumnSchema::tensor("x", DType::U8, Shape::new([Extent::Varying, Extent::Fixed(inner)]));
    let mut writer = create(Schema::new([ragged(1 << 31)])).expect("a valid schema");
    // lengths are compared before anything is read or copied, because no slice of that size can be
    // made here
    let error = writer.push_batch(&[ColumnBatch::ragged::<u8>(1, &[3], &[])]).expect_err("no such values");
    assert_eq!(error.column(), Some("x"));
    // samples without bytes whose counts exceed the maximum sum of a chunk
    let two = ColumnSchema::tensor("x", DType::U8, Shape::new([Extent::Varying, Extent::Varying, Extent::Fixed(0)]));
    let mut writer = create(Schema::new([two])).expect("a valid schema");
    for extents in [[1 << 16, 1 << 16], [u32::MAX - 1, u32::MAX - 1]] {
        refused(writer.push(&[Value::ragged::<u8>(&[], &extents)]), OverLimit, Some("x"));
    }
    writer.push(&[Value::ragged::<u8>(&[], &[1 << 16, (1 << 16) - 1])]).expect("a sample within the limits");
    assert_eq!(writer.sample_count(), 1);
}

#[test]
fn a_sample_needs_a_column() {
    let mut writer = Writer::new(Stream(Vec::new()), Schema::default(), &WriterOptions::new()).unwrap();
    let error = writer.push(&[]).unwrap_err();
    assert_eq!((error.kind(), writer.sample_count()), (ErrorKind::BadArgument, 0), "{error}");
}
