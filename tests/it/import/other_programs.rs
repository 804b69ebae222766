//! Tests files that other programs write and that Arrow's decoders refuse or change silently.

use super::common::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::Reader;
use tensilo::error::Advice;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Schema, UnionFields};
use tensilo::import::{ConvertOptions, dropped_metadata};
use tensilo_testing::Folder;

/// Returns the path of a file in `tests/data/import`.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import").join(name)
}

fn converted(input: &Path, options: ConvertOptions) -> tensilo::Result<Reader> {
    let folder = Folder::new();
    let output = folder.path("out.tsl");
    tensilo::import::convert(&[input.to_path_buf()], &output, &options, &mut |_| std::ops::ControlFlow::Continue(()))?;
    Ok(read(&output))
}

#[test]
fn integers_of_128_bits_are_16_bytes() {
    let sample = |number: i128| Some(number.to_le_bytes().to_vec());
    for name in ["int128-polars.arrow", "int128-polars.arrows"] {
        let file = converted(&data(name), ConvertOptions::new()).unwrap();
        assert_eq!(scalars::<i64>(&file, "x"), [Some(1), Some(2), Some(3)]);
        assert_eq!(strings(&file, "big"), [sample(1), sample(-2), None], "{name}");
        assert_eq!(column(&file, "big").metadata["arrow.type"], "fixed_size_binary[16]");
        let file = converted(&data(name), ConvertOptions::new().skip(["big"])).unwrap();
        assert_eq!(column_names(&file), ["x"]);
    }
    #[cfg(feature = "parquet")]
    {
        let file = converted(&data("int128-polars.parquet"), ConvertOptions::new()).unwrap();
        assert_eq!((column_names(&file), column(&file, "big").dtype), (vec!["big", "x"], tensilo::DType::Bytes));
        let file = converted(&data("int128-polars.parquet"), ConvertOptions::new().columns(["x"])).unwrap();
        assert_eq!(column_names(&file), ["x"]);
    }
}

#[test]
fn a_column_that_cannot_be_decoded_is_named_and_can_be_skipped() {
    let input = data("empty-dictionary-in-struct.arrow");
    let error = converted(&input, ConvertOptions::new()).map(|_| ()).unwrap_err();
    assert!(error.column().is_some() && error.advice() == [Advice::SkipColumns], "{error}");
    // the file has other columns, too
    let folder = Folder::new();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["needle"]));
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![3]));
    let input = arrow_file(
        &folder,
        "x.arrow",
        &[RecordBatch::try_from_iter([("a", numbers.clone()), ("t", text), ("b", numbers)]).unwrap()],
    );
    write_old(&input, &with_wrong_offset(&fs::read(&input).unwrap(), b"needle"));
    let error = converted(&input, ConvertOptions::new()).map(|_| ()).unwrap_err();
    assert_eq!((error.column(), error.advice()), (Some("t"), &[Advice::SkipColumns][..]), "{error}");
    let file = converted(&input, ConvertOptions::new().skip(["t"])).unwrap();
    assert_eq!(column_names(&file), ["a", "b"]);
}

#[test]
fn a_column_of_an_unsupported_type_is_skipped() {
    let fields: UnionFields = [(0, Arc::new(Field::new("a", DataType::Int32, true)))].into_iter().collect();
    let ids = vec![0_i8, 0].into();
    let union =
        UnionArray::try_new(fields, ids, None, vec![Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef]).unwrap();
    let whole = batch(vec![
        (Field::new("u", union.data_type().clone(), true), Arc::new(union)),
        (Field::new("x", DataType::Int8, false), Arc::new(Int8Array::from(vec![3, 4]))),
    ]);
    let folder = Folder::new();
    let input = arrow_file(&folder, "u.arrow", &[whole]);
    let error = converted(&input, ConvertOptions::new()).map(|_| ()).unwrap_err();
    assert_eq!((error.column(), error.advice()), (Some("u"), &[Advice::SkipColumns][..]), "{error}");
    for options in [ConvertOptions::new().skip(["u"]), ConvertOptions::new().columns(["x"])] {
        assert_eq!(scalars::<i8>(&converted(&input, options).unwrap(), "x"), [Some(3), Some(4)]);
    }
}

