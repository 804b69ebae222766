//! Tests Parquet files, singly, in folders and by pattern: rows, shapes, checksums and damage.

use super::common::*;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tensilo::ErrorKind;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::arrow::error::ArrowError;
use tensilo::import::{ConvertOptions, NullElements, Progress, convert};
use tensilo_testing::Folder;

fn parquet_bytes(batches: &[RecordBatch], row_group: usize, compression: Compression) -> Vec<u8> {
    let properties =
        WriterProperties::builder().set_compression(compression).set_max_row_group_row_count(Some(row_group));
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties.build())).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn write(path: impl AsRef<Path>, batches: &[RecordBatch]) {
    fs::write(path, parquet_bytes(batches, 16, Compression::SNAPPY)).unwrap();
}

#[test]
fn all_row_groups_of_a_file_are_converted() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())] {
        fs::write(&input, parquet_bytes(&[mixed(50, 0)], 16, compression)).unwrap();
        assert_eq!(convert_over(std::slice::from_ref(&input), &output).unwrap(), 50);
        check_mixed(&read(&output), 50);
        assert!(!column(&read(&output), "id").nullable && column(&read(&output), "text").nullable);
    }
}

#[test]
fn folders_and_patterns_are_read_in_the_order_of_names() {
    let folder = Folder::new();
    let data = folder.path("data");
    fs::create_dir(&data).unwrap();
    for (name, rows, first) in [("part-10.parquet", 7, 13), ("part-2.parquet", 5, 20), ("part-1.parquet", 13, 0)] {
        write(data.join(name), &[mixed(rows, first)]);
    }
    write(data.join(".hidden.parquet"), &[mixed(3, 99)]);
    fs::write(data.join("notes.txt"), "no data").unwrap();
    let output = folder.path("out.tsl");
    for input in [data.clone(), data.join("part-*.parquet")] {
        let mut last = None;
        let options = ConvertOptions::new().overwrite(true);
        convert(&[input], &output, &options, &mut |progress| {
            last = Some(progress);
            GO_ON
        })
        .unwrap();
        assert_eq!(last, Some(Progress::Converting { done: 25, total: Some(25) }));
        check_mixed(&read(&output), 25);
    }
    let in_order = ["part-1.parquet", "part-10.parquet", "part-2.parquet"].map(|name| data.join(name));
    convert_over(&in_order, &output).unwrap();
    check_mixed(&read(&output), 25);

    let error = convert_over(&[data.join("other-*.parquet")], &output).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadArgument);
    let empty = folder.path("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(convert_over(std::slice::from_ref(&empty), &output).unwrap_err().path(), Some(empty.as_path()));
}

#[test]
fn an_error_of_the_decoder_is_the_source_of_the_error() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input.parquet"), folder.path("out.tsl"));
    let bytes = parquet_bytes(&[mixed(50, 0)], 50, Compression::SNAPPY);
    let from_decoder = (4..200).any(|at| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        fs::write(&input, damaged).unwrap();
        let error = convert_over(std::slice::from_ref(&input), &output).err();
        let source = error.as_ref().and_then(std::error::Error::source);
        source.is_some_and(|source| source.is::<parquet::errors::ParquetError>() || source.is::<ArrowError>())
    });
    assert!(from_decoder);
}

#[test]
fn inputs_of_different_schemas_are_refused_with_both_names() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let column = |name: &str, array: ArrayRef, nullable: bool| {
        batch(vec![(Field::new(name, array.data_type().clone(), nullable), array)])
    };
    write(path("a"), &[column("x", Arc::new(Int32Array::from(vec![1])), false)]);
    write(path("type"), &[column("x", Arc::new(Int64Array::from(vec![1])), false)]);
    write(path("name"), &[column("y", Arc::new(Int32Array::from(vec![1])), false)]);
    write(path("nullable"), &[column("x", Arc::new(Int32Array::from(vec![None])), true)]);
    for other in ["type", "name"] {
        let error = convert_over(&[path("a"), path(other)], &path("out.tsl")).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(path(other).as_path())));
        assert!(error.message().contains(path("a").to_str().unwrap()), "{error}");
    }
    convert_over(&[path("a"), path("nullable")], &path("out.tsl")).unwrap();
    assert_eq!(scalars::<i32>(&read(&path("out.tsl")), "x"), [Some(1), None]);
}

