//! Files in maps.

use crate::dataset::{Access, DatasetOptions, FileAccess, Opener};

impl DatasetOptions {
    /// Reads files from maps: without copies of what is stored, and without system calls.
    ///
    /// # Safety
    ///
    /// No process may change or truncate a file of the dataset as long as the dataset, or a reader,
    /// a loader or a batch iterator of it lives, see
    /// [`MappedFile::open`](tensilo::source::MappedFile::open). Files that appear and vanish as a
    /// whole, as those of a dataset with a manifest do, are safe, unless they are on a network file
    /// system.
    pub unsafe fn mapped(self) -> Self {
        // SAFETY: the caller's promise is the one that is asked for.
        let opener = Opener::new(|path, options| unsafe { options.map_file(path) });
        self.access(Access::told(FileAccess::Mapped, opener))
    }
}
