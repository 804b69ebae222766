//! Tests Arrow IPC files and streams, intact, damaged and hostile.

use super::common::*;
use flatbuffers::FlatBufferBuilder;
use std::fs;
use std::sync::Arc;
use tensilo::ErrorKind;
use tensilo::import::arrow::array::types::Int8Type;
use tensilo::import::arrow::array::{ArrayRef, DictionaryArray, Int8Array, NullArray, RecordBatch};
use tensilo::import::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use tensilo::import::arrow::ipc::{self, CompressionType};
use tensilo::import::{ConvertOptions, NullElements, Progress, convert};
use tensilo_testing::Folder;

fn batches() -> Vec<RecordBatch> {
    vec![mixed(20, 0), mixed(0, 20), mixed(31, 20)]
}

fn file_bytes(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn stream_bytes(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

#[test]
fn files_and_streams_are_recognized_by_their_bytes() {
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for bytes in [file_bytes(&batches(), compression), stream_bytes(&batches(), compression)] {
            fs::write(&input, bytes).unwrap();
            assert_eq!(convert_over(std::slice::from_ref(&input), &output).unwrap(), 51);
            check_mixed(&read(&output), 51);
        }
    }
    assert_eq!(folder.names(), ["input", "out.tsl"]);
}

#[test]
fn progress_reports_both_passes() {
    let folder = Folder::new();
    let input = folder.path("input");
    fs::write(&input, file_bytes(&batches(), None)).unwrap();
    let mut reported = Vec::new();
    let options = ConvertOptions::new();
    convert(&[input], &folder.path("out.tsl"), &options, &mut |progress| {
        reported.push(progress);
        GO_ON
    })
    .unwrap();
    assert!(reported.contains(&Progress::Scanning { done: 51, total: Some(51) }));
    assert_eq!(reported.last(), Some(&Progress::Converting { done: 51, total: Some(51) }));
}

#[test]
fn dictionaries_may_change_from_batch_to_batch() {
    let texts = |values: [&str; 2]| one(Arc::new(DictionaryArray::<Int8Type>::from_iter(values)) as ArrayRef);
    let folder = Folder::new();
    let (input, output) = (folder.path("input"), folder.path("out.tsl"));
    fs::write(&input, stream_bytes(&[texts(["a", "b"]), texts(["c", "c"])], None)).unwrap();
    assert_eq!(convert_over(std::slice::from_ref(&input), &output).unwrap(), 4);
    let expected = ["a", "b", "c", "c"].map(|text| Some(text.as_bytes().to_vec()));
    assert_eq!(strings(&read(&output), "x"), expected);
}

#[test]
fn same_input_and_options_give_the_same_bytes_and_other_inputs_other_ids() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    fs::write(path("a"), file_bytes(&[mixed(20, 0)], None)).unwrap();
    fs::write(path("b"), file_bytes(&[mixed(20, 0)], None)).unwrap();
    fs::write(path("c"), file_bytes(&[mixed(20, 20)], None)).unwrap();
    for name in ["a", "b", "c"] {
        convert_over(&[path(name)], &path(&format!("{name}.tsl"))).unwrap();
    }
    assert_eq!(fs::read(path("a.tsl")).unwrap(), fs::read(path("b.tsl")).unwrap());
    assert_ne!(read(&path("a.tsl")).file_id(), read(&path("c.tsl")).file_id());
}

#[cfg(unix)]
#[test]
fn a_stream_is_read_from_a_pipe() {
    use std::process::Command;
    let folder = Folder::new();
    let (pipe, output) = (folder.path("pipe"), folder.path("out.tsl"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, stream_bytes(&batches(), None)).unwrap())
    };
    assert_eq!(convert_over(std::slice::from_ref(&pipe), &output).unwrap(), 51);
    writer.join().unwrap();
    check_mixed(&read(&output), 51);
}

#[test]
fn damaged_files_and_streams_never_panic_and_leave_nothing_behind() {
    let folder = Folder::new();
    let small = [mixed(9, 0), mixed(5, 9)];
    let inputs = [
        file_bytes(&small, None),
        stream_bytes(&small, None),
        file_bytes(&small, Some(CompressionType::ZSTD)),
        stream_bytes(&small, Some(CompressionType::LZ4_FRAME)),
    ];
    for (which, bytes) in inputs.iter().enumerate() {
        for length in (0..bytes.len()).step_by(61).chain(bytes.len() - 12..bytes.len()) {
            let read = convert_damaged(&folder, &bytes[..length]).is_ok();
            // a stream may end between messages
            assert!(!read || which % 2 == 1, "a file cut to {length} bytes was read");
        }
        for i in (0..bytes.len()).step_by(11) {
            let mut damaged = bytes.clone();
            damaged[i] ^= 1 << (i % 8);
            let _ = convert_damaged(&folder, &damaged);
            damaged[i] = 0xFF;
            let _ = convert_damaged(&folder, &damaged);
        }
        let mut longer = bytes.clone();
        longer.extend([0; 9]);
        assert!(convert_damaged(&folder, &longer).is_err());
    }
}

