//! The fourth stage: from stored values to the values that the caller requested.
//!
//! Elements are cast ([`conversion`]) and ragged samples are padded to one tensor ([`padding`])
//! column by column, right after decoding. Then the caller's function changes the complete batch
//! ([`run_transform`]).

pub(in crate::loader) mod conversion;
pub(in crate::loader) mod padding;

use crate::error::{DataError, Result};
use crate::loader::deliver::batch::Batch;
use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A function that changes the batches of a loader; see
/// [`LoaderOptions::transform`](crate::LoaderOptions::transform).
pub type BatchTransform =
    Arc<dyn Fn(&mut Batch) -> std::result::Result<(), Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Calls the function with a batch. A panic becomes an error.
pub(super) fn run_transform(transform: &BatchTransform, batch: &mut Batch) -> Result<()> {
    // a half-changed batch is dropped with the error
    let transformed = catch_unwind(AssertUnwindSafe(|| transform(batch)));
    transformed.unwrap_or_else(|panic| Err(text_of(&*panic).into())).map_err(DataError::Transform)
}

/// Returns the message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "it panicked".to_owned(), |text| format!("it panicked: {text}"))
}
