//! An open file and its columns: what all handles share, and what a reader tells about them.
//!
//! Opening reads the header, the last trailer and its footer, whatever the size of the file. The
//! footer says where each column's index pages are; nothing of these is read before a sample is
//! asked for. All handles share one [`state`], in which nothing changes but records: which
//! pages, chunks and blocks were checked, and which block indexes and tables are cached. Any thread
//! sets these, and none waits for another.

pub(in crate::read) mod column;
pub(in crate::read) mod column_inner;
pub(in crate::read) mod reader;
pub(in crate::read) mod records;
pub(in crate::read) mod state;
