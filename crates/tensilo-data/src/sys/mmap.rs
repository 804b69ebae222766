//! Memory maps of files.
//!
//! Memory maps are unsafe because another process can change or truncate a file while it is mapped.
//! So the functions here are unsafe: the caller of [`DatasetOptions`] promises that this does not
//! happen.

use crate::dataset::DatasetOptions;
use crate::io::{Io, IoChoice, Opener};

/// Returns the I/O choice for memory maps. Only functions whose callers make the promise of
/// [`DatasetOptions::mmap`] may call this function.
fn map() -> IoChoice {
    // SAFETY: callers of this function promise what `map_file` requires.
    let opener = Opener::new(|path, options| unsafe { options.map_file(path) });
    IoChoice::explicit(Io::Mmap, opener)
}

impl DatasetOptions {
    /// Maps files into memory: stored bytes are not copied, and reads make no system calls. Suits
    /// local files that fit in memory.
    ///
    /// # Safety
    ///
    /// No process may change or truncate a file of the dataset while the dataset, or a reader,
    /// loader or batch iterator of it, is alive; see
    /// [`MappedFile::open`](tensilo::source::MappedFile::open). Files that can be removed but never
    /// change once they are created, as in a dataset with a manifest, are safe, unless they are on
    /// a network file system.
    pub unsafe fn mmap(self) -> Self {
        self.io(map())
    }

    /// Maps files into memory if they can be expected to stay in the page cache: they are on a
    /// local file system, and their total size is at most half of the machine's memory. Otherwise,
    /// or if the system or the build cannot determine this, uses the default I/O method.
    ///
    /// # Safety
    ///
    /// The same as for [`DatasetOptions::mmap`].
    pub unsafe fn mmap_if_cached(self) -> Self {
        self.if_cached(map().with_reason("files of this size stay in the page cache"))
    }
}
