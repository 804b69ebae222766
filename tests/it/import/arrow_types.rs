//! Tests that Arrow's types keep their values: scalars, strings, times, structs, and their
//! metadata.

use super::common::*;
use half::f16;
use std::sync::Arc;
use tensilo::import::ConvertOptions;
use tensilo::import::arrow::array::types::*;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::NullBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, Schema};
use tensilo::{DType, Element};

fn check_scalars<T: ArrowPrimitiveType>(values: [T::Native; 3])
where
    T::Native: Element + PartialEq,
{
    let [a, b, c] = values;
    let array = PrimitiveArray::<T>::from_iter([Some(a), None, Some(b), Some(c)]);
    let file = import(&one(Arc::new(array.clone())));
    assert_eq!(column(&file, "x").dtype, T::Native::DTYPE);
    assert!(column(&file, "x").nullable);
    assert_eq!(column(&file, "x").shape.ndim(), 0);
    assert_eq!(scalars::<T::Native>(&file, "x"), [Some(a), None, Some(b), Some(c)]);
    let file = import(&one(Arc::new(array.slice(1, 2))));
    assert_eq!(scalars::<T::Native>(&file, "x"), [None, Some(b)]);
}

#[test]
fn numbers_keep_their_bits() {
    check_scalars::<Int8Type>([-128, 0, 127]);
    check_scalars::<Int16Type>([i16::MIN, 1, i16::MAX]);
    check_scalars::<Int32Type>([i32::MIN, 1, i32::MAX]);
    check_scalars::<Int64Type>([i64::MIN, 1, i64::MAX]);
    check_scalars::<UInt8Type>([0, 1, 255]);
    check_scalars::<UInt16Type>([0, 1, u16::MAX]);
    check_scalars::<UInt32Type>([0, 1, u32::MAX]);
    check_scalars::<UInt64Type>([0, 1, u64::MAX]);
    check_scalars::<Float16Type>([f16::from_f32(1.5), f16::NEG_ZERO, f16::INFINITY]);
    check_scalars::<Float32Type>([1.5, -0.0, f32::INFINITY]);
    check_scalars::<Float64Type>([1.5, -0.0, 5e-324]);
}

#[test]
fn payloads_of_nan_survive() {
    let bits = [0x7FC0_0001_u32, 0xFF80_0001, 0x8000_0000];
    let file = import(&one(Arc::new(Float32Array::from_iter_values(bits.map(f32::from_bits)))));
    assert_eq!(scalars::<f32>(&file, "x").map_bits(), bits);
}

trait MapBits {
    fn map_bits(self) -> Vec<u32>;
}

impl MapBits for Vec<Option<f32>> {
    fn map_bits(self) -> Vec<u32> {
        self.into_iter().map(|value| value.unwrap().to_bits()).collect()
    }
}

#[test]
fn bools_keep_their_values_in_slices_that_begin_inside_a_byte() {
    let array = BooleanArray::from_iter((0..50).map(|i| (i % 7 != 3).then_some(i % 3 == 0)));
    let file = import(&one(Arc::new(array.slice(5, 40))));
    let expected: Vec<Option<u8>> = (5..45).map(|i| (i % 7 != 3).then_some(u8::from(i % 3 == 0))).collect();
    assert_eq!(column(&file, "x").dtype, DType::Bool);
    assert_eq!(scalars::<u8>(&file, "x"), expected);
}

#[test]
fn text_and_binary_of_every_layout_keep_their_bytes() {
    let long = "a text too long to be inlined in a view";
    let values = [Some("a"), None, Some(""), Some(long), Some("ü")];
    let bytes = values.map(|value| value.map(str::as_bytes));
    let arrays: [ArrayRef; 8] = [
        Arc::new(StringArray::from_iter(values)),
        Arc::new(LargeStringArray::from_iter(values)),
        Arc::new(StringViewArray::from_iter(values)),
        Arc::new(BinaryArray::from_iter(bytes)),
        Arc::new(LargeBinaryArray::from_iter(bytes)),
        Arc::new(BinaryViewArray::from_iter(bytes)),
        Arc::new(DictionaryArray::<Int8Type>::from_iter(values)),
        Arc::new(DictionaryArray::<UInt32Type>::from_iter(values)),
    ];
    for array in arrays {
        let is_bytes = array.data_type().to_string().contains("Binary");
        let file = import(&one(array.clone()));
        assert_eq!(
            column(&file, "x").dtype,
            if is_bytes { DType::Bytes } else { DType::Utf8 },
            "{}",
            array.data_type()
        );
        assert_eq!(strings(&file, "x"), texts(&values));
        let file = import(&one(array.slice(1, 3)));
        assert_eq!(strings(&file, "x"), texts(&values[1..4]));
    }
}

