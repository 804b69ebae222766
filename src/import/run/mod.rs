//! The passes over the inputs: one that finds shapes, one that writes, and a third that explains
//! why the others failed.

mod append;
mod assemble;
mod convert;
mod diagnosis;
mod fill;
mod kept_schema;
mod sample_error;
mod scan;
mod slices;

pub(super) use append::append;
pub(super) use convert::run;
#[cfg(feature = "arrow")]
pub(super) use convert::run_once;
