//! An open file and its columns: the state that all handles share.
//!
//! Opening reads the header, the last trailer and its footer, whatever the size of the file. The
//! footer states where the index pages of each column are. They are not read until a sample is
//! requested.
//!
//! All handles share one [`state`]. It is immutable except for records and caches: which pages,
//! chunks and blocks were verified, and which block indexes and tables are cached ([`records`]).
//! Any thread can update these, and no thread waits for another.

pub(in crate::read) mod column;
pub(in crate::read) mod column_inner;
pub(in crate::read) mod reader;
pub(in crate::read) mod records;
pub(in crate::read) mod state;
