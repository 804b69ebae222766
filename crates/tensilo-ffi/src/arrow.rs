//! Exports of samples through the Arrow C data interface.
//!
//! The structs follow Arrow's specification, and the header declares them as Arrow does. The C
//! functions check their arguments and then call the module `export`. With the feature `arrow`,
//! this module creates arrays that share the values of a buffer or a batch and keep their owner
//! alive. Without the feature, every export fails with `TENSILO_ERROR_NOT_BUILT`.

use crate::batch::tensilo_batch;
use crate::boundary::call::{call, check_slot, shared, texts};
use crate::boundary::error::{tensilo_error, tensilo_status};
use crate::reader::tensilo_reader;
use crate::samples::tensilo_buffer;
use std::ffi::{c_char, c_int, c_void};

/// The type of an array, as Arrow's specification defines it. The header contains the C
/// declaration.
#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    child_count: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// An array, as Arrow's specification defines it.
#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    buffer_count: i64,
    child_count: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// A stream of arrays, as Arrow's specification defines it.
#[repr(C)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// Exports the samples of a buffer as an Arrow array and its type. Call the `release` functions of
/// `schema` and of `array` exactly once each.
///
/// The values are shared, not copied, unless Arrow uses a different layout, as for bool and bf16.
/// The array stays valid when the buffer is filled again or closed.
///
/// Numbers become primitive arrays. Tensors become nested lists; fixed extents become lists of a
/// fixed size. Text and bytes become large strings and large binaries. bf16 becomes float, because
/// Arrow has no bf16. Dates and times that were imported from Arrow get their Arrow type back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_export_arrow(
    buffer: *const tensilo_buffer,
    schema: *mut ArrowSchema,
    array: *mut ArrowArray,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            check_slot(schema, "schema")?;
            check_slot(array, "array")?;
            export::buffer(shared(buffer, "buffer")?, schema, array)
        })
    }
}

/// Exports a batch as an Arrow array of structs and its type, with one field for each column. The
/// array shares values as in `tensilo_buffer_export_arrow`, and stays valid when the batch is
/// closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_export_arrow(
    batch: *const tensilo_batch,
    schema: *mut ArrowSchema,
    array: *mut ArrowArray,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            check_slot(schema, "schema")?;
            check_slot(array, "array")?;
            export::batch(shared(batch, "batch")?, schema, array)
        })
    }
}

/// Exports a whole file as a stream of Arrow arrays of structs, with the Arrow types of the source
/// that the file was converted from. `columns` has the names of `column_count` columns, or is NULL
/// for all columns. Each array has at most `batch_samples` samples; 0 selects the default. The
/// stream keeps the file open. Call its `release` function exactly once.
///
/// Cost: each chunk is decoded once and copied once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_reader_export_stream(
    reader: *const tensilo_reader,
    columns: *const *const c_char,
    column_count: usize,
    batch_samples: u64,
    stream: *mut ArrowArrayStream,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            check_slot(stream, "stream")?;
            let is_all = columns.is_null() && column_count == 0;
            let names = if is_all { None } else { Some(texts(columns, column_count, "columns")?) };
            let names = names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            export::stream(shared(reader, "reader")?, names.as_deref(), batch_samples, stream)
        })
    }
}

/// Exports buffers and batches as arrays, and files as streams.
#[cfg(feature = "arrow")]
mod export {
    use super::{ArrowArray, ArrowArrayStream, ArrowSchema};
    use crate::batch::{slices, tensilo_batch};
    use crate::boundary::error::{Result, tensilo_error};
    use crate::reader::tensilo_reader;
    use crate::samples::{SampleSlices, tensilo_buffer};
    use std::panic::AssertUnwindSafe;
    use std::ptr::NonNull;
    use std::sync::Arc;
    use tensilo::export::{ArrowSamples, batches};
    use tensilo::import::arrow::array::Array as _;
    use tensilo::import::arrow::array::{ArrayData, RecordBatch, RecordBatchOptions, StructArray, make_array};
    use tensilo::import::arrow::buffer::Buffer;
    use tensilo::import::arrow::datatypes::{Field, FieldRef, Fields, Schema};
    use tensilo::import::arrow::error::ArrowError;
    use tensilo::import::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
    use tensilo::import::arrow::ffi_stream::FFI_ArrowArrayStream;
    use tensilo::{ColumnBuffer, ColumnSchema};
    use tensilo_data::Batch;

