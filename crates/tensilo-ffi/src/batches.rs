//! The batches of an epoch, one after the other.

use crate::arguments::{exclusive, fill, memory, shared, write};
use crate::batch::{DeliveredSchema, tensilo_batch};
use crate::call::{HandlePlace, call, close};
use crate::error::{Result, tensilo_error};
use crate::status::tensilo_status;
use crate::text::Text;
use crate::versioned::Output;
use std::ffi::c_char;
use std::time::Duration;
use tensilo_data::{BatchIterator, State};

/// The batches of an epoch, which threads read ahead. These begin with the iterator, and end when
/// it is closed.
///
/// Threads: one at a time. A process that was forked can go on with an iterator of its parent.
pub struct tensilo_batches {
    batches: BatchIterator,
    schema: DeliveredSchema,
    /// The sentence that was asked for last.
    verdict: Text,
}

/// The bytes of the state of a loader.
pub const TENSILO_STATE_BYTES: usize = 96;

const _: () = assert!(TENSILO_STATE_BYTES == State::BYTES, "the header states the length of a state");

/// The work of an iterator until now, and where its time went. Times are in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_metrics {
    /// `sizeof(tensilo_metrics)`, set by the caller.
    pub struct_size: usize,
    /// The batches that were taken.
    pub batches: u64,
    /// Their samples.
    pub samples: u64,
    /// The bytes of their values.
    pub value_bytes: u64,
    /// The bytes that were read from files; 0 if they are mapped.
    pub read_bytes: u64,
    /// The samples that were damaged, and others delivered instead.
    pub substitutes: u64,
    /// The time since the iterator was made.
    pub elapsed_ns: u64,
    /// The time that the caller waited for batches, without the first one.
    pub waited_ns: u64,
    /// The time from the first request to the first batch.
    pub first_batch_ns: u64,
    /// The time that all threads together have planned reads.
    pub planning_ns: u64,
    /// The time that all threads together have fetched bytes.
    pub fetching_ns: u64,
    /// The time that all threads together have decoded.
    pub decoding_ns: u64,
    /// Advice in one sentence: whether the loop waits for data, and what to do. It lives until the
    /// next call with this iterator.
    pub verdict: *const c_char,
}

// SAFETY: `repr(C)`, and begins with its size.
unsafe impl Output for tensilo_metrics {}

impl tensilo_batches {
    pub(crate) fn new(batches: BatchIterator) -> Self {
        Self { batches, schema: DeliveredSchema::default(), verdict: Text::new("") }
    }
}

/// Copies a state to the memory of a caller.
pub(crate) fn copy_state(state: &State, out: &mut [u8]) -> Result<()> {
    let bytes = state.to_bytes();
    if out.len() != bytes.len() {
        let message = format!("a state has {} bytes; there is room for {}", bytes.len(), out.len());
        return Err(tensilo_error::bad_argument(message));
    }
    out.copy_from_slice(&bytes); // equal lengths
    Ok(())
}

/// Takes the next batch, and waits for it; `*batch` is NULL at the end. Close the batch with
/// `tensilo_batch_close`. A batch that cannot be read is an error in its place; the next call goes
/// on with the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_next(
    batches: *mut tensilo_batches,
    batch: *mut *mut tensilo_batch,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let place = HandlePlace::new(batch, "batch")?;
            let tensilo_batches { batches, schema, .. } = exclusive(batches, "batches")?;
            if let Some(batch) = batches.next() {
                place.fill(schema.batch(batch?));
            }
            Ok(())
        })
    }
}

/// Waits until the next batch is ready, at most for `timeout_ms` milliseconds. `*is_ready` becomes
/// whether it is, so that taking it does not wait; at the end, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_wait(
    batches: *const tensilo_batches,
    timeout_ms: u64,
    is_ready: *mut bool,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let is_there = shared(batches, "batches")?.batches.wait(Duration::from_millis(timeout_ms));
            write(is_ready, is_there, "is_ready")
        })
    }
}

/// Writes the state after the batches that were taken to `state`, which has `TENSILO_STATE_BYTES`
/// bytes: `tensilo_loader_resume` goes on there. Cost: some nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_get_state(
    batches: *const tensilo_batches,
    state: *mut u8,
    state_bytes: usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let found = shared(batches, "batches")?.batches.state();
            copy_state(&found, memory(state, state_bytes, "state")?)
        })
    }
}

/// Gives what the iterator did until now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_get_metrics(
    batches: *mut tensilo_batches,
    metrics: *mut tensilo_metrics,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the caller keeps the rules of the header.
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

/// Closes an iterator, ends its threads, and sets the pointer to NULL. Batches that were taken
/// stay. Does nothing if `batches` or `*batches` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_batches_close(batches: *mut *mut tensilo_batches) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { close(batches) }
}
