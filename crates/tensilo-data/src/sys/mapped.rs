//! Files in maps.

use crate::dataset::{Access, DatasetOptions, FileAccess, Opener};

/// Returns the way of reading files from maps. Only functions whose callers promise what
/// [`DatasetOptions::mapped`] asks for use it.
fn map() -> Access {
    // SAFETY: the callers' promise is the one that is asked for.
    let opener = Opener::new(|path, options| unsafe { options.map_file(path) });
    Access::told(FileAccess::Mapped, opener)
}

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
        self.access(map())
    }

    /// Reads files from maps if they stay in the page cache: they are on no network file system,
    /// and have at most half of the memory of the machine. Others are read as suits them, and so
    /// are all where the system or the build cannot tell.
    ///
    /// # Safety
    ///
    /// As [`DatasetOptions::mapped`].
    pub unsafe fn mapped_if_cached(self) -> Self {
        self.if_cached(map().chosen_as("files of this size stay in the page cache"))
    }
}
