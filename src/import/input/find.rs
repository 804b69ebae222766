//! The files that the names of inputs stand for.

use super::{folder, tables};
use crate::foreign::explain_missing;
use crate::open::check_regular;
use crate::pattern::{has_wildcard, paths_matching};
use crate::{Error, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the files that one input means: itself, those of a folder, or those that match a
/// pattern.
pub(super) fn files(input: &Path) -> Result<Vec<PathBuf>> {
    let found = match fs::metadata(input) {
        Ok(metadata) if metadata.is_dir() => {
            tables::refuse([input])?;
            folder::data_files(input)?
        }
        Ok(_) => return Ok(vec![input.to_path_buf()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_wildcard(input) => matching(input)?,
        Err(error) => return Err(Error::io("opening the input", explain_missing(input, error)).with_path(input)),
    };
    tables::refuse(found.iter().filter_map(|file| file.parent()))?;
    Ok(found)
}

/// Returns the files that match a pattern, in the byte order of paths. A folder that matches is
/// searched; what matches inside it is not read again.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = paths_matching(pattern)?;
    paths.sort_by(|a, b| folder::compare(a, b));
    let (mut files, mut searched): (Vec<PathBuf>, Option<PathBuf>) = (Vec::new(), None);
    for path in paths {
        if searched.as_ref().is_some_and(|folder| path.starts_with(folder)) {
            continue;
        }
        // a link without a target has no metadata, and is an error when it is opened
        let metadata = fs::metadata(&path).ok();
        if metadata.as_ref().is_some_and(fs::Metadata::is_dir) {
            files.extend(folder::data_files(&path)?);
            searched = Some(path);
        } else {
            // opening a pipe without a writer waits for ever
            let checked = metadata.map_or(Ok(()), |metadata| check_regular(&metadata));
            checked.map_err(|error| Error::io("opening the input", error).with_path(&path))?;
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Error::bad_argument("no file matches this pattern").with_path(pattern));
    }
    Ok(files)
}
