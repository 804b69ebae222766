//! Copies of objects on a disk of this machine, which all its processes share.

mod handle;
mod object;
mod piece_file;
mod room;

pub use handle::Cache;
pub(crate) use object::{CachedObject, read};
pub use room::CacheFacts;
