//! Tests casts of decimals, integers and timestamps to floats and integers.

use super::common::*;
use std::sync::Arc;
use tensilo::error::Advice;
use tensilo::import::arrow::array::types::Int8Type;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, IntervalMonthDayNano, i256};
use tensilo::import::{AppendOptions, ConvertOptions, NullElements};
use tensilo::{CastSource, CastSpec, DType, Element, ErrorKind, LogicalType, Reader, Shape};
use tensilo_testing::Folder;

const PRICES: [Option<i64>; 5] = [Some(150), Some(-225), None, Some(10), Some(0)];

/// 1.50, -2.25, null, 0.10 and 0 in each width and form.
fn prices() -> Vec<ArrayRef> {
    decimals(&PRICES)
}

fn decimals(values: &[Option<i64>]) -> Vec<ArrayRef> {
    let values = || values.iter().copied();
    let d128 = |digits| {
        let array = Decimal128Array::from_iter(values().map(|value| value.map(i128::from)));
        Arc::new(array.with_precision_and_scale(digits, 2).unwrap()) as ArrayRef
    };
    let d32 = Decimal32Array::from_iter(values().map(|value| value.map(|value| value as i32)));
    let d64 = Decimal64Array::from_iter(values());
    let d256 = Decimal256Array::from_iter(values().map(|value| value.map(i256::from)));
    vec![
        Arc::new(d32.with_precision_and_scale(9, 2).unwrap()),
        Arc::new(d64.with_precision_and_scale(18, 2).unwrap()),
        d128(7),
        d128(12),
        d128(22),
        Arc::new(d256.with_precision_and_scale(60, 2).unwrap()),
    ]
}

fn cast(batch: &RecordBatch, name: &str, dtype: DType) -> Reader {
    import_with(std::slice::from_ref(batch), &ConvertOptions::new().casts([(name, dtype)])).unwrap()
}

fn cast_refused(array: ArrayRef, dtype: DType) -> tensilo::Error {
    refused(&[one(array)], &ConvertOptions::new().casts([("x", dtype)]))
}

fn plain<T: Element>(file: &Reader) -> Vec<Option<T>> {
    assert_eq!(LogicalType::of(column(file, "x")), None);
    assert_eq!(column(file, "x").shape.to_string(), "[]");
    scalars(file, "x")
}

#[test]
fn decimals_become_floats_and_the_errors_are_recorded() {
    for array in prices() {
        let source = column(&import(&one(array.clone())), "x").metadata["arrow.type"].clone();
        let file = cast(&one(array.clone()), "x", DType::F64);
        assert_eq!(plain::<f64>(&file), [Some(1.5), Some(-2.25), None, Some(0.1), Some(0.0)]);
        assert_eq!(column(&file, "x").metadata["import.cast"], source);
        assert_eq!(column(&file, "x").cast, Some(CastSpec { source: CastSource::Decimal }));
        let facts = file.column("x").unwrap().facts().cast.unwrap();
        assert_eq!((facts.max_abs_error, facts.max_rel_error), (5.551115123125783e-18, 5.551115123125783e-17));
        let file = cast(&one(array.clone()), "x", DType::F32);
        assert_eq!(plain::<f32>(&file), [Some(1.5), Some(-2.25), None, Some(0.1), Some(0.0)]);
        let file = cast(&one(array), "x", DType::Bf16);
        assert_eq!(plain::<half::bf16>(&file)[3], Some(half::bf16::from_f32(0.1)));
        let facts = file.column("x").unwrap().facts().cast.unwrap();
        assert_eq!(facts.max_abs_error, 9.765625e-5); // the value nearest to 0.1 is 0.10009765625
        assert_eq!(exported(&file).data_type(), &DataType::Float32);
    }
}

