//! Memory of the library for samples of one column.

use crate::arguments::shared;
use crate::call::{HandlePlace, call, close};
use crate::error::{Result, tensilo_error};
use crate::samples::{SampleParts, tensilo_lists, tensilo_samples};
use crate::status::tensilo_status;
use std::sync::Arc;
use tensilo::{ColumnBuffer, ColumnSchema, Extent};

/// Samples of one column of any kind: of a fixed shape, ragged or nested. Each call that fills the
/// buffer uses its memory again.
///
/// Threads: one at a time; any number may look at the samples at the same time.
pub struct tensilo_buffer {
    /// Arrays that were exported share it.
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
            self.samples = Arc::default(); // an exported array keeps what it has
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

    /// Returns the column; fails if the buffer is empty.
    pub(crate) fn schema(&self) -> Result<&Arc<ColumnSchema>> {
        let schema = self.schema.as_ref();
        schema.ok_or_else(|| tensilo_error::bad_argument("the buffer has no samples: fill it before"))
    }

    /// Returns the parts of the samples; fails if the buffer is empty.
    pub(crate) fn parts(&self) -> Result<SampleParts<'_>> {
        self.schema()?;
        let samples = self.samples();
        Ok(SampleParts {
            dtype: samples.dtype(),
            sample_count: samples.sample_count(),
            item_count: samples.item_count(),
            values: samples.bytes(),
            offsets: samples.offsets(),
            varying_extents: samples.extents(),
            validity: samples.validity(),
            null_count: samples.null_count(),
            lists: samples.lists(),
            tensor: (!self.tensor.is_empty()).then_some(self.tensor.as_slice()),
        })
    }
}

/// Makes an empty buffer, for any column. Close it with `tensilo_buffer_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_new(
    buffer: *mut *mut tensilo_buffer,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let empty = tensilo_buffer { samples: Arc::default(), schema: None, tensor: Vec::new() };
            HandlePlace::new(buffer, "buffer")?.fill(empty);
            Ok(())
        })
    }
}

/// Closes a buffer, and sets the pointer to NULL. Does nothing if `buffer` or `*buffer` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_close(buffer: *mut *mut tensilo_buffer) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { close(buffer) }
}

/// Gives the samples of a buffer. Their pointers live until the buffer is filled again or closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_get_samples(
    buffer: *const tensilo_buffer,
    samples: *mut tensilo_samples,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { call(error, || shared(buffer, "buffer")?.parts()?.fill(samples)) }
}

/// Gives the lists of a level of a nested column, counted from 0. Their pointers live as those of
/// `tensilo_buffer_get_samples`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_buffer_get_lists(
    buffer: *const tensilo_buffer,
    level: usize,
    lists: *mut tensilo_lists,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { call(error, || shared(buffer, "buffer")?.parts()?.fill_lists(level, lists)) }
}
