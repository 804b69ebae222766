//! Contiguous samples of one column, and the buffer that holds them.
//!
//! [`tensilo_samples`] and [`tensilo_lists`] expose the samples of a buffer, or of a column of a
//! batch, to C. They contain pointers to values, offsets, extents and validity. Both sources
//! provide [`SampleSlices`], which fills the structs. A [`tensilo_buffer`] is library memory for
//! samples whose size the caller does not know in advance: ragged, nested or null.

use crate::boundary::call::{HandleSlot, call, close, fill, shared};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::Output;
use crate::schema::{dtype_number, tensilo_dtype};
use std::ptr;
use std::sync::Arc;
use tensilo::nested::ListBuffer;
use tensilo::{ColumnBuffer, ColumnSchema, DType, Extent};

/// The samples of one column, stored contiguously.
///
/// Values belong to items. In a column without lists, each sample is an item; in a nested column,
/// items are the members of the innermost lists. The memory behind the pointers belongs to the
/// handle that returned them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_samples {
    /// `sizeof(tensilo_samples)`, set by the caller.
    pub struct_size: usize,
    /// The type of the elements.
    pub dtype: tensilo_dtype,
    /// The number of levels of lists around items; see `tensilo_lists`.
    pub level_count: u32,
    /// The number of samples.
    pub sample_count: usize,
    /// The number of items: samples, or members of the innermost lists.
    pub item_count: usize,
    /// The elements of all items, one item after another, row-major, in the byte order of the
    /// machine.
    pub values: *const u8,
    /// The size of all elements in bytes.
    pub value_bytes: usize,
    /// For a ragged column, `item_count + 1` offsets into the values, in elements: the start of
    /// each item, and the end of the last. NULL for a fixed shape.
    pub offsets: *const u64,
    /// For a ragged column, the varying extents of each item, outermost first, one item after
    /// another. NULL for a fixed shape.
    pub varying_extents: *const u32,
    /// The number of extents at `varying_extents`.
    pub varying_extent_count: usize,
    /// Bit `i % 8` of byte `i / 8` (bit 0 is the least significant) is 0 if item `i` is null. NULL
    /// if no item is null. If the shape is fixed, a null item has zeros as values.
    pub validity: *const u8,
    /// The number of null items.
    pub null_count: usize,
    /// The number of dimensions, if all values form one tensor whose first dimension is the
    /// samples. 0 if the values do not form one tensor, because samples have different shapes and
    /// are not padded.
    pub tensor_ndim: usize,
    /// The extents of this tensor. NULL if the values do not form one tensor.
    pub tensor_extents: *const u64,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_samples {}

/// The lists of one level of a nested column, stored contiguously. The lists of level 0 are the
/// samples.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_lists {
    /// `sizeof(tensilo_lists)`, set by the caller.
    pub struct_size: usize,
    /// The number of lists.
    pub list_count: usize,
    /// `list_count + 1` offsets into the members: the start of each list, and the end of the last.
    /// Members are the lists of the next level, or items.
    pub offsets: *const u64,
    /// The bitmap of lists that are not null, as in `tensilo_samples`. NULL if none is null.
    pub validity: *const u8,
    /// The number of null lists.
    pub null_count: usize,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_lists {}

/// The samples of a column as slices, from a buffer or a batch.
pub(crate) struct SampleSlices<'a> {
    pub dtype: DType,
    pub sample_count: usize,
    pub item_count: usize,
    pub values: &'a [u8],
    pub offsets: &'a [u64],
    pub varying_extents: &'a [u32],
    pub validity: Option<&'a [u8]>,
    pub null_count: usize,
    pub lists: &'a [ListBuffer],
    pub tensor: Option<&'a [u64]>,
}

fn pointer<T>(slice: &[T]) -> *const T {
    if slice.is_empty() { ptr::null() } else { slice.as_ptr() }
}

impl SampleSlices<'_> {
    /// Fills the caller's struct.
    ///
    /// # Safety
    ///
    /// The same as for [`fill`].
    pub unsafe fn fill(&self, samples: *mut tensilo_samples) -> Result<()> {
        let found = tensilo_samples {
            struct_size: 0,
            dtype: dtype_number(self.dtype),
            level_count: u32::try_from(self.lists.len()).unwrap_or(u32::MAX), // exact: at most 16
            sample_count: self.sample_count,
            item_count: self.item_count,
            values: pointer(self.values),
            value_bytes: self.values.len(),
            offsets: pointer(self.offsets),
            varying_extents: pointer(self.varying_extents),
            varying_extent_count: self.varying_extents.len(),
            validity: self.validity.map_or(ptr::null(), pointer),
            null_count: self.null_count,
            tensor_ndim: self.tensor.map_or(0, <[u64]>::len),
            tensor_extents: self.tensor.map_or(ptr::null(), pointer),
        };
        // SAFETY: the caller's promise.
        unsafe { fill(samples, found, "samples") }
    }

    /// Fills the caller's struct with the lists of a level.
    ///
    /// # Safety
    ///
    /// The same as for [`fill`].
    pub unsafe fn fill_lists(&self, level: usize, lists: *mut tensilo_lists) -> Result<()> {
        let found = self.lists.get(level).ok_or_else(|| {
            let count = self.lists.len();
            tensilo_error::bad_argument(format!(
                "list level {level} is out of range: the column has {count} levels, counted from 0"
            ))
        })?;
        let found = tensilo_lists {
            struct_size: 0,
            list_count: found.list_count(),
            offsets: pointer(found.offsets()),
            validity: found.validity().map_or(ptr::null(), pointer),
            null_count: found.null_count(),
        };
        // SAFETY: the caller's promise.
        unsafe { fill(lists, found, "lists") }
    }
}

