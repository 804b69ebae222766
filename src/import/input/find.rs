//! The files that the names of inputs stand for.

use super::folder;
use crate::{Error, Result};
use glob::{MatchOptions, glob_with};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The rules of a shell: `*` matches no hidden name.
pub(super) const AS_IN_A_SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Returns the files that one input means: itself, those of a folder, or those that match a
/// pattern.
pub(super) fn files(input: &Path) -> Result<Vec<PathBuf>> {
    match fs::metadata(input) {
        Ok(metadata) if metadata.is_dir() => folder::data_files(input),
        Ok(_) => Ok(vec![input.to_path_buf()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_wildcard(input) => matching(input),
        Err(error) => Err(Error::io("opening the input", error).with_path(input)),
    }
}

pub(super) fn has_wildcard(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// Returns the files that match a pattern, in the byte order of paths. A folder that matches is
/// searched; what matches inside it is not read again.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let bad = |message: String| Error::bad_argument(message).with_path(pattern);
    let text = pattern.to_str().ok_or_else(|| bad("a pattern that is not UTF-8".to_owned()))?;
    let matches = glob_with(text, AS_IN_A_SHELL).map_err(|error| bad(format!("not a pattern: {error}")))?;
    let mut paths = Vec::new();
    for path in matches {
        paths.push(path.map_err(|error| {
            let path = error.path().to_path_buf();
            Error::io("looking for files", error.into()).with_path(&path)
        })?);
    }
    paths.sort_by(|a, b| folder::compare(a, b));
    let (mut files, mut searched): (Vec<PathBuf>, Option<PathBuf>) = (Vec::new(), None);
    for path in paths {
        if searched.as_ref().is_some_and(|folder| path.starts_with(folder)) {
            continue;
        }
        if path.is_dir() {
            files.extend(folder::data_files(&path)?);
            searched = Some(path);
        } else {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(bad("no file matches this pattern".to_owned()));
    }
    Ok(files)
}
