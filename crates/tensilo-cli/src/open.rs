//! Opening a file for reading, with a word about what is unusual about it.

use crate::exit::{Failure, Outcome};
use crate::terminal;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tensilo::{Reader, display_path};

/// Opens a file by position: another process that changes or truncates it then gives an error, not a crash. Unless
/// `quiet`, warns of a file that is not finished or has bytes after its last commit.
pub(crate) fn open(path: &Path, quiet: bool) -> Outcome<Reader> {
    let reader = Reader::open(path).map_err(|error| Failure::about(path, error))?;
    if !quiet {
        warn(path, &reader);
    }
    Ok(reader)
}

/// Warns of a file that is not finished or has bytes after its last commit.
pub(crate) fn warn(path: &Path, reader: &Reader) {
    for warning in warnings(reader) {
        terminal::warning(&format!("{}: {warning}", display_path(path)));
    }
}

fn warnings(reader: &Reader) -> Vec<String> {
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

/// What a file is that is no tensilo file, and what to do with it; `None` if it may be a damaged
/// one.
pub(crate) fn foreign(path: &Path) -> Option<&'static str> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(6).read_to_end(&mut start).ok()?;
    match start.as_slice() {
        [] => Some("the file is empty"),
        [b'P', b'A', b'R', b'1', ..] => Some("this is a Parquet file; \"tensilo convert\" makes a tensilo file of it"),
        b"ARROW1" => Some("this is an Arrow file; \"tensilo convert\" makes a tensilo file of it"),
        _ => None,
    }
}
