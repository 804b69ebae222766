//! Tests that an export has the schema of the source.
//!
//! Arrow has several layouts of the same values: large strings, views, dictionaries, lists of
//! several kinds. A file stores the Arrow schema of its source next to its own, as Parquet files
//! do. An export restores the fields from it, unless the caller requests the stored types or
//! another form of tensors.

use super::common::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use tensilo::export::{ExportFormat, ExportOptions, TensorForm, export_into};
use tensilo::import::ConvertOptions;
use tensilo::import::arrow::array::types::*;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, Schema};
use tensilo::import::arrow::ipc::reader::FileReader;
use tensilo::sink::Stream;
use tensilo::{DType, Reader};

/// Exports a file to memory.
pub fn exported(file: &Reader, format: ExportFormat, options: ExportOptions<'_>) -> tensilo::Result<Vec<u8>> {
    Ok(export_into(file, Stream(Vec::new()), format, options)?.0)
}

/// Reads the only batch of an exported file.
#[track_caller]
pub fn only_batch(bytes: Vec<u8>, format: ExportFormat) -> RecordBatch {
    let batches: Vec<RecordBatch> = match format {
        ExportFormat::Arrow => {
            FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap().map(|batch| batch.unwrap()).collect()
        }
        #[cfg(feature = "parquet")]
        _ => {
            use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
            let schema = reader.schema().clone(); // the batches' schema has no metadata
            let batches = reader.build().unwrap();
            batches.map(|batch| batch.unwrap().with_schema(schema.clone()).unwrap()).collect()
        }
        #[cfg(not(feature = "parquet"))]
        _ => unreachable!(),
    };
    assert_eq!(batches.len(), 1);
    batches[0].clone()
}

/// Returns the formats of this build.
pub fn formats() -> Vec<ExportFormat> {
    vec![
        ExportFormat::Arrow,
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet,
    ]
}

#[track_caller]
pub fn check(whole: &RecordBatch) {
    let file = import(whole);
    for format in formats() {
        let bytes = exported(&file, format, ExportOptions::new()).unwrap();
        let found = only_batch(bytes, format);
        assert_eq!(found.schema(), whole.schema(), "{format:?}");
        assert_eq!(&found, whole, "{format:?}");
    }
}

fn check_one(array: ArrayRef) {
    check(&one(array));
}

const TEXTS: [Option<&str>; 4] = [Some("b"), None, Some("a long text that does not fit into a view"), Some("b")];

#[test]
fn layouts_of_texts_and_binaries() {
    let bytes = TEXTS.map(|text| text.map(str::as_bytes));
    check_one(Arc::new(LargeStringArray::from_iter(TEXTS)));
    check_one(Arc::new(StringViewArray::from_iter(TEXTS)));
    check_one(Arc::new(LargeBinaryArray::from_iter(bytes)));
    check_one(Arc::new(BinaryViewArray::from_iter(bytes)));
}

#[test]
fn dictionaries() {
    check_one(Arc::new(DictionaryArray::<Int8Type>::from_iter(TEXTS)));
    let keys = UInt16Array::from(vec![Some(1), None, Some(0)]);
    check_one(Arc::new(DictionaryArray::new(keys.clone(), Arc::new(Int64Array::from(vec![7, -8])))));
    check_one(Arc::new(DictionaryArray::new(keys.clone(), Arc::new(Float32Array::from(vec![0.5, -0.0])))));
    check_one(Arc::new(DictionaryArray::new(keys, Arc::new(LargeStringArray::from(vec!["x", "y"])))));
}

/// Returns a batch whose dictionary has ordered values, in another order than the samples.
fn ordered() -> RecordBatch {
    let keys = Int8Array::from(vec![Some(2), Some(0), None]);
    let array = DictionaryArray::new(keys, Arc::new(StringArray::from(vec!["low", "mid", "high"])));
    let field = Field::new("x", array.data_type().clone(), true).with_dict_is_ordered(true);
    batch(vec![(field, Arc::new(array))])
}

