//! The failure of a command: an exit code, and a message with advice.
//!
//! Scripts rely on [`Exit`]; people read the message. Errors of the library contain structured
//! advice, such as "declare this shape". [`advice`] turns it into command-line flags, quoted so
//! that they can be pasted into a shell. If a file has another format, the error names that format
//! and the command that reads it.
//!
//! Two failures do not mean that anything went wrong: the reader of a pipe closed it early, as
//! `head` does, or a signal arrived and the work was undone.

use crate::signals;
use crate::terminal;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tensilo::error::{Advice, display_path};
use tensilo::import::InferredShape;
use tensilo::verify::FileState;
use tensilo::{ColumnSchema, DType, Error, ErrorKind, Extent, LogicalType, Schema};
use tensilo_data::DataError;

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
    /// A bug in tensilo, or a fault of this machine.
    Internal = 4,
    /// The file is intact up to its last commit, but a writer has not finished it.
    Unfinished = 5,
    /// A signal ended the work. The work was undone, unless a second signal left no time for that.
    /// The exit code is 128 plus the number of the signal.
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

/// The reason why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library, and the file that it concerns if the error does not name one.
    Library(Error, Option<PathBuf>),
    /// An error of a dataset.
    Dataset(DataError),
    /// The command line requests something impossible.
    Usage(String),
    /// Writing the output failed. The path is `None` for standard output.
    Output(io::Error, Option<PathBuf>),
    /// A signal arrived.
    Cancelled,
    /// The reader of standard output closed it, as `head` does.
    Closed,
}

/// The result of a command, or of a step of one.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Returns the failure for an error of the library about `path`.
    pub(crate) fn about(path: &Path, error: Error) -> Self {
        special(&error, Some(path)).unwrap_or_else(|| Self::Library(error, Some(path.to_path_buf())))
    }

    /// Returns the same failure, with `path` if it is an error of the library that names no file.
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

    /// Returns the same failure, with `path` if it is about an output without a path.
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
        Self::Usage(format!("{}: the file exists; --force overwrites it", display_path(path)))
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Library(error, _) => exit_of(error.kind()),
            Self::Usage(_) => Exit::Usage,
            Self::Dataset(error) => exit_of(error.kind()),
            Self::Output(..) => Exit::Io,
            Self::Cancelled => Exit::Signalled,
            Self::Closed => Exit::Done,
        }
    }

    /// Returns the message for the user, or `None` if no message is needed.
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

/// Returns the exit code of a command that has printed its findings. If the reader closes the pipe
/// early, the verdict stays the same.
pub(crate) fn verdict(exit: Exit, printed: Outcome) -> Outcome<Exit> {
    match printed {
        Ok(()) | Err(Failure::Closed) => Ok(exit),
        Err(failure) => Err(failure),
    }
}

fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Corrupt => Exit::Damaged,
        ErrorKind::Io | ErrorKind::Busy => Exit::Io,
        ErrorKind::Internal => Exit::Internal,
        // all other errors mean that this program cannot process this input
        _ => Exit::Usage,
    }
}

fn library_message(error: &Error, path: Option<&Path>) -> String {
    let mut message = match path {
        Some(path) if error.path().is_none() => format!("{}: {}", display_path(path), advice(error)),
        _ => advice(error),
    };
    let is_another_format = matches!(error.rule(), Some("R-2.2" | "R-2.9")) && error.offset() == Some(0);
    if let Some(foreign_format) = path.filter(|_| error.offset() == Some(0)).and_then(foreign_format) {
        message = format!("{message}\nhint: {foreign_format}");
    } else if error.kind() == ErrorKind::Corrupt && !is_another_format {
        message.push_str(
            "\nhint: \"tensilo verify FILE\" lists all damage, \"tensilo layout --verify FILE\" draws it, \"tensilo salvage \
             FILE\" recovers the intact samples",
        );
    }
    message
}