#[test]
fn a_cast_to_integers_is_exact_or_refused_with_its_sample() {
    let whole = Decimal128Array::from(vec![Some(300), None, Some(-12_800)]).with_precision_and_scale(22, 2).unwrap();
    let file = cast(&one(Arc::new(whole.clone())), "x", DType::I8);
    assert_eq!(plain::<i8>(&file), [Some(3), None, Some(-128)]);
    assert_eq!(column(&file, "x").cast, None);
    let scale_0 = Decimal128Array::from(vec![i128::from(i64::MAX)]).with_precision_and_scale(38, 0).unwrap();
    assert_eq!(plain::<i64>(&cast(&one(Arc::new(scale_0)), "x", DType::I64)), [Some(i64::MAX)]);
    let negative = Decimal128Array::from(vec![7]).with_precision_and_scale(5, -3).unwrap();
    assert_eq!(plain::<u16>(&cast(&one(Arc::new(negative)), "x", DType::U16)), [Some(7_000)]);
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 65_536.0, 0.5, f32::NAN]));
    assert_eq!(plain::<u32>(&cast(&one(floats.slice(0, 3)), "x", DType::U32))[2], Some(65_536));
    let cases: [(ArrayRef, DType, u64, &str); 6] = [
        (Arc::new(whole.clone()), DType::U8, 2, "-128.00"),
        (prices()[4].clone(), DType::I64, 0, "1.50"),
        (Arc::new(Int64Array::from(vec![0, 256])), DType::U8, 1, "256"),
        (floats.slice(0, 3), DType::U16, 2, "65536"),
        (floats.slice(1, 3), DType::I32, 2, "0.5"),
        (floats.slice(4, 1), DType::I32, 0, "NaN"),
    ];
    for (array, dtype, sample, value) in cases {
        let error = cast_refused(array, dtype);
        assert_eq!((error.kind(), error.column()), (ErrorKind::BadInput, Some("x")), "{error}");
        assert_eq!(error.samples(), Some(sample..sample + 1), "{error}");
        assert!(error.message().contains(&format!("the value {value} cannot be stored as {dtype};")), "{error}");
    }
}

#[test]
fn integers_become_floats_and_the_errors_are_recorded() {
    let array = Int64Array::from(vec![Some(16_777_217), None, Some(-3)]);
    let file = cast(&one(Arc::new(array)), "x", DType::F32);
    assert_eq!(plain::<f32>(&file), [Some(16_777_216.0), None, Some(-3.0)]);
    assert_eq!(column(&file, "x").cast, Some(CastSpec { source: DType::I64.into() }));
    assert_eq!(file.column("x").unwrap().facts().cast.unwrap().max_abs_error, 1.0);
    assert_eq!(exported(&file).data_type(), &DataType::Float32);
    assert_eq!(cast_refused(Arc::new(StringArray::from(vec!["1"])), DType::F32).kind(), ErrorKind::BadArgument);
    assert_eq!(cast_refused(Arc::new(Int8Array::from(vec![1])), DType::Bool).kind(), ErrorKind::BadArgument);
}

#[test]
fn timestamps_become_their_stored_counts() {
    let array = TimestampMicrosecondArray::from(vec![Some(5), None]);
    let file = cast(&one(Arc::new(array)), "x", DType::I64);
    assert_eq!(plain::<i64>(&file), [Some(5), None]);
    assert_eq!(column(&file, "x").metadata["import.cast"], "timestamp[us]");
    let parts = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, 2, 3)]);
    let file = cast(&one(Arc::new(parts)), "x", DType::I64);
    assert_eq!(LogicalType::of(column(&file, "x")), None);
    assert_eq!(tensors::<i64>(&file, "x"), [Some((vec![3], vec![1, 2, 3]))]);
}

