//! Where a dataset is stored: a folder of a file system, or a prefix of an object store.
//!
//! To publish a version, only a few operations of the store are needed, but with strong guarantees
//! ([`Store`]): a file appears under its name only if the name is free, and is then complete and
//! durable. [`folder`] and `objects` implement these operations, and tests use a store that
//! simulates a power loss at every step. [`location`] finds the store for a path.
//!
//! Samples are not read through a store: data files are opened by their paths ([`crate::io`]).

pub(super) mod folder;
pub(super) mod location;
#[cfg(feature = "object")]
mod objects;

use crate::io::IoChoice;
use crate::order::WindowSizes;
use std::fmt::{self, Debug};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::sink::{AtomicFile, Sink};

/// The operations that manifests need. Paths are relative and use `/`, as in a manifest.
pub(super) trait Store: Debug + Send + Sync {
    /// Reads a file. Fails with [`io::ErrorKind::FileTooLarge`] if it has more than `max_bytes`
    /// bytes.
    fn read(&self, path: &str, max_bytes: u64) -> io::Result<Vec<u8>>;

    /// Returns the names in a folder, in any order.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Returns the default size of a run of shuffled samples, in stored bytes.
    fn run_bytes(&self) -> u64 {
        WindowSizes::FILE_RUN_BYTES
    }

    /// Makes room for prefetched bytes in memory. The default implementation does nothing; it is
    /// for stores whose files the operating system caches.
    fn reserve_memory(&self, _bytes: u64) {}

    /// Creates the folder of the dataset and its missing parents. Returns the folders that were
    /// created, innermost first. The default implementation creates none; it is for stores without
    /// folders.
    fn create_root(&self) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// Creates a folder in an existing folder, unless it exists. Returns whether it was created.
    /// The folder is durable when this returns, even if another process created it.
    fn create_folder(&self, path: &str) -> io::Result<bool>;

    /// Writes a file that appears under its name when it is complete, and is durable when this
    /// returns. If the name is taken, makes the existing name durable, and fails with
    /// [`io::ErrorKind::AlreadyExists`].
    fn publish(&self, path: &str, bytes: &[u8]) -> io::Result<()>;

    /// Starts a data file, which appears under its name when it is published. Fails if the name is
    /// taken. The default implementation fails; it is for stores that have only manifests.
    fn data_file(&self, _path: &str) -> tensilo::Result<DataFile> {
        Err(tensilo::Error::io("creating a data file", io::ErrorKind::Unsupported.into()))
    }

    /// Makes the bytes, the name and the folders of an existing file durable.
    fn make_durable(&self, path: &str) -> io::Result<()>;

    /// Removes a file, or a folder with its contents. Does nothing if the path does not exist. The
    /// removal is not durable yet.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a folder durable, including removals.
    fn sync_folder(&self, path: &str) -> io::Result<()>;

    /// Returns the paths of temporary files in a folder whose writers were killed. Returns none if
    /// the folder does not exist.
    fn left_behind(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Returns the size in bytes of a file, or of all files in a folder. Returns 0 if the path does
    /// not exist.
    fn bytes(&self, path: &str) -> io::Result<u64>;
}

/// The store that an address names.
pub(super) struct Remote {
    pub store: Arc<dyn Store>,
    /// How the files of the store are read.
    pub io: IoChoice,
    /// Whether the address names a single file.
    pub is_file: bool,
}

/// A new data file of a dataset: the destination of a [`Writer`](tensilo::Writer). It appears in
/// the folder or object store when it is complete. [`Changes::next_file`] creates one.
///
/// [`Changes::next_file`]: crate::Changes::next_file
pub struct DataFile {
    path: PathBuf,
    temporary: Option<PathBuf>,
    sink: Box<dyn Sink + Send>,
}

impl DataFile {
    /// Starts a file, or an object if the path is an address; see [`AtomicFile::create`]. Unless
    /// `replace` is set, fails if something exists at the path.
    #[cfg(feature = "object")]
    pub fn create(path: &Path, replace: bool) -> tensilo::Result<Self> {
        use tensilo_object::{Address, ObjectOptions, ObjectStorage};
        if !Address::is_url_path(path) {
            return Self::local(path, replace);
        }
        let upload = Address::from_path(path)
            .and_then(|address| ObjectStorage::new(&address, ObjectOptions::new()).upload(&address, replace));
        let failed = |error: tensilo_object::ObjectError| tensilo::Error::io("creating the object", error.into_io());
        upload.map(Self::remote).map_err(|error| failed(error).with_path(path))
    }

    /// Starts a file; see [`AtomicFile::create`].
    #[cfg(not(feature = "object"))]
    pub fn create(path: &Path, replace: bool) -> tensilo::Result<Self> {
        Self::local(path, replace)
    }

    /// Starts a file in the file system.
    fn local(path: &Path, replace: bool) -> tensilo::Result<Self> {
        let file = AtomicFile::create(path, replace)?;
        let temporary = file.temporary_path().map(Path::to_path_buf);
        Ok(Self { path: path.to_path_buf(), temporary, sink: Box::new(file) })
    }

    /// Returns the data file of an upload to an object store.
    #[cfg(feature = "object")]
    fn remote(upload: tensilo_object::ObjectUpload) -> Self {
        let path = upload.path().map_or_else(PathBuf::new, Path::to_path_buf);
        Self { path, temporary: None, sink: Box::new(upload) }
    }

    /// Returns the path that the file will have, for
    /// [`Changes::add_file`](crate::Changes::add_file).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file while it is incomplete, if it has one; see
    /// [`AtomicFile::temporary_path`].
    pub fn temporary_path(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }
}

impl fmt::Debug for DataFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Write for DataFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl Sink for DataFile {
    fn sync(&mut self) -> io::Result<()> {
        self.sink.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.sink.publish()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn identity(&self) -> Option<tensilo::source::FileIdentity> {
        self.sink.identity()
    }
}
