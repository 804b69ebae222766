//! The files of a conversion: where to find them, their formats, and their columns.
//!
//! `find` expands folders, prefixes and patterns to files, and `tables` refuses the data files of
//! another library's table. `file` is a file that is read repeatedly and watched for changes, and
//! `formats` recognizes its format. `partition` adds columns from folder names, `threads` reads row
//! groups in parallel, and `open` combines all of them.

pub(super) mod file;
mod find;
pub(super) mod formats;
mod open;
mod partition;
mod tables;
mod threads;

pub(super) use open::{OpenInput, adapt, check_output, open_all, origin, with_columns, with_samples};
