//! Conversions: the public functions, and the passes over the inputs that implement them.
//!
//! The public functions are in `files` (for files) and in `memory` (for record batches). `convert`
//! writes one or more new files in two passes: the first finds shapes (`first_pass`), and the
//! second writes. `append` already has the columns of its file, so it needs only the second pass.
//! Both write to a `target`: one file, or several files of a given size. A plan can divide these
//! files among processes. If a pass fails, `diagnosis` looks for further columns that cannot be
//! stored, so that one error names them all. `found` and `source_metadata` decide what the metadata
//! of a file records about its conversion.

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
