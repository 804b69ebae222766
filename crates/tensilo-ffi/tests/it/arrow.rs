//! The Arrow library imports exactly what was exported.

use crate::support::*;
use std::path::Path;
use std::ptr;
use tensilo::Profile;
use tensilo::import::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, RecordBatch, RecordBatchReader, StructArray, make_array,
};
use tensilo::import::arrow::datatypes::{DataType, Float32Type, Int64Type};
use tensilo::import::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use tensilo::import::arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use tensilo_ffi::*;
use tensilo_testing::Folder;

/// Imports the array that a call exports.
fn imported(
    export: impl FnOnce(*mut ArrowSchema, *mut ArrowArray, *mut *mut tensilo_error) -> tensilo_status,
) -> (FFI_ArrowSchema, ArrayRef) {
    let (mut schema, mut array) = (FFI_ArrowSchema::empty(), FFI_ArrowArray::empty());
    done(|error| export((&raw mut schema).cast(), (&raw mut array).cast(), error));
    // SAFETY: exported by the library.
    let data = unsafe { from_ffi(array, &schema) }.unwrap();
    data.validate_full().unwrap();
    (schema, make_array(data))
}

fn column(path: &Path, name: &str, indices: &[u64]) -> ArrayRef {
    let (cursor, buffer) = (open_cursor(&open_reader(path, TENSILO_IO_AUTO), name), new_buffer());
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_cursor_fill_buffer(cursor.0, indices.as_ptr(), indices.len(), buffer.0, e) });
    // SAFETY: arguments as the header requires.
    let (_, array) = imported(|schema, array, e| unsafe { tensilo_buffer_export_arrow(buffer.0, schema, array, e) });
    array // the buffer is closed
}

#[test]
fn buffers_of_each_kind_are_arrays() {
    let folder = Folder::new();
    let path = file(&folder, Profile::Balanced);
    let indices = [3, 7, 999, 3];
    let label = column(&path, "label", &indices);
    let label: Vec<Option<i64>> = label.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(label, [Some(3), None, Some(999), Some(3)]);
    let text = column(&path, "text", &indices);
    let text: Vec<Option<&str>> = text.as_string::<i64>().iter().collect();
    assert_eq!(text, [Some("text 3"), None, Some("text 999"), Some("text 3")]);
    let embedding = column(&path, "embedding", &indices);
    let rows: &FixedSizeListArray = embedding.as_fixed_size_list();
    assert_eq!((rows.len(), rows.value_length()), (4, 2));
    let values = rows.values().as_fixed_size_list().values().as_primitive::<Float32Type>().values().to_vec();
    assert_eq!(values[..6], [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]);
    let pitch = column(&path, "pitch", &indices);
    assert_eq!(pitch.as_list::<i64>().value(2).as_primitive::<Float32Type>().values().to_vec(), [0.0, 1.0, 2.0, 3.0]);
    let words = column(&path, "words", &indices);
    let words = words.as_list::<i64>();
    assert!(words.is_null(1) && words.null_count() == 1);
    let last: Vec<Option<String>> =
        words.value(3).as_string::<i64>().iter().map(|word| word.map(str::to_owned)).collect();
    assert_eq!(last, [Some("one".to_owned()), None, Some("text 3".to_owned())]);
}

#[test]
fn an_array_stays_when_its_buffer_is_filled_again() {
    let folder = Folder::new();
    let cursor = open_cursor(&open_reader(&file(&folder, Profile::Raw), TENSILO_IO_AUTO), "label");
    let buffer = new_buffer();
    let (first, second) = ([1_u64, 2], [3_u64, 4]);
    // SAFETY: arguments as the header requires.
    unsafe {
        let (status, text) = refused(|e| {
            let (mut schema, mut array) = (FFI_ArrowSchema::empty(), FFI_ArrowArray::empty());
            tensilo_buffer_export_arrow(buffer.0, (&raw mut schema).cast(), (&raw mut array).cast(), e)
        });
        assert!(status == TENSILO_ERROR_BAD_ARGUMENT && text.contains("no samples"), "{text}");
        done(|e| tensilo_cursor_fill_buffer(cursor.0, first.as_ptr(), 2, buffer.0, e));
        let mut samples: tensilo_samples = sized();
        done(|e| tensilo_buffer_get_samples(buffer.0, &raw mut samples, e));
        let (_, array) = imported(|schema, array, e| tensilo_buffer_export_arrow(buffer.0, schema, array, e));
        assert_eq!(array.as_primitive::<Int64Type>().values().as_ptr().cast(), samples.values, "not copied");
        done(|e| tensilo_cursor_fill_buffer(cursor.0, second.as_ptr(), 2, buffer.0, e));
        assert_eq!(array.as_primitive::<Int64Type>().values().to_vec(), [1, 2]);
    }
}

#[test]
fn a_batch_is_an_array_of_structs() {
    let folder = Folder::new();
    let path = c_path(&file(&folder, Profile::Balanced));
    let (mut dataset, mut reader, mut batch) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: arguments as the header requires.
    unsafe {
        let mut options: tensilo_loader_options = sized();
        options.batch_size = 1;
        done(|e| tensilo_dataset_open(path.as_ptr(), ptr::null(), &raw mut dataset, e));
        let dataset = Handle(dataset, tensilo_dataset_close);
        done(|e| tensilo_sample_reader_new(dataset.0, &raw const options, &raw mut reader, e));
        let reader = Handle(reader, tensilo_sample_reader_close);
        done(|e| tensilo_sample_reader_take(reader.0, [8, 14].as_ptr(), 2, &raw mut batch, e));
        let batch = Handle(batch, tensilo_batch_close);
        let (_, array) = imported(|schema, array, e| tensilo_batch_export_arrow(batch.0, schema, array, e));
        drop((batch, reader, dataset)); // the array keeps the samples
        let structs: &StructArray = array.as_struct();
        assert_eq!((structs.len(), structs.num_columns()), (2, 5));
        let label = structs.column_by_name("label").unwrap();
        assert!(label.as_primitive::<Int64Type>().value(0) == 8 && label.is_null(1));
        assert_eq!(structs.column_by_name("text").unwrap().as_string::<i64>().value(0), "text 8");
    }
}

#[test]
fn a_file_is_a_stream() {
    let folder = Folder::new();
    let path = file(&folder, Profile::Balanced);
    let reader = open_reader(&path, TENSILO_IO_AUTO);
    let names = [c_text("label"), c_text("words")];
    let columns = [names[0].as_ptr(), names[1].as_ptr()];
    let mut stream = FFI_ArrowArrayStream::empty();
    // SAFETY: arguments as the header requires.
    done(|e| unsafe { tensilo_reader_export_stream(reader.0, columns.as_ptr(), 2, 300, (&raw mut stream).cast(), e) });
    drop(reader); // the stream keeps the file open
    let stream = RecordBatchStreamReader::try_new(stream).unwrap();
    assert_eq!(stream.schema().field(0).data_type(), &DataType::Int64);
    let batches: Vec<RecordBatch> = stream.collect::<Result<_, _>>().unwrap();
    let lengths: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(lengths, [300, 300, 300, 100]);
    assert_eq!(batches[3].column(0).as_primitive::<Int64Type>().value(99), 999);
}