#[test]
fn the_order_of_a_dictionary_comes_back_where_a_format_keeps_it() {
    let file = import(&ordered());
    let found = only_batch(exported(&file, ExportFormat::Arrow, ExportOptions::new()).unwrap(), ExportFormat::Arrow);
    assert_eq!(found.schema(), ordered().schema());
    assert_eq!(found.schema().field(0).dict_is_ordered(), Some(true));
    assert_eq!(found.column(0).as_any_dictionary().values().as_string::<i32>().value(1), "mid");
    #[cfg(feature = "parquet")]
    {
        let bytes = exported(&file, ExportFormat::Parquet, ExportOptions::new()).unwrap();
        let found = only_batch(bytes, ExportFormat::Parquet);
        assert_eq!(found.schema().field(0).dict_is_ordered(), Some(false));
        assert_eq!(found.column(0), ordered().column(0));
    }
}

#[test]
fn batches_of_an_arrow_file_share_a_dictionary_that_grows() {
    let texts: Vec<String> = (0..200_000).map(|i| format!("{}", i % (1 + i / 300))).collect();
    let array = DictionaryArray::<Int32Type>::from_iter(texts.iter().map(String::as_str));
    let file = import(&one(Arc::new(array.clone())));
    let bytes = exported(&file, ExportFormat::Arrow, ExportOptions::new()).unwrap();
    let batches = FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    let mut first = 0;
    for batch in batches {
        let batch = batch.unwrap();
        let expected = array.slice(first, batch.num_rows());
        assert_eq!(batch.column(0).to_data(), expected.to_data());
        first += batch.num_rows();
    }
    assert_eq!(first, array.len());
}

#[test]
fn lists_of_every_kind() {
    let lists = || vec![Some(vec![Some(1.0_f32), Some(2.0)]), None, Some(vec![Some(3.0), Some(4.0)])];
    check_one(Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists())));
    check_one(Arc::new(LargeListArray::from_iter_primitive::<Float32Type, _, _>(lists())));
    check_one(Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(lists(), 2)));
    let ragged = vec![Some(vec![Some(1), Some(2)]), None, Some(vec![]), Some(vec![Some(3)])];
    check_one(Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(ragged.clone())));
    let mut views = ListViewBuilder::new(Int32Builder::new());
    let mut large_views = LargeListViewBuilder::new(StringBuilder::new());
    for list in ragged {
        views.append_option(list.clone());
        large_views.append_option(list.map(|list| list.into_iter().map(|x| x.map(|x| x.to_string()))));
    }
    check_one(Arc::new(views.finish()));
    check_one(Arc::new(large_views.finish()));
}

#[test]
fn lists_in_lists_with_the_names_and_metadata_of_items() {
    let values = Int16Array::from_iter_values(0..8);
    let element = Field::new("element", DataType::Int16, false).with_metadata([("k", "v")]);
    let inner = ListArray::new(Arc::new(element), OffsetBuffer::from_lengths([2; 4]), Arc::new(values), None);
    let array = Field::new("array", inner.data_type().clone(), false);
    let outer = LargeListArray::new(Arc::new(array), OffsetBuffer::from_lengths([2, 2]), Arc::new(inner), None);
    let field = Field::new("x", outer.data_type().clone(), false).with_metadata([("unit", "m")]);
    check(&batch(vec![(field, Arc::new(outer))]));
}

#[test]
fn ragged_tensors_are_lists_again() {
    let values = Int32Array::from_iter_values(0..7);
    let inner = ListArray::new(item(DataType::Int32), OffsetBuffer::from_lengths([2, 2, 3]), Arc::new(values), None);
    let nulls = NullBuffer::from(vec![true, true, false, true]);
    let offsets = OffsetBuffer::from_lengths([2, 1, 0, 0]);
    check_one(Arc::new(ListArray::new(item(inner.data_type().clone()), offsets, Arc::new(inner), Some(nulls))));
}

