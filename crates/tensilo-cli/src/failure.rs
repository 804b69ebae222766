//! The error type of the program: an exit code, and a message.

use crate::advice;
use crate::exit::Exit;
use crate::foreign::foreign;
use crate::signals;
use std::io;
use std::path::{Path, PathBuf};
use tensilo::error::display_path;
use tensilo::{Error, ErrorKind};
use tensilo_data::DataError;

/// The reason why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library, and the file that it concerns if the error does not name one.
    Library(Error, Option<PathBuf>),
    /// An error of a dataset.
    Dataset(DataError),
    /// The command line asks for something that is impossible.
    Usage(String),
    /// Writing the output failed; the path is `None` for the standard output.
    Output(io::Error, Option<PathBuf>),
    /// A signal arrived.
    Cancelled,
    /// The reader of the standard output has closed it, as `head` does.
    Closed,
}

/// The result of a command, or of a step of one.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Returns the failure for an error of the library that concerns `path`.
    pub(crate) fn about(path: &Path, error: Error) -> Self {
        special(&error, Some(path)).unwrap_or_else(|| Self::Library(error, Some(path.to_path_buf())))
    }

    /// Returns the same failure. If it is an error of the library that names no file, it concerns
    /// `path`.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Library(error, None) => Self::about(path, error),
            other => other,
        }
    }

    /// Returns the failure for an error in opening or writing an output.
    pub(crate) fn output(path: &Path, error: io::Error) -> Self {
        Self::Output(error, Some(path.to_path_buf()))
    }

    /// Returns the same failure. If it concerns an output without a path, that path becomes `path`.
    pub(crate) fn with_output(self, path: Option<&Path>) -> Self {
        match self {
            Self::Output(error, None) => {
                Self::Output(error, path.filter(|path| *path != Path::new("-")).map(Path::to_path_buf))
            }
            other => other,
        }
    }

    /// Returns the failure for an output that exists and is not replaced.
    pub(crate) fn exists(path: &Path) -> Self {
        Self::Usage(format!("{}: a file of this name exists; --force overwrites it", display_path(path)))
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Library(error, _) => exit_of(error.kind()),
            // the command begins again from the version that the other writer has published
            Self::Dataset(DataError::Conflict { .. }) | Self::Usage(_) => Exit::Usage,
            Self::Dataset(error) => exit_of(error.kind()),
            Self::Output(..) => Exit::Io,
            Self::Cancelled => Exit::Signalled,
            Self::Closed => Exit::Done,
        }
    }

    /// Returns the message for the user; `None` if no message is needed.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Cancelled => signals::received().map(|signal| format!("stopped by {}", signal.name())),
            Self::Closed => None,
            Self::Library(error, path) => Some(library_message(error, path.as_deref())),
            Self::Dataset(error) => Some(error.to_string()),
            Self::Usage(message) => Some(message.clone()),
            Self::Output(error, Some(path)) => Some(format!("{}: writing the output: {error}", display_path(path))),
            Self::Output(error, None) => Some(format!("writing the output: {error}")),
        }
    }
}

fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Corrupt => Exit::Damaged,
        ErrorKind::Io | ErrorKind::Busy => Exit::Io,
        ErrorKind::Internal => Exit::Internal,
        // the others: this program cannot process this input
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

/// Returns the failure of an error that gets a message of its own: cancelled work, or an output
/// file that exists. The library reports the latter as an I/O error.
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

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match error {
            DataError::File(error) => error.into(),
            error => Self::Dataset(error),
        }
    }
}

/// The program has no other I/O errors of this type: all others are errors of the library.
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
        assert_eq!(exit_of(ErrorKind::Busy), Exit::Io);
        assert_eq!(exit_of(ErrorKind::Internal), Exit::Internal);
        for kind in [
            ErrorKind::TooNew,
            ErrorKind::TooOld,
            ErrorKind::NotBuilt,
            ErrorKind::OverLimit,
            ErrorKind::BadArgument,
            ErrorKind::UnknownColumn,
            ErrorKind::WrongType,
            ErrorKind::BadInput,
        ] {
            assert_eq!(exit_of(kind), Exit::Usage, "{kind:?}");
        }
    }

    #[test]
    fn a_fault_of_a_dataset_exits_as_one_of_a_file() {
        assert_eq!(Failure::from(DataError::Internal("x".to_owned())).exit(), Exit::Internal);
        assert_eq!(Failure::from(DataError::BadArgument("x".to_owned())).exit(), Exit::Usage);
    }

    #[test]
    fn a_closed_output_is_no_failure_and_a_full_disk_is() {
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit(), Exit::Done);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).exit(), Exit::Io);
    }
}
