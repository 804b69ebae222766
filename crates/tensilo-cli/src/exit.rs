//! The exit codes of the program.

use crate::signals;
use tensilo::verify::FileState;

/// The exit codes, which scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Done = 0,
    /// The file is damaged or not a tensilo file.
    Damaged = 1,
    /// The command line is wrong, or the input is not supported.
    Usage = 2,
    /// The operating system failed to read or write.
    Io = 3,
    /// A fault of tensilo or of this machine.
    Internal = 4,
    /// The file is intact up to its last commit, but a writer has not finished it.
    Unfinished = 5,
    /// A signal ended the work, which was undone unless a second signal left no time for that. The
    /// exit code is 128 and the number of the signal.
    Signalled,
}

impl From<FileState> for Exit {
    fn from(state: FileState) -> Self {
        match state {
            FileState::Intact => Self::Done,
            FileState::Unfinished => Self::Unfinished,
            _ => Self::Damaged,
        }
    }
}

impl Exit {
    /// Returns the exit code of the process.
    pub(crate) fn code(self) -> u8 {
        match (self, signals::received()) {
            (Self::Signalled, Some(signal)) => signal.exit_code(),
            _ => self as u8, // 0 to 6
        }
    }
}