#[test]
fn bytes_under_a_null_are_not_stored() {
    let array = StringArray::from(vec!["one", "two", "three"]);
    let (offsets, values, _) = array.into_parts();
    let array = StringArray::new(offsets, values, Some(NullBuffer::from(vec![true, false, true])));
    let file = import(&one(Arc::new(array)));
    assert_eq!(strings(&file, "x"), texts(&[Some("one"), None, Some("three")]));
}

#[test]
fn fixed_size_binary_keeps_its_type_in_the_metadata() {
    let values = [Some([1_u8; 16]), None, Some([3; 16])];
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.iter().copied(), 16).unwrap();
    let file = import(&one(Arc::new(array.slice(1, 2))));
    assert_eq!(column(&file, "x").dtype, DType::Bytes);
    assert_eq!(column(&file, "x").metadata["arrow.type"], "fixed_size_binary[16]");
    assert_eq!(strings(&file, "x"), [None, Some(vec![3; 16])]);
}

#[test]
fn dictionary_of_numbers_and_runs_are_decoded() {
    let values: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
    let keys = Int16Array::from(vec![Some(1), None, Some(0)]);
    let file = import(&one(Arc::new(DictionaryArray::new(keys, values))));
    assert_eq!(scalars::<f32>(&file, "x"), [Some(1.5), None, Some(0.5)]);
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &Int64Array::from(vec![7, 8])).unwrap();
    let file = import(&one(Arc::new(runs)));
    assert_eq!(scalars::<i64>(&file, "x"), [Some(7), Some(7), Some(8)]);
}

#[test]
fn times_become_i64_with_their_unit_in_the_metadata() {
    let cases: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(Date32Array::from(vec![Some(-1), None])), "date32"),
        (Arc::new(Date64Array::from(vec![Some(-1), None])), "date64"),
        (Arc::new(Time32SecondArray::from(vec![Some(-1), None])), "time32[s]"),
        (Arc::new(Time32MillisecondArray::from(vec![Some(-1), None])), "time32[ms]"),
        (Arc::new(Time64MicrosecondArray::from(vec![Some(-1), None])), "time64[us]"),
        (Arc::new(DurationNanosecondArray::from(vec![Some(-1), None])), "duration[ns]"),
        (Arc::new(TimestampSecondArray::from(vec![Some(-1), None])), "timestamp[s]"),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None]).with_timezone("Europe/Zurich")),
            "timestamp[us, Europe/Zurich]",
        ),
    ];
    for (array, text) in cases {
        let file = import(&one(array));
        assert_eq!(column(&file, "x").dtype, DType::I64);
        assert_eq!(column(&file, "x").metadata["arrow.type"], text);
        assert_eq!(scalars::<i64>(&file, "x"), [Some(-1), None]);
    }
}

#[test]
fn a_struct_becomes_dotted_columns_and_a_null_struct_nulls() {
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter([Some(b"a"), Some(b"b"), None, Some(b"d")]));
    let size: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    let inner_fields = Fields::from(vec![Field::new("w", DataType::Int32, false)]);
    let inner: ArrayRef = Arc::new(StructArray::new(inner_fields, vec![size], None));
    let fields = Fields::from(vec![
        Field::new("bytes", DataType::Binary, true),
        Field::new("size", inner.data_type().clone(), false),
    ]);
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    let image: ArrayRef = Arc::new(StructArray::new(fields, vec![bytes, inner], Some(nulls)));
    let field = Field::new("image", image.data_type().clone(), true);
    let id: ArrayRef = Arc::new(Int8Array::from(vec![0, 1, 2, 3]));
    let whole = batch(vec![(field, image), (Field::new("id", DataType::Int8, false), id)]);
    let file = import(&whole);
    let names: Vec<&str> = file.schema().columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["image", "image.bytes", "image.size.w", "id"]);
    assert_eq!(strings(&file, "image.bytes"), texts(&[Some("a"), None, None, Some("d")]));
    assert_eq!(scalars::<i32>(&file, "image.size.w"), [Some(1), None, Some(3), Some(4)]);
    assert!(column(&file, "image.size.w").nullable && !column(&file, "id").nullable);
    let file = import(&whole.slice(1, 2));
    assert_eq!(scalars::<i32>(&file, "image.size.w"), [None, Some(3)]);

    let options = ConvertOptions::new().columns(["id", "image"]);
    let file = import_with(std::slice::from_ref(&whole), &options).unwrap();
    let names: Vec<&str> = file.schema().columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "image", "image.bytes", "image.size.w"]);
    let options = ConvertOptions::new().skip(["image.size"]);
    let file = import_with(&[whole], &options).unwrap();
    assert_eq!(file.schema().columns.len(), 3);
}

