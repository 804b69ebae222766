//! Samples as arrays of Arrow, which keep the owner of their values.

use crate::error::{Result, tensilo_error};
use crate::samples::SampleParts;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;
use tensilo::export::ArrowSamples;
use tensilo::import::arrow::array::ArrayData;
use tensilo::import::arrow::buffer::Buffer;
use tensilo::import::arrow::datatypes::FieldRef;
use tensilo::{ColumnBuffer, ColumnSchema};
use tensilo_data::Batch;

/// The owner of the memory of samples.
#[derive(Clone)]
pub(crate) enum SampleOwner {
    Buffer(#[expect(dead_code, reason = "it is only kept")] Arc<ColumnBuffer>),
    Batch(#[expect(dead_code, reason = "it is only kept")] Arc<Batch>),
}

/// Returns samples as Arrow has them, see [`ArrowSamples`]. The owner has lent the values.
pub(crate) fn arrow_data(
    schema: &ColumnSchema,
    parts: &SampleParts<'_>,
    owner: SampleOwner,
) -> Result<(FieldRef, ArrayData)> {
    let owner = Arc::new(AssertUnwindSafe(owner));
    let values = NonNull::from(parts.values).cast();
    // SAFETY: the values are valid as long as the owner that the buffer keeps: it has lent them,
    // and nobody changes what is shared.
    let values = unsafe { Buffer::from_custom_allocation(values, parts.values.len(), owner) };
    let samples = ArrowSamples {
        schema,
        sample_count: parts.sample_count,
        item_count: parts.item_count,
        values,
        tensor: parts.tensor,
        offsets: parts.offsets,
        varying_extents: parts.varying_extents,
        validity: parts.validity,
        lists: parts.lists,
    };
    samples.to_arrow().map_err(|error| {
        let name = &schema.name;
        tensilo_error::bad_argument(format!("column {name:?}: Arrow cannot hold the samples: {error}"))
    })
}
