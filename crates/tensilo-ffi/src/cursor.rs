//! Reads samples of one column of a file: a single sample, a list of samples, or a range.
//!
//! A [`tensilo_cursor`] owns the memory for decoding, and caches the last decoded chunk. Samples of
//! a fixed shape are read into the caller's memory, after its length has been checked. Other
//! samples are read one by one, or into a [`tensilo_buffer`].

use crate::boundary::call::{HandleSlot, array, call, close, exclusive, fill, memory, shared, text, write_if};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::Output;
use crate::reader::tensilo_reader;
use crate::samples::tensilo_buffer;
use crate::schema::sample_bytes;
use std::ffi::c_char;
use std::sync::Arc;
use tensilo::{ColumnSchema, Cursor, limits};

/// A cursor reads samples of one column of a file. It owns the memory for decoding, and caches the
/// last decoded chunk, so reading all samples of a chunk one after another decodes it once.
///
/// Samples are returned as stored elements, whatever these represent: the decimal 1.50 is 150, and
/// a timestamp is a number of time units. The metadata entry `arrow.type` of a column names the
/// type and the unit.
///
/// Threads: one at a time; give each thread its own cursor. A cursor keeps the file open.
pub struct tensilo_cursor {
    cursor: Cursor,
    schema: Arc<ColumnSchema>,
    /// The extents of the last sample read.
    extents: [u32; limits::DIMENSIONS],
    /// The indices of a range. The memory is reused.
    indices: Vec<u64>,
}

/// One sample of a column without lists, in memory that belongs to the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_sample {
    /// `sizeof(tensilo_sample)`, set by the caller.
    pub struct_size: usize,
    /// The elements, row-major, in the byte order of the machine. Text does not end with a NUL.
    pub values: *const u8,
    /// The size of all elements in bytes.
    pub value_bytes: usize,
    /// The `ndim` extents of this sample, outermost first.
    pub extents: *const u32,
    /// The number of dimensions.
    pub ndim: usize,
    /// Whether the sample is null. If the shape is fixed, a null has zeros as values. Otherwise, it
    /// has no values.
    pub is_null: bool,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_sample {}

impl tensilo_cursor {
    /// Sets `indices` to a range of samples. Fails if the samples do not take exactly `out_bytes`
    /// bytes.
    fn set_range(&mut self, start: u64, end: u64, out_bytes: usize) -> Result<()> {
        let all = self.cursor.column().sample_count();
        if start > end || end > all {
            let message =
                format!("samples {start}..{end} are out of range: the column has {all} samples, counted from 0");
            return Err(tensilo_error::bad_argument(message));
        }
        let sample_bytes = sample_bytes(&self.schema).ok_or_else(ragged_error)?;
        let count = usize::try_from(end.saturating_sub(start)).ok();
        let count = count.filter(|count| count.checked_mul(sample_bytes) == Some(out_bytes)).ok_or_else(|| {
            let message =
                format!("out_bytes is {out_bytes}, but samples {start}..{end} need exactly {sample_bytes} bytes each");
            tensilo_error::bad_argument(message)
        })?;
        self.indices.clear();
        self.indices.try_reserve(count).map_err(|_| tensilo_error::out_of_memory("the indices of the samples"))?;
        self.indices.extend(start..end);
        Ok(())
    }
}

#[cold]
fn ragged_error() -> Box<tensilo_error> {
    tensilo_error::bad_argument("the samples of the column have different sizes; use a tensilo_buffer")
}

#[cold]
fn nested_error() -> Box<tensilo_error> {
    tensilo_error::bad_argument("the samples of the column are lists; use a tensilo_buffer or the Arrow functions")
}

/// Opens a cursor for the column with this name. Close it with `tensilo_cursor_close`.
///
/// Cost: linear in the number of columns, so open a cursor once and keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_open(
    reader: *const tensilo_reader,
    column: *const c_char,
    cursor: *mut *mut tensilo_cursor,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(cursor, "cursor")?;
            let column = shared(reader, "reader")?.reader().column(text(column, "column")?)?;
            let (cursor, schema) = (column.cursor(), Arc::new(column.schema().clone()));
            slot.fill(tensilo_cursor { cursor, schema, extents: [0; limits::DIMENSIONS], indices: Vec::new() });
            Ok(())
        })
    }
}

/// Closes a cursor and sets the pointer to NULL. Does nothing if `cursor` or `*cursor` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_close(cursor: *mut *mut tensilo_cursor) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(cursor) }
}

