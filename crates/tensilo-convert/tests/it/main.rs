//! Files of the original libraries, and what these read from them.

mod archives;
mod common;
mod exports;
mod files;
mod hostile;
mod json;
mod numpy;
mod round_trips;
mod shards;
