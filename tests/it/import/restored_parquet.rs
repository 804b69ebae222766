//! Tests source schemas that Parquet cannot represent completely.

use super::common::*;
use super::restored::{exported, only_batch};
use std::sync::Arc;
use tensilo::export::{ExportFormat, ExportOptions};
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, i256};

#[test]
fn dictionaries_that_parquet_stores_as_fixed_length_bytes_become_values() {
    let keys = Int8Array::from(vec![Some(1), None, Some(0)]);
    let halves = Float16Array::from(vec![half::f16::ONE, half::f16::ZERO]);
    let wide = Decimal128Array::from(vec![125, -2]).with_precision_and_scale(30, 2).unwrap();
    let wider = Decimal256Array::from(vec![i256::ONE, i256::ZERO]).with_precision_and_scale(60, 2).unwrap();
    let narrow = Decimal128Array::from(vec![125, -2]).with_precision_and_scale(5, 2).unwrap();
    let bytes = FixedSizeBinaryArray::try_from_iter([b"abc", b"def"].into_iter()).unwrap();
    let arrays: [(ArrayRef, bool); 5] = [
        (Arc::new(halves), false),
        (Arc::new(wide), false),
        (Arc::new(wider), false),
        (Arc::new(narrow), true),
        (Arc::new(bytes), true),
    ];
    for (values, stays) in arrays {
        let whole = one(Arc::new(DictionaryArray::new(keys.clone(), values.clone())));
        let file = import(&whole);
        let found =
            only_batch(exported(&file, ExportFormat::Arrow, ExportOptions::new()).unwrap(), ExportFormat::Arrow);
        assert_eq!(found, whole);
        let found =
            only_batch(exported(&file, ExportFormat::Parquet, ExportOptions::new()).unwrap(), ExportFormat::Parquet);
        let expected = if stays { whole.column(0).data_type() } else { values.data_type() };
        assert_eq!(found.column(0).data_type(), expected);
        let again = through_parquet(&file);
        assert_eq!(again.sample_count(), 3);
    }
}

#[test]
fn structs_without_fields_are_refused_by_parquet_in_all_lists() {
    let empty = |count| StructArray::new_empty_fields(count, None);
    let item = Arc::new(Field::new("item", empty(0).data_type().clone(), false));
    let offsets = || OffsetBuffer::from_lengths([1, 1]);
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let key = Field::new("keys", DataType::Utf8, false);
    let entries = Fields::from(vec![key, item.as_ref().clone().with_name("values")]);
    let entries = StructArray::new(entries, vec![keys, Arc::new(empty(2))], None);
    let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let arrays: [ArrayRef; 5] = [
        Arc::new(LargeListArray::new(item.clone(), OffsetBuffer::from_lengths([1, 1]), Arc::new(empty(2)), None)),
        Arc::new(FixedSizeListArray::new(item.clone(), 1, Arc::new(empty(2)), None)),
        Arc::new(ListViewArray::new(item.clone(), vec![0, 1].into(), vec![1, 1].into(), Arc::new(empty(2)), None)),
        Arc::new(LargeListViewArray::new(item, vec![0, 1].into(), vec![1, 1].into(), Arc::new(empty(2)), None)),
        Arc::new(MapArray::new(entry, offsets(), entries, None, false)),
    ];
    for array in arrays {
        let file = import(&one(array.clone()));
        let Err(error) = exported(&file, ExportFormat::Parquet, ExportOptions::new()) else {
            panic!("{} was not refused", array.data_type())
        };
        assert_eq!((error.kind(), error.column()), (tensilo::ErrorKind::BadArgument, Some("x")), "{error}");
        assert!(error.message().contains("a struct without fields"), "{error}");
    }
}