/// Reads sample number `index`, counted from 0, of a column without lists. The pointers of `sample`
/// live until the next call with this cursor.
///
/// Cost: a bounds check if the sample is in the cached chunk. Otherwise, the chunk is read, and
/// verified on first touch. If the encoding allows it, only the sample is decoded. A raw sample of
/// a mapped file is not copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_read(
    cursor: *mut tensilo_cursor,
    index: u64,
    sample: *mut tensilo_sample,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, extents, .. } = exclusive(cursor, "cursor")?;
            if !schema.levels.is_empty() {
                return Err(nested_error());
            }
            let read = cursor.read(index)?;
            let shape = read.extents();
            extents.iter_mut().zip(shape).for_each(|(to, extent)| *to = *extent);
            let found = tensilo_sample {
                struct_size: 0,
                values: read.bytes().as_ptr(),
                value_bytes: read.bytes().len(),
                extents: extents.as_ptr(),
                ndim: shape.len(),
                is_null: read.is_null(),
            };
            fill(sample, found, "sample")
        })
    }
}

/// Reads sample number `index` of a column without lists into `out`, which is `out_bytes` bytes
/// long. Fails if the sample does not fit. Sets `*value_bytes` to the size of the sample and
/// `*is_null` to whether it is null; either pointer may be NULL. If the shape is fixed, a null has
/// zeros as values. Otherwise, it has no values.
///
/// Cost: the same as for `tensilo_cursor_read`. If only the sample is decoded, it is decoded
/// directly into `out`. Otherwise, it is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_read_into(
    cursor: *mut tensilo_cursor,
    index: u64,
    out: *mut u8,
    out_bytes: usize,
    value_bytes: *mut usize,
    is_null: *mut bool,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, .. } = exclusive(cursor, "cursor")?;
            if !schema.levels.is_empty() {
                return Err(nested_error());
            }
            let found = cursor.read_bytes(index, memory(out, out_bytes, "out")?)?;
            let of_null = sample_bytes(schema).unwrap_or(0);
            write_if(value_bytes, found.unwrap_or(of_null), "value_bytes")?;
            write_if(is_null, found.is_none(), "is_null")
        })
    }
}

/// Copies `count` samples of a fixed shape to `out`, in the order of `indices`. Indices may repeat.
/// `out_bytes` must be exactly `count` times the `sample_bytes` of the column. Nulls become zeros.
/// Sets `*null_count` to the number of nulls; the pointer may be NULL. To find out which samples
/// are null, use a `tensilo_buffer`.
///
/// Cost: each chunk is read and decoded at most once; raw samples are copied directly to `out`.
/// After the first calls, nothing is allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_gather(
    cursor: *mut tensilo_cursor,
    indices: *const u64,
    count: usize,
    out: *mut u8,
    out_bytes: usize,
    null_count: *mut usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, .. } = exclusive(cursor, "cursor")?;
            if !schema.levels.is_empty() || schema.shape.is_ragged() {
                return Err(ragged_error());
            }
            let (indices, out) = (array(indices, count, "indices")?, memory(out, out_bytes, "out")?);
            write_if(null_count, cursor.gather_bytes(indices, out)?, "null_count")
        })
    }
}

/// Copies the samples from `start` to `end` (exclusive), like `tensilo_cursor_gather`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_gather_range(
    cursor: *mut tensilo_cursor,
    start: u64,
    end: u64,
    out: *mut u8,
    out_bytes: usize,
    null_count: *mut usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let cursor = exclusive(cursor, "cursor")?;
            cursor.set_range(start, end, out_bytes)?;
            let nulls = cursor.cursor.gather_bytes(&cursor.indices, memory(out, out_bytes, "out")?)?;
            write_if(null_count, nulls, "null_count")
        })
    }
}

/// Fills a buffer with `count` samples of any column, in the order of `indices`. Indices may
/// repeat. On failure, the buffer is empty.
///
/// Cost: the same as for `tensilo_cursor_gather`. Encoded values that are ragged or nested need one
/// additional copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_fill_buffer(
    cursor: *mut tensilo_cursor,
    indices: *const u64,
    count: usize,
    buffer: *mut tensilo_buffer,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, .. } = exclusive(cursor, "cursor")?;
            let indices = array(indices, count, "indices")?;
            exclusive(buffer, "buffer")?.fill(schema, |samples| cursor.gather_into(indices, samples))
        })
    }
}

/// Fills a buffer with the samples from `start` to `end` (exclusive). On failure, the buffer is
/// empty.
///
/// Cost: each chunk is decoded once. A chunk that is entirely within the range is decoded directly
/// into the buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_fill_buffer_range(
    cursor: *mut tensilo_cursor,
    start: u64,
    end: u64,
    buffer: *mut tensilo_buffer,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, .. } = exclusive(cursor, "cursor")?;
            exclusive(buffer, "buffer")?.fill(schema, |samples| cursor.range_into(start..end, samples))
        })
    }
}