#[test]
fn jagged_lists_without_nulls_stay_non_nullable() {
    let values = Int32Array::from_iter_values(0..5);
    let element = Field::new("element", DataType::Int32, false);
    let inner = ListArray::new(Arc::new(element), OffsetBuffer::from_lengths([2, 0, 3]), Arc::new(values), None);
    let array = Field::new("array", inner.data_type().clone(), false);
    let outer = LargeListArray::new(Arc::new(array), OffsetBuffer::from_lengths([2, 1]), Arc::new(inner), None);
    let whole = batch(vec![(Field::new("x", outer.data_type().clone(), false), Arc::new(outer))]);
    check(&whole);
    let levels: Vec<bool> = import(&whole).schema().columns[0].levels.iter().map(|level| level.nullable).collect();
    assert_eq!(levels, [false]);
}

#[test]
fn maps() {
    let mut map = MapBuilder::new(None, StringBuilder::new(), ListBuilder::new(LargeStringBuilder::new()));
    map.keys().append_value("a");
    map.values().append_value([Some("x"), None]);
    map.keys().append_value("b");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.append(true).unwrap();
    check_one(Arc::new(map.finish()));
}

#[test]
fn lists_of_structs() {
    let role = Field::new("role", DataType::LargeUtf8, false);
    let content = Field::new("content", DataType::Utf8, true).with_metadata([("k", "v")]);
    let embedding = Field::new("embedding", DataType::new_list(DataType::Float32, true), true);
    let embeddings = [Some([Some(1.0), Some(2.0)]), Some([Some(3.0), Some(4.0)])];
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(LargeStringArray::from(vec!["user", "assistant"])),
        Arc::new(StringArray::from(vec![Some("hello"), None])),
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(embeddings)),
    ];
    let messages = StructArray::new(Fields::from(vec![role, content, embedding]), arrays, None);
    let message = Field::new("item", messages.data_type().clone(), false);
    let lists = ListArray::new(Arc::new(message), OffsetBuffer::from_lengths([2, 0]), Arc::new(messages), None);
    check_one(Arc::new(lists));
}

#[test]
fn timestamps_with_zones_in_lists() {
    let times = TimestampMicrosecondArray::from(vec![1, 2]).with_timezone("Europe/Zurich");
    let times: ArrayRef = Arc::new(times);
    check_one(times.clone());
    check_one(Arc::new(ListArray::new(
        item(times.data_type().clone()),
        OffsetBuffer::from_lengths([1, 1]),
        times,
        None,
    )));
}

#[test]
fn tensors_are_exported_as_imported_or_as_requested() {
    let lists = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0), Some(2.0)])], 2);
    let file = import(&one(Arc::new(lists)));
    let extension = |form| {
        let options = ExportOptions::new().tensors(form);
        let found = only_batch(exported(&file, ExportFormat::Arrow, options).unwrap(), ExportFormat::Arrow);
        found.schema().field(0).extension_type_name().map(str::to_owned)
    };
    assert_eq!(extension(TensorForm::AsImported), None);
    assert_eq!(extension(TensorForm::Lists), None);
    assert_eq!(extension(TensorForm::Extension).as_deref(), Some("arrow.fixed_shape_tensor"));
    let stored = ExportOptions::new().stored_types(true);
    let found = only_batch(exported(&file, ExportFormat::Arrow, stored).unwrap(), ExportFormat::Arrow);
    assert_eq!(found.schema().field(0).extension_type_name(), Some("arrow.fixed_shape_tensor"));
}

