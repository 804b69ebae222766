//! Tests how an Arrow schema that is embedded in a Parquet file affects the columns.

use super::common::*;
use super::restored::{exported, only_batch};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::encode_arrow_schema;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::export::{ExportFormat, ExportOptions};
use tensilo::import::ConvertOptions;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit, i256};
use tensilo_testing::Folder;

/// Returns a Parquet file with a batch and another schema.
fn with_schema(whole: &RecordBatch, schema: &Schema) -> Vec<u8> {
    let entries = vec![KeyValue::new("ARROW:schema".to_owned(), encode_arrow_schema(schema))];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(entries)).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), whole.schema(), options).unwrap();
    writer.write(whole).unwrap();
    writer.into_inner().unwrap()
}

/// Writes a batch and another schema to a Parquet file, converts the file, and exports it.
#[track_caller]
fn embedded(whole: &RecordBatch, schema: &Schema) -> RecordBatch {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    write_old(&path, &with_schema(whole, schema));
    let file = converted(&folder, &[path], &ConvertOptions::new()).unwrap();
    only_batch(exported(&file, ExportFormat::Arrow, ExportOptions::new()).unwrap(), ExportFormat::Arrow)
}

/// Returns a batch with the values in a field, a struct, a list and a map.
fn nested(values: &ArrayRef) -> RecordBatch {
    let count = values.len();
    let own = item(values.data_type().clone());
    let fields = Fields::from(vec![Field::new("number", DataType::Int8, true), Field::clone(&own)]);
    let numbers: ArrayRef = Arc::new(Int8Array::from_iter_values((0..count).map(|i| i as i8)));
    let pairs = StructArray::new(fields, vec![numbers, values.clone()], None);
    let offsets = || OffsetBuffer::from_lengths(std::iter::repeat_n(1, count));
    let lists = LargeListArray::new(own, OffsetBuffer::from_lengths([count, 0, 0]), values.clone(), None);
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(|i| i.to_string())));
    let entry = |name: &str, array: &ArrayRef, nullable| Field::new(name, array.data_type().clone(), nullable);
    let fields = Fields::from(vec![entry("keys", &keys, false), entry("values", values, true)]);
    let entries = StructArray::new(fields, vec![keys, values.clone()], None);
    let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let columns: [(&str, ArrayRef); 4] = [
        ("x", values.clone()),
        ("pairs", Arc::new(pairs)),
        ("lists", Arc::new(lists)),
        ("maps", Arc::new(MapArray::new(entry, offsets(), entries, None, false))),
    ];
    batch(columns.map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).into())
}

fn moments(zone: Option<&str>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None, Some(-5)]).with_timezone_opt(zone))
}

fn timestamp(unit: TimeUnit, zone: Option<&str>) -> ArrayRef {
    new_empty_array(&DataType::Timestamp(unit, zone.map(Into::into)))
}

/// Returns the schema of [`nested`] for values of another type.
fn nested_schema(values: &ArrayRef) -> Schema {
    let none = new_null_array(values.data_type(), 3);
    nested(&none).schema().as_ref().clone()
}

#[test]
fn zones_have_the_unit_of_the_column() {
    const ZURICH: Option<&str> = Some("Europe/Zurich");
    let whole = nested(&moments(Some("UTC")));
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        assert_eq!(embedded(&whole, &nested_schema(&timestamp(unit, ZURICH))), nested(&moments(ZURICH)), "{unit:?}");
        assert_eq!(embedded(&whole, &nested_schema(&timestamp(unit, Some("UTC")))), whole, "{unit:?}");
    }
    let dictionary = DataType::Dictionary(
        Box::new(DataType::Int8),
        Box::new(DataType::Timestamp(TimeUnit::Nanosecond, ZURICH.map(Into::into))),
    );
    assert_eq!(embedded(&whole, &nested_schema(&new_empty_array(&dictionary))), nested(&moments(ZURICH)));
    // a schema without a zone does not contradict a column in UTC
    assert_eq!(embedded(&whole, &nested_schema(&timestamp(TimeUnit::Nanosecond, None))), whole);
    // a schema with a zone gives no zone to a column without one
    let local = nested(&moments(None));
    assert_eq!(embedded(&local, &nested_schema(&timestamp(TimeUnit::Nanosecond, ZURICH))), local);
}

