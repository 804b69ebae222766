//! Paths of arguments, which may be addresses.

use crate::address::Address;
use crate::error::ObjectError;
use crate::options::ObjectOptions;
use crate::storage::ObjectStorage;
use std::path::Path;
use std::sync::Arc;
use tensilo::source::{PositionedFile, Source};
use tensilo::{Error, Result};

impl Address {
    /// Returns whether a path is an address, so that it names no file of the system.
    pub fn is_path(path: &Path) -> bool {
        path.to_str().is_some_and(Self::is_one)
    }

    /// Parses a path that is an address, as [`Address::parse`] does.
    pub fn of_path(path: &Path) -> std::result::Result<Self, ObjectError> {
        Self::parse(&path.to_string_lossy())
    }

    /// Returns whether a path is an address that a dataset may have: not one of a `*.tsl` file.
    pub fn is_prefix(path: &Path) -> bool {
        Self::is_path(path) && path.extension().is_none_or(|extension| extension != "tsl")
    }
}

/// Opens what a path names: an object, if it is an address, else a file by position.
///
/// The default options suit the requests. Cost: for an object, one round trip.
pub fn source_at(path: &Path) -> Result<Arc<dyn Source>> {
    if !Address::is_path(path) {
        return Ok(Arc::new(PositionedFile::open(path)?));
    }
    let file =
        Address::of_path(path).and_then(|address| ObjectStorage::new(&address, ObjectOptions::new()).open(&address));
    let file = file.map_err(|error| Error::io("opening the object", error.into_io()).with_path(path))?;
    Ok(Arc::new(file))
}
