//! The files of a folder or of a pattern.

use super::dataset_place::remote;
use super::folder::Folder;
use super::handle::Dataset;
use super::open;
use super::options::DatasetOptions;
use super::remote::RemoteOptions;
use super::without_manifest::{files_below, files_in};
use crate::error::{DataError, Result};
use std::io;
use std::path::{Path, PathBuf};

impl DatasetOptions {
    /// Opens the files that match a pattern as a dataset, in the order of the bytes of their names.
    /// All have the columns of the first one.
    ///
    /// In a pattern, `*` stands for any characters but `/`, `?` for one, `[ab]` and `[a-f]` for one
    /// of several, and `**` for any number of folders. Hidden files match only a pattern that has
    /// the dot. Folders are left out.
    ///
    /// Cost: the opening of all files.
    ///
    /// ```no_run
    /// let dataset = tensilo_data::DatasetOptions::new().open_glob("train/part-*.tsl")?;
    /// println!("{} samples", dataset.sample_count());
    /// # Ok::<(), tensilo_data::DataError>(())
    /// ```
    pub fn open_glob(self, pattern: impl AsRef<Path>) -> Result<Dataset> {
        self.open_files(matching(pattern.as_ref())?)
    }
}

impl Dataset {
    /// Returns the files that are read as a dataset without a manifest: those of a folder, in the
    /// order of their names, or else those that match a pattern, as [`DatasetOptions::open_glob`]
    /// has it. Returns `None` for a folder that has a manifest. Opens no file.
    pub fn files_without_manifest(path: impl AsRef<Path>) -> Result<Option<Vec<PathBuf>>> {
        let path = path.as_ref();
        if let Some(remote) = remote(path, &RemoteOptions::default())? {
            let has_manifest = !open::versions(&*remote.store, path)?.is_empty();
            return if has_manifest { Ok(None) } else { files_below(&*remote.store, path).map(Some) };
        }
        if !path.is_dir() {
            return matching(path).map(Some);
        }
        let has_manifest = !open::versions(&Folder(path.to_path_buf()), path)?.is_empty();
        if has_manifest { Ok(None) } else { files_in(path).map(Some) }
    }
}

/// Returns the files that match a pattern, at least one, in the order of their names.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut files = tensilo::source::paths_matching(pattern)?;
    files.retain(|path| !path.is_dir());
    if files.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "no file matches this pattern");
        return Err(DataError::Io { path: pattern.to_path_buf(), doing: "looking for files", error });
    }
    files.sort_unstable(); // by components, byte by byte
    Ok(files)
}
