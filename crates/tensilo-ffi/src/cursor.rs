//! Samples of one column of a file: one at a time, any, or a range.
//!
//! A [`tensilo_cursor`] owns the memory that decoding needs and the chunk that was decoded last.
//! Samples of a fixed shape go to memory of the caller, whose length is checked before a byte is
//! read. Others are read one by one, or fill a [`tensilo_buffer`].

use crate::boundary::call::{HandleSlot, array, call, close, exclusive, fill, memory, shared, text, write_if};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::Output;
use crate::reader::tensilo_reader;
use crate::samples::tensilo_buffer;
use crate::schema::sample_bytes;
use std::ffi::c_char;
use std::sync::Arc;
use tensilo::{ColumnSchema, Cursor, limits};

/// Reads samples of one column of a file. It owns the memory that decoding needs, and the chunk
/// that was decoded last: reading samples of one chunk one after the other costs one decoding.
///
/// Samples have the stored elements, whatever they stand for: 150 for a decimal of 1.50, a count
/// for a timestamp. The metadata `arrow.type` of a column tell the type and the unit.
///
/// Threads: one at a time; give each thread a cursor of its own. It keeps the file open.
pub struct tensilo_cursor {
    cursor: Cursor,
    schema: Arc<ColumnSchema>,
    /// The extents of the sample that was read last.
    extents: [u32; limits::RANK],
    /// The samples of a range, in memory that is used again.
    indices: Vec<u64>,
}

/// One sample of a column without lists, in memory of the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_sample {
    /// `sizeof(tensilo_sample)`, set by the caller.
    pub struct_size: usize,
    /// The elements, row-major, in the byte order of the machine. Text has no NUL at its end.
    pub values: *const u8,
    /// The bytes of all elements.
    pub value_bytes: usize,
    /// The `rank` extents of this sample, outermost first.
    pub extents: *const u32,
    /// The number of dimensions.
    pub rank: usize,
    /// Whether the sample is null. Its values are zeros of a fixed shape, and none otherwise.
    pub is_null: bool,
}

// SAFETY: `repr(C)`, and begins with its size.
unsafe impl Output for tensilo_sample {}

impl tensilo_cursor {
    /// Sets `indices` to a range of samples, of which `out_bytes` have to be the bytes.
    fn set_range(&mut self, start: u64, end: u64, out_bytes: usize) -> Result<()> {
        let all = self.cursor.column().sample_count();
        if start > end || end > all {
            let message = format!("samples {start}..{end} of a column with {all} samples, counted from 0");
            return Err(tensilo_error::bad_argument(message));
        }
        let sample_bytes = sample_bytes(&self.schema).ok_or_else(ragged_error)?;
        let count = usize::try_from(end.saturating_sub(start)).ok();
        let count = count.filter(|count| count.checked_mul(sample_bytes) == Some(out_bytes)).ok_or_else(|| {
            let message =
                format!("samples {start}..{end} take {sample_bytes} bytes each; there is room for {out_bytes}");
            tensilo_error::bad_argument(message)
        })?;
        self.indices.clear();
        self.indices.try_reserve(count).map_err(|_| tensilo_error::out_of_memory("the numbers of the samples"))?;
        self.indices.extend(start..end);
        Ok(())
    }
}

#[cold]
fn ragged_error() -> Box<tensilo_error> {
    tensilo_error::bad_argument("the samples of the column have different sizes: use a tensilo_buffer")
}

#[cold]
fn nested_error() -> Box<tensilo_error> {
    tensilo_error::bad_argument("the samples of the column are lists: use a tensilo_buffer, or the Arrow functions")
}

/// Opens a cursor for the column of this name. Close it with `tensilo_cursor_close`.
///
/// Cost: linear in the number of columns; keep the cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_open(
    reader: *const tensilo_reader,
    column: *const c_char,
    cursor: *mut *mut tensilo_cursor,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(cursor, "cursor")?;
            let column = shared(reader, "reader")?.reader().column(text(column, "column")?)?;
            let (cursor, schema) = (column.cursor(), Arc::new(column.schema().clone()));
            slot.fill(tensilo_cursor { cursor, schema, extents: [0; limits::RANK], indices: Vec::new() });
            Ok(())
        })
    }
}