    /// The owner of the values that an array shares.
    #[derive(Clone)]
    enum SampleOwner {
        Buffer(#[expect(dead_code, reason = "only keeps the values alive")] Arc<ColumnBuffer>),
        Batch(#[expect(dead_code, reason = "only keeps the values alive")] Arc<Batch>),
    }

    /// Returns samples as Arrow data; see [`ArrowSamples`]. `owner` owns the values of `slices`.
    fn arrow_data(
        schema: &ColumnSchema,
        slices: &SampleSlices<'_>,
        owner: SampleOwner,
    ) -> Result<(FieldRef, ArrayData)> {
        let owner = Arc::new(AssertUnwindSafe(owner));
        let values = NonNull::from(slices.values).cast();
        // SAFETY: the values belong to the owner, which the buffer keeps alive, and shared values
        // are never changed.
        let values = unsafe { Buffer::from_custom_allocation(values, slices.values.len(), owner) };
        let samples = ArrowSamples {
            schema,
            sample_count: slices.sample_count,
            item_count: slices.item_count,
            values,
            tensor: slices.tensor,
            offsets: slices.offsets,
            varying_extents: slices.varying_extents,
            validity: slices.validity,
            lists: slices.lists,
        };
        samples.to_arrow().map_err(|error| {
            let name = &schema.name;
            tensilo_error::bad_argument(format!("column {name:?}: Arrow cannot hold the samples: {error}"))
        })
    }

    #[cold]
    fn refused(error: &ArrowError) -> Box<tensilo_error> {
        tensilo_error::bad_argument(format!("Arrow cannot hold the samples: {error}"))
    }

    /// Writes an array and its type to the caller's structs.
    ///
    /// # Safety
    ///
    /// Both pointers are aligned and valid for writes. Their old content is not dropped.
    unsafe fn export(field: &Field, data: &ArrayData, schema: *mut ArrowSchema, array: *mut ArrowArray) -> Result<()> {
        let exported = FFI_ArrowSchema::try_from(field).map_err(|error| refused(&error))?;
        let data = FFI_ArrowArray::new(data);
        // SAFETY: the caller promises this. Both sides define the structs as in Arrow's
        // specification.
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
    /// The same as for [`export`].
    pub(super) unsafe fn buffer(
        buffer: &tensilo_buffer,
        schema: *mut ArrowSchema,
        array: *mut ArrowArray,
    ) -> Result<()> {
        let owner = SampleOwner::Buffer(buffer.samples().clone());
        let (field, data) = arrow_data(buffer.schema()?, &buffer.slices()?, owner)?;
        // SAFETY: the caller's promise.
        unsafe { export(&field, &data, schema, array) }
    }

    /// Exports a batch.
    ///
    /// # Safety
    ///
    /// The same as for [`export`].
    pub(super) unsafe fn batch(batch: &tensilo_batch, schema: *mut ArrowSchema, array: *mut ArrowArray) -> Result<()> {
        let batch = batch.batch();
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for column in batch.columns() {
            let of = column.schema().ok_or_else(|| tensilo_error::internal("a column of a batch has no schema"))?;
            let owner = SampleOwner::Batch(batch.clone());
            let (field, data) = arrow_data(of, &slices(column), owner)?;
            fields.push(field);
            arrays.push(make_array(data));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.indices().len()));
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
    /// `stream` is aligned and valid for writes. Its old content is not dropped.
    pub(super) unsafe fn stream(
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
        // SAFETY: the caller promises this. Both sides define the struct as in Arrow's
        // specification.
        unsafe { stream.cast::<FFI_ArrowArrayStream>().write(made) };
        Ok(())
    }
}

/// The same functions in a build without Arrow.
#[cfg(not(feature = "arrow"))]
mod export {
    use super::{ArrowArray, ArrowArrayStream, ArrowSchema};
    use crate::batch::tensilo_batch;
    use crate::boundary::error::{Result, tensilo_error};
    use crate::reader::tensilo_reader;
    use crate::samples::tensilo_buffer;

    fn refused() -> Result<()> {
        Err(tensilo_error::not_built("arrow", "exporting to Arrow"))
    }

    pub(super) unsafe fn buffer(_: &tensilo_buffer, _: *mut ArrowSchema, _: *mut ArrowArray) -> Result<()> {
        refused()
    }

    pub(super) unsafe fn batch(_: &tensilo_batch, _: *mut ArrowSchema, _: *mut ArrowArray) -> Result<()> {
        refused()
    }

    pub(super) unsafe fn stream(
        _: &tensilo_reader,
        _: Option<&[String]>,
        _: u64,
        _: *mut ArrowArrayStream,
    ) -> Result<()> {
        refused()
    }
}