/// The marker of texts that are not UTF-8 in a file.
const MARKER: &str = "not UTF-8: marker";

fn with_wrong_texts(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let offsets: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(MARKER.as_bytes())).collect();
    assert!(!offsets.is_empty());
    offsets.into_iter().for_each(|at| bytes[at] = 0xFF);
    bytes
}

fn described() -> RecordBatch {
    let pickled = [("ARROW:extension:name", "py"), ("ARROW:extension:metadata", MARKER), ("unit", "mm")];
    let field = Field::new("x", DataType::Int8, false).with_metadata(pickled);
    let schema = Schema::new(vec![field]).with_metadata([("pickle", MARKER), ("ok", "yes")]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int8Array::from(vec![1]))]).unwrap()
}

#[test]
fn metadata_that_is_not_utf_8_is_left_out_and_listed() {
    let folder = Folder::new();
    let input = folder.path("input");
    write_arrow(&input, &[described()]);
    let file = fs::read(&input).unwrap();
    write_stream(&input, &[described()]);
    for bytes in [file, fs::read(&input).unwrap()] {
        write_old(&input, &with_wrong_texts(&bytes));
        let file = converted(&input, ConvertOptions::new()).unwrap();
        assert_eq!(scalars::<i8>(&file, "x"), [Some(1)]);
        let dropped = ["ARROW:extension:metadata of x", "ARROW:extension:name of x", "pickle"];
        assert_eq!(dropped_metadata(file.schema()), dropped);
        assert_eq!(file.schema().metadata["ok"], "yes");
        assert_eq!(column(&file, "x").metadata["unit"], "mm");
    }
}

/// Returns a batch whose metadata has values of these lengths.
fn long(values: &[(&str, usize)]) -> RecordBatch {
    let metadata = values.iter().map(|(key, bytes)| ((*key).to_owned(), "v".repeat(*bytes)));
    let schema = Schema::new(vec![Field::new("x", DataType::Int8, false)]);
    let schema = schema.with_metadata(metadata.collect::<std::collections::HashMap<_, _>>());
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int8Array::from(vec![1]))]).unwrap()
}

