//! The place of the files of a dataset.

use super::groups::{Groups, Place};
use crate::manifest::{ListedFile, join};
use std::path::{Path, PathBuf};

/// The place of the files of a dataset.
#[derive(Clone, Debug)]
pub(super) enum Location {
    /// A folder, to which paths are relative.
    Folder(PathBuf),
    /// Any: paths are those that the caller gave.
    Anywhere,
}

impl Location {
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::Anywhere => Path::new(""),
        }
    }

    pub(super) fn path(&self, file: &ListedFile) -> PathBuf {
        match self {
            Self::Folder(folder) => join(folder, &file.path),
            Self::Anywhere => PathBuf::from(&*file.path),
        }
    }

    /// Returns a path on the file system of the files: the folder, or the first file.
    pub(super) fn any_path(&self, groups: &Groups, place: &Place<'_>) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.clone(),
            Self::Anywhere => {
                let first = groups.of_page(place, 0).into_iter().flatten().next();
                first.and_then(|group| group.group.files.first().map(|file| self.path(file))).unwrap_or_default()
            }
        }
    }
}