#[test]
fn casts_come_back_in_the_type_they_were_cast_from() {
    let lists = LargeListArray::from_iter_primitive::<Float64Type, _, _>([Some([Some(0.1), Some(1.0)])]);
    let half: ArrayRef = Arc::new(Float32Array::from(vec![0.1]));
    let whole = batch(vec![
        (Field::new("x", lists.data_type().clone(), true), Arc::new(lists)),
        (Field::new("y", DataType::Float32, true), half),
    ]);
    let options = ConvertOptions::new().bf16(true).casts([("y", DType::F16)]);
    let file = import_with(&[whole], &options).unwrap();
    let found = only_batch(exported(&file, ExportFormat::Arrow, ExportOptions::new()).unwrap(), ExportFormat::Arrow);
    let values = found.column(0).as_list::<i64>().value(0);
    let rounded = half::bf16::from_f32(0.1).to_f64();
    assert_eq!(values.as_primitive::<Float64Type>().values().as_ref(), [rounded, 1.0]);
    let rounded = half::f16::from_f32(0.1).to_f32();
    assert_eq!(found.column(1).as_primitive::<Float32Type>().values().as_ref(), [rounded]);
    assert!(found.schema().field(0).metadata().contains_key("tensilo.cast"));
}

#[test]
fn field_descriptions_are_preserved_while_all_fields_are() {
    let pandas = r#"{"columns":[{"name":"a","field_name":"a"},{"name":null,"field_name":"b"}]}"#;
    let huggingface = r#"{"info":{"features":{"a":{}}}}"#;
    let fields = vec![Field::new("a", DataType::LargeUtf8, true), Field::new("b", DataType::Int8, true)];
    let metadata = [("pandas", pandas), ("huggingface", huggingface), ("author", "me")];
    let schema = Schema::new(fields).with_metadata(metadata);
    let columns: Vec<ArrayRef> = vec![Arc::new(LargeStringArray::from(vec!["x"])), Arc::new(Int8Array::from(vec![1]))];
    let whole = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    check(&whole);
    let keys = |column: &str| {
        let options = ExportOptions::new().columns([column]);
        let bytes = exported(&import(&whole), ExportFormat::Arrow, options).unwrap();
        let schema = only_batch(bytes, ExportFormat::Arrow).schema();
        let mut keys: Vec<String> = schema.metadata().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys("a"), ["author", "huggingface"]);
    assert_eq!(keys("b"), ["author"]);
}

/// Returns the metadata keys of an export.
fn keys(file: &Reader, options: ExportOptions<'_>) -> Vec<String> {
    let schema = only_batch(exported(file, ExportFormat::Arrow, options).unwrap(), ExportFormat::Arrow).schema();
    schema.metadata().keys().cloned().collect()
}

#[test]
fn descriptions_are_left_out_if_their_fields_differ_from_the_source() {
    let huggingface = r#"{"info":{"features":{"s":{"a":{},"b":{}},"l":{},"t":{}}}}"#;
    let fields = vec![Field::new("a", DataType::LargeUtf8, true), Field::new("b", DataType::Int8, true)];
    let columns: Vec<ArrayRef> = vec![Arc::new(LargeStringArray::from(vec!["x"])), Arc::new(Int8Array::from(vec![1]))];
    let structs = StructArray::new(Fields::from(fields), columns, None);
    let lists = ListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0), Some(2.0)])]);
    let text = StringArray::from(vec!["x"]);
    let field = |name: &str, array: &dyn Array| Field::new(name, array.data_type().clone(), true);
    let fields = vec![field("s", &structs), field("l", &lists), field("t", &text)];
    let schema = Schema::new(fields).with_metadata([("huggingface", huggingface)]);
    let columns: Vec<ArrayRef> = vec![Arc::new(structs), Arc::new(lists), Arc::new(text)];
    let file = import(&RecordBatch::try_new(Arc::new(schema), columns).unwrap());
    assert_eq!(keys(&file, ExportOptions::new()), ["huggingface"]);
    assert_eq!(keys(&file, ExportOptions::new().columns(["t", "l", "s"])), ["huggingface"]);
    assert_eq!(keys(&file, ExportOptions::new().tensors(TensorForm::Lists)), ["huggingface"]);
    assert!(keys(&file, ExportOptions::new().columns(["s.a", "l", "t"])).is_empty());
    assert!(keys(&file, ExportOptions::new().stored_types(true)).is_empty());
    assert!(keys(&file, ExportOptions::new().tensors(TensorForm::Extension)).is_empty());
    // a file that stores no schema
    let column = tensilo::ColumnSchema::tensor("l", DType::F32, tensilo::Shape::fixed(&[2]));
    let mut schema = tensilo::Schema::new([column]);
    schema.metadata.insert("huggingface".to_owned(), r#"{"info":{"features":{"l":{}}}}"#.to_owned());
    let mut writer = tensilo::Writer::new(Stream(Vec::new()), schema, &tensilo::WriterOptions::new()).unwrap();
    writer.push(&[tensilo::Value::tensor(&[1.0_f32, 2.0])]).unwrap();
    let file = Reader::from_bytes(writer.into_bytes().unwrap()).unwrap();
    assert_eq!(keys(&file, ExportOptions::new().stored_types(true)), ["huggingface"]);
    assert!(keys(&file, ExportOptions::new().tensors(TensorForm::Lists)).is_empty());
}

