//! Opens the argument of a command: one file or object, or a dataset.
//!
//! A folder, a prefix in an object store or a pattern is a dataset; anything else is a file. An
//! existing path is never a pattern, whatever characters it contains. If a folder is not a dataset,
//! the error says what it is instead.

use crate::failure::{Failure, Outcome};
use crate::terminal;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tensilo::error::display_path;
use tensilo::source::Source;
use tensilo::{OpenOptions, Reader};
use tensilo_data::{DataError, Dataset, DatasetOptions};
use tensilo_object::Address;

/// Opens the dataset that an argument names: a folder, a prefix in an object store, or the files
/// that match a pattern. Returns `None` if the argument names a file.
pub(crate) fn dataset(path: &Path) -> Outcome<Option<Dataset>> {
    dataset_with(DatasetOptions::new(), path)
}

/// Opens a dataset like [`dataset`], with these options.
pub(crate) fn dataset_with(options: DatasetOptions, path: &Path) -> Outcome<Option<Dataset>> {
    Ok(match path {
        path if Address::is_dataset_prefix(path) => Some(options.open(path)?),
        path if path.is_dir() => Some(options.open(path).map_err(|error| with_hint(path, error))?),
        path if is_pattern(path) => Some(options.open_glob(path)?),
        _ => None,
    })
}

/// If a folder is not a dataset, adds a hint to the error: what the folder is instead.
pub(crate) fn with_hint(folder: &Path, error: DataError) -> Failure {
    match (&error, hint(folder)) {
        (DataError::BadArgument(message), Some(hint)) => Failure::Usage(format!("{message}; {hint}")),
        _ => error.into(),
    }
}

fn hint(folder: &Path) -> Option<String> {
    let shown = display_path(folder);
    let is_other = |path: &Path| path.extension().is_some_and(|end| OTHER_FORMATS.iter().any(|other| end == *other));
    if fs::read_dir(folder).ok()?.flatten().any(|entry| is_other(&entry.path())) {
        return Some(format!("\"tensilo convert {shown} -o OUT/ --shard-bytes 1GiB\" makes a dataset from its files"));
    }
    let outer = folder.canonicalize().ok()?;
    let dataset = outer.ancestors().skip(1).find(|outer| outer.join("manifest").is_dir())?;
    Some(format!("it belongs to the dataset {}", display_path(dataset)))
}

/// Extensions of the files that `tensilo convert` finds in a folder.
const OTHER_FORMATS: [&str; 3] = ["parquet", "arrow", "feather"];

/// Returns whether an argument names a dataset.
pub(crate) fn is_dataset(path: &Path) -> bool {
    Address::is_dataset_prefix(path) || path.is_dir() || is_pattern(path)
}

fn is_pattern(path: &Path) -> bool {
    !Address::is_url_path(path) && path.to_string_lossy().contains(['*', '?', '[']) && path.symlink_metadata().is_err()
}

/// Opens a file or an object for positional reads. If another process changes or truncates it,
/// reads fail with an error; they do not crash, as reads of a memory map would.
pub(crate) fn source(path: &Path) -> Outcome<Arc<dyn Source>> {
    tensilo_object::source_at(path).map_err(|error| Failure::about(path, error))
}

/// Opens a file or an object like [`source`]. Unless `quiet`, warns about an unfinished file and
/// about bytes after the last commit.
pub(crate) fn open(path: &Path, quiet: bool) -> Outcome<Reader> {
    let reader = OpenOptions::new().open_source(source(path)?).map_err(|error| Failure::about(path, error))?;
    if !quiet {
        warn(path, &reader);
    }
    Ok(reader)
}

/// Warns about an unfinished file and about bytes after the last commit.
pub(crate) fn warn(path: &Path, reader: &Reader) {
    let (path, samples, bytes) = (display_path(path), reader.sample_count(), reader.tail_bytes());
    if !reader.is_finished() {
        terminal::warning(&format!(
            "{path}: the file is not finished: its writer is still running or was stopped; it has {samples} samples so \
             far"
        ));
    }
    if bytes > 0 {
        terminal::warning(&format!(
            "{path}: {bytes} bytes after the last commit are ignored: a writer is running or was stopped, or the end \
             of the file is damaged"
        ));
    }
}
