//! The one error type of the crate.

use std::fmt::{self, Write};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// The result of every fallible function of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What sort of thing went wrong, and so who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are not what the format demands: the file is damaged, incomplete or not a tensilo file.
    /// [`Error::rule`] names the rule of the specification.
    Corrupt,
    /// The file uses something this release does not know. A newer release reads it.
    TooNew,
    /// The file or call needs a cargo feature this build lacks.
    NotBuilt,
    /// A limit of the format (chapter 8 of the specification) would be exceeded.
    OverLimit,
    /// An argument does not fit: unknown column, sample out of range, wrong type or length.
    BadArgument,
    /// An input of an import holds what a tensilo file cannot store, is malformed, or was changed
    /// while it was read.
    BadInput,
    /// A progress callback ended the work, which left everything as it was.
    Cancelled,
    /// The operating system reported an error; [`std::error::Error::source`] is the [`io::Error`].
    Io,
}

/// What went wrong, where, and what to do next.
///
/// The message names as much of file, column, sample range, byte offset and rule as is known. It is
/// one pointer wide.
pub struct Error(Box<Details>);

#[derive(Debug)]
struct Details {
    kind: ErrorKind,
    message: String,
    rule: Option<&'static str>,
    path: Option<PathBuf>,
    column: Option<String>,
    samples: Option<Range<u64>>,
    offset: Option<u64>,
    source: Option<io::Error>,
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            message: message.into(),
            rule: None,
            path: None,
            column: None,
            samples: None,
            offset: None,
            source: None,
        }))
    }

    pub(crate) fn corrupt(rule: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::Corrupt, message);
        error.0.rule = Some(rule);
        error
    }

    /// What was encoded does not decode to what it was.
    pub(crate) fn miscoded(encoding: &str) -> Self {
        let message = format!(
            "what was encoded as {encoding} decodes to something else, and was not written: memory or processor are at \
             fault, or tensilo; try again, on another machine if need be"
        );
        Self::new(ErrorKind::Corrupt, message)
    }

    pub(crate) fn too_new(rule: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::TooNew, message);
        error.0.rule = Some(rule);
        error
    }

    /// A file that breaks no rule, but is not this release's to write.
    pub(crate) fn too_new_to_append(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooNew, message)
    }

    #[cfg_attr(feature = "zstd", allow(dead_code, reason = "only builds without a codec say this"))]
    pub(crate) fn not_built(feature: &str, what: &str) -> Self {
        let message = format!("{what} needs the cargo feature \"{feature}\", which this build lacks; enable it");
        Self::new(ErrorKind::NotBuilt, message)
    }

    pub(crate) fn over_limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::OverLimit, message)
    }

    pub(crate) fn bad_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadArgument, message)
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadInput, message)
    }

    /// `Break` of a progress callback.
    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }

    pub(crate) fn io(doing: &str, source: io::Error) -> Self {
        let mut error = Self::new(ErrorKind::Io, format!("{doing}: {source}"));
        error.0.source = Some(source);
        error
    }

    pub(crate) fn with_path(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    pub(crate) fn with_column(mut self, name: &str) -> Self {
        self.0.column.get_or_insert_with(|| name.to_owned());
        self
    }

    pub(crate) fn with_samples(mut self, samples: Range<u64>) -> Self {
        self.0.samples.get_or_insert(samples);
        self
    }

    pub(crate) fn with_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// What sort of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The rule of the specification that the file breaks, such as `"R-2.6"`.
    pub fn rule(&self) -> Option<&'static str> {
        self.0.rule
    }

    /// The file concerned, where it is known.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The name of the column concerned.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// The samples concerned.
    pub fn samples(&self) -> Option<Range<u64>> {
        self.0.samples.clone()
    }

    /// The place in the file, in bytes from its start.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The bare message, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

/// What a progress callback says.
pub(crate) fn go_on(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}

/// Shows a path in a message: control characters are escaped, so that a file's name cannot steer a
/// terminal or forge a line.
pub fn display_path(path: &Path) -> impl fmt::Display + '_ {
    Shown(path)
}

struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string_lossy().chars().try_for_each(|character| match character {
            character if character.is_control() => write!(f, "{}", character.escape_default()),
            character => f.write_char(character),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &*self.0;
        if let Some(path) = &details.path {
            write!(f, "{}: ", display_path(path))?;
        }
        if let Some(column) = &details.column {
            write!(f, "column {column:?}: ")?;
        }
        match &details.samples {
            Some(samples) if samples.end == samples.start.saturating_add(1) => {
                write!(f, "sample {}: ", samples.start)?;
            }
            Some(samples) => write!(f, "samples {}..{}: ", samples.start, samples.end)?,
            None => {}
        }
        f.write_str(&details.message)?;
        match (details.offset, details.rule) {
            (Some(offset), Some(rule)) => write!(f, " (offset {offset}, rule {rule})"),
            (Some(offset), None) => write!(f, " (offset {offset})"),
            (None, Some(rule)) => write!(f, " (rule {rule})"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
