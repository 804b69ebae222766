//! The cache that the environment names.

use super::handle::Cache;
use std::env::{self, VarError};
use std::io;

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
            Ok(text) => bytes_of(&text).ok_or_else(|| {
                format!("{BYTES}={text:?}: expected a number of bytes, such as 200GiB or 107374182400")
            })?,
            Err(VarError::NotPresent) => DEFAULT_BYTES,
            Err(VarError::NotUnicode(_)) => return Err(format!("{BYTES} is not text")),
        };
        Ok(folder.map(|folder| Self::new(folder, most_bytes)))
    }
}

/// Returns the bytes that a text such as `200GiB` names.
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (text, bytes) in [("0", 0), ("17", 17), (" 5 B", 5), ("3KiB", 3072), ("2GiB", 2 << 30), ("1 MB", 1_000_000)]
        {
            assert_eq!(bytes_of(text), Some(bytes), "{text:?}");
        }
        for text in ["", "GiB", "-1", "1.5GiB", "1 gib", "1e9", "99999999999TiB"] {
            assert_eq!(bytes_of(text), None, "{text:?}");
        }
    }
}
