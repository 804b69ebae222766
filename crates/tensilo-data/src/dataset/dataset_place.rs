//! The place that a path names: a folder, a file, or what an object store has.

use super::folder::Folder;
#[cfg(feature = "object")]
pub(super) use super::objects::remote;
use super::options::DatasetOptions;
#[cfg(not(feature = "object"))]
use super::remote::{Remote, RemoteOptions};
use super::store::Store;
use crate::error::{DataError, Result};
use crate::io::{Io, IoChoice};
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
pub(super) fn location(folder: &Path, options: DatasetOptions) -> Result<(Arc<dyn Store>, DatasetOptions)> {
    Ok(match remote(folder, &options.remote)? {
        Some(remote) => (remote.store, options.for_remote(folder, remote.io)?),
        None => (Arc::new(Folder(folder.to_path_buf())), options),
    })
}

impl DatasetOptions {
    /// Returns the options for files in a store.
    pub(super) fn for_remote(self, path: &Path, of_store: IoChoice) -> Result<Self> {
        let io = match self.io {
            None => of_store,
            Some(choice) if choice.kind == Io::Custom => choice,
            Some(choice) => {
                let (path, io) = (tensilo::error::display_path(path), choice.kind.name());
                let message = format!("{path}: {io} reads files, not objects of a store; omit this option");
                return Err(DataError::BadArgument(message));
            }
        };
        let max_open_files = Some(self.max_open_files.unwrap_or(OPEN_OBJECTS));
        Ok(Self { io: Some(io), if_cached: None, max_open_files, ..self })
    }
}
