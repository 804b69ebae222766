//! A data file in the making.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tensilo::sink::{AtomicFile, Sink};

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
        if !Address::is_path(path) {
            return Self::local(path, replace);
        }
        let upload = Address::of_path(path)
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
    pub(super) fn local(path: &Path, replace: bool) -> tensilo::Result<Self> {
        let file = AtomicFile::create(path, replace)?;
        let temporary = file.temporary_path().map(Path::to_path_buf);
        Ok(Self { path: path.to_path_buf(), temporary, sink: Box::new(file) })
    }

    /// Returns an object of a store.
    #[cfg(feature = "object")]
    pub(super) fn remote(upload: tensilo_object::ObjectUpload) -> Self {
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
