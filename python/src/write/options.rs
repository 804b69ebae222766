//! Writer options: how to encode, and whether the target is a file or a dataset.
//!
//! `Writer`, `convert` and `append` share them. A target is the folder of a dataset if the folder
//! exists or if its name implies a folder, on disk or in an object store. A folder with a manifest
//! is never replaced; it gets a new version.

use crate::arguments::{Dict, Threads, members};
use crate::error::Result;
use crate::schema::ShapeArgument;
use pyo3::exceptions::{PyFileExistsError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tensilo::import::NullElements;
use tensilo::{Profile, Shape, WriterOptions};
use tensilo_data::{Changes, DataError, Dataset};
use tensilo_object::Address;

/// One profile for all columns, or profiles by column name, where columns that are not listed have
/// the default profile.
#[derive(FromPyObject)]
pub enum Profiles {
    #[pyo3(annotation = "str")]
    Uniform(String),
    #[pyo3(annotation = "dict")]
    PerColumn(BTreeMap<String, String>),
}

impl Default for Profiles {
    fn default() -> Self {
        Self::Uniform(Profile::default().name().to_owned())
    }
}

/// Parses the name of a profile.
fn profile(name: &str) -> PyResult<Profile> {
    name.parse().map_err(|error: tensilo::Error| PyValueError::new_err(error.message().to_owned()))
}

/// Returns writer options with profiles and threads.
pub fn writer_options(profiles: &Profiles, threads: &Threads) -> PyResult<WriterOptions> {
    let options = WriterOptions::new().threads(threads.or_all_cpus());
    match profiles {
        Profiles::Uniform(name) => Ok(options.profile(profile(name)?)),
        Profiles::PerColumn(columns) => columns
            .iter()
            .try_fold(options, |options, (column, name)| Ok(options.column_profile(column, profile(name)?))),
    }
}

/// Converts a path or a list of paths to a list of paths.
pub fn paths(object: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    if let Ok(path) = object.extract::<PathBuf>() {
        return Ok(vec![path]);
    }
    let wrong = |_| {
        let name = object.get_type().name().map_or(String::new(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "inputs must be a path, a list of paths or an Arrow table, not {name}; for samples, use from_iterable"
        ))
    };
    let paths: Vec<PathBuf> = object.extract().map_err(wrong)?;
    if paths.is_empty() { Err(PyValueError::new_err("the list of inputs is empty")) } else { Ok(paths) }
}

/// Returns the declared shapes of columns.
pub fn shapes(shapes: Option<&Dict<'_>>) -> PyResult<Vec<(String, Shape)>> {
    let Some(shapes) = shapes else { return Ok(Vec::new()) };
    members(shapes)?.into_iter().map(|(name, extents)| Ok((name, extents.extract::<ShapeArgument>()?.0))).collect()
}

/// Parses the name of a treatment of null elements.
pub fn null_elements(name: &str) -> PyResult<NullElements> {
    Ok(match name {
        "keep" => NullElements::Keep,
        "refuse" => NullElements::Refuse,
        "nan" => NullElements::Nan,
        "zero" => NullElements::Zero,
        other => {
            let message = format!("null_elements={other:?}: pass \"keep\", \"refuse\", \"nan\" or \"zero\"");
            return Err(PyValueError::new_err(message));
        }
    })
}

/// Fails if a folder contains a dataset, because a conversion would have to replace it.
pub fn refuse_manifest(folder: &Path) -> PyResult<()> {
    if !has_manifest(folder) {
        return Ok(());
    }
    let message = format!("{}: the dataset already exists; append to it, or choose another folder", folder.display());
    Err(PyFileExistsError::new_err(message))
}

/// The default raw size of a data file, in bytes.
pub const DEFAULT_SHARD_BYTES: u64 = 1 << 30;

/// Returns whether a path names the folder of a dataset: it ends in a slash, it is an existing
/// folder, or it is a URL that does not end in `.tsl`.
pub fn is_folder(path: &Path) -> bool {
    Address::is_dataset_prefix(path) || path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir()
}

/// Returns whether a folder contains a dataset with a manifest.
pub fn has_manifest(folder: &Path) -> bool {
    (Address::is_dataset_prefix(folder) || folder.is_dir())
        && matches!(Dataset::files_without_manifest(folder), Ok(None))
}

/// Publishes changes. The manifest records `time` if it is given, otherwise the current time.
pub fn publish(mut changes: Changes, change: &str, time: Option<u64>) -> Result<()> {
    if time.is_some() {
        changes.set_time(time);
    }
    changes.publish(change).map(|_| ())
}

/// Returns the time of `SOURCE_DATE_EPOCH`, in seconds, to record instead of the current time. An
/// empty variable counts as unset, and a malformed one is an error, so call this function before
/// the work starts.
pub fn source_date_epoch() -> Result<Option<u64>> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|text| !text.is_empty()) else { return Ok(None) };
    let time = text.to_str().and_then(|text| text.parse().ok());
    time.map(Some).ok_or_else(|| {
        let message = format!("SOURCE_DATE_EPOCH={text:?}: expected a number of seconds since 1970");
        DataError::BadArgument(message)
    })
}
