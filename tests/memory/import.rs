//! Memory of a conversion whose inputs are small in a file and large when decoded.

use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, Schema};
use tensilo::import::arrow::ipc;
use tensilo::import::{ConvertOptions, write_batches};
use tensilo::sink::Stream;
use tensilo::{Error, ErrorKind, Result};
use tensilo_testing::exclusive_test;

const MIB: usize = 1 << 20;

fn item(data_type: &DataType) -> Arc<Field> {
    Arc::new(Field::new("item", data_type.clone(), true))
}

/// Converts a column; returns the peak memory in addition to the file.
fn convert(array: ArrayRef) -> (Result<u64>, usize) {
    let schema = Arc::new(Schema::new(vec![Field::new("x", array.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![array]).expect("a batch");
    let exclusive_test = exclusive_test();
    exclusive_test.peak_bytes(|| {
        let written = write_batches(&schema, &[batch], Stream(Vec::new()), &ConvertOptions::new());
        written.map(|summary| summary.sample_count)
    })
}

/// Returns the error of a column, which must take little memory.
fn refused(array: ArrayRef) -> Error {
    let (result, peak) = convert(array);
    let error = result.expect_err("it is too large");
    assert!(peak < 100 * MIB, "{} MiB: {error}", peak / MIB);
    assert_eq!(error.kind(), ErrorKind::BadInput, "{error}");
    error
}

/// If all items have one shape, a null takes as much memory as any other item.
#[test]
fn null_items_of_a_large_shape_are_refused() {
    let length = 1_000_000;
    let mut builder = ListBuilder::new(ListBuilder::new(Float32Builder::new()));
    (0..length).for_each(|_| builder.values().values().append_value(0.0));
    builder.values().append(true);
    builder.append(true);
    (0..length).for_each(|_| builder.values().append(false));
    builder.append(true);
    let error = refused(Arc::new(builder.finish()));
    assert!(error.message().contains("null items"), "{error}");
    assert_eq!(error.samples(), Some(1..2));
}

/// Many samples with some nulls are written in parts.
#[test]
fn null_items_of_many_samples_are_written_in_slices() {
    let (rows, length) = (2_000, 10_000);
    let mut builder = ListBuilder::new(ListBuilder::new(Float32Builder::new()));
    for row in 0..rows {
        if row == 0 {
            (0..length).for_each(|_| builder.values().values().append_value(0.0));
            builder.values().append(true);
        }
        // most nulls are in a few samples
        (0..if row % 100 == 1 { 100 } else { 1 }).for_each(|_| builder.values().append(false));
        builder.append(true);
    }
    let (result, peak) = convert(Arc::new(builder.finish()));
    assert_eq!(result.expect("it can be stored"), rows);
    // decoded: 160 MB
    assert!(peak < 110 * MIB, "{} MiB", peak / MIB);
}

#[test]
fn a_dictionary_of_long_texts_is_decoded_in_slices() {
    let text = "x".repeat(100_000);
    let values: ArrayRef = Arc::new(StringArray::from(vec![text.as_str()]));
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![0; 4_000]), values));
    let in_struct: ArrayRef = Arc::new(StructArray::from(vec![(item(dictionary.data_type()), dictionary.clone())]));
    let lists = OffsetBuffer::from_lengths([1; 4_000]);
    let in_lists: ArrayRef = Arc::new(ListArray::new(item(dictionary.data_type()), lists, dictionary, None));
    for array in [in_struct, in_lists] {
        let (result, peak) = convert(array);
        assert_eq!(result.expect("it can be stored"), 4_000);
        // decoded: 400 MB
        assert!(peak < 150 * MIB, "{} MiB", peak / MIB);
    }
}

/// Each row has all members.
#[test]
fn views_of_the_same_members_are_decoded_in_slices() {
    let (rows, length) = (60, 1_000_000);
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..length));
    let sizes = vec![length; rows];
    let views = ListViewArray::new(item(&DataType::Int32), vec![0; rows].into(), sizes.into(), numbers, None);
    let (result, peak) = convert(Arc::new(views));
    assert_eq!(result.expect("it can be stored"), rows as u64);
    // decoded: 240 MB
    assert!(peak < 150 * MIB, "{} MiB", peak / MIB);
}

