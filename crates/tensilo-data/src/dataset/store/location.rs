//! What a path refers to, and how the files there are read.
//!
//! A path refers to a folder, a file, or a prefix or object in an object store, such as
//! `s3://bucket/train`. [`ReadOptions`] holds the choices of the caller, and [`location`] adapts
//! them to the store: objects are read with requests, and not with one of the I/O methods for
//! files.

#[cfg(not(feature = "object"))]
use super::Remote;
use super::Store;
use super::folder::Folder;
#[cfg(all(feature = "object", feature = "arrow"))]
pub(in crate::dataset) use super::objects::address_of;
#[cfg(feature = "object")]
pub(in crate::dataset) use super::objects::remote;
use crate::error::{DataError, Result};
use crate::io::{Io, IoChoice, Opener};
use std::path::Path;
use std::sync::Arc;
use tensilo::source::Source;

/// The default maximum number of open objects. An open object costs only memory, and opening it
/// again costs a round trip.
const DEFAULT_OPEN_OBJECTS: usize = 4096;

/// The options for requests to object stores.
#[cfg(feature = "object")]
pub(in crate::dataset) type RemoteOptions = tensilo_object::ObjectOptions;
#[cfg(not(feature = "object"))]
pub(in crate::dataset) type RemoteOptions = ();

/// How the files of a dataset are read.
#[derive(Clone, Debug, Default)]
pub(in crate::dataset) struct ReadOptions {
    /// `None` for a default that suits the store.
    pub max_open_files: Option<usize>,
    /// The I/O method, or `None` to choose one that suits the files.
    pub io: Option<IoChoice>,
    /// The I/O method for files that stay in the page cache, if `io` is `None`.
    pub if_cached: Option<IoChoice>,
    pub remote: RemoteOptions,
}

impl ReadOptions {
    /// Adapts the options to files in an object store.
    pub(in crate::dataset) fn for_remote(self, path: &Path, store_io: IoChoice) -> Result<Self> {
        let io = match self.io {
            None => store_io,
            Some(choice) if choice.kind == Io::Custom => choice,
            Some(choice) => {
                let (path, io) = (tensilo::error::display_path(path), choice.kind.name());
                let message =
                    format!("{path}: the I/O method {io} works only for files, not for objects in a store; omit it");
                return Err(DataError::BadArgument(message));
            }
        };
        let max_open_files = Some(self.max_open_files.unwrap_or(DEFAULT_OPEN_OBJECTS));
        Ok(Self { io: Some(io), if_cached: None, max_open_files, ..self })
    }

    /// Returns the function that opens files that are not listed yet.
    pub(in crate::dataset) fn opener_of_new_files(&self) -> Opener {
        self.io_of_new_files().opener
    }

    /// Returns the I/O method for files that are not listed yet.
    pub(in crate::dataset) fn io_of_new_files(&self) -> IoChoice {
        self.io.clone().filter(|choice| choice.kind == Io::Object).unwrap_or_else(IoChoice::pread)
    }
}

/// Returns the store that a path names. This build does not support object stores, so an address is
/// an error.
#[cfg(not(feature = "object"))]
pub(in crate::dataset) fn remote(path: &Path, _: &RemoteOptions) -> Result<Option<Remote>> {
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

/// Opens a file, or an object with these options, as a source.
#[cfg(feature = "object")]
pub(in crate::dataset) fn source_at(path: &Path, options: &RemoteOptions) -> Result<Arc<dyn Source>> {
    Ok(tensilo_object::source_with(path, options.clone())?)
}
/// Opens a file as a source. This build reads no objects.
#[cfg(not(feature = "object"))]
pub(in crate::dataset) fn source_at(path: &Path, _: &RemoteOptions) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(tensilo::source::PositionedFile::open(path)?))
}

/// Returns `None`, because this build does not support object stores.
#[cfg(all(not(feature = "object"), feature = "arrow"))]
pub(in crate::dataset) fn address_of(_: &Path) -> Option<String> {
    None
}

/// Returns the store of a dataset, and the options for reading the dataset from it.
pub(in crate::dataset) fn location(folder: &Path, options: ReadOptions) -> Result<(Arc<dyn Store>, ReadOptions)> {
    Ok(match remote(folder, &options.remote)? {
        Some(remote) => (remote.store, options.for_remote(folder, remote.io)?),
        None => (Arc::new(Folder(folder.to_path_buf())), options),
    })
}