/// Returns arrays of three values, each with whether its dictionary is preserved.
fn values() -> Vec<(ArrayRef, bool)> {
    let decimals = |precision| {
        let array = Decimal128Array::from(vec![Some(125), None, Some(-2)]);
        Arc::new(array.with_precision_and_scale(precision, 2).unwrap())
    };
    let wide = Decimal256Array::from(vec![Some(i256::ONE), None, Some(i256::MINUS_ONE)]);
    let halves = [Some(half::f16::ONE), None, Some(half::f16::ZERO)];
    let bytes = [Some(b"abc"), None, Some(b"def")].into_iter();
    vec![
        (decimals(21), false),
        (Arc::new(wide.with_precision_and_scale(60, 2).unwrap()), false),
        (Arc::new(Float16Array::from_iter(halves)), false),
        (Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])), false),
        // Parquet stores these as integers
        (decimals(5), true),
        (decimals(15), true),
        (moments(Some("Europe/Zurich")), true),
        (Arc::new(Int16Array::from(vec![Some(7), None, Some(-7)])), true),
        (Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-0.0)])), true),
        (Arc::new(LargeStringArray::from(vec![Some("b"), None, Some("a")])), true),
        (Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 3).unwrap()), true),
    ]
}

#[test]
fn dictionaries_that_the_decoder_cannot_read_become_values() {
    for (array, is_preserved) in values() {
        let unencoded = array.data_type().clone();
        let keyed = DataType::Dictionary(Box::new(DataType::Int8), Box::new(unencoded.clone()));
        let none = new_empty_array(&keyed);
        let found = embedded(&nested(&array), &nested_schema(&none));
        let expected = if is_preserved { nested_schema(&none) } else { nested_schema(&array) };
        assert_eq!(found.schema().as_ref(), &expected);
        if !is_preserved {
            assert_eq!(found, nested(&array));
        }
    }
}

#[test]
fn the_rest_of_the_schema_is_unchanged_without_such_a_dictionary() {
    let bools: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let keyed =
        |values: &ArrayRef| DataType::Dictionary(Box::new(DataType::Int8), Box::new(values.data_type().clone()));
    let note = |key: &str| HashMap::from([(key.to_owned(), "text".to_owned())]);
    let whole = batch(vec![
        (Field::new("x", DataType::Boolean, false), bools.clone()),
        (Field::new("ordered", DataType::Utf8, true), texts.clone()),
    ]);
    let schema = |first: DataType| {
        let ordered = Field::new("ordered", keyed(&texts), true).with_dict_is_ordered(true);
        let fields =
            vec![Field::new("x", first, false).with_metadata(note("of x")), ordered.with_metadata(note("of it"))];
        Schema::new_with_metadata(fields, note("of the schema"))
    };
    let unencoded = embedded(&whole, &schema(DataType::Boolean));
    assert_eq!(unencoded.schema().as_ref(), &schema(DataType::Boolean));
    assert_eq!(embedded(&whole, &schema(keyed(&bools))), unencoded);
}

#[test]
fn a_dictionary_of_nothing_but_nulls_is_null() {
    let nulls = one(new_null_array(&DataType::Null, 3));
    let keyed = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Null));
    let schema = Schema::new(vec![Field::new("x", keyed, true)]);
    assert_eq!(embedded(&nulls, &schema).column(0).data_type(), &DataType::Null);
}

/// The decoder would allocate 4 GiB for each null.
#[test]
fn nulls_that_no_sample_can_have_are_refused() {
    let pair = |lists: DataType| {
        let field = |name: &str| Field::new(name, lists.clone(), true);
        DataType::Struct(Fields::from(vec![field("a"), field("b")]))
    };
    let nulls = new_null_array(&pair(DataType::List(item(DataType::Float32))), 64);
    let lists = DataType::FixedSizeList(item(DataType::Float32), 1 << 29);
    let schema = Schema::new(vec![Field::new("x", pair(lists), true)]);
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    write_old(&path, &with_schema(&one(nulls), &schema));
    let error = converted(&folder, &[path], &ConvertOptions::new()).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.column()), (tensilo::ErrorKind::BadInput, Some("x")), "{error}");
}

#[test]
fn marks_in_the_schema_are_ignored() {
    let whole = one(moments(None));
    for key in ["PARQUET:int96", "PARQUET:encrypted", "tensilo.refused"] {
        let field = whole.schema().field(0).clone().with_metadata([(key, "")]);
        let found = embedded(&whole, &Schema::new(vec![field]));
        assert_eq!(found, whole, "{key}");
    }
}
