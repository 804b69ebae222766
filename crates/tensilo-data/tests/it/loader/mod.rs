//! The loader: batches are what the order and the files say.

mod conversions;
mod damage;
mod delivered;
#[cfg(feature = "cuda")]
mod device;
mod many_files;
mod mapped;
mod memory;
pub mod model;
mod read_ahead;
mod resumed;
mod waits;
