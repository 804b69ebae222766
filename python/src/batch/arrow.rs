//! Exports batches, columns and datasets through Arrow's PyCapsule interface.
//!
//! A capsule holds an Arrow C structure whose buffers keep the owner of the values alive. Values
//! are shared where Arrow has the same layout, and copied where its layout differs, as for bools
//! and bf16.
//!
//! A dataset is exported as a stream of record batches, with the Arrow types that it was imported
//! from. A thread reads one batch ahead, and ends when the stream is dropped.

use crate::array::memory::Memory;
use crate::batch::samples::ColumnSamples;
use crate::error::{OrRaise, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use tensilo::DType;
use tensilo::export::{ArrowSamples, table_batches};
use tensilo::import::arrow::array::{
    Array, ArrayData, RecordBatch, RecordBatchOptions, RecordBatchReader, StructArray, make_array,
};
use tensilo::import::arrow::buffer::Buffer;
use tensilo::import::arrow::datatypes::{Field, FieldRef, Fields, Schema, SchemaRef};
use tensilo::import::arrow::error::ArrowError;
use tensilo::import::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use tensilo::import::arrow::ffi_stream::FFI_ArrowArrayStream;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
/// The capsule name of a stream.
pub const STREAM: &CStr = c"arrow_array_stream";

fn refused(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the capsules of a field and an array.
fn capsules<'py>(py: Python<'py>, field: &Field, data: &ArrayData) -> PyResult<Bound<'py, PyTuple>> {
    let schema = FFI_ArrowSchema::try_from(field).map_err(|error| refused(&error))?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(data), ARRAY)?;
    PyTuple::new(py, [schema, array])
}

/// Combines columns into a record batch.
fn record_batch(columns: impl Iterator<Item = ColumnSamples>, sample_count: usize) -> PyResult<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in columns {
        let (field, data) = arrow_data(&column)?;
        fields.push(field);
        arrays.push(make_array(data));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(sample_count));
    let made = RecordBatch::try_new_with_options(Arc::new(Schema::new(Fields::from(fields))), arrays, &options);
    made.map_err(|error| refused(&error))
}

/// Returns the schema and array capsules of a column.
pub fn column_capsules<'py>(py: Python<'py>, column: &ColumnSamples) -> PyResult<Bound<'py, PyTuple>> {
    let (field, data) = arrow_data(column)?;
    capsules(py, &field, &data)
}

/// Returns the schema and array capsules of a batch, as an array of structs.
pub fn batch_capsules<'py>(
    py: Python<'py>,
    columns: impl Iterator<Item = ColumnSamples>,
    sample_count: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let structs = StructArray::from(record_batch(columns, sample_count)?);
    let field = Field::new("", structs.data_type().clone(), false);
    capsules(py, &field, &structs.to_data())
}

/// Returns a stream capsule with a single batch.
pub fn batch_stream<'py>(
    py: Python<'py>,
    columns: impl Iterator<Item = ColumnSamples>,
    sample_count: usize,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batch = record_batch(columns, sample_count)?;
    let schema = batch.schema();
    stream_capsule(py, Batches { schema, batches: Source::One(Some(batch)) })
}

/// Returns a stream capsule with all samples of a dataset. The stream has the Arrow types that the
/// dataset was imported from.
pub fn dataset_stream<'py>(
    py: Python<'py>,
    dataset: tensilo_data::Dataset,
    columns: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let (sender, batches) = sync_channel::<Message>(1);
    let read = move || {
        let found = match table_batches(&dataset, columns.as_deref()) {
            Ok(found) => found,
            Err(error) => return drop(sender.send(Message::Failed(error))),
        };
        let messages =
            std::iter::once(Message::Schema(found.schema())).chain(found.map(Message::Batch)).chain([Message::End]);
        // sending fails once the stream is dropped
        for message in messages {
            if sender.send(message).is_err() {
                return;
            }
        }
    };
    let (schema, batches) = py.detach(move || {
        let thread = thread::Builder::new().name("tensilo-arrow".to_owned()).spawn(read);
        let schema: Result<SchemaRef> = match thread.map(|_| batches.recv()) {
            Ok(Ok(Message::Schema(schema))) => Ok(schema),
            Ok(Ok(Message::Failed(error))) => Err(error),
            Ok(_) => Err(tensilo_data::DataError::Internal("no schema to export".to_owned())),
            Err(error) => Err(tensilo::Error::io("starting a thread", error).into()),
        };
        (schema, batches)
    });
    let schema = schema.or_raise(py)?;
    stream_capsule(py, Batches { schema, batches: Source::Many(batches) })
}

fn stream_capsule<'py>(py: Python<'py>, batches: Batches) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
}

enum Message {
    Schema(SchemaRef),
    Batch(std::result::Result<RecordBatch, ArrowError>),
    End,
    Failed(tensilo_data::DataError),
}

/// A stream of batches.
struct Batches {
    schema: SchemaRef,
    batches: Source,
}

enum Source {
    One(Option<RecordBatch>),
    Many(Receiver<Message>),
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.batches {
            Source::One(batch) => batch.take().map(Ok),
            Source::Many(batches) => match batches.recv() {
                Ok(Message::Batch(batch)) => Some(batch),
                Ok(Message::End) => {
                    self.batches = Source::One(None);
                    None
                }
                // if the channel closes without `End`, samples are missing
                _ => Some(Err(ArrowError::ComputeError("the thread that reads the samples has died".to_owned()))),
            },
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Converts a column of a batch to Arrow; see [`ArrowSamples`].
fn arrow_data(column: &ColumnSamples) -> PyResult<(FieldRef, ArrayData)> {
    let (found, schema) = (column.column(), &*column.schema);
    // the conversion reads a private copy: Python can write to shared memory at any time
    let is_converted = matches!(schema.dtype, DType::Bf16 | DType::Bool) || schema.metadata.contains_key("arrow.type");
    let memory = &column.memory;
    let samples = ArrowSamples {
        schema,
        sample_count: column.sample_count(),
        item_count: column.item_count(),
        values: if is_converted { Buffer::from_vec(memory.to_vec()) } else { shared(memory) },
        tensor: found.tensor_extents(),
        offsets: found.offsets(),
        varying_extents: found.varying_extents(),
        validity: found.validity(),
        lists: found.lists(),
    };
    samples.to_arrow().map_err(|error| {
        PyValueError::new_err(format!("column {:?}: Arrow cannot hold the samples: {error}", column.name()))
    })
}

/// Returns a buffer that shares memory.
fn shared(memory: &Memory) -> Buffer {
    let Some(pointer) = NonNull::new(memory.pointer()) else { return Buffer::from(Vec::<u8>::new()) };
    // SAFETY: the buffer keeps the owner, so the memory stays valid. Arrow consumers treat the
    // memory as immutable. As with NumPy arrays that pyarrow wraps, the caller must not write to
    // the memory.
    unsafe { Buffer::from_custom_allocation(pointer, memory.byte_count(), Arc::new(AssertUnwindSafe(memory.clone()))) }
}
