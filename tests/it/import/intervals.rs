//! Tests that intervals come back from Arrow and Parquet.

use super::common::*;
use std::sync::Arc;
use tensilo::DType;
use tensilo::import::arrow::array::types::*;
use tensilo::import::arrow::array::*;

const ENDS: [i32; 3] = [i32::MIN, -1, i32::MAX];

fn months() -> ArrayRef {
    Arc::new(ENDS.into_iter().map(Some).chain([None]).collect::<IntervalYearMonthArray>())
}

fn days() -> ArrayRef {
    let values = ENDS.map(|x| Some(IntervalDayTimeType::make_value(x, x.wrapping_neg())));
    Arc::new(values.into_iter().chain([None]).collect::<IntervalDayTimeArray>())
}

fn nanoseconds() -> ArrayRef {
    let value = |x: i32| IntervalMonthDayNanoType::make_value(x, x.wrapping_neg(), i64::from(x) << 32);
    Arc::new(ENDS.map(|x| Some(value(x))).into_iter().chain([None]).collect::<IntervalMonthDayNanoArray>())
}

#[test]
fn intervals_are_stored_as_their_parts_and_come_back() {
    let cases = [
        (months(), DType::I32, "[]", "month_interval"),
        (days(), DType::I32, "[2]", "day_time_interval"),
        (nanoseconds(), DType::I64, "[3]", "month_day_nano_interval"),
    ];
    for (array, dtype, shape, text) in cases {
        let file = import(&one(array.clone()));
        let column = column(&file, "x");
        assert_eq!((column.dtype, column.shape.to_string().as_str()), (dtype, shape));
        assert_eq!(column.metadata["arrow.type"], text);
        assert_eq!(&exported(&file), &array);
        assert_eq!(&exported(&import(&one(array.slice(1, 3)))), &array.slice(1, 3));
        check_three_lists(&array.slice(0, 3));
    }
    let file = import(&one(nanoseconds()));
    assert_eq!(tensors::<i64>(&file, "x")[1], Some((vec![3], vec![-1, 1, -1 << 32])));
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use super::*;
    use ::parquet::arrow::encode_arrow_schema;
    use ::parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType};
    use ::parquet::file::metadata::KeyValue;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;
    use tensilo::import::ConvertOptions;
    use tensilo::import::arrow::datatypes::{DataType, Field, IntervalUnit, Schema};
    use tensilo::{Error, Reader};
    use tensilo_testing::Folder;

    #[test]
    fn intervals_come_back_through_parquet_unless_it_does_not_have_them() {
        for array in [months(), days()] {
            assert_eq!(&exported(&through_parquet(&import(&one(array.clone())))), &array);
        }
        let file = import(&one(nanoseconds()));
        assert_eq!(tensors::<i64>(&through_parquet(&file), "x"), tensors::<i64>(&file, "x"));
    }

    /// Converts a file with intervals of months, days and milliseconds, with an Arrow schema if
    /// `unit` is given.
    fn convert(intervals: &[[u32; 3]], unit: Option<IntervalUnit>) -> Result<Reader, Error> {
        let schema = parse_message_type("message m { required fixed_len_byte_array(12) x (INTERVAL); }").unwrap();
        let schema_of = |unit| Schema::new(vec![Field::new("x", DataType::Interval(unit), false)]);
        let entry = |unit| vec![KeyValue::new("ARROW:schema".to_owned(), encode_arrow_schema(&schema_of(unit)))];
        let properties = WriterProperties::builder().set_key_value_metadata(unit.map(entry)).build();
        let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let bytes = |parts: &[u32; 3]| FixedLenByteArray::from(parts.map(u32::to_le_bytes).concat());
        let values: Vec<FixedLenByteArray> = intervals.iter().map(bytes).collect();
        column.typed::<FixedLenByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        let folder = Folder::new();
        let path = folder.path("x.parquet");
        write_old(&path, &writer.into_inner().unwrap());
        converted(&folder, &[path], &ConvertOptions::new())
    }

    #[test]
    fn intervals_without_an_arrow_schema_keep_all_parts() {
        let file = convert(&[[1, 2, 3], [0, i32::MAX as u32, u32::MAX]], None).unwrap();
        assert_eq!(column(&file, "x").metadata["arrow.type"], "month_day_nano_interval");
        let parts = tensors::<i64>(&file, "x").into_iter().map(|sample| sample.unwrap().1);
        let expected = [vec![1, 2, 3_000_000], vec![0, i64::from(i32::MAX), i64::from(u32::MAX) * 1_000_000]];
        assert_eq!(parts.collect::<Vec<_>>(), expected);
        let Err(error) = convert(&[[0; 3], [1 << 31, 0, 0]], None) else { panic!("it was not refused") };
        assert_eq!((error.column(), error.samples()), (Some("x"), Some(1..2)), "{error}");
    }

    #[test]
    fn parts_that_contradict_the_arrow_schema_are_refused() {
        let file = convert(&[[0, 2, u32::MAX]], Some(IntervalUnit::DayTime)).unwrap();
        assert_eq!(tensors::<i32>(&file, "x"), [Some((vec![2], vec![2, -1]))]);
        for (unit, good, bad) in [
            (IntervalUnit::DayTime, [0, 2, 3], [1, 2, 3]),
            (IntervalUnit::YearMonth, [5, 0, 0], [5, 0, 1]),
            (IntervalUnit::YearMonth, [u32::MAX, 0, 0], [5, 1, 0]),
        ] {
            convert(&[good], Some(unit)).unwrap();
            let Err(error) = convert(&[good, bad], Some(unit)) else { panic!("it was not refused") };
            assert_eq!((error.column(), error.samples()), (Some("x"), Some(1..2)), "{error}");
            assert!(error.message().contains("Arrow schema"), "{error}");
        }
    }
}