#[test]
fn refused_null_elements_name_the_file() {
    let folder = Folder::new();
    let input = folder.path("input");
    let lists = tensilo::import::arrow::array::ListArray::from_iter_primitive::<
        tensilo::import::arrow::array::types::Int32Type,
        _,
        _,
    >([Some([Some(1), None])]);
    fs::write(&input, file_bytes(&[one(Arc::new(lists))], None)).unwrap();
    let options = ConvertOptions::new().null_elements(NullElements::Refuse);
    let error = convert_with(std::slice::from_ref(&input), &folder.path("out.tsl"), &options).unwrap_err();
    assert_eq!((error.kind(), error.path(), error.column()), (ErrorKind::BadInput, Some(input.as_path()), Some("x")));
    assert_eq!(folder.names(), ["input"]);
}

/// Rows of nulls take no bytes, so a small file can have any number of them.
#[test]
fn very_many_rows_without_bytes_are_refused() {
    let folder = Folder::new();
    let nulls = |count| one(Arc::new(NullArray::new(count)));
    for bytes in [file_bytes(&[nulls(1 << 40)], None), stream_bytes(&[nulls(1 << 40)], None)] {
        let error = convert_damaged(&folder, &bytes).map(|_| ()).unwrap_err();
        assert!(error.message().contains("1099511627776 rows"), "{error}");
    }
    for bytes in [file_bytes(&[nulls(1 << 20)], None), stream_bytes(&[nulls(1 << 20)], None)] {
        assert_eq!(convert_damaged(&folder, &bytes).unwrap().sample_count(), 1 << 20);
    }
    // compressed, each row takes less than a bit
    let zeros = one(Arc::new(Int8Array::from(vec![0; 18 << 20])));
    let bytes = file_bytes(&[zeros], Some(CompressionType::ZSTD));
    assert!(bytes.len() < 1 << 20);
    assert_eq!(convert_damaged(&folder, &bytes).unwrap().sample_count(), 18 << 20);
}

#[test]
fn a_dictionary_that_cannot_be_decoded_is_not_blamed_on_another_column() {
    let dictionary: DictionaryArray<Int8Type> = ["needle", "needle"].into_iter().collect();
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![1, 2]));
    let columns: [(&str, ArrayRef); 2] = [("d", Arc::new(dictionary)), ("x", numbers)];
    let bytes = stream_bytes(&[RecordBatch::try_from_iter(columns).unwrap()], None);
    let bytes = with_wrong_offset(&bytes, b"needle");
    let error = convert_damaged(&Folder::new(), &bytes).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.column()), (ErrorKind::BadInput, None), "{error}");
}

/// Returns a stream whose only message is a schema of many fields that share one long name.
fn with_shared_name(fields: usize) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let name = builder.create_string(&"n".repeat(1 << 16));
    let field = |_| {
        let of_type = ipc::BoolBuilder::new(&mut builder).finish().as_union_value();
        let mut field = ipc::FieldBuilder::new(&mut builder);
        field.add_name(name);
        field.add_type_type(ipc::Type::Bool);
        field.add_type_(of_type);
        field.finish()
    };
    let fields: Vec<_> = (0..fields).map(field).collect();
    let fields = builder.create_vector(&fields);
    let mut schema = ipc::SchemaBuilder::new(&mut builder);
    schema.add_fields(fields);
    let schema = schema.finish().as_union_value();
    let mut message = ipc::MessageBuilder::new(&mut builder);
    message.add_version(ipc::MetadataVersion::V5);
    message.add_header_type(ipc::MessageHeader::Schema);
    message.add_header(schema);
    let root = message.finish();
    builder.finish(root, None);
    let message = builder.finished_data();
    [&[0xFF; 4][..], &(message.len() as u32).to_le_bytes(), message].concat()
}

/// A copy of the name for each field would take too much memory.
#[test]
fn a_name_that_very_many_fields_share_is_not_copied() {
    let folder = Folder::new();
    let error = |fields| convert_damaged(&folder, &with_shared_name(fields)).map(|_| ()).unwrap_err().to_string();
    assert!(error(2).contains("name"), "{}", error(2)); // 64 KiB are too long for a column
    assert!(error(1 << 12).contains("no known format"), "{}", error(1 << 12));
}

/// A file with the same block twice, which is not even a message.
#[test]
fn blocks_are_compared_before_one_is_read() {
    let mut builder = FlatBufferBuilder::new();
    let schema = ipc::convert::IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &batches()[0].schema());
    let blocks = builder.create_vector(&[ipc::Block::new(0, 8, 8); 2]);
    let mut footer = ipc::FooterBuilder::new(&mut builder);
    footer.add_version(ipc::MetadataVersion::V5);
    footer.add_schema(schema);
    footer.add_recordBatches(blocks);
    let root = footer.finish();
    builder.finish(root, None);
    let (footer, folder) = (builder.finished_data(), Folder::new());
    let length = (footer.len() as u32).to_le_bytes();
    let bytes = [&b"ARROW1\0\0"[..], &[0; 8], footer, &length, b"ARROW1"].concat();
    let error = convert_damaged(&folder, &bytes).map(|_| ()).unwrap_err();
    assert!(error.message().contains("messages overlap"), "{error}");
}