/// A buffer for samples of one column, which can be fixed, ragged or nested. Each call that fills
/// the buffer reuses its memory.
///
/// Threads: only one thread at a time may call functions on a buffer. Any number of threads may
/// read its samples at the same time.
pub struct tensilo_buffer {
    /// Shared with exported arrays.
    samples: Arc<ColumnBuffer>,
    schema: Option<Arc<ColumnSchema>>,
    tensor: Vec<u64>,
}

impl tensilo_buffer {
    /// Fills the buffer with samples of a column. If that fails, the buffer is empty.
    pub(crate) fn fill(
        &mut self,
        schema: &Arc<ColumnSchema>,
        gather: impl FnOnce(&mut ColumnBuffer) -> tensilo::Result<()>,
    ) -> Result<()> {
        self.schema = None;
        if Arc::get_mut(&mut self.samples).is_none() {
            self.samples = Arc::default(); // an exported array keeps the old samples
        }
        let samples = Arc::get_mut(&mut self.samples).ok_or_else(|| tensilo_error::internal("a buffer is shared"))?;
        gather(samples)?;
        self.schema = Some(schema.clone());
        self.tensor.clear();
        if schema.levels.is_empty() && !schema.shape.is_ragged() {
            let fixed = schema.shape.extents().iter().filter_map(|extent| match extent {
                Extent::Fixed(extent) => Some(u64::from(*extent)),
                Extent::Varying => None,
            });
            let count = u64::try_from(samples.sample_count()).unwrap_or(u64::MAX); // exact
            self.tensor.extend(std::iter::once(count).chain(fixed));
        }
        Ok(())
    }

    pub(crate) fn samples(&self) -> &Arc<ColumnBuffer> {
        &self.samples
    }

    /// Returns the schema of the column. Fails if the buffer is empty.
    pub(crate) fn schema(&self) -> Result<&Arc<ColumnSchema>> {
        let schema = self.schema.as_ref();
        schema.ok_or_else(|| tensilo_error::bad_argument("the buffer has no samples: fill it first"))
    }

    /// Returns the samples as slices. Fails if the buffer is empty.
    pub(crate) fn slices(&self) -> Result<SampleSlices<'_>> {
        self.schema()?;
        let samples = self.samples();
        Ok(SampleSlices {
            dtype: samples.dtype(),
            sample_count: samples.sample_count(),
            item_count: samples.item_count(),
            values: samples.bytes(),
            offsets: samples.offsets(),
            varying_extents: samples.varying_extents(),
            validity: samples.validity(),
            null_count: samples.null_count(),
            lists: samples.lists(),
            tensor: (!self.tensor.is_empty()).then_some(self.tensor.as_slice()),
        })
    }
}

/// Creates an empty buffer, for any column. Close it with `tensilo_buffer_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_new(
    buffer: *mut *mut tensilo_buffer,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let empty = tensilo_buffer { samples: Arc::default(), schema: None, tensor: Vec::new() };
            HandleSlot::new(buffer, "buffer")?.fill(empty);
            Ok(())
        })
    }
}

/// Closes a buffer and sets the pointer to NULL. Does nothing if `buffer` or `*buffer` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_close(buffer: *mut *mut tensilo_buffer) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(buffer) }
}

/// Fills `samples` with the samples of a buffer. The pointers in `samples` live until the buffer is
/// filled again or closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_get_samples(
    buffer: *const tensilo_buffer,
    samples: *mut tensilo_samples,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { call(error, || shared(buffer, "buffer")?.slices()?.fill(samples)) }
}

/// Fills `lists` with the lists of level number `level` of a nested column, counted from 0. The
/// pointers in `lists` live until the buffer is filled again or closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_get_lists(
    buffer: *const tensilo_buffer,
    level: usize,
    lists: *mut tensilo_lists,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { call(error, || shared(buffer, "buffer")?.slices()?.fill_lists(level, lists)) }
}
