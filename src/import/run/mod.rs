//! Conversions: the public functions, and the passes over the inputs behind them.
//!
//! `files` and `memory` are the public functions for files and for record batches. `convert` writes
//! one or several new files in two passes: the first finds shapes (`first_pass`), the second
//! writes. For `append`, the columns are given, so it needs only the second pass. Both write to a
//! `target`: one file, or several files of a given size, which a plan can divide among processes.
//! If a pass fails, `diagnosis` looks for more columns that cannot be stored, so that one error
//! names all of them. `found` and `source_metadata` decide what a file records about the conversion
//! in its metadata.

pub(super) mod append;
mod convert;
mod diagnosis;
pub(super) mod files;
mod first_pass;
pub(super) mod found;
#[cfg(feature = "arrow")]
pub(super) mod memory;
mod planned;
mod source_metadata;
mod target;

#[cfg(feature = "arrow")]
pub(super) use convert::run_once;
pub(super) use convert::{plan_shards, run, run_shards};
