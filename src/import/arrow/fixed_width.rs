//! Arrays of elements of a fixed width.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use std::result::Result;

/// The reason why an array cannot be stored, and the element that is at fault.
pub(super) struct Refused {
    pub element: Option<usize>,
    pub message: String,
}

impl Refused {
    /// Refuses an array of another type than that of its field.
    pub(super) fn denied(array: &ArrayRef) -> Self {
        let message = format!("a batch has elements of {}, which its schema denies", array.data_type());
        Self { element: None, message }
    }
}

/// Converts each valid element with `convert`. Nulls become zero.
pub(super) fn converted<T: Clone + Default>(
    array: &dyn Array,
    convert: impl Fn(usize) -> Result<T, String>,
) -> Result<Vec<T>, Refused> {
    let one = |i| {
        if array.is_null(i) {
            return Ok(T::default());
        }
        convert(i).map_err(|message| Refused { element: Some(i), message })
    };
    (0..array.len()).map(one).collect()
}

/// Returns the values of an array of fixed-width elements, without copying.
pub(super) fn plain_bytes(array: &ArrayRef, width: usize) -> Option<Buffer> {
    let data = array.to_data();
    let start = data.offset().checked_mul(width)?;
    let length = data.len().checked_mul(width)?;
    let buffer = data.buffers().first()?;
    buffer.get(start..start.checked_add(length)?)?; // inside
    Some(buffer.slice_with_length(start, length))
}
