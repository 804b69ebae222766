//! Copies of objects on a disk of this machine, which all its processes share.

mod entry_file;
mod handle;
mod object;
mod usage;

pub use handle::Cache;
pub(crate) use object::{CachedObject, read};
pub use usage::CacheStats;