/// Each column has the names of all structs around it.
#[test]
fn long_names_do_not_multiply() {
    let fields: Fields = (0..10_000).map(|i| Field::new(format!("{i}"), DataType::Float32, true)).collect();
    let columns = fields.iter().map(|_| Arc::new(Float32Array::from(vec![1.0])) as ArrayRef).collect();
    let inner: ArrayRef = Arc::new(StructArray::new(fields, columns, None));
    let field = Arc::new(Field::new("x".repeat(MIB), inner.data_type().clone(), true));
    let error = refused(Arc::new(StructArray::from(vec![(field, inner)])));
    assert!(error.message().contains("1 to 1,024 bytes"), "{:.1000}", error.message());
    assert!(error.message().len() < 20 * MIB);
}

/// Converts files of one batch each, which must fail. Returns the error and the peak memory.
fn refused_files(batches: &[RecordBatch]) -> (Error, usize) {
    let folder = tensilo_testing::Folder::new();
    let write = |(number, batch): (usize, &RecordBatch)| {
        let mut writer = ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
        writer.write(batch).expect("a batch");
        folder.file(format!("{number}.arrow"), writer.into_inner().expect("a file"))
    };
    let inputs: Vec<_> = batches.iter().enumerate().map(write).collect();
    exclusive_test().peak_bytes(|| {
        // stop as soon as columns and metadata are known
        let stop = &mut |_| std::ops::ControlFlow::Break(());
        tensilo::import::convert(&inputs, &folder.path("out.tsl"), &ConvertOptions::new(), stop).expect_err("stopped")
    })
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect()).expect("a batch")
}

#[test]
fn long_names_of_two_inputs_do_not_multiply() {
    let name = "x".repeat(MIB);
    let input = |numbers: std::ops::Range<usize>| {
        let fields: Fields = numbers.map(|i| Field::new(format!("{i}"), DataType::Float32, true)).collect();
        let columns = fields.iter().map(|_| Arc::new(Float32Array::from(vec![1.0])) as ArrayRef).collect();
        table(vec![(&*name, Arc::new(StructArray::new(fields, columns, None)))])
    };
    let (error, peak) = refused_files(&[input(0..1_000), input(1..1_001)]);
    assert!(error.message().contains("1 to 1,024 bytes"), "{:.1000}", error.message());
    assert!(peak < 100 * MIB, "{} MiB", peak / MIB);
}

/// The first batch of an input is read for its dictionaries, and not filled with nulls.
#[test]
fn metadata_of_an_input_that_lacks_tensors_take_little_memory() {
    let dictionary: DictionaryArray<types::Int8Type> = ["a"].into_iter().collect();
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.0; 100_000]));
    let tensor = FixedSizeListArray::new(item(&DataType::Float32), 100_000, floats, None);
    let fields = [("d", Arc::new(dictionary.clone()) as ArrayRef), ("v", Arc::new(tensor))];
    let fields = fields.map(|(name, array)| (Arc::new(Field::new(name, array.data_type().clone(), true)), array));
    let structs: ArrayRef = Arc::new(StructArray::from(fields.to_vec()));
    let ids = |count| ("id", Arc::new(Int32Array::from(vec![0; count])) as ArrayRef);
    // filled with tensors, it would have 800 MB
    let inputs = [table(vec![ids(1), ("s", structs)]), table(vec![ids(2_000)])];
    let (error, peak) = refused_files(&inputs);
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(peak < 100 * MIB, "{} MiB", peak / MIB);
}

/// The footer has the metadata twice, once as base64.
#[cfg(feature = "parquet")]
#[test]
fn metadata_that_is_too_long_is_copied_only_a_few_times() {
    let exclusive_test = exclusive_test();
    let bytes = 40 * MIB;
    let schema = Schema::new(vec![Field::new("x", DataType::Int8, false)]);
    let schema = schema.with_metadata([("long", "v".repeat(bytes).as_str())]);
    let values: ArrayRef = Arc::new(Int8Array::from(vec![1]));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![values]).expect("a batch");
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("a batch");
    let folder = tensilo_testing::Folder::new();
    let input = folder.file("in.parquet", writer.into_inner().expect("a file"));
    let (written, peak) = exclusive_test.peak_bytes(|| {
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        tensilo::import::convert(&[input], &folder.path("out.tsl"), &ConvertOptions::new(), go_on)
    });
    written.expect("metadata that do not fit are left out");
    assert!(peak < 5 * bytes, "{} MiB", peak / MIB);
}
