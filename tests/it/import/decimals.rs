//! Tests that decimals of every width come back from a tensilo file.
//!
//! The precision decides the storage: an integer type if the digits fit one, otherwise
//! little-endian bytes. Values of more digits than the type declares are kept where the storage has
//! room and refused elsewhere.

use super::common::*;
use proptest::prelude::*;
use std::sync::Arc;
use tensilo::import::arrow::array::types::*;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, i256};
use tensilo::import::{ConvertOptions, NullElements};
use tensilo::{ColumnSchema, DType, ErrorKind};

/// Returns the largest value of this many digits, its negative, small values, and a null.
fn values<T: DecimalType>(digits: u8, from: impl Fn(i256) -> T::Native) -> Vec<Option<T::Native>> {
    let max = i256::from_string(&"9".repeat(digits.into())).unwrap();
    let all = [max, -max, i256::ZERO, i256::ONE, -i256::ONE];
    all.map(|value| Some(from(value))).into_iter().chain([None]).collect()
}

fn decimals<T: DecimalType>(digits: u8, scale: i8, from: impl Fn(i256) -> T::Native) -> PrimitiveArray<T> {
    let values = values::<T>(digits, from);
    values.into_iter().collect::<PrimitiveArray<T>>().with_precision_and_scale(digits, scale).unwrap()
}

fn low(value: i256) -> i128 {
    value.to_i128().unwrap()
}

/// Returns decimals of every width and precision.
fn all(scale: i8) -> Vec<ArrayRef> {
    let d32 = (1..=9).map(|digits| Arc::new(decimals::<Decimal32Type>(digits, scale, |x| low(x) as i32)) as ArrayRef);
    let d64 = (1..=18).map(|digits| Arc::new(decimals::<Decimal64Type>(digits, scale, |x| low(x) as i64)) as ArrayRef);
    let d128 = (1..=38).map(|digits| Arc::new(decimals::<Decimal128Type>(digits, scale, low)) as ArrayRef);
    let d256 = (1..=76).map(|digits| Arc::new(decimals::<Decimal256Type>(digits, scale, |x| x)) as ArrayRef);
    d32.chain(d64).chain(d128).chain(d256).collect()
}

fn digits(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Decimal32(digits, _) | DataType::Decimal64(digits, _) => *digits,
        DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _) => *digits,
        other => panic!("{other}"),
    }
}

/// Returns the type and shape of a column of decimals.
fn expected(digits: u8) -> (DType, &'static str) {
    match digits {
        0..=9 => (DType::I32, "[]"),
        10..=18 => (DType::I64, "[]"),
        19..=38 => (DType::U8, "[16]"),
        _ => (DType::U8, "[32]"),
    }
}

fn form(column: &ColumnSchema) -> (DType, String) {
    (column.dtype, column.shape.to_string())
}

