//! The one call of this program that the compiler cannot check.

use std::path::Path;
use tensilo::MappedFile;

/// Maps a file. Only for a user who asked for it and was told what must not happen to the file
/// meanwhile.
pub(crate) fn map(path: &Path) -> tensilo::Result<MappedFile> {
    // SAFETY: no process may change or truncate the file as long as it is mapped. This one never
    // does: it opens the file for reading alone. That no other one does is for the user to see to,
    // whom `bench --help` tells what follows otherwise; nothing is mapped without --map.
    unsafe { MappedFile::open(path) }
}
