//! Turns to fetch pieces: of all threads and processes, one fetches a piece and the others wait.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The suffix of the files that are locked.
const SUFFIX: &str = "turn";
/// The time after which one does not wait any longer, and fetches the piece too: a process that was
/// forked meanwhile may hold the lock of one that was killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two looks at a turn that another one has: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(20);

/// The turn to fetch a piece. It ends when it is dropped, and when its process ends, however that
/// does.
#[derive(Debug)]
pub(super) struct Turn {
    path: PathBuf,
    locked: File,
}

impl Turn {
    /// Waits for the turn to fetch the piece with this path. Returns `None` if that takes too long.
    pub(super) fn wait(piece: &Path) -> io::Result<Option<Self>> {
        let path = piece.with_extension(SUFFIX);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        let (begun, mut look) = (Instant::now(), FIRST_LOOK);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { path, locked: file })),
                Err(TryLockError::WouldBlock) if begun.elapsed() > PATIENCE => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(look),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            look = (look * 2).min(LAST_LOOK);
        }
    }
}

impl Drop for Turn {
    /// Removes the file, and unlocks it. Whoever waits for it has the turn next, and one who comes
    /// now makes a new one: both look for the piece first.
    ///
    /// Closing it would not do: a child that was forked since has the lock, too.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // what is left is removed later, when there is no room
        let _ = self.locked.unlock(); // others lose patience
    }
}
