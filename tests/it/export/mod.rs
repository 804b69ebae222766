//! Tests that an exported file holds every value, null, length and shape of its source.
//!
//! [`model`] writes every type in every shape and compares the batches of the export, whatever the
//! format, the batch size and the chosen columns. A failed export leaves no file.

mod model;

use model::{SAMPLES, all_types, bytes_of, compare};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use tensilo::export::{ArrowSamples, ExportOptions, batches, export, table_batches};
use tensilo::import::arrow::array::{Array, ArrayData, AsArray, RecordBatch, RecordBatchReader};
use tensilo::import::arrow::buffer::Buffer;
use tensilo::import::arrow::datatypes::{DataType, Date32Type, Field, FieldRef, Schema as ArrowSchema, TimeUnit};
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, ErrorKind, Extent, Metadata, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Folder;

fn read_arrow(path: &Path) -> (ArrowSchema, Vec<RecordBatch>) {
    let reader = tensilo::import::arrow::ipc::reader::FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    (reader.schema().as_ref().clone(), reader.map(|batch| batch.unwrap()).collect())
}

fn extension(field: &Field) -> (Option<&str>, Option<&str>) {
    let get = |key: &str| field.metadata().get(key).map(String::as_str);
    (get("ARROW:extension:name"), get("ARROW:extension:metadata"))
}

#[test]
fn all_types_come_back_from_an_arrow_file() {
    let (reader, models) = all_types();
    let folder = Folder::new();
    let path = folder.path("out.arrow");
    let mut progress = Vec::new();
    let mut note = |samples| {
        progress.push(samples);
        ControlFlow::Continue(())
    };
    export(&reader, &path, ExportOptions::new().progress(&mut note)).unwrap();
    assert_eq!(progress, [SAMPLES as u64]);
    compare(reader.schema(), &models, &read_arrow(&path).1);
}

#[test]
fn small_batches_have_the_same_samples() {
    let (reader, models) = all_types();
    for (samples, bytes) in [(7, u64::MAX), (1, u64::MAX), (u64::MAX, 6000), (u64::MAX, 0)] {
        let batches = batches(&reader, None).unwrap().with_batch_samples(samples).with_batch_bytes(bytes);
        assert_eq!(batches.schema().fields().len(), reader.schema().columns.len());
        let batches: Vec<RecordBatch> = batches.map(|batch| batch.unwrap()).collect();
        compare(reader.schema(), &models, &batches);
        let largest = batches.iter().map(RecordBatch::num_rows).max().unwrap();
        assert!(largest as u64 <= samples && (bytes > 0 || largest == 1), "{largest}");
    }
}

#[test]
fn a_table_has_the_batches_of_its_file() {
    let (reader, models) = all_types();
    let found: Vec<RecordBatch> = table_batches(&reader, None).unwrap().map(|batch| batch.unwrap()).collect();
    compare(reader.schema(), &models, &found);
    let expected: Vec<RecordBatch> = batches(&reader, None).unwrap().map(|batch| batch.unwrap()).collect();
    assert_eq!(found, expected);
    assert!(table_batches(&reader, Some(&["no such".to_owned()])).is_err());
}

