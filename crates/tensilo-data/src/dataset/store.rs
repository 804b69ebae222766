//! The place where a dataset is kept. Tests replace it by one that loses power.

use super::data_file::DataFile;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

/// The operations that manifests need. Paths are those of a manifest: relative, with `/`.
pub(crate) trait Store: Debug + Send + Sync {
    /// Reads a file. Fails with [`io::ErrorKind::FileTooLarge`] if it is longer than `most` bytes.
    fn read(&self, path: &str, most: u64) -> io::Result<Vec<u8>>;

    /// Returns the names in a folder, in no order.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Makes the folder of the dataset, as far as it does not exist. Returns the folders that were
    /// made, innermost first. Default: none, for places that need no making.
    fn make(&self) -> io::Result<Vec<PathBuf>> {
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
