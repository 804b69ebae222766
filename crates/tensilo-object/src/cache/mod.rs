//! Copies of objects on a disk of this machine, which all its processes share.

mod handle;
mod layout;
mod open_pieces;
mod pieces;
mod read;
mod room;
mod settings;
mod turn;

pub use handle::Cache;
pub(crate) use pieces::CachedObject;
pub(crate) use read::read;
pub use room::CacheFacts;
