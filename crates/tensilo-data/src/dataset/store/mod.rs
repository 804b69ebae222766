//! The place where a dataset is kept: a folder of a file system, or a prefix of an object store.
//!
//! Versions need few operations of a place ([`Store`]), but strong ones: a file appears under its
//! name as a whole, only if nothing has the name, and is durable then. [`folder`] and `objects`
//! have them, and tests use a place that loses power. [`location`] finds the place that a path
//! names.
//!
//! Samples are not read through a store: data files are opened by their paths ([`crate::io`]).

pub(super) mod folder;
pub(super) mod location;
#[cfg(feature = "object")]
mod objects;

use crate::io::IoChoice;
use std::fmt::{self, Debug};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::sink::{AtomicFile, Sink};

/// The operations that manifests need. Paths are those of a manifest: relative, with `/`.
pub(super) trait Store: Debug + Send + Sync {
    /// Reads a file. Fails with [`io::ErrorKind::FileTooLarge`] if it is longer than `max_bytes` bytes.
    fn read(&self, path: &str, max_bytes: u64) -> io::Result<Vec<u8>>;

    /// Returns the names in a folder, in no order.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Makes the folder of the dataset, as far as it does not exist. Returns the folders that were
    /// made, innermost first. Default: none, for places that need no making.
    fn create_root(&self) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// Makes a folder in one that exists; returns whether there was none. The folder is durable
    /// when this returns, whoever made it.
    fn create_folder(&self, path: &str) -> io::Result<bool>;

    /// Writes a file that appears under its name when it is complete, and is durable when this
    /// returns. Fails with [`io::ErrorKind::AlreadyExists`] if something has the name; that is
    /// durable, too, then.
    fn publish(&self, path: &str, bytes: &[u8]) -> io::Result<()>;

    /// Begins a data file, which appears under its name when it is published. Fails if something
    /// has the name. Default: an error, for places that keep manifests alone.
    fn data_file(&self, _path: &str) -> tensilo::Result<DataFile> {
        Err(tensilo::Error::io("creating a data file", io::ErrorKind::Unsupported.into()))
    }

    /// Makes a file durable that was written by another program: its bytes, its name, and the
    /// folders that it is in.
    fn make_durable(&self, path: &str) -> io::Result<()>;

    /// Removes a file, or a folder and all that is in it. If it does not exist,
    /// there is nothing to do. The removal is not durable yet.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a folder durable, also that some are gone.
    fn sync_folder(&self, path: &str) -> io::Result<()>;

    /// Returns the paths of temporary files in a folder whose writers were killed. A folder that
    /// does not exist has none.
    fn left_behind(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Returns the bytes of a file, or of all files in a folder; 0 if there is neither.
    fn bytes(&self, path: &str) -> io::Result<u64>;
}

/// A store that is not a folder: the place that an address names.
pub(super) struct Remote {
    pub store: Arc<dyn Store>,
    /// How its files are read.
    pub io: IoChoice,
    /// Whether it is the address of one file.
    pub is_file: bool,
}

/// A new data file of a dataset: the destination of a [`Writer`](tensilo::Writer). It appears when
/// it is complete, in a folder or in an object store. [`Changes::next_file`] makes one.
///
/// [`Changes::next_file`]: crate::Changes::next_file
pub struct DataFile {
    path: PathBuf,
    temporary: Option<PathBuf>,
    sink: Box<dyn Sink + Send>,
}

impl DataFile {
    /// Begins a file, or an object if the path is its address, see
    /// [`AtomicFile::create`]. Unless `replace`, fails if something has the path.
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

    /// Begins a file, see [`AtomicFile::create`].
    #[cfg(not(feature = "object"))]
    pub fn create(path: &Path, replace: bool) -> tensilo::Result<Self> {
        Self::local(path, replace)
    }

    /// Returns a file of the file system.
    fn local(path: &Path, replace: bool) -> tensilo::Result<Self> {
        let file = AtomicFile::create(path, replace)?;
        let temporary = file.temporary_path().map(Path::to_path_buf);
        Ok(Self { path: path.to_path_buf(), temporary, sink: Box::new(file) })
    }

    /// Returns an object of a store.
    #[cfg(feature = "object")]
    fn remote(upload: tensilo_object::ObjectUpload) -> Self {
        let path = upload.path().map_or_else(PathBuf::new, Path::to_path_buf);
        Self { path, temporary: None, sink: Box::new(upload) }
    }

    /// Returns the path that the file will have, for [`Changes::append`](crate::Changes::append).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file until it is complete, if it has one, see
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
