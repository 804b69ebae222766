//! Any samples of a dataset, of several columns.

use crate::arguments::{array, exclusive, options as read_options, shared};
use crate::batch::{DeliveredSchema, tensilo_batch};
use crate::call::{HandlePlace, call, close};
use crate::dataset::tensilo_dataset;
use crate::error::tensilo_error;
use crate::loader_options::{loader_options, tensilo_loader_options};
use crate::status::tensilo_status;
use tensilo_data::SampleReader;

/// Reads batches of any samples of a dataset. It has no threads, and keeps the files open.
///
/// Threads: one at a time; give each thread a reader of its own.
pub struct tensilo_sample_reader {
    reader: SampleReader,
    schema: DeliveredSchema,
}

/// Makes a reader of any samples of a dataset, with the columns, casts, paddings and memory of
/// `options`, which has a `batch_size` of at least 1. Close it with `tensilo_sample_reader_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_sample_reader_new(
    dataset: *const tensilo_dataset,
    options: *const tensilo_loader_options,
    reader: *mut *mut tensilo_sample_reader,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let place = HandlePlace::new(reader, "reader")?;
            let view = shared(dataset, "dataset")?.view();
            let options = loader_options(&read_options(options, "options")?, view)?;
            place.fill(tensilo_sample_reader { reader: options.reader(view)?, schema: DeliveredSchema::default() });
            Ok(())
        })
    }
}

/// Reads `count` samples, in the order of `indices`, and repeated ones each time. Close the batch
/// with `tensilo_batch_close`.
///
/// Cost: that of a gather, into memory that is used again when the batch is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_sample_reader_take(
    reader: *mut tensilo_sample_reader,
    indices: *const u64,
    count: usize,
    batch: *mut *mut tensilo_batch,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let place = HandlePlace::new(batch, "batch")?;
            let tensilo_sample_reader { reader, schema } = exclusive(reader, "reader")?;
            place.fill(schema.batch(reader.take(array(indices, count, "indices")?)?));
            Ok(())
        })
    }
}

/// Closes a reader, and sets the pointer to NULL. Its batches stay. Does nothing if `reader` or
/// `*reader` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_sample_reader_close(reader: *mut *mut tensilo_sample_reader) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { close(reader) }
}
