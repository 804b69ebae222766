//! Batches: samples of several columns.

use crate::arguments::{fill, shared, text, write};
use crate::call::{call, close};
use crate::error::{Result, tensilo_error};
use crate::samples::{SampleParts, tensilo_lists, tensilo_samples};
use crate::schema::{no_column, tensilo_schema};
use crate::status::tensilo_status;
use crate::versioned::Output;
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, Schema};
use tensilo_data::{Batch, BatchColumn};

/// The samples of one step of one rank, column by column. It needs no other handle.
///
/// Threads: any number may look at a batch at the same time, but not while one closes it.
pub struct tensilo_batch {
    /// Arrays that were exported share it.
    batch: Arc<Batch>,
    /// The columns as they are delivered, which batches of one loader share.
    schema: Arc<tensilo_schema>,
}

/// Facts about a batch. Pointers live as long as the batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_batch_info {
    /// `sizeof(tensilo_batch_info)`, set by the caller.
    pub struct_size: usize,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// The position in the epoch at which the step begins.
    pub position: u64,
    /// The number of samples.
    pub sample_count: usize,
    /// The number of columns.
    pub column_count: usize,
    /// The samples, by their numbers in the dataset, in the order of the batch.
    pub samples: *const u64,
    /// The positions in the batch of samples that take the place of damaged ones.
    pub substituted: *const usize,
    /// The number of samples that take the place of damaged ones.
    pub substituted_count: usize,
}

// SAFETY: `repr(C)`, and begins with its size.
unsafe impl Output for tensilo_batch_info {}

/// The columns as a loader delivers them, once they are known.
#[derive(Default)]
pub(crate) struct DeliveredSchema(Option<Arc<tensilo_schema>>);

impl DeliveredSchema {
    /// Returns a batch of the loader.
    pub fn batch(&mut self, batch: Batch) -> tensilo_batch {
        let schema = self.0.get_or_insert_with(|| {
            let columns = batch.columns().iter().filter_map(|column| column.schema().cloned());
            Arc::new(tensilo_schema::new(Schema::new(columns)))
        });
        let schema = schema.clone();
        tensilo_batch { batch: Arc::new(batch), schema }
    }
}

impl tensilo_batch {
    pub(crate) fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    fn column(&self, index: usize) -> Result<&BatchColumn> {
        let columns = self.batch.columns();
        columns.get(index).ok_or_else(|| no_column(index, columns.len()))
    }
}

/// Returns the parts of a column of a batch.
pub(crate) fn parts(column: &BatchColumn) -> SampleParts<'_> {
    let is_nested = |schema: &ColumnSchema| !schema.levels.is_empty();
    let item_count = match column.offsets() {
        [] if column.schema().is_some_and(is_nested) => column
            .lists()
            .last()
            .map_or(0, |lists| lists.offsets().last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0)),
        [] => column.sample_count(),
        offsets => offsets.len().saturating_sub(1),
    };
    SampleParts {
        dtype: column.schema().map_or(DType::U8, |schema| schema.dtype),
        sample_count: column.sample_count(),
        item_count,
        values: column.bytes(),
        offsets: column.offsets(),
        varying_extents: column.extents(),
        validity: column.validity(),
        null_count: column.null_count(),
        lists: column.lists(),
        tensor: column.tensor(),
    }
}

/// Closes a batch, and sets the pointer to NULL: the loader uses its memory again. Does nothing if
/// `batch` or `*batch` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_close(batch: *mut *mut tensilo_batch) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { close(batch) }
}

/// Gives facts about a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_get_info(
    batch: *const tensilo_batch,
    info: *mut tensilo_batch_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let batch = shared(batch, "batch")?.batch();
            let found = tensilo_batch_info {
                struct_size: 0,
                epoch: batch.epoch(),
                position: batch.position(),
                sample_count: batch.samples().len(),
                column_count: batch.columns().len(),
                samples: batch.samples().as_ptr(),
                substituted: batch.substituted().as_ptr(),
                substituted_count: batch.substituted().len(),
            };
            fill(info, found, "info")
        })
    }
}

/// Returns the columns as they are delivered, which live as long as the batch; NULL of NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_schema(batch: *const tensilo_batch) -> *const tensilo_schema {
    // SAFETY: NULL or a batch, by the rules of the header.
    unsafe { batch.as_ref() }.map_or(ptr::null(), |batch| Arc::as_ptr(&batch.schema))
}

/// Finds the column of this name in a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_find_column(
    batch: *const tensilo_batch,
    name: *const c_char,
    index: *mut usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let (batch, name) = (shared(batch, "batch")?.batch(), text(name, "name")?);
            let is_it = |column: &BatchColumn| column.schema().is_some_and(|schema| schema.name == name);
            let found = batch.columns().iter().position(is_it);
            let found = found.ok_or_else(|| tensilo_error::bad_argument(format!("the batch has no column {name:?}")));
            write(index, found?, "index")
        })
    }
}

/// Gives the samples of column number `column` of a batch, counted from 0. Their pointers live as
/// long as the batch. Of a column that is padded, `offsets` and `varying_extents` are those before
/// that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_get_samples(
    batch: *const tensilo_batch,
    column: usize,
    samples: *mut tensilo_samples,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { call(error, || parts(shared(batch, "batch")?.column(column)?).fill(samples)) }
}

/// Gives the lists of a level of a nested column of a batch, both counted from 0. Their pointers
/// live as long as the batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_get_lists(
    batch: *const tensilo_batch,
    column: usize,
    level: usize,
    lists: *mut tensilo_lists,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { call(error, || parts(shared(batch, "batch")?.column(column)?).fill_lists(level, lists)) }
}
