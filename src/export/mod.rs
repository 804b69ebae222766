//! Export to Arrow and Parquet.

use crate::{Reader, Result, Source};
use std::path::Path;

/// Writes columns of a file (all if `None`) to a Parquet file (`.parquet`) or an Arrow IPC file (`.arrow`), whichever `output` ends
/// with. `progress` is told the samples written so far. Appears when complete; replaces an existing file only if `overwrite`.
pub fn export<S: Source>(
    _reader: &Reader<S>,
    _output: &Path,
    _columns: Option<&[String]>,
    _overwrite: bool,
    _progress: &mut dyn FnMut(u64),
) -> Result<()> {
    Err(crate::Error::bad_input("not yet"))
}
