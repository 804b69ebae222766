//! The place that a path names: a folder, a file, or what an object store has.

use super::access::{Access, FileAccess};
use super::folder::Folder;
#[cfg(feature = "object")]
pub(super) use super::objects::remote;
use super::options::DatasetOptions;
#[cfg(not(feature = "object"))]
use super::remote::{Remote, RemoteOptions};
use super::store::Store;
use crate::error::{DataError, Result};
use std::path::Path;
use std::sync::Arc;
use tensilo::source::Source;

/// Files of a store that are kept open unless told: they cost memory only, and opening one again
/// costs a round trip.
const OPEN_OBJECTS: usize = 4096;

/// Returns the store that a path names. This build reads none, so an address is refused.
#[cfg(not(feature = "object"))]
pub(super) fn remote(path: &Path, _: &RemoteOptions) -> Result<Option<Remote>> {
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    let is_address =
        scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|c| c.is_ascii_alphanumeric()));
    if !is_address || path.exists() {
        return Ok(None);
    }
    let path = tensilo::error::display_path(path);
    Err(DataError::BadArgument(format!(
        "{path}: reading from object stores needs the feature `object` of tensilo-data"
    )))
}

/// Opens the bytes of a file or an object.
#[cfg(feature = "object")]
pub(super) fn source_at(path: &Path) -> Result<Arc<dyn Source>> {
    Ok(tensilo_object::source_at(path)?)
}
#[cfg(not(feature = "object"))]
pub(super) fn source_at(path: &Path) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(tensilo::source::PositionedFile::open(path)?))
}

/// Returns the place of a dataset, and the options for reading it there.
pub(super) fn place_of(folder: &Path, options: DatasetOptions) -> Result<(Arc<dyn Store>, DatasetOptions)> {
    Ok(match remote(folder, &options.remote)? {
        Some(remote) => (remote.store, options.for_remote(folder, remote.access)?),
        None => (Arc::new(Folder(folder.to_path_buf())), options),
    })
}

impl DatasetOptions {
    /// Returns the options for files in a store.
    pub(super) fn for_remote(self, path: &Path, access: Access) -> Result<Self> {
        let access = match self.access {
            None => access,
            Some(access) if access.how == FileAccess::Custom => access,
            Some(access) => {
                let (path, how) = (tensilo::error::display_path(path), access.how.name());
                let message = format!("{path}: objects are not read {how}; leave the access out");
                return Err(DataError::BadArgument(message));
            }
        };
        let most_open_files = Some(self.most_open_files.unwrap_or(OPEN_OBJECTS));
        Ok(Self { access: Some(access), if_cached: None, most_open_files, ..self })
    }
}
