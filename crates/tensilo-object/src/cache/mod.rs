//! The disk cache: object data on a disk of this machine, shared by all of its processes.
//!
//! Each version of an object is a folder of entries, which are 1 MiB ranges of it. Whole objects
//! would be simpler, but the first window of a shuffled epoch has samples from dozens of runs: it
//! would fetch as many whole files before the first batch, and a cache smaller than the dataset
//! would fetch each file many times. Folders are named by address and ETag. A file's content id
//! would not work: it does not cover the file's header, and is known only after the file was
//! opened.
//!
//! | file | idea |
//! |---|---|
//! | `entry_file` | the layout of an entry: checksums of its lines, then the bytes |
//! | `object` | reads through the entries; one process fetches an entry, others wait |
//! | `usage` | the size limit, and eviction |
//! | `handle` | the cache of a process, and the one that the environment names |
//!
//! Three invariants make it safe to share. An entry appears by a rename, so it is complete. Each
//! line has a checksum that covers object, offset and bytes, so a damaged or misplaced entry is not
//! used. And the cache only saves requests: if anything fails here, the read goes to the store
//! instead.

mod entry_file;
mod handle;
mod object;
mod usage;

pub use handle::Cache;
pub(crate) use object::{CachedObject, read};
pub use usage::CacheStats;
