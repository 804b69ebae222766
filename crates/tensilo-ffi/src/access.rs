//! The ways of reading files.

/// A way of reading files.
pub type tensilo_access = u32;

/// As suits the file: by position, a dataset by io_uring if the build and the system have it.
pub const TENSILO_ACCESS_DEFAULT: tensilo_access = 0;
/// By position (`pread`): safe, and right on network file systems.
pub const TENSILO_ACCESS_BY_POSITION: tensilo_access = 1;
/// By memory maps, without system calls and copies. As long as a handle that has come from the file
/// lives, no process may change or cut off its bytes up to the last commit: they would change under
/// their reader, which is undefined behaviour, and a page beyond a new end kills the process
/// (`SIGBUS`). tensilo does neither: it replaces files by renaming and appends after the last
/// commit. Do not map files on a network file system.
pub const TENSILO_ACCESS_MAPPED: tensilo_access = 2;
/// By io_uring, all ranges of a batch at the same time (datasets, Linux).
pub const TENSILO_ACCESS_IO_URING: tensilo_access = 3;
/// By io_uring past the page cache (datasets, Linux).
pub const TENSILO_ACCESS_DIRECT: tensilo_access = 4;