/// Returns the failure for an error that has its own message here: work was cancelled, or an output
/// file exists. The library reports the latter as an I/O error.
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

/// Only writing output fails with this type; all other I/O errors are errors of the library.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Output(error, None),
        }
    }
}

/// Names the format of a file that is not a tensilo file, and the command that reads it. Returns
/// `None` if the file could be a damaged tensilo file.
pub(crate) fn foreign_format(path: &Path) -> Option<&'static str> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(6).read_to_end(&mut start).ok()?;
    match start.as_slice() {
        [] => Some("the file is empty"),
        [b'P', b'A', b'R', b'1', ..] => {
            Some("this is a Parquet file; \"tensilo convert\" converts it to a tensilo file")
        }
        b"ARROW1" => Some("this is an Arrow file; \"tensilo convert\" converts it to a tensilo file"),
        _ => None,
    }
}

/// Returns the text of an error. Advice names command-line flags instead of options of the library.
fn advice(error: &Error) -> String {
    let advice: Vec<String> =
        error.advice().iter().map(|advice| format!("{} ({})", advice.action(), flag(advice, error.column()))).collect();
    let separator = if advice.is_empty() { "" } else { "; " };
    format!("{}{separator}{}", error.plain(), advice.join(", or "))
}

fn flag(advice: &Advice, column: Option<&str>) -> String {
    let name = column.unwrap_or("NAME");
    match advice {
        Advice::SkipColumns => option("--skip", name),
        Advice::RenameColumns => option("--rename", &format!("{name}=NEW")),
        Advice::SkipExtraColumns => "--skip-extra-columns".to_owned(),
        Advice::ReplaceNulls => "--null-elements nan|zero".to_owned(),
        Advice::ReplaceNullsWithZero => "--null-elements zero".to_owned(),
        Advice::DeclareShape(extents) => shape_flag(name, extents),
        Advice::ConvertAgain(extents) => format!("convert {}", shape_flag(name, extents)),
        Advice::Cast(dtype) => format!("convert {}", cast_flag(name, *dtype)),
        Advice::StoredTypes => "--stored-types".to_owned(),
        Advice::IgnoreStatistics => "--ignore-statistics".to_owned(),
        Advice::DiscardTail => "--discard-tail".to_owned(),
        other => other.to_string(), // advice that is newer than this program
    }
}

/// Returns `--shape NAME=*,80`.
fn shape_flag(name: &str, extents: &[Option<u32>]) -> String {
    let extents: Vec<String> =
        extents.iter().map(|extent| extent.map_or("*".to_owned(), |extent| extent.to_string())).collect();
    option("--shape", &format!("{name}={}", extents.join(",")))
}

/// Returns `--cast NAME=f64`.
fn cast_flag(name: &str, dtype: DType) -> String {
    option("--cast", &format!("{name}={dtype}"))
}

/// Returns an option with its value. A value that starts with a hyphen is attached with `=`,
/// because it would otherwise be parsed as an option.
fn option(flag: &str, value: &str) -> String {
    format!("{flag}{}{}", if value.starts_with('-') { '=' } else { ' ' }, shell_quote(value))
}

/// Quotes a string as one shell word. Invisible characters are escaped to make them visible to
/// people; the shell does not unescape them.
fn shell_quote(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    let escape = |c: char| if "'\"\\".contains(c) { c.to_string() } else { c.escape_debug().to_string() };
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", text.chars().map(escape).collect::<String>().replace('\'', r"'\''")),
    }
}

/// Prints a note about everything in the converted columns that might surprise the user: samples
/// with odd shapes, and elements that are not the values themselves.
pub(crate) fn note_columns(schema: &Schema) {
    let notes = schema.columns.iter().flat_map(|column| odd_samples(column).into_iter().chain(encoded_values(column)));
    notes.for_each(|note| terminal::note(&note));
}