#[test]
fn metadata_is_preserved_and_what_is_too_large_is_listed() {
    let large = "v".repeat((16 << 20) + 1);
    let field = Field::new("x", DataType::Int8, false).with_metadata([("unit", "mm"), ("large", large.as_str())]);
    let schema = Schema::new(vec![field]).with_metadata([("author", "me"), ("ARROW:schema", "..."), ("pandas", "{}")]);
    let values: ArrayRef = Arc::new(Int8Array::from(vec![1]));
    let file = import(&RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap());
    let text = |map: &tensilo::Metadata| map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
    assert_eq!(text(&column(&file, "x").metadata), ["import.dropped_metadata=[\"large\"]", "unit=mm"]);
    let of_file: Vec<String> = file.schema().metadata.keys().cloned().collect();
    assert_eq!(of_file, ["ARROW:schema", "author", "pandas"]);
    assert_ne!(file.schema().metadata["ARROW:schema"], "...");
}

/// Only the importer itself sets such marks on fields.
#[test]
fn marks_in_an_arrow_schema_are_ignored() {
    let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 2]));
    for key in ["PARQUET:int96", "PARQUET:encrypted", "tensilo.refused"] {
        let field = Field::new("x", times.data_type().clone(), false).with_metadata([(key, "")]);
        let file = import(&batch(vec![(field, times.clone())]));
        assert_eq!(scalars::<i64>(&file, "x"), [Some(1), Some(2)], "{key}");
        assert!(!column(&file, "x").metadata.contains_key(key));
    }
}

/// Parquet does not have these units; the embedded Arrow schema states them.
#[cfg(feature = "parquet")]
#[test]
fn seconds_and_dates_in_milliseconds_come_back_through_parquet() {
    let arrays: [ArrayRef; 4] = [
        Arc::new(TimestampSecondArray::from(vec![Some(i64::MAX), None]).with_timezone("Europe/Zurich")),
        Arc::new(Time32SecondArray::from(vec![Some(86_399), None])),
        Arc::new(Date64Array::from(vec![Some(-1), None])),
        Arc::new(DurationSecondArray::from(vec![Some(i64::MIN), None])),
    ];
    for array in arrays {
        assert_eq!(&exported(&through_parquet(&import(&one(array.clone())))), &array);
        let mut list = FixedSizeListArray::new(item(array.data_type().clone()), 1, array.slice(0, 1), None);
        list = exported(&through_parquet(&import(&one(Arc::new(list))))).as_fixed_size_list().clone();
        assert_eq!(list.values(), &array.slice(0, 1));
    }
}

#[test]
fn elements_of_lists_keep_their_types() {
    let arrays: [ArrayRef; 6] = [
        Arc::new(Float16Array::from(vec![f16::from_f32(1.5), f16::NEG_ZERO, f16::INFINITY])),
        Arc::new(TimestampMillisecondArray::from(vec![1, -1, i64::MIN]).with_timezone("+02:00")),
        Arc::new(Time32MillisecondArray::from(vec![1, 0, 86_399_999])),
        Arc::new(Time64NanosecondArray::from(vec![1, 0, 86_399_999_999_999])),
        Arc::new(DurationMicrosecondArray::from(vec![1, -1, i64::MAX])),
        Arc::new(FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"\0\0"].into_iter()).unwrap()),
    ];
    arrays.iter().for_each(check_three_lists);
}
