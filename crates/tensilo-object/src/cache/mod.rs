//! The disk cache: object data on a disk of this machine, shared by all of its processes.
//!
//! Each version of an object has a folder of entries. An entry is a range of 256 KiB of the object.
//! Caching whole objects would be simpler. But the first window of a shuffled epoch has samples
//! from dozens of runs, so dozens of whole files would be fetched before the first batch. A cache
//! that is smaller than the dataset would even fetch each file many times. A folder is named by the
//! address and the ETag of its object. The content id of the file would not work: it does not cover
//! the file header, and it is known only after the file has been opened.
//!
//! | file | idea |
//! |---|---|
//! | `entry_file` | the file of an entry: lines of 8 KiB, each with a checksum |
//! | `object` | reads through the entries; one process fetches an entry while the others wait |
//! | `usage` | the size limit, and eviction |
//! | `handle` | the folder and size limit of a cache, and the environment variables that set them |
//!
//! Three invariants make the cache safe to share. First, an entry appears by a rename, so it is
//! always complete. Second, each line has a checksum that covers the object, the offset and the
//! bytes, so a damaged or misplaced entry is not used. Third, the cache only saves requests: if
//! anything fails here, the bytes are requested from the store instead.

mod entry_file;
mod handle;
mod object;
mod usage;

pub use handle::Cache;
pub(crate) use object::{CachedObject, read};
pub use usage::CacheStats;