#[test]
fn the_precision_decides_how_decimals_are_stored() {
    for scale in [-3, 0, 1] {
        for array in all(scale) {
            let file = import(&one(array.clone()));
            let (dtype, shape) = expected(digits(array.data_type()));
            assert_eq!(form(column(&file, "x")), (dtype, shape.to_owned()), "{}", array.data_type());
            let (name, _) =
                array.data_type().to_string().split_once('(').map(|(a, b)| (a.to_lowercase(), b.to_owned())).unwrap();
            let text = format!("{name}[{}, {scale}]", digits(array.data_type()));
            assert_eq!(column(&file, "x").metadata["arrow.type"], text);
            assert_eq!(&exported(&file), &array);
            assert_eq!(&exported(&import(&one(array.slice(1, 4)))), &array.slice(1, 4));
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn decimals_come_back_through_parquet_unless_it_does_not_have_them() {
    let columns = all(1)
        .into_iter()
        .map(|array| (Field::new(array.data_type().to_string(), array.data_type().clone(), true), array));
    let file = through_parquet(&import(&batch(columns.collect())));
    let batches: Vec<RecordBatch> =
        tensilo::export::batches(&file, None).unwrap().map(|batch| batch.unwrap()).collect();
    for (found, array) in batches[0].columns().iter().zip(all(1)) {
        assert_eq!(found, &array);
    }
    let array = decimals::<Decimal128Type>(38, -1, low);
    let file = import(&one(Arc::new(array)));
    let again = through_parquet(&file);
    assert_eq!(form(column(&again, "x")), (DType::U8, "[16]".to_owned()));
    assert_eq!(tensors::<u8>(&again, "x"), tensors::<u8>(&file, "x"));
}

#[test]
fn wide_decimals_are_little_endian_whatever_the_width_in_arrow() {
    let narrow = Decimal128Array::from(vec![Some(-2), None]).with_precision_and_scale(20, 0).unwrap();
    let wide = Decimal256Array::from(vec![Some(i256::from(-2)), None]).with_precision_and_scale(20, 0).unwrap();
    let mut bytes = vec![0xFF; 16];
    bytes[0] = 0xFE;
    for array in [Arc::new(narrow) as ArrayRef, Arc::new(wide)] {
        let file = import(&one(array));
        assert_eq!(tensors::<u8>(&file, "x"), [Some((vec![16], bytes.clone())), None]);
    }
}

fn lists(values: ArrayRef, offsets: &[i32]) -> ListArray {
    ListArray::new(item(values.data_type().clone()), OffsetBuffer::new(offsets.to_vec().into()), values, None)
}

#[test]
fn decimals_in_lists_come_back() {
    for array in all(0) {
        let values = array.slice(0, 5); // without the null
        let (dtype, shape) = expected(digits(array.data_type()));
        let inner = shape.trim_matches(['[', ']']);
        let comma = if inner.is_empty() { "" } else { "," };
        let ragged = import(&one(Arc::new(lists(values.clone(), &[0, 3, 3, 5]))));
        assert_eq!(form(column(&ragged, "x")), (dtype, format!("[*{comma}{inner}]")));
        let list = exported(&ragged);
        assert_eq!(
            (list.as_list::<i32>().value_offsets(), list.as_list::<i32>().values()),
            (&[0, 3, 3, 5][..], &values)
        );
        let fixed = import(&one(Arc::new(lists(values.slice(0, 4), &[0, 2, 4]))));
        assert_eq!(form(column(&fixed, "x")), (dtype, format!("[2{comma}{inner}]")));
        assert_eq!(exported(&fixed).as_list::<i32>().values(), &values.slice(0, 4));
        let matrices: ArrayRef = Arc::new(lists(Arc::new(lists(values.slice(0, 4), &[0, 2, 4])), &[0, 2, 2]));
        let file = import(&one(matrices.clone()));
        assert_eq!(form(column(&file, "x")), (dtype, format!("[*,2{comma}{inner}]")));
        assert_eq!(&exported(&file), &matrices);
    }
}

#[test]
fn decimals_in_structs_in_lists_come_back() {
    let array = Arc::new(decimals::<Decimal256Type>(40, 2, |x| x));
    let inner = lists(Arc::new(array.slice(0, 5)), &[0, 2, 2, 5]);
    let fields = Fields::from(vec![
        Field::new("price", array.data_type().clone(), true),
        Field::new("prices", inner.data_type().clone(), true),
    ]);
    let structs = StructArray::new(fields, vec![Arc::new(array.slice(3, 3)), Arc::new(inner)], None);
    let file = import(&one(Arc::new(lists(Arc::new(structs), &[0, 1, 3]))));
    let batch = tensilo::export::batches(&file, None).unwrap().next().unwrap().unwrap();
    let structs = batch.column(0).as_list::<i32>().values().as_struct().clone();
    assert_eq!(structs.column(0).as_primitive::<Decimal256Type>(), &array.slice(3, 3));
    let prices = structs.column(1).as_list::<i32>();
    assert_eq!((prices.value_offsets(), prices.values().as_primitive()), (&[0, 2, 2, 5][..], &array.slice(0, 5)));
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_its_sample() {
    let max = i128::from(i64::MAX);
    let cases: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(Decimal64Array::from(vec![0, 1 << 31]).with_precision_and_scale(9, 2).unwrap()), "2147483648"),
        (
            Arc::new(Decimal128Array::from(vec![0, max + 1]).with_precision_and_scale(18, 2).unwrap()),
            "9223372036854775808",
        ),
        (
            Arc::new(Decimal256Array::from(vec![i256::ZERO, i256::MIN]).with_precision_and_scale(38, 2).unwrap()),
            "-5789",
        ),
    ];
    for (array, value) in cases {
        let error = refused(&[one(array.clone())], &ConvertOptions::new());
        assert_eq!((error.kind(), error.column(), error.samples()), (ErrorKind::BadInput, Some("x"), Some(1..2)));
        assert!(error.message().contains(value), "{error}");
        let error = refused(&[one(Arc::new(lists(array, &[0, 0, 2])))], &ConvertOptions::new());
        assert_eq!(error.samples(), Some(1..2), "{error}");
    }
    // more digits than declared are accepted as long as their storage has room, and come back
    let array: ArrayRef =
        Arc::new(Decimal128Array::from(vec![i128::from(i32::MIN)]).with_precision_and_scale(1, 0).unwrap());
    assert_eq!(&exported(&import(&one(array.clone()))), &array);
}

#[test]
fn null_elements_are_replaced_as_a_whole() {
    let array = Decimal128Array::from(vec![Some(-1), None, Some(5)]).with_precision_and_scale(38, 0).unwrap();
    let batch = one(Arc::new(lists(Arc::new(array), &[0, 1, 3])));
    let refusing = ConvertOptions::new().null_elements(NullElements::Refuse);
    let error = refused(std::slice::from_ref(&batch), &refusing);
    assert_eq!(error.samples(), Some(1..2), "{error}");
    let file = import(&batch);
    assert_eq!((column(&file, "x").type_name(), exported(&file)), ("list<u8>".to_owned(), batch.column(0).clone()));
    let file = import_with(&[batch], &ConvertOptions::new().null_elements(NullElements::Zero)).unwrap();
    let values = exported(&file).as_list::<i32>().values().clone();
    assert_eq!(values.as_primitive::<Decimal128Type>().values().as_ref(), [-1, 0, 5]);
}

#[test]
fn the_bytes_of_a_decimal_are_a_dimension() {
    let deep = |levels: usize| (0..levels).fold(DataType::Decimal128(38, 0), |inner, _| DataType::List(item(inner)));
    let empty = |levels| one(new_empty_array(&deep(levels)));
    assert_eq!(column(&import(&empty(15)), "x").shape.ndim(), 16);
    let error = refused(&[empty(16)], &ConvertOptions::new());
    assert!(error.message().contains("17 dimensions"), "{error}");
}

proptest! {
    #[test]
    fn any_value_comes_back_or_is_refused(value: i128, shift in 0_u32..128, digits in 1_u8..=38, scale in -5_i8..=5) {
        let value = value >> shift;
        let array = Decimal256Array::from(vec![i256::from(value)]);
        let array = array.with_precision_and_scale(digits, scale.min(digits.cast_signed())).unwrap();
        let fits = match digits {
            1..=9 => i32::try_from(value).is_ok(),
            10..=18 => i64::try_from(value).is_ok(),
            _ => true,
        };
        match import_with(&[one(Arc::new(array.clone()))], &ConvertOptions::new()) {
            Ok(file) => prop_assert!(fits && exported(&file).as_primitive::<Decimal256Type>() == &array),
            Err(error) => prop_assert!(!fits, "{error}"),
        }
    }
}

/// Parquet keeps only as many bytes as the digits of the type need.
#[test]
fn decimals_of_more_digits_than_their_type_states_are_preserved_in_arrow_and_refused_in_parquet() {
    use tensilo::export::{ExportFormat, ExportOptions, export_into};
    use tensilo::sink::Stream;
    let power = |bits: u32| i256::from_i128(1 << bits);
    let arrays: [ArrayRef; 4] = [
        Arc::new(Decimal128Array::from(vec![1, 1 << 100]).with_precision_and_scale(19, 0).unwrap()),
        Arc::new(Decimal128Array::from(vec![1, -(1 << 100)]).with_precision_and_scale(20, 2).unwrap()),
        Arc::new(Decimal256Array::from(vec![i256::ONE, power(100)]).with_precision_and_scale(19, 0).unwrap()),
        Arc::new(Decimal256Array::from(vec![i256::ONE, i256::MIN]).with_precision_and_scale(40, 1).unwrap()),
    ];
    for array in arrays {
        let file = import(&one(array.clone()));
        assert_eq!(&exported(&file), &array);
        if cfg!(feature = "parquet") {
            let parquet = export_into(&file, Stream(Vec::new()), ExportFormat::Parquet, ExportOptions::new());
            let Err(error) = parquet else { panic!("{} was not refused", array.data_type()) };
            assert_eq!((error.kind(), error.column()), (ErrorKind::OverLimit, Some("x")));
            assert!(error.message().contains("export to an Arrow file"), "{error}");
        }
    }
}

/// A value under a null struct or a null list is not checked.
#[test]
fn hidden_decimals_may_be_too_large() {
    let hidden = Decimal128Array::from(vec![125, 1_000_000_000_000]).with_precision_and_scale(5, 2).unwrap();
    let decimals: ArrayRef = Arc::new(hidden);
    let (field, nulls) =
        (Arc::new(Field::new("d", decimals.data_type().clone(), false)), Some(vec![true, false].into()));
    let structs = StructArray::new(Fields::from(vec![field.clone()]), vec![decimals.clone()], nulls.clone());
    let file = import(&one(Arc::new(structs)));
    assert_eq!(scalars::<i32>(&file, "x.d"), [Some(125), None]);
    let lists = ListArray::new(field, OffsetBuffer::from_lengths([1, 1]), decimals.clone(), nulls);
    let file = import(&one(Arc::new(lists)));
    assert_eq!(tensors::<i32>(&file, "x"), [Some((vec![1], vec![125])), None]);
    assert_eq!(refused(&[one(decimals)], &ConvertOptions::new()).samples(), Some(1..2));
}
