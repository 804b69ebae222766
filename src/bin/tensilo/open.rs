//! Opening a file for reading, with a word about what is unusual about it.

use crate::exit::{Failure, Outcome};
use crate::terminal;
use std::path::Path;
use tensilo::{PositionedFile, Reader, Source};

/// Opens a file by position: another process that changes or truncates it then gives an error, not a crash. Unless
/// `quiet`, warns of a file that is not finished or has bytes after its last commit.
pub(crate) fn open(path: &Path, quiet: bool) -> Outcome<Reader<PositionedFile>> {
    let reader = Reader::open(path).map_err(|error| Failure::about(path, error))?;
    if !quiet {
        warn(path, &reader);
    }
    Ok(reader)
}

/// Warns of a file that is not finished or has bytes after its last commit.
pub(crate) fn warn<S: Source>(path: &Path, reader: &Reader<S>) {
    for warning in warnings(reader) {
        terminal::warning(&format!("{}: {warning}", path.display()));
    }
}

fn warnings<S: Source>(reader: &Reader<S>) -> Vec<String> {
    let mut warnings = Vec::new();
    if !reader.is_finished() {
        let samples = reader.sample_count();
        warnings.push(format!(
            "the file is not finished: its writer is still at work, or was stopped; it has {samples} samples so far"
        ));
    }
    if reader.tail_bytes() > 0 {
        let bytes = reader.tail_bytes();
        warnings.push(format!(
            "{bytes} bytes after the last commit are not read: a writer is at work or was stopped, or the end is damaged"
        ));
    }
    warnings
}