/// Closes a cursor, and sets the pointer to NULL. Does nothing if `cursor` or `*cursor` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_close(cursor: *mut *mut tensilo_cursor) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { close(cursor) }
}

/// Reads sample number `index`, counted from 0, of a column without lists. The pointers of `sample`
/// live until the next call with this cursor.
///
/// Cost: if the sample is in the chunk that was decoded last, a bounds check. Else its chunk is
/// read, and checked on first touch; the sample is decoded alone, if its encoding can do that. A
/// sample that is stored as it is, in a file that is mapped, is not copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_read(
    cursor: *mut tensilo_cursor,
    index: u64,
    sample: *mut tensilo_sample,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, extents, .. } = exclusive(cursor, "cursor")?;
            if !schema.levels.is_empty() {
                return Err(nested_error());
            }
            let read = cursor.read(index)?;
            let shape = read.shape();
            extents.iter_mut().zip(shape).for_each(|(to, extent)| *to = *extent);
            let found = tensilo_sample {
                struct_size: 0,
                values: read.bytes().as_ptr(),
                value_bytes: read.bytes().len(),
                extents: extents.as_ptr(),
                rank: shape.len(),
                is_null: read.is_null(),
            };
            fill(sample, found, "sample")
        })
    }
}

/// Reads sample number `index` of a column without lists into `out`, which has room for `out_bytes`
/// bytes. `*value_bytes` becomes the number of bytes, and `*is_null` whether the sample is null:
/// its values are zeros of a fixed shape, and none otherwise. Both may be NULL. Fails if `out` is
/// too short.
///
/// Cost: as `tensilo_cursor_read`. A sample that is decoded alone goes straight to `out`, any other
/// is copied.
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
    // SAFETY: the caller keeps the rules of the header.
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

/// Copies `count` samples of a fixed shape to `out`, in the order of `indices`, and repeated ones
/// each time. `out_bytes` is exactly `count` times the `sample_bytes` of the column. Nulls become
/// zeros, and `*null_count`, which may be NULL, their number; a `tensilo_buffer` tells which they
/// are.
///
/// Cost: each chunk is read and decoded at most once; samples that are stored as they are go
/// straight to `out`. Nothing is allocated once the cursor has warmed up.
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
    // SAFETY: the caller keeps the rules of the header.
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

/// Copies the samples from `start` to `end`, without the last, as `tensilo_cursor_gather` does.
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
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let cursor = exclusive(cursor, "cursor")?;
            cursor.set_range(start, end, out_bytes)?;
            let nulls = cursor.cursor.gather_bytes(&cursor.indices, memory(out, out_bytes, "out")?)?;
            write_if(null_count, nulls, "null_count")
        })
    }
}

/// Fills a buffer with `count` samples of any column, in the order of `indices`, and repeated ones
/// each time. If that fails, the buffer is empty.
///
/// Cost: as `tensilo_cursor_gather`; encoded values that are ragged or nested are copied once more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_fill_buffer(
    cursor: *mut tensilo_cursor,
    indices: *const u64,
    count: usize,
    buffer: *mut tensilo_buffer,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, .. } = exclusive(cursor, "cursor")?;
            let indices = array(indices, count, "indices")?;
            exclusive(buffer, "buffer")?.fill(schema, |samples| cursor.gather_into(indices, samples))
        })
    }
}

/// Fills a buffer with the samples from `start` to `end`, without the last. If that fails, the
/// buffer is empty.
///
/// Cost: each chunk is decoded once, straight to the buffer, if it is wanted whole.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_cursor_fill_buffer_range(
    cursor: *mut tensilo_cursor,
    start: u64,
    end: u64,
    buffer: *mut tensilo_buffer,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let tensilo_cursor { cursor, schema, .. } = exclusive(cursor, "cursor")?;
            exclusive(buffer, "buffer")?.fill(schema, |samples| cursor.range_into(start..end, samples))
        })
    }
}