#[test]
fn stored_types_of_rounded_columns_are_the_types_in_the_file() {
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 1.0]));
    let field = |name: &str| Field::new(name, DataType::Float64, true);
    let whole = batch(["h", "b", "f"].map(|name| (field(name), doubles.clone())).into());
    let options = ConvertOptions::new().casts([("h", DType::F16), ("b", DType::Bf16), ("f", DType::F32)]);
    let file = import_with(&[whole], &options).unwrap();
    let types = |options: ExportOptions<'_>| -> Vec<DataType> {
        let batch = only_batch(exported(&file, ExportFormat::Arrow, options).unwrap(), ExportFormat::Arrow);
        batch.columns().iter().map(|column| column.data_type().clone()).collect()
    };
    assert_eq!(types(ExportOptions::new()), [DataType::Float64, DataType::Float64, DataType::Float64]);
    let stored = [DataType::Float16, DataType::Float32, DataType::Float32];
    assert_eq!(types(ExportOptions::new().stored_types(true)), stored);
}

/// Returns the schema of the source that a file stores.
pub fn saved(file: &Reader) -> Option<Schema> {
    let message = STANDARD.decode(file.schema().metadata.get("ARROW:schema")?).unwrap();
    Some(arrow_ipc::convert::try_schema_from_ipc_buffer(&message).unwrap())
}

#[test]
fn the_schema_is_saved_as_in_parquet_files() {
    let plain: ArrayRef = Arc::new(StringArray::from_iter(TEXTS));
    let large: ArrayRef = Arc::new(LargeStringArray::from_iter(TEXTS));
    let plain = (Field::new("plain", DataType::Utf8, true).with_metadata([("k", "v")]), plain);
    let whole = batch(vec![(Field::new("large", DataType::LargeUtf8, true), large), plain.clone()]);
    let folder = tensilo_testing::Folder::new();
    let file = import(&whole);
    assert_eq!(saved(&file).as_ref(), Some(whole.schema().as_ref()));
    #[cfg(feature = "parquet")]
    {
        let expected = parquet::arrow::encode_arrow_schema(&whole.schema());
        assert_eq!(file.schema().metadata["ARROW:schema"], expected);
    }
    // only with fields whose columns are in the file
    let skipped = import_with(std::slice::from_ref(&whole), &ConvertOptions::new().skip(["plain"])).unwrap();
    assert_eq!(saved(&skipped).unwrap().fields()[..], whole.schema().fields()[..1]);
    // columns of strings imply fields of strings, so no schema is stored
    let implied = import_with(std::slice::from_ref(&whole), &ConvertOptions::new().skip(["large"])).unwrap();
    assert_eq!(saved(&implied), None);
    let found = only_batch(exported(&implied, ExportFormat::Arrow, ExportOptions::new()).unwrap(), ExportFormat::Arrow);
    assert_eq!(found, batch(vec![plain]));
    // a copy of the file has an identical schema
    let input = arrow_file(&folder, "a.arrow", &[whole]);
    let (first, second) = (folder.path("first.tsl"), folder.path("second.tsl"));
    convert_with(&[input], &first, &ConvertOptions::new()).unwrap();
    convert_with(std::slice::from_ref(&first), &second, &ConvertOptions::new()).unwrap();
    assert_eq!(read(&first).schema(), read(&second).schema());
    assert_eq!(read(&first).schema().metadata, file.schema().metadata);
}

