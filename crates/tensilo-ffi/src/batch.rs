//! Batches: the samples of one step, column by column, and the iterator that delivers them.
//!
//! A [`tensilo_batch`] is independent of all other handles. Exported arrays share its memory, and
//! the batches of one loader share their schema. A [`tensilo_batches`] iterates over one epoch in
//! order while threads read ahead. A loader can resume from the iterator's state after any batch.

use crate::boundary::call::{HandleSlot, call, close, exclusive, fill, memory, shared, text, write};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::{Output, Text};
use crate::samples::{SampleSlices, tensilo_lists, tensilo_samples};
use crate::schema::{no_column, tensilo_schema};
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;
use tensilo::{ColumnSchema, DType, Error, Schema};
use tensilo_data::{Batch, BatchColumn, BatchIterator, State};

/// The samples of one step of one rank, column by column. A batch stays valid even if all other
/// handles are closed.
///
/// Threads: any number may read a batch at the same time, but not while it is being closed.
pub struct tensilo_batch {
    /// Shared with exported arrays.
    batch: Arc<Batch>,
    /// The delivered columns, shared by all batches of a loader.
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
    /// The position in the epoch at which the step starts.
    pub position: u64,
    /// The number of samples.
    pub sample_count: usize,
    /// The number of columns.
    pub column_count: usize,
    /// The indices of the samples in the dataset, in the order of the batch.
    pub indices: *const u64,
    /// The positions within the batch at which a sample replaces a damaged one.
    pub substituted: *const usize,
    /// The number of samples that replace damaged ones.
    pub substituted_count: usize,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_batch_info {}

/// The columns that a loader delivers. They are known once its first batch exists.
#[derive(Default)]
pub(crate) struct BatchSchema(Option<Arc<tensilo_schema>>);

impl BatchSchema {
    /// Returns the handle of a batch.
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

/// Returns the slices of a column of a batch.
pub(crate) fn slices(column: &BatchColumn) -> SampleSlices<'_> {
    let is_nested = |schema: &ColumnSchema| !schema.levels.is_empty();
    let item_count = match column.offsets() {
        [] if column.schema().is_some_and(is_nested) => column
            .lists()
            .last()
            .map_or(0, |lists| lists.offsets().last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0)),
        [] => column.sample_count(),
        offsets => offsets.len().saturating_sub(1),
    };
    SampleSlices {
        dtype: column.schema().map_or(DType::U8, |schema| schema.dtype),
        sample_count: column.sample_count(),
        item_count,
        values: column.bytes(),
        offsets: column.offsets(),
        varying_extents: column.varying_extents(),
        validity: column.validity(),
        null_count: column.null_count(),
        lists: column.lists(),
        tensor: column.tensor_extents(),
    }
}

/// Closes a batch and sets the pointer to NULL. The loader then reuses the memory of the batch.
/// Does nothing if `batch` or `*batch` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_close(batch: *mut *mut tensilo_batch) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(batch) }
}

/// Fills `info` with facts about a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_get_info(
    batch: *const tensilo_batch,
    info: *mut tensilo_batch_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let batch = shared(batch, "batch")?.batch();
            let found = tensilo_batch_info {
                struct_size: 0,
                epoch: batch.epoch(),
                position: batch.position(),
                sample_count: batch.indices().len(),
                column_count: batch.columns().len(),
                indices: batch.indices().as_ptr(),
                substituted: batch.substituted().as_ptr(),
                substituted_count: batch.substituted().len(),
            };
            fill(info, found, "info")
        })
    }
}

/// Returns the schema of the delivered columns, after casts and paddings. It lives as long as the
/// batch. Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_schema(batch: *const tensilo_batch) -> *const tensilo_schema {
    // SAFETY: NULL or a batch, by the rules in `tensilo.h`.
    unsafe { batch.as_ref() }.map_or(ptr::null(), |batch| Arc::as_ptr(&batch.schema))
}

/// Sets `*index` to the number of the column with this name in a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_find_column(
    batch: *const tensilo_batch,
    name: *const c_char,
    index: *mut usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let (batch, name) = (shared(batch, "batch")?.batch(), text(name, "name")?);
            let is_it = |column: &BatchColumn| column.schema().is_some_and(|schema| schema.name == name);
            let names = || batch.columns().iter().filter_map(|column| Some(column.schema()?.name.as_str()));
            let found = batch.columns().iter().position(is_it);
            write(index, found.ok_or_else(|| Error::unknown_column(name, names()))?, "index")
        })
    }
}

/// Fills `samples` with the samples of column number `column` of a batch, counted from 0. The
/// pointers in `samples` live as long as the batch. For a padded column, `offsets` and
/// `varying_extents` describe the samples before padding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_get_samples(
    batch: *const tensilo_batch,
    column: usize,
    samples: *mut tensilo_samples,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { call(error, || slices(shared(batch, "batch")?.column(column)?).fill(samples)) }
}

/// Fills `lists` with the lists of one level of a nested column of a batch; columns and levels are
/// counted from 0. The pointers in `lists` live as long as the batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batch_get_lists(
    batch: *const tensilo_batch,
    column: usize,
    level: usize,
    lists: *mut tensilo_lists,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { call(error, || slices(shared(batch, "batch")?.column(column)?).fill_lists(level, lists)) }
}

