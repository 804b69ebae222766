//! A file in a folder of its own.

use std::path::PathBuf;
use tensilo_testing::Folder;

/// A file on disk, removed when this value is dropped.
pub struct OnDisk(Folder);

impl OnDisk {
    pub fn new(bytes: &[u8]) -> Self {
        let file = Self::absent();
        std::fs::write(file.path(), bytes).expect("disk space");
        file
    }

    /// A path at which there is no file yet.
    pub fn absent() -> Self {
        Self(Folder::new())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path("file.tsl")
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the file")
    }
}
