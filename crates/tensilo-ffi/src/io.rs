//! The I/O methods that read files.

/// The I/O method that reads files.
pub type tensilo_io = u32;

/// As suits the file: `pread`; for a dataset io_uring, if the build and the system have it.
pub const TENSILO_IO_AUTO: tensilo_io = 0;
/// `pread`: safe, and right on network file systems.
pub const TENSILO_IO_PREAD: tensilo_io = 1;
/// Memory maps: no system calls and no copies. As long as a handle that has come from the file
/// lives, no process may change or cut off its bytes up to the last commit: they would change under
/// their reader, which is undefined behaviour, and a page beyond a new end kills the process
/// (`SIGBUS`). tensilo does neither: it replaces files by renaming and appends after the last
/// commit. Do not map files on a network file system.
pub const TENSILO_IO_MMAP: tensilo_io = 2;
/// io_uring with buffered I/O, all ranges of a batch at the same time (datasets, Linux).
pub const TENSILO_IO_IO_URING: tensilo_io = 3;
/// io_uring with direct I/O (`O_DIRECT`), which bypasses the page cache (datasets, Linux): for
/// shuffled datasets larger than memory.
pub const TENSILO_IO_DIRECT: tensilo_io = 4;
