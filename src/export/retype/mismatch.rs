//! The error of arrays of a wrong type.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType};

/// Returns the error of an array that is not of the type that its field states.
#[cold]
pub(super) fn mismatch(array: &ArrayRef, due: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{} cannot become {due}", array.data_type()))
}
