//! The loader: batches follow the order, with the values of the files.

mod conversions;
mod damage;
mod delivered;
#[cfg(feature = "cuda")]
mod device;
mod many_files;
mod memory;
pub mod model;
mod read_ahead;
mod resumed;
mod transformed;
mod waits;
