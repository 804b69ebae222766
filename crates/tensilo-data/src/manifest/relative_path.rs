//! Paths inside of a dataset (M-1.3).

use super::broken::{Broken, need};
use std::path::{Path, PathBuf};

const MOST_BYTES: usize = 1024;

/// Checks a path of a manifest.
pub(crate) fn check(path: &str) -> Result<(), Broken> {
    let is_refused = |c: char| c == '\\' || c == ':' || c.is_ascii_control();
    let is_good = path.len() <= MOST_BYTES
        && !path.contains(is_refused)
        && path.split('/').all(|component| !matches!(component, "" | "." | ".."))
        && path.split('/').next().is_some_and(|first| !first.eq_ignore_ascii_case("manifest"));
    need(is_good, "M-1.3", || {
        format!(
            "the path {path:?} of a file is not relative, is in manifest/, or has components or characters that are not allowed"
        )
    })
}

/// Returns the path of a file in `folder`, given the path of a manifest.
pub(crate) fn join(folder: &Path, path: &str) -> PathBuf {
    path.split('/').fold(folder.to_path_buf(), |folder, component| folder.join(component))
}