#[test]
fn long_metadata_is_preserved_as_far_as_the_header_has_room() {
    let file = import(&long(&[("classes", 3 << 20), ("pandas", 9 << 20)]));
    let bytes = |key: &str| file.schema().metadata.get(key).map(String::len);
    assert_eq!((bytes("classes"), bytes("pandas")), (Some(3 << 20), Some(9 << 20)));
    assert!(dropped_metadata(file.schema()).is_empty());
    // a file's own claim of left-out metadata is ignored
    assert!(dropped_metadata(import(&long(&[("import.dropped_metadata", 3)])).schema()).is_empty());
    // the longest values are left out first
    let file = import(&long(&[("a", 9 << 20), ("b", 10 << 20), ("c", 1)]));
    assert_eq!(dropped_metadata(file.schema()), ["b"]);
    assert_eq!(file.schema().metadata["a"].len(), 9 << 20);
    let file = import(&long(&[("a", 17 << 20)]));
    assert_eq!(dropped_metadata(file.schema()), ["a"]);
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use super::*;
    use ::parquet::basic::{EdgeInterpolationAlgorithm, LogicalType, Repetition, Type as Physical};
    use ::parquet::file::reader::FileReader;
    use ::parquet::file::serialized_reader::SerializedFileReader;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::types::{Type, TypePtr};
    use tensilo::export::{ExportFormat, ExportOptions, export_into};
    use tensilo::sink::Stream;

    #[test]
    fn a_file_without_rows_has_its_columns() {
        let file = converted(&data("zero-rows-fastparquet.parquet"), ConvertOptions::new()).unwrap();
        assert_eq!(
            (file.sample_count(), column_names(&file)),
            (0, vec!["i", "f", "s", "b", "c", "t", "td", "i8", "u"])
        );
    }

    #[test]
    fn parquet_metadata_that_is_not_utf_8_is_left_out_and_listed() {
        let file = converted(&data("metadata-not-utf8-pyarrow.parquet"), ConvertOptions::new()).unwrap();
        assert_eq!(dropped_metadata(file.schema()), ["bin of a", "k"]);
        assert_eq!((&*file.schema().metadata["ok"], &*column(&file, "a").metadata["ok"]), ("2", "1"));
    }

    #[test]
    fn a_null_struct_with_a_dictionary_is_preserved() {
        let file = converted(&data("null-dictionary-in-struct.parquet"), ConvertOptions::new()).unwrap();
        assert!(file.schema().columns.iter().any(|column| column.is_struct_nulls()), "{:?}", file.schema());
    }

    #[test]
    fn long_parquet_metadata_is_preserved_or_listed() {
        let folder = Folder::new();
        let input = folder.path("x.parquet");
        write_parquet(&input, &[long(&[("classes", 2 << 20), ("huge", 20 << 20)])]);
        let file = converted(&input, ConvertOptions::new()).unwrap();
        assert_eq!(file.schema().metadata["classes"].len(), 2 << 20);
        assert_eq!(dropped_metadata(file.schema()), ["huge"]);
    }

    fn leaf(name: &str, logical: LogicalType) -> TypePtr {
        let leaf = match &logical {
            LogicalType::Uuid => Type::primitive_type_builder(name, Physical::FIXED_LEN_BYTE_ARRAY).with_length(16),
            _ => Type::primitive_type_builder(name, Physical::BYTE_ARRAY),
        };
        let leaf = leaf.with_logical_type(Some(logical));
        Arc::new(leaf.with_repetition(Repetition::OPTIONAL).build().unwrap())
    }

    fn group(name: &str, logical: Option<LogicalType>, fields: Vec<TypePtr>) -> TypePtr {
        let group = Type::group_type_builder(name).with_logical_type(logical).with_fields(fields);
        Arc::new(group.with_repetition(Repetition::OPTIONAL).build().unwrap())
    }

    fn bytes(name: &str) -> TypePtr {
        let leaf = Type::primitive_type_builder(name, Physical::BYTE_ARRAY).with_repetition(Repetition::REQUIRED);
        Arc::new(leaf.build().unwrap())
    }

    #[test]
    fn logical_types_come_back() {
        let variant = |name| group(name, Some(LogicalType::variant(Some(1))), vec![bytes("metadata"), bytes("value")]);
        let fields = vec![
            leaf("json", LogicalType::Json),
            leaf("uuid", LogicalType::Uuid),
            leaf("enum", LogicalType::Enum),
            leaf("text", LogicalType::String),
            group("s", None, vec![leaf("bson", LogicalType::Bson), variant("v")]),
            group("only", None, vec![variant("v")]),
            group("named", None, vec![variant("metadata")]),
            leaf("geometry", LogicalType::geometry(Some("srid:5070".to_owned()))),
            leaf("geography", LogicalType::geography(None, Some(EdgeInterpolationAlgorithm::KARNEY))),
        ];
        let root = Type::group_type_builder("schema").with_fields(fields.clone()).build().unwrap();
        let folder = Folder::new();
        let input = folder.path("x.parquet");
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(root), Arc::default()).unwrap();
        write_old(&input, &writer.into_inner().unwrap());
        let file = converted(&input, ConvertOptions::new()).unwrap();
        let exported = export_into(&file, Stream(Vec::new()), ExportFormat::Parquet, ExportOptions::new()).unwrap().0;
        let output = folder.file("out.parquet", &exported);
        let reader = SerializedFileReader::new(fs::File::open(output).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().schema().get_fields(), fields);
    }
}
