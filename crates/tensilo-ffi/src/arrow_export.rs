//! Arrays of buffers and batches, and streams of files.

use crate::arrow_data::{SampleOwner, arrow_data};
use crate::arrow_structs::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::batch::{parts, tensilo_batch};
use crate::buffer::tensilo_buffer;
use crate::error::{Result, tensilo_error};
use crate::reader::tensilo_reader;
use std::sync::Arc;
use tensilo::export::batches;
use tensilo::import::arrow::array::Array as _;
use tensilo::import::arrow::array::{ArrayData, RecordBatch, RecordBatchOptions, StructArray, make_array};
use tensilo::import::arrow::datatypes::{Field, Fields, Schema};
use tensilo::import::arrow::error::ArrowError;
use tensilo::import::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use tensilo::import::arrow::ffi_stream::FFI_ArrowArrayStream;

#[cold]
fn refused(error: &ArrowError) -> Box<tensilo_error> {
    tensilo_error::bad_argument(format!("Arrow cannot hold the samples: {error}"))
}

/// Writes an array and its type to their places.
///
/// # Safety
///
/// Both are places of the caller, aligned, whose content is not needed.
unsafe fn export(field: &Field, data: &ArrayData, schema: *mut ArrowSchema, array: *mut ArrowArray) -> Result<()> {
    let exported = FFI_ArrowSchema::try_from(field).map_err(|error| refused(&error))?;
    let data = FFI_ArrowArray::new(data);
    // SAFETY: the caller's promise. The structs of both sides are those of Arrow's specification.
    unsafe {
        schema.cast::<FFI_ArrowSchema>().write(exported);
        array.cast::<FFI_ArrowArray>().write(data);
    }
    Ok(())
}

/// Exports the samples of a buffer.
///
/// # Safety
///
/// As [`export`].
pub(crate) unsafe fn buffer(buffer: &tensilo_buffer, schema: *mut ArrowSchema, array: *mut ArrowArray) -> Result<()> {
    let owner = SampleOwner::Buffer(buffer.samples().clone());
    let (field, data) = arrow_data(buffer.schema()?, &buffer.parts()?, owner)?;
    // SAFETY: the caller's promise.
    unsafe { export(&field, &data, schema, array) }
}

/// Exports a batch.
///
/// # Safety
///
/// As [`export`].
pub(crate) unsafe fn batch(batch: &tensilo_batch, schema: *mut ArrowSchema, array: *mut ArrowArray) -> Result<()> {
    let batch = batch.batch();
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in batch.columns() {
        let of = column.schema().ok_or_else(|| tensilo_error::internal("a column of no batch"))?;
        let owner = SampleOwner::Batch(batch.clone());
        let (field, data) = arrow_data(of, &parts(column), owner)?;
        fields.push(field);
        arrays.push(make_array(data));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.samples().len()));
    let columns = Arc::new(Schema::new(Fields::from(fields)));
    let made = RecordBatch::try_new_with_options(columns, arrays, &options).map_err(|error| refused(&error))?;
    let structs = StructArray::from(made);
    let field = Field::new("", structs.data_type().clone(), false);
    // SAFETY: the caller's promise.
    unsafe { export(&field, &structs.to_data(), schema, array) }
}

/// Exports a file as a stream.
///
/// # Safety
///
/// The stream is a place of the caller, aligned, whose content is not needed.
pub(crate) unsafe fn stream(
    reader: &tensilo_reader,
    columns: Option<&[String]>,
    batch_samples: u64,
    stream: *mut ArrowArrayStream,
) -> Result<()> {
    let mut batches = batches(reader.reader(), columns)?;
    if batch_samples > 0 {
        batches = batches.with_batch_samples(batch_samples);
    }
    let made = FFI_ArrowArrayStream::new(Box::new(batches));
    // SAFETY: the caller's promise. The struct of both sides is that of Arrow's specification.
    unsafe { stream.cast::<FFI_ArrowArrayStream>().write(made) };
    Ok(())
}
