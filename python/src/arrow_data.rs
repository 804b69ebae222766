//! Samples of a batch as arrays of Arrow, which keep the owner of their values.

use crate::batch_column::BatchColumn;
use crate::memory::Memory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;
use tensilo::DType;
use tensilo::export::ArrowSamples;
use tensilo::import::arrow::array::ArrayData;
use tensilo::import::arrow::buffer::Buffer;
use tensilo::import::arrow::datatypes::FieldRef;

/// Returns a column of a batch as Arrow has it, see [`ArrowSamples`].
pub fn arrow_data(column: &BatchColumn) -> PyResult<(FieldRef, ArrayData)> {
    let (found, schema) = (column.column(), &*column.schema);
    // values that are converted are copied first: Python may write to what is shared
    let is_converted = matches!(schema.dtype, DType::Bf16 | DType::Bool) || schema.metadata.contains_key("arrow.type");
    let memory = &column.memory;
    let samples = ArrowSamples {
        schema,
        sample_count: column.sample_count(),
        item_count: column.item_count(),
        values: if is_converted { Buffer::from_vec(memory.to_vec()) } else { shared(memory) },
        tensor: found.tensor(),
        offsets: found.offsets(),
        varying_extents: found.extents(),
        validity: found.validity(),
        lists: found.lists(),
    };
    samples.to_arrow().map_err(|error| {
        PyValueError::new_err(format!("column {:?}: Arrow cannot hold the samples: {error}", column.name()))
    })
}

/// Returns a buffer that shares memory.
fn shared(memory: &Memory) -> Buffer {
    let Some(pointer) = NonNull::new(memory.pointer()) else { return Buffer::from(Vec::<u8>::new()) };
    // SAFETY: the memory is valid as long as the owner that the buffer keeps. Arrow's consumers
    // take it as unchanging; that Python does not write to it meanwhile is up to the caller, as
    // with arrays of NumPy that pyarrow wraps.
    unsafe { Buffer::from_custom_allocation(pointer, memory.byte_count(), Arc::new(AssertUnwindSafe(memory.clone()))) }
}
