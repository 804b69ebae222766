//! Turns to fetch pieces: of all threads and processes, one fetches a piece and the others wait.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The suffix of the files that are locked.
const SUFFIX: &str = "turn";

/// The turn to fetch a piece. It ends when it is dropped, and when its process ends, however that
/// does.
#[derive(Debug)]
pub(super) struct Turn {
    path: PathBuf,
    _locked: File,
}

impl Turn {
    /// Waits for the turn to fetch the piece with this path.
    pub(super) fn wait(piece: &Path) -> io::Result<Self> {
        let path = piece.with_extension(SUFFIX);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        file.lock()?;
        Ok(Self { path, _locked: file })
    }
}

impl Drop for Turn {
    /// Removes the file. Whoever waits for it has the turn next, and one who comes now makes a new
    /// one: both look for the piece first.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // what is left is removed later, when there is no room
    }
}
