//! What stands in for Parquet where the crate is built without it.

use super::input::Place;
use super::source::Source;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

pub(super) fn glob(_pattern: &Path) -> Result<Vec<PathBuf>> {
    Err(Error::not_built("parquet", "a pattern of file names"))
}

pub(super) fn open(_place: &Place) -> Result<(Box<dyn Source>, Vec<u8>)> {
    Err(Error::not_built("parquet", "reading Parquet files"))
}