/// An iterator over the batches of an epoch. Threads read ahead from its creation until it is
/// closed.
///
/// Threads: one at a time. A forked process can continue an iterator of its parent.
pub struct tensilo_batches {
    batches: BatchIterator,
    schema: BatchSchema,
    /// Owns the string that the latest metrics point to.
    verdict: Text,
}

/// The length of a loader's state in bytes.
pub const TENSILO_STATE_BYTES: usize = 96;

const _: () = assert!(TENSILO_STATE_BYTES == State::BYTES, "the header states the length of a state");

/// The work that an iterator has done so far, and where its time went. Times are in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_metrics {
    /// `sizeof(tensilo_metrics)`, set by the caller.
    pub struct_size: usize,
    /// The number of batches taken.
    pub batches: u64,
    /// The number of samples in these batches.
    pub samples: u64,
    /// The size of the values in these batches, in bytes.
    pub value_bytes: u64,
    /// The number of bytes read from files; 0 if the files are mapped.
    pub read_bytes: u64,
    /// The number of damaged samples that other samples replaced.
    pub substitutes: u64,
    /// The time since the iterator was created.
    pub elapsed_ns: u64,
    /// The time that the caller waited for batches, not counting the first one.
    pub waited_ns: u64,
    /// The time from the first request to the first batch.
    pub first_batch_ns: u64,
    /// The time spent planning reads, summed over all threads.
    pub planning_ns: u64,
    /// The time spent fetching bytes, summed over all threads.
    pub fetching_ns: u64,
    /// The time spent decoding, summed over all threads.
    pub decoding_ns: u64,
    /// One sentence of advice: whether the loop waits for data, and what to do about it. It lives
    /// until the next call with this iterator.
    pub verdict: *const c_char,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_metrics {}

impl tensilo_batches {
    pub(crate) fn new(batches: BatchIterator) -> Self {
        Self { batches, schema: BatchSchema::default(), verdict: Text::new("") }
    }
}

/// Copies a state to the caller's memory.
pub(crate) fn copy_state(state: &State, out: &mut [u8]) -> Result<()> {
    let bytes = state.to_bytes();
    if out.len() != bytes.len() {
        let message = format!("expected state_bytes {} (TENSILO_STATE_BYTES), found {}", bytes.len(), out.len());
        return Err(tensilo_error::bad_argument(message));
    }
    out.copy_from_slice(&bytes); // equal lengths
    Ok(())
}

/// Waits for the next batch and takes it. At the end of the epoch, `*batch` is NULL. Close the
/// batch with `tensilo_batch_close`. If a batch cannot be read, the call fails, and the next call
/// continues with the batch after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_next(
    batches: *mut tensilo_batches,
    batch: *mut *mut tensilo_batch,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(batch, "batch")?;
            let tensilo_batches { batches, schema, .. } = exclusive(batches, "batches")?;
            if let Some(batch) = batches.next() {
                slot.fill(schema.batch(batch?));
            }
            Ok(())
        })
    }
}

/// Waits until the next batch is ready, for at most `timeout_ms` milliseconds. Sets `*is_ready` to
/// whether `tensilo_batches_next` would return at once, which it also does at the end of the epoch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_wait(
    batches: *const tensilo_batches,
    timeout_ms: u64,
    is_ready: *mut bool,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let is_there = shared(batches, "batches")?.batches.wait(Duration::from_millis(timeout_ms));
            write(is_ready, is_there, "is_ready")
        })
    }
}

/// Writes the state after the batches taken so far to `state`, which is `TENSILO_STATE_BYTES` bytes
/// long. `tensilo_loader_resume` continues from it. Cost: a few nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_get_state(
    batches: *const tensilo_batches,
    state: *mut u8,
    state_bytes: usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let found = shared(batches, "batches")?.batches.state();
            copy_state(&found, memory(state, state_bytes, "state")?)
        })
    }
}

/// Fills `metrics` with the totals since the iterator was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_get_metrics(
    batches: *mut tensilo_batches,
    metrics: *mut tensilo_metrics,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let batches = exclusive(batches, "batches")?;
            let found = batches.batches.metrics();
            batches.verdict = Text::new(found.verdict());
            let found = tensilo_metrics {
                struct_size: 0,
                batches: found.batches,
                samples: found.samples,
                value_bytes: found.value_bytes,
                read_bytes: found.read_bytes,
                substitutes: found.substitutes,
                elapsed_ns: ns(found.elapsed),
                waited_ns: ns(found.waited),
                first_batch_ns: ns(found.first_batch),
                planning_ns: ns(found.planning),
                fetching_ns: ns(found.fetching),
                decoding_ns: ns(found.decoding),
                verdict: batches.verdict.pointer(),
            };
            fill(metrics, found, "metrics")
        })
    }
}

/// Closes an iterator, ends its threads, and sets the pointer to NULL. Batches that were taken stay
/// valid. Does nothing if `batches` or `*batches` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_close(batches: *mut *mut tensilo_batches) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(batches) }
}