/// Prints a note about each column whose elements are not the values themselves.
pub(crate) fn note_values(schema: &Schema) {
    schema.columns.iter().filter_map(encoded_values).for_each(|note| terminal::note(&note));
}

/// Describes the elements of a column if they are not the values themselves, but for example scaled
/// integers.
fn encoded_values(column: &ColumnSchema) -> Option<String> {
    LogicalType::check_values(column)
        .err()
        .map(|error| format!("{}; loaders and exports to array files refuse this column", advice(&error)))
}

/// Describes the few samples whose shape differs from the shape of the other samples. Returns
/// `None` if all shapes agree.
fn odd_samples(column: &ColumnSchema) -> Option<String> {
    let found = InferredShape::of(column)?;
    if found.odd_count == 0 {
        return None;
    }
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => Some(*extent),
        Extent::Varying => None,
    };
    let extents: Vec<Option<u32>> = found.shape.extents().iter().map(extent).collect();
    let odd: Vec<String> = found.odd.iter().map(|odd| format!("sample {} has {}", odd.sample, odd.shape)).collect();
    // exact: usize has at most 64 bits
    let more = if found.odd_count > odd.len() as u64 { ", ..." } else { "" };
    let (flag, refused) = (shape_flag(&column.name, &extents), if odd.len() == 1 { "it" } else { "them" });
    Some(format!(
        "column {:?}: {} of {} samples have the shape {}, {}{more}; {flag} refuses {refused}",
        column.name,
        found.agreeing_count(),
        found.sample_count,
        found.shape,
        odd.join(", "),
    ))
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
        for kind in [ErrorKind::TooNew, ErrorKind::BadArgument, ErrorKind::BadInput] {
            assert_eq!(exit_of(kind), Exit::Usage, "{kind:?}");
        }
        assert_eq!(Failure::from(DataError::Internal("x".to_owned())).exit(), Exit::Internal);
        assert_eq!(Failure::from(DataError::BadArgument("x".to_owned())).exit(), Exit::Usage);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit(), Exit::Done);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).exit(), Exit::Io);
    }

    #[test]
    fn flags_can_be_copied_into_a_shell() {
        assert_eq!(flag(&Advice::SkipColumns, Some("a.b")), "--skip a.b");
        assert_eq!(flag(&Advice::SkipColumns, Some("a b")), "--skip 'a b'");
        assert_eq!(flag(&Advice::SkipColumns, None), "--skip NAME");
        assert_eq!(flag(&Advice::SkipColumns, Some("-a b")), "--skip='-a b'");
        assert_eq!(flag(&Advice::RenameColumns, Some("-x")), "--rename=-x=NEW");
        assert_eq!(flag(&Advice::Cast(DType::F64), Some("-x")), "convert --cast=-x=f64");
        assert_eq!(flag(&Advice::DeclareShape(vec![None, Some(80)]), Some("x")), "--shape 'x=*,80'");
        assert_eq!(flag(&Advice::ConvertAgain(vec![Some(3)]), Some("x")), "convert --shape x=3");
        assert_eq!(flag(&Advice::DeclareShape(vec![Some(3)]), Some("-x")), "--shape=-x=3");
        assert_eq!(flag(&Advice::Cast(DType::F64), Some("a b")), "convert --cast 'a b=f64'");
        for (name, expected) in [
            ("a=b", "--rename a=b=NEW"),
            ("it's", r"--rename 'it'\''s=NEW'"),
            (r"a\b", r"--rename 'a\b=NEW'"),
            ("a\tb\u{1}", r"--rename 'a\tb\u{1}=NEW'"),
            ("$x", "--rename '$x=NEW'"),
            ("é", "--rename é=NEW"),
            ("\u{202e}", r"--rename '\u{202e}=NEW'"),
        ] {
            assert_eq!(flag(&Advice::RenameColumns, Some(name)), expected);
        }
        assert_eq!(shell_quote(""), "''");
    }
}
