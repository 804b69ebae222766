//! The folder of the data files of one writer.

use super::store::Store;
use crate::error::{DataError, Result};
use crate::manifest::join;
use std::path::Path;

/// A folder in `data/` that one writer has made for itself, when it needs it.
#[derive(Debug)]
pub(super) struct DataFolder {
    version: u64,
    /// Its path in the dataset.
    made: Option<String>,
    files: u32,
}

impl DataFolder {
    /// Returns the folder for the files of this version.
    pub(super) fn new(version: u64) -> Self {
        Self { version, made: None, files: 0 }
    }

    /// Returns the path of the next file in the dataset.
    pub(super) fn next_path(&mut self, store: &dyn Store, folder: &Path) -> Result<String> {
        let made = match &self.made {
            Some(made) => made,
            None => self.made.insert(make(store, folder, self.version)?),
        };
        let path = format!("{made}/{:05}.tsl", self.files);
        self.files = self.files.saturating_add(1);
        Ok(path)
    }

    /// Keeps the folder: a version lists its files.
    pub(super) fn keep(&mut self) {
        self.made = None;
    }

    /// Removes the folder, if it was made and is not kept.
    pub(super) fn remove(&mut self, store: &dyn Store) {
        if let Some(made) = self.made.take() {
            let _ = store.remove(&made); // what is left is in no version
        }
    }
}

/// Makes a folder that no other writer has, dead or alive.
fn make(store: &dyn Store, folder: &Path, version: u64) -> Result<String> {
    let create = |path: &str| {
        let created = store.create_folder(path);
        created.map_err(|error| DataError::Io { path: join(folder, path), doing: "making the folder", error })
    };
    create("data")?;
    let mut attempt = 1_u32;
    loop {
        let path = match attempt {
            1 => format!("data/{version:010}"),
            _ => format!("data/{version:010}-{attempt}"),
        };
        if create(&path)? {
            return Ok(path);
        }
        attempt = attempt.saturating_add(1);
    }
}