#[test]
fn a_struct_with_lists_in_parquet_becomes_dotted_columns() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    let inner = mixed(12, 0);
    let array: ArrayRef = Arc::new(StructArray::from(inner));
    let before: ArrayRef = Arc::new(Int8Array::from_iter_values(0..12));
    let columns = vec![
        (Field::new("before", DataType::Int8, false), before),
        (Field::new("s", array.data_type().clone(), true), array),
    ];
    write(&input, &[batch(columns)]);
    convert_over(&[input], &output).unwrap();
    let file = read(&output);
    let names: Vec<&str> = file.schema().columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["before", "s.id", "s.embedding", "s.tokens", "s.text"]);
    assert_eq!(column(&file, "s.embedding").shape, tensilo::Shape::fixed(&[8]));
    assert_eq!(scalars::<i64>(&file, "s.id")[11], Some(11));
}

#[test]
fn checksums_of_pages_are_checked() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    // eight i64 from 500 on, uncompressed, written by pyarrow with write_page_checksum=True
    let mut bytes = include_bytes!("page_crc.parquet").to_vec();
    fs::write(&input, &bytes).unwrap();
    assert_eq!(convert_over(std::slice::from_ref(&input), &output).unwrap(), 8);
    assert_eq!(scalars::<i64>(&read(&output), "id")[7], Some(507));
    fs::remove_file(&output).unwrap();
    let offset = bytes.windows(8).position(|window| window == 503_i64.to_le_bytes()).unwrap();
    bytes[offset] ^= 1;
    fs::write(&input, &bytes).unwrap();
    let error = convert_over(std::slice::from_ref(&input), &output).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(input.as_path())));
    assert!(error.message().to_lowercase().contains("crc"), "{error}");
    assert_eq!(folder.names(), ["input"]);
}

#[test]
fn damaged_files_never_panic_and_leave_nothing_behind() {
    let folder = Folder::new();
    let bytes = parquet_bytes(&[mixed(20, 0)], 12, Compression::SNAPPY);
    assert!(convert_damaged(&folder, &bytes).is_ok());
    for length in (0..bytes.len()).step_by(37).chain(bytes.len() - 12..bytes.len()) {
        assert!(convert_damaged(&folder, &bytes[..length]).is_err(), "a file cut to {length} bytes was read");
    }
    for i in (0..bytes.len()).step_by(5) {
        let mut damaged = bytes.clone();
        damaged[i] ^= 1 << (i % 8);
        let _ = convert_damaged(&folder, &damaged);
        damaged[i] = 0xFF;
        let _ = convert_damaged(&folder, &damaged);
    }
}

#[test]
fn an_empty_file_gives_an_empty_file() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    write(&input, &[mixed(0, 0)]);
    assert_eq!(convert_over(&[input], &output).unwrap(), 0);
    assert_eq!(column(&read(&output), "embedding").shape, tensilo::Shape::ragged());
}

#[test]
fn an_error_in_the_second_input_names_its_row_and_the_sample() {
    use tensilo::import::arrow::array::types::Int32Type;
    let folder = Folder::new();
    let paths = ["a", "b"].map(|name| folder.path(name));
    let lists = |last| ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)]), Some([last])]);
    write(&paths[0], &[one(Arc::new(lists(Some(2))))]);
    write(&paths[1], &[one(Arc::new(lists(None)))]);
    let options = ConvertOptions::new().null_elements(NullElements::Refuse);
    let error = convert_with(&paths, &folder.path("out.tsl"), &options).unwrap_err();
    assert_eq!((error.path(), error.samples()), (Some(paths[1].as_path()), Some(3..4)));
    assert!(error.message().starts_with("row 1 of this input"), "{error}");
    assert_eq!(folder.names(), ["a", "b"]);
}

