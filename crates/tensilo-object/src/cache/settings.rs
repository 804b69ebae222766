//! The cache that the environment names.

use super::handle::Cache;
use std::env::{self, VarError};
use std::io;
use tensilo::parse_byte_count;

/// The folder of the cache.
const FOLDER: &str = "TENSILO_CACHE";
/// The bytes that it keeps at most.
const BYTES: &str = "TENSILO_CACHE_BYTES";
/// The default of these.
const DEFAULT_BYTES: u64 = 16 << 30;

impl Cache {
    /// Returns the cache in the folder that `TENSILO_CACHE` names, if it names one. It has at most
    /// `TENSILO_CACHE_BYTES`, such as `200GiB`; the default is 16 GiB. An error says what is wrong
    /// with these.
    pub fn from_environment() -> io::Result<Option<Self>> {
        Self::of_environment().map_err(|message| io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// As [`Cache::from_environment`], with the error in words.
    pub(crate) fn of_environment() -> Result<Option<Self>, String> {
        let folder = env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        let most_bytes = match env::var(BYTES) {
            Ok(text) if text.is_empty() => DEFAULT_BYTES,
            Ok(text) => parse_byte_count(&text).ok_or_else(|| {
                format!("{BYTES}={text:?}: expected a number of bytes, such as 200GiB or 107374182400")
            })?,
            Err(VarError::NotPresent) => DEFAULT_BYTES,
            Err(VarError::NotUnicode(_)) => return Err(format!("{BYTES} is not text")),
        };
        Ok(folder.map(|folder| Self::new(folder, most_bytes)))
    }
}
