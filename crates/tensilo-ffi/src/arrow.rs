//! Samples through the Arrow C data interface.

use crate::arguments::{check_place, shared, texts};
#[cfg(not(feature = "arrow"))]
use crate::arrow_absent as export;
#[cfg(feature = "arrow")]
use crate::arrow_export as export;
use crate::arrow_structs::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::batch::tensilo_batch;
use crate::buffer::tensilo_buffer;
use crate::call::call;
use crate::error::tensilo_error;
use crate::reader::tensilo_reader;
use crate::status::tensilo_status;
use std::ffi::c_char;

/// Exports the samples of a buffer as an array with its type. The values are shared, not copied,
/// unless Arrow has another layout (bool, bf16): the array keeps them, also if the buffer is filled
/// again or closed. Call `release` of both, once.
///
/// Numbers are primitive arrays, tensors lists in lists, of a fixed size where an extent is. Text
/// and bytes are large strings and binaries. bf16 becomes float, because Arrow has no bf16. Dates
/// and times that were imported from Arrow have their type again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_export_arrow(
    buffer: *const tensilo_buffer,
    schema: *mut ArrowSchema,
    array: *mut ArrowArray,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            check_place(schema, "schema")?;
            check_place(array, "array")?;
            export::buffer(shared(buffer, "buffer")?, schema, array)
        })
    }
}

/// Exports a batch as an array of structs with its type, one field for each column. It shares
/// values as `tensilo_buffer_export_arrow` does, and keeps them also if the batch is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_export_arrow(
    batch: *const tensilo_batch,
    schema: *mut ArrowSchema,
    array: *mut ArrowArray,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            check_place(schema, "schema")?;
            check_place(array, "array")?;
            export::batch(shared(batch, "batch")?, schema, array)
        })
    }
}

/// Exports a whole file as a stream of arrays of structs, with the types of what it was imported
/// from. `columns` are the names of `column_count` columns, or NULL for all. A batch has at most
/// `batch_samples` samples; 0 for the default. The stream keeps the file open. Call `release` of
/// it, once.
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
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            check_place(stream, "stream")?;
            let is_all = columns.is_null() && column_count == 0;
            let names = if is_all { None } else { Some(texts(columns, column_count, "columns")?) };
            let names = names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            export::stream(shared(reader, "reader")?, names.as_deref(), batch_samples, stream)
        })
    }
}
