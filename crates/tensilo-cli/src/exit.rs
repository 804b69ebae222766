//! What a run ends with: an exit code, and a message where it failed.

use crate::advice;
use crate::open::foreign;
use crate::signals;
use std::io;
use std::path::{Path, PathBuf};
use tensilo::{Error, ErrorKind, display_path};

/// The exit codes, which scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Done = 0,
    /// The file is damaged or not a tensilo file.
    Damaged = 1,
    /// Bad usage, or unsupported input.
    Usage = 2,
    /// The operating system failed to read or write.
    Io = 3,
    /// A fault of tensilo or of this machine.
    Internal = 4,
    /// A signal came, and the work was put back as it was. The code is that of the signal, see
    /// [`Signal::exit_code`].
    Signalled,
}

impl Exit {
    /// The number that the process exits with.
    pub(crate) fn code(self) -> u8 {
        match (self, signals::received()) {
            (Self::Signalled, Some(signal)) => signal.exit_code(),
            _ => self as u8, // 0 to 4
        }
    }
}

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library refused; and the file concerned, where its error does not name one.
    Library(Error, Option<PathBuf>),
    /// The command line asks for what cannot be.
    Usage(String),
    /// The output could not be written; its name, unless it is the standard output.
    Output(io::Error, Option<PathBuf>),
    /// A signal came.
    Cancelled,
    /// Whoever read the standard output has stopped reading, as `head` does.
    Closed,
}

/// The result of a command, or of a step of one.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// An error of the library about this file.
    pub(crate) fn about(path: &Path, error: Error) -> Self {
        special(&error, Some(path)).unwrap_or_else(|| Self::Library(error, Some(path.to_path_buf())))
    }

    /// A failure to open or write an output.
    pub(crate) fn output(path: &Path, error: io::Error) -> Self {
        Self::Output(error, Some(path.to_path_buf()))
    }

    /// The same failure; if it is that of an output that has no name yet, with this one.
    pub(crate) fn with_output(self, path: Option<&Path>) -> Self {
        match self {
            Self::Output(error, None) => Self::Output(error, path.filter(|path| *path != "-").map(Path::to_path_buf)),
            other => other,
        }
    }

    /// What is refused because a file stands at `path`.
    pub(crate) fn exists(path: &Path) -> Self {
        Self::Usage(format!("{}: a file of this name exists; --force overwrites it", display_path(path)))
    }

    /// The exit code of this failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Library(error, _) => exit_of(error.kind()),
            Self::Usage(_) => Exit::Usage,
            Self::Output(..) => Exit::Io,
            Self::Cancelled => Exit::Signalled,
            Self::Closed => Exit::Done,
        }
    }

    /// What to tell the user; `None` if nobody needs to be told.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Cancelled => signals::received().map(|signal| format!("stopped by {}", signal.name())),
            Self::Closed => None,
            Self::Library(error, path) => Some(library_message(error, path.as_deref())),
            Self::Usage(message) => Some(message.clone()),
            Self::Output(error, Some(path)) => Some(format!("{}: writing the output: {error}", display_path(path))),
            Self::Output(error, None) => Some(format!("writing the output: {error}")),
        }
    }
}

fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Corrupt => Exit::Damaged,
        ErrorKind::Io => Exit::Io,
        ErrorKind::Internal => Exit::Internal,
        // TooNew, NotBuilt, OverLimit, BadArgument, BadInput: this program cannot do it with this input
        _ => Exit::Usage,
    }
}

fn library_message(error: &Error, path: Option<&Path>) -> String {
    let mut message = match path {
        Some(path) if error.path().is_none() => format!("{}: {}", display_path(path), advice::text(error)),
        _ => advice::text(error),
    };
    let is_another_format = matches!(error.rule(), Some("R-2.2" | "R-2.9")) && error.offset() == Some(0);
    if let Some(foreign) = path.filter(|_| error.offset() == Some(0)).and_then(foreign) {
        message = format!("{message}\nhint: {foreign}");
    } else if error.kind() == ErrorKind::Corrupt && !is_another_format {
        message.push_str(
            "\nhint: \"tensilo verify FILE\" lists everything that is damaged, \"tensilo map --verify\" draws it, \
             \"tensilo salvage\" recovers the rest",
        );
    }
    message
}

/// Work that was cancelled is no matter of the library, and an output file that is in the way none
/// of the operating system.
fn special(error: &Error, path: Option<&Path>) -> Option<Failure> {
    if error.kind() == ErrorKind::Cancelled {
        return Some(Failure::Cancelled);
    }
    let source = std::error::Error::source(error)?.downcast_ref::<io::Error>()?;
    let path = error.path().or(path).unwrap_or(Path::new("the output"));
    (source.kind() == io::ErrorKind::AlreadyExists).then(|| Failure::exists(path))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        special(&error, None).unwrap_or(Self::Library(error, None))
    }
}

/// All errors of this type in this program are about writing the output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Output(error, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        assert_eq!(exit_of(ErrorKind::Corrupt), Exit::Damaged);
        assert_eq!(exit_of(ErrorKind::Io), Exit::Io);
        assert_eq!(exit_of(ErrorKind::Internal), Exit::Internal);
        for kind in
            [ErrorKind::TooNew, ErrorKind::NotBuilt, ErrorKind::OverLimit, ErrorKind::BadArgument, ErrorKind::BadInput]
        {
            assert_eq!(exit_of(kind), Exit::Usage, "{kind:?}");
        }
    }

    #[test]
    fn a_closed_output_is_no_failure_and_a_full_disk_is() {
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit(), Exit::Done);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).exit(), Exit::Io);
    }
}