#[test]
fn batches_do_not_exceed_their_bytes() {
    let schema = Schema::new([ColumnSchema::utf8("t"), ColumnSchema::tensor("x", DType::Bf16, Shape::fixed(&[5]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().chunk_bytes(64)).unwrap();
    for i in 0..100_usize {
        let text = "x".repeat(i % 10 * 10);
        writer.push(&[Value::text(&text), Value::tensor(&[half::bf16::ONE; 5])]).unwrap();
    }
    let reader = Reader::from_bytes(writer.into_bytes().unwrap()).unwrap();
    let batches = batches(&reader, None).unwrap().with_batch_bytes(500);
    let sizes: Vec<usize> = batches
        .map(|batch| {
            let batch = batch.unwrap();
            let text: usize = batch.column(0).as_string::<i32>().iter().map(|text| text.unwrap().len()).sum();
            text + batch.num_rows() * (4 + 4 + 5 * 4)
        })
        .collect();
    assert!(sizes.iter().all(|&bytes| bytes <= 500), "{sizes:?}");
    assert!(sizes.len() < 20, "{sizes:?}");
}

/// Writes a file whose columns have metadata.
fn described() -> Reader {
    let with = |mut column: ColumnSchema, entries: &[(&str, &str)]| {
        column.metadata = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        column
    };
    let i64s = |name: &str| ColumnSchema::tensor(name, DType::I64, Shape::scalar()).nullable();
    let image = ColumnSchema::tensor("image", DType::U8, Shape::fixed(&[2, 1]));
    let clip = ColumnSchema::tensor("clip", DType::U8, Shape::new([Extent::Varying, Extent::Fixed(2)]));
    let mut schema = Schema::new([
        with(i64s("day"), &[("arrow.type", "date32"), ("unit", "d")]),
        with(i64s("time"), &[("arrow.type", "time32[ms]")]),
        with(i64s("stamp"), &[("arrow.type", "timestamp[us, Europe/Zurich]")]),
        with(i64s("odd"), &[("arrow.type", "time32[ns]")]),
        with(ColumnSchema::bytes("id").nullable(), &[("arrow.type", "fixed_size_binary[2]")]),
        with(image, &[("arrow.dim_names", "[\"H\",\"W\"]")]),
        with(clip, &[("arrow.dim_names", "[\"H\"]")]),
        ColumnSchema::tensor("cast", DType::Bf16, Shape::scalar()).cast_from(DType::F32),
        with(ColumnSchema::tensor("days", DType::I64, Shape::ragged()), &[("arrow.type", "date32")]),
    ]);
    schema.metadata = Metadata::from([("licence".to_owned(), "CC0".to_owned())]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    let clip = [1_u8, 2, 3, 4];
    let pushed = |number: Value<'static>, id: Value<'static>| {
        let (image, cast, days) = (Value::tensor(&[5_u8, 6]), Value::tensor(&[1.1_f32]), Value::tensor(&[1_i64, -2]));
        let numbers = || number.clone();
        [numbers(), numbers(), numbers(), numbers(), id, image, Value::tensor(&clip), cast, days]
    };
    writer.push(&pushed(Value::tensor(&[-3_i64]), Value::bytes(b"ab"))).unwrap();
    writer.push(&pushed(Value::NULL, Value::NULL)).unwrap();
    Reader::from_bytes(writer.into_bytes().unwrap()).unwrap()
}

fn check_described(schema: &ArrowSchema, batch: &RecordBatch) {
    let types: Vec<&DataType> = schema.fields().iter().map(|field| field.data_type()).take(5).collect();
    let stamp = DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Zurich".into()));
    let expected = [
        DataType::Date32,
        DataType::Time32(TimeUnit::Millisecond),
        stamp,
        DataType::Int64,
        DataType::FixedSizeBinary(2),
    ];
    assert_eq!(types, expected.iter().collect::<Vec<_>>());
    assert_eq!(bytes_of(&batch.column(0).slice(0, 1)), (-3_i32).to_le_bytes());
    assert!(batch.column(0).is_null(1) && batch.column(4).is_null(1));
    assert_eq!(batch.column(4).as_fixed_size_binary().value(0), b"ab");
    assert_eq!(schema.metadata().get("licence").unwrap(), "CC0");
    let metadata = |i: usize, key: &str| schema.field(i).metadata().get(key).map(String::as_str);
    assert_eq!((metadata(0, "unit"), metadata(0, "arrow.type")), (Some("d"), None));
    assert_eq!(metadata(3, "arrow.type"), Some("time32[ns]"));
    let expected = r#"{"shape":[2,1],"dim_names":["H","W"]}"#;
    assert_eq!(extension(schema.field(5)), (Some("arrow.fixed_shape_tensor"), Some(expected)));
    let expected = r#"{"uniform_shape":[null,2]}"#;
    assert_eq!(extension(schema.field(6)), (Some("arrow.variable_shape_tensor"), Some(expected)));
    assert_eq!(metadata(6, "arrow.dim_names"), Some("[\"H\"]"));
    assert!(metadata(7, "tensilo.cast").unwrap().starts_with("from f32 to bf16, to nearest, ties to even; largest"));
    let days = batch.column(8).as_list::<i32>().value(1);
    assert_eq!(days.as_primitive::<Date32Type>().values().as_ref(), [1, -2]);
}

#[test]
fn metadata_and_imported_types_reach_an_arrow_file() {
    let folder = Folder::new();
    let path = folder.path("out.arrow");
    export(&described(), &path, ExportOptions::new()).unwrap();
    let (schema, batches) = read_arrow(&path);
    check_described(&schema, &batches[0]);
}

#[test]
fn values_that_do_not_fit_their_imported_type_are_refused() {
    let column = |dtype, shape, text: &str| {
        let mut column = ColumnSchema::tensor("c", dtype, shape);
        column.metadata.insert("arrow.type".to_owned(), text.to_owned());
        column
    };
    let day = column(DType::I64, Shape::scalar(), "date32");
    let id = column(DType::Bytes, Shape::ragged(), "fixed_size_binary[2]");
    let cases = [(day, Value::tensor(&[1_i64 << 31]), "2147483648"), (id, Value::bytes(b"abc"), "3 bytes")];
    for (column, value, message) in cases {
        let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), &WriterOptions::new()).unwrap();
        writer.push(&[value]).unwrap();
        let reader = Reader::from_bytes(writer.into_bytes().unwrap()).unwrap();
        let folder = Folder::new();
        let error = export(&reader, folder.path("o.arrow"), ExportOptions::new()).unwrap_err();
        assert_eq!(error.column(), Some("c"));
        assert!(error.message().contains(message), "{error}");
        assert_eq!(folder.root().read_dir().unwrap().count(), 0, "nothing is left");
    }
}

#[test]
fn columns_are_chosen_in_order_and_only_once() {
    let reader = described();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let chosen = batches(&reader, Some(&names(&["image", "day"]))).unwrap();
    let fields: Vec<String> = chosen.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(fields, ["image", "day"]);
    assert_eq!(chosen.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
    for (wrong, kind) in [("nothing", ErrorKind::UnknownColumn), ("day", ErrorKind::BadArgument)] {
        let error = batches(&reader, Some(&names(&["day", wrong]))).err().unwrap();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn an_unknown_format_and_an_existing_file_are_refused() {
    let reader = described();
    let folder = Folder::new();
    for name in ["out.csv", "out"] {
        let error = export(&reader, folder.path(name), ExportOptions::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadArgument);
        assert!(error.to_string().contains(".parquet") && error.to_string().contains(".arrow"), "{error}");
    }
    let path = folder.path("out.arrow");
    std::fs::write(&path, "precious").unwrap();
    let mut called = false;
    let mut note = |_| {
        called = true;
        ControlFlow::Continue(())
    };
    let error = export(&reader, &path, ExportOptions::new().progress(&mut note)).unwrap_err();
    assert_eq!((error.kind(), error.path(), called), (ErrorKind::Io, Some(path.as_path()), false));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    export(&reader, &path, ExportOptions::new().overwrite(true)).unwrap();
    assert_eq!(read_arrow(&path).1.len(), 1);
    let first = std::fs::read(&path).unwrap();
    export(&reader, &path, ExportOptions::new().overwrite(true)).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first, "the same bytes each time");
    assert_eq!(folder.root().read_dir().unwrap().count(), 1, "no temporary file is left");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_not_built() {
    let folder = Folder::new();
    let error = export(&described(), folder.path("o.parquet"), ExportOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotBuilt);
    assert_eq!(folder.root().read_dir().unwrap().count(), 0);
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use super::*;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn read(path: &Path) -> (ArrowSchema, Vec<RecordBatch>) {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let schema = builder.schema().as_ref().clone();
        (schema, builder.with_batch_size(64).build().unwrap().map(|batch| batch.unwrap()).collect())
    }

    #[test]
    fn all_types_come_back() {
        let (reader, models) = all_types();
        let folder = Folder::new();
        let path = folder.path("out.parquet");
        export(&reader, &path, ExportOptions::new()).unwrap();
        let (schema, found) = read(&path);
        let in_memory = batches(&reader, None).unwrap().schema();
        let metadata = |schema: &ArrowSchema| -> Vec<_> {
            schema.fields().iter().map(|field| (field.name().clone(), field.metadata().clone())).collect()
        };
        assert_eq!(metadata(&schema), metadata(&in_memory));
        compare(reader.schema(), &models, &found);
        let first = std::fs::read(&path).unwrap();
        export(&reader, &path, ExportOptions::new().overwrite(true)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), first, "the same bytes each time");
    }

    #[test]
    fn metadata_and_imported_types_come_back() {
        let folder = Folder::new();
        let path = folder.path("out.parquet");
        export(&described(), &path, ExportOptions::new()).unwrap();
        let (schema, batches) = read(&path);
        check_described(&schema, &batches[0]);
    }
}

/// Returns samples of scalars in Arrow's layout.
fn samples(schema: &ColumnSchema, values: &[i64], validity: Option<&[u8]>) -> Option<(FieldRef, ArrayData)> {
    let samples = ArrowSamples {
        schema,
        sample_count: values.len(),
        item_count: values.len(),
        values: Buffer::from_vec(values.to_vec()),
        tensor: None,
        offsets: &[],
        varying_extents: &[],
        validity,
        lists: &[],
    };
    samples.to_arrow().ok()
}

#[test]
fn a_bitmap_of_samples_that_is_too_short_is_an_error() {
    let schema = ColumnSchema::tensor("x", DType::I64, Shape::scalar()).nullable();
    assert_eq!(samples(&schema, &[7; 9], Some(&[0xFE, 1])).unwrap().1.null_count(), 1);
    assert!(samples(&schema, &[7; 9], Some(&[0xFE])).is_none());
}

#[test]
fn samples_that_do_not_get_the_source_type_keep_it_as_metadata() {
    let mut schema = ColumnSchema::tensor("x", DType::I64, Shape::scalar());
    schema.metadata.insert("arrow.type".to_owned(), "date32".to_owned());
    let (field, _) = samples(&schema, &[1, 2], None).unwrap();
    assert_eq!((field.data_type(), field.metadata().len()), (&DataType::Date32, 0));
    let (field, _) = samples(&schema, &[1, i64::MAX], None).unwrap();
    assert_eq!((field.data_type(), &*field.metadata()["arrow.type"]), (&DataType::Int64, "date32"));
}
