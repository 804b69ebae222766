//! Files of the original libraries, compared with what those libraries read.

mod archives;
mod common;
mod exports;
mod files;
mod hostile;
mod json;
mod numpy;
mod round_trips;
mod shards;