#[test]
fn a_field_is_nullable_if_it_is_nullable_in_any_input() {
    let folder = tensilo_testing::Folder::new();
    let of = |nullable, texts: Vec<Option<&str>>| {
        let array: ArrayRef = Arc::new(LargeStringArray::from(texts));
        batch(vec![(Field::new("x", DataType::LargeUtf8, nullable), array)])
    };
    let required = arrow_file(&folder, "a.arrow", &[of(false, vec![Some("a")])]);
    let nullable = arrow_file(&folder, "b.arrow", &[of(true, vec![None])]);
    let file = converted(&folder, &[required, nullable], &ConvertOptions::new()).unwrap();
    let found = only_batch(exported(&file, ExportFormat::Arrow, ExportOptions::new()).unwrap(), ExportFormat::Arrow);
    assert_eq!(found, of(true, vec![Some("a"), None]));
}

#[test]
fn a_file_whose_columns_imply_the_fields_joins_one_that_keeps_a_schema() {
    let folder = tensilo_testing::Folder::new();
    let explicit: ArrayRef = Arc::new(LargeStringArray::from(vec!["a"]));
    let explicit = batch(vec![(Field::new("x", DataType::LargeUtf8, false), explicit)]);
    let implied: ArrayRef = Arc::new(StringArray::from(vec![None, Some("b")]));
    let implied = batch(vec![(Field::new("x", DataType::Utf8, true), implied)]);
    let files = [("kept", explicit, true), ("implied", implied, false)].map(|(name, batch, is_saved)| {
        let source = arrow_file(&folder, &format!("{name}.arrow"), &[batch]);
        let file = folder.path(format!("{name}.tsl"));
        convert_with(&[source], &file, &ConvertOptions::new()).unwrap();
        assert_eq!(saved(&read(&file)).is_some(), is_saved);
        file
    });
    let [explicit, implied] = files;
    for (inputs, expected) in [
        ([explicit.clone(), implied.clone()], [Some("a"), None, Some("b")]),
        ([implied, explicit], [None, Some("b"), Some("a")]),
    ] {
        let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
        let bytes = exported(&file, ExportFormat::Arrow, ExportOptions::new()).unwrap();
        assert_eq!(
            strings(&import(&only_batch(bytes, ExportFormat::Arrow)), "x"),
            expected.map(|x| x.map(|x| x.as_bytes().to_vec()))
        );
    }
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_file_itself_has_the_metadata_of_the_schema() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let schema = Schema::new(vec![Field::new("x", DataType::Int8, true)]).with_metadata([("b", ""), ("a", "1")]);
    let whole = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int8Array::from(vec![1]))]).unwrap();
    check(&whole);
    let bytes = exported(&import(&whole), ExportFormat::Parquet, ExportOptions::new()).unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let entries = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let entries: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_deref())).collect();
    assert_eq!(entries[..2], [("a", Some("1")), ("b", Some(""))]);
    assert_eq!((entries.len(), entries[2].0), (3, "ARROW:schema"));
}

#[test]
fn binaries_of_no_bytes_come_back() {
    let values = FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some([]), None].into_iter(), 0).unwrap();
    let whole = one(Arc::new(values));
    let file = import(&whole);
    for format in formats() {
        let bytes = exported(&file, format, ExportOptions::new()).unwrap();
        let found = only_batch(bytes, format);
        let expected = [DataType::FixedSizeBinary(0), DataType::Binary];
        assert_eq!(found.schema().field(0).data_type(), &expected[usize::from(format != ExportFormat::Arrow)]);
        assert_eq!(strings(&import(&found), "x"), strings(&file, "x"), "{format:?}");
    }
}