#[test]
fn decimals_are_cast_in_lists_structs_and_dictionaries() {
    for (values, present) in prices().into_iter().zip(decimals(&[Some(150), Some(-225), Some(10)])) {
        let file = cast(&one(three_lists(&present)), "x", DType::F64);
        assert_eq!(column(&file, "x").shape.to_string(), "[*]");
        let lists = [(vec![2], vec![1.5, -2.25]), (vec![0], vec![]), (vec![1], vec![0.1])];
        assert_eq!(tensors::<f64>(&file, "x"), lists.map(Some));

        // null elements: as items of lists, or replaced
        let with_nulls = one(three_lists(&values.slice(1, 3)));
        let file = cast(&with_nulls, "x", DType::F64);
        assert_eq!(exported(&file).as_list::<i32>().values().null_count(), 1);
        let nan = ConvertOptions::new().casts([("x", DType::F64)]).null_elements(NullElements::Nan);
        let file = import_with(&[with_nulls], &nan).unwrap();
        let first = tensors::<f64>(&file, "x")[0].clone().unwrap().1;
        assert!(first[0] == -2.25 && first[1].is_nan(), "{first:?}");

        let fields = Fields::from(vec![Field::new("price", values.data_type().clone(), true)]);
        let structs = StructArray::new(fields, vec![values.clone()], None);
        let file = cast(&one(Arc::new(structs)), "x.price", DType::F64);
        assert_eq!(scalars::<f64>(&file, "x.price")[1], Some(-2.25));

        let keys = Int8Array::from(vec![Some(1), Some(0), None]);
        let dictionary = DictionaryArray::<Int8Type>::new(keys, values.clone());
        let file = cast(&one(Arc::new(dictionary)), "x", DType::F64);
        assert_eq!(plain::<f64>(&file), [Some(-2.25), Some(1.5), None]);
        assert_eq!(exported(&file).data_type(), &DataType::Float64);
    }
}

#[test]
fn appended_decimals_are_cast_like_those_of_the_file() {
    for dtype in [DType::F64, DType::I64] {
        let folder = Folder::new();
        let array = |value: i128| {
            Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(22, 2).unwrap()) as ArrayRef
        };
        let options = ConvertOptions::new().casts([("x", dtype)]);
        let path = folder.path("a.tsl");
        let more = arrow_file(&folder, "b.arrow", &[one(array(30_000_000_000_000_000_100))]);
        convert_with(&[arrow_file(&folder, "a.arrow", &[one(array(200))])], &path, &options).unwrap();
        let appended = append_with(&[more], &path, &AppendOptions::new());
        if dtype == DType::I64 {
            // 3 * 10^17 fits
            assert_eq!((appended.unwrap(), scalars::<i64>(&read(&path), "x")[1]), (1, Some(300_000_000_000_000_001)));
            continue;
        }
        assert_eq!((appended.unwrap(), scalars::<f64>(&read(&path), "x")[1]), (1, Some(3e17)));
        assert_eq!(read(&path).column("x").unwrap().facts().cast.unwrap().max_abs_error, 1.0);
        let again = folder.path("again.tsl");
        convert_with(std::slice::from_ref(&path), &again, &ConvertOptions::new()).unwrap();
        assert_eq!(read(&again).column("x").unwrap().facts().cast.unwrap().max_abs_error, 1.0);
    }
}

/// A file that keeps decimals can be converted to one with numbers.
#[test]
fn decimals_of_a_tensilo_file_are_cast() {
    for array in prices() {
        let folder = Folder::new();
        let uncast = import(&one(array.clone()));
        let error = LogicalType::check_values(column(&uncast, "x")).unwrap_err();
        assert_eq!(error.advice(), [Advice::Cast(DType::F64)]);
        let source = folder.path("kept.tsl");
        convert_with(&[arrow_file(&folder, "a.arrow", &[one(array)])], &source, &ConvertOptions::new()).unwrap();
        let options = ConvertOptions::new().casts([("x", DType::F64)]);
        convert_with(&[source], &folder.path("b.tsl"), &options).unwrap();
        assert_eq!(plain::<f64>(&read(&folder.path("b.tsl")))[..2], [Some(1.5), Some(-2.25)]);
    }
}

#[test]
fn a_second_cast_or_shape_of_a_column_is_refused() {
    let table = [one(Arc::new(Int64Array::from(vec![70_000])))];
    let casts = ConvertOptions::new().casts([("x", DType::I32), ("x", DType::I16)]);
    let shapes = ConvertOptions::new().shapes([("x", Shape::scalar()), ("x", Shape::scalar())]);
    for options in [casts, shapes] {
        let error = refused(&table, &options);
        assert_eq!((error.kind(), error.column()), (ErrorKind::BadArgument, Some("x")), "{error}");
    }
}
