//! The place where a dataset is kept. Tests replace it by one that loses power.

use std::fmt::Debug;
use std::io;

/// The operations that manifests need. Paths are those of a manifest: relative, with `/`.
pub(crate) trait Store: Debug + Send + Sync {
    /// Reads a file. Fails with [`io::ErrorKind::FileTooLarge`] if it is longer than `most` bytes.
    fn read(&self, path: &str, most: u64) -> io::Result<Vec<u8>>;

    /// Returns the names in a folder, in no order.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Makes a folder in one that exists; returns whether there was none. The folder is durable
    /// when this returns, whoever made it.
    fn create_folder(&self, path: &str) -> io::Result<bool>;

    /// Writes a file that appears under its name when it is complete, and is durable when this
    /// returns. Fails with [`io::ErrorKind::AlreadyExists`] if something has the name; that is
    /// durable, too, then.
    fn publish(&self, path: &str, bytes: &[u8]) -> io::Result<()>;

    /// Makes a file durable that was written by another program: its bytes, its name, and the
    /// folders that it is in.
    fn make_durable(&self, path: &str) -> io::Result<()>;

    /// Removes a folder and all that is in it.
    fn remove_folder(&self, path: &str) -> io::Result<()>;
}
