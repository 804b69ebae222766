//! The only `unsafe` calls of the program.

use std::path::Path;
use tensilo::source::MappedFile;
use tensilo_data::DatasetOptions;

/// Maps a file. Only `bench --io mmap` may call this: its help states what the user must ensure.
pub(crate) fn map(path: &Path) -> tensilo::Result<MappedFile> {
    // SAFETY: no process may change or truncate the file while it is mapped. This process opens it
    // for reading only. For other processes the user is responsible: the program maps nothing
    // without --io mmap, whose help states the condition and the consequences.
    unsafe { MappedFile::open(path) }
}

/// Maps the files of a dataset. Only `bench --loader --io mmap` may call this.
pub(crate) fn mmap(options: DatasetOptions) -> DatasetOptions {
    // SAFETY: as for `map`.
    unsafe { options.mmap() }
}
