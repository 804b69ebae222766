//! The passes over the inputs: one that finds shapes, one that writes, and a third that explains
//! why the others failed.

mod append;
mod convert;
mod diagnosis;
pub(super) mod files;
mod first_pass;
pub(super) mod found;
mod kept_schema;
#[cfg(feature = "arrow")]
pub(super) mod memory;
mod planned;
mod target;

pub(super) use append::{append, append_shards, convert_rows, plan_append};
#[cfg(feature = "arrow")]
pub(super) use convert::run_once;
pub(super) use convert::{plan_shards, run, run_shards};