#[test]
fn a_file_much_smaller_than_its_rows_is_converted() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    let text = "x".repeat(100_000);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..2000).map(|_| &text)));
    fs::write(&input, parquet_bytes(&[one(texts)], 2000, Compression::SNAPPY)).unwrap();
    assert!(fs::metadata(&input).unwrap().len() < 10_000);
    assert_eq!(convert_over(&[input], &output).unwrap(), 2000);
    let file = read(&output);
    let mut cursor = file.column("x").unwrap().cursor();
    for i in [0, 63, 64, 65, 300, 1999] {
        assert_eq!(cursor.read(i).unwrap().as_str().unwrap(), Some(text.as_str()));
    }
}

#[test]
fn tensors_keep_their_shapes_through_parquet() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    write(&input, &[super::tensors::variable_tensors(&[Some([2, 3]), None, Some([1, 3])], "{}")]);
    convert_over(std::slice::from_ref(&input), &output).unwrap();
    let file = read(&output);
    assert_eq!(column(&file, "x").shape.to_string(), "[*,3]");
    let counted = |range: std::ops::Range<i32>| range.map(|i| i as f32).collect::<Vec<_>>();
    let expected = [Some((vec![2, 3], counted(0..6))), None, Some((vec![1, 3], counted(6..9)))];
    assert_eq!(tensors::<f32>(&file, "x"), expected);

    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..12).map(|i| i as f32)));
    let array: ArrayRef = Arc::new(FixedSizeListArray::new(item(DataType::Float32), 6, values, None));
    let field = Field::new("x", array.data_type().clone(), false).with_metadata([
        ("ARROW:extension:name", "arrow.fixed_shape_tensor"),
        ("ARROW:extension:metadata", r#"{"shape":[3,2]}"#),
    ]);
    write(&input, &[batch(vec![(field, array)])]);
    convert_over(&[input], &output).unwrap();
    let file = read(&output);
    assert_eq!(column(&file, "x").shape.to_string(), "[3,2]");
    assert!(column(&file, "x").metadata.is_empty());
    assert_eq!(tensors::<f32>(&file, "x")[1], Some((vec![3, 2], counted(6..12))));
}

/// Returns file metadata in Thrift's compact protocol: version, `before`, then the schema, which is
/// a root and nested groups of one child each.
fn nested_schema(before: &[u8]) -> Vec<u8> {
    let levels = 100_000_u32;
    // the id of the schema field, 2, in its long form
    let mut metadata = [&[0x15, 2], before, &[0x09, 4, 0xFC]].concat();
    let length = levels + 2;
    metadata.extend([length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8]);
    metadata.extend([0x48, 1, b'r', 0x15, 2, 0]);
    (0..levels).for_each(|_| metadata.extend([0x35, 0, 0x18, 1, b'g', 0x15, 2, 0]));
    metadata.extend([0x15, 2, 0x25, 0, 0x18, 1, b'x', 0, 0x16, 0, 0x19, 0x0C, 0]);
    let mut bytes = b"PAR1".to_vec();
    bytes.extend(&metadata);
    bytes.extend((metadata.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    bytes
}

#[test]
fn a_deeply_nested_schema_is_refused_before_it_exhausts_the_stack() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    let shallow = [0x09, 4, 0x1C, 0x48, 1, b'r', 0];
    // ids that are 2 in 16 bits, lists of bools that a decoder may take for shorter ones, fields of
    // types that they should not have
    let hidden =
        [&[][..], &shallow, &[0x05, 0x84, 0x80, 8, 0], &[0x09, 100, 0x51, 0x09, 4, 0x1C, 0, 0], &[0x08, 6, 1, 0]];
    for before in hidden {
        fs::write(&input, nested_schema(before)).unwrap();
        let error = convert_over(std::slice::from_ref(&input), &output).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadInput);
        assert!(error.message().contains("nested") || error.message().contains("footer cannot be parsed"), "{error}");
    }
}
