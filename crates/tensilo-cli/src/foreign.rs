//! Recognizes files of other formats by their first bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Names the format of a file that is not a tensilo file, and the command that reads it. Returns
/// `None` if the file may be a damaged tensilo file.
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
