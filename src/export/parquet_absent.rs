//! Parquet files, in a build without them.

use super::format::Format;
use crate::{Error, Result};

pub(super) fn format() -> Result<Format> {
    Err(Error::not_built("parquet", "export to a .parquet file"))
}
