//! Temporary folders.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that is removed with its content when this value is dropped.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Folder {
    #[expect(clippy::new_without_default, reason = "it creates a folder")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Returns the path of the folder itself.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a disk with space");
        path
    }

    /// Returns the names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name in Unicode");
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort();
        names
    }
}
