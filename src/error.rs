//! The one error type of the crate.
//!
//! An [`Error`] says what is wrong, where, and what to do next. A function names what it knows: the
//! rule that is broken, or the argument. Its callers add column, samples, offset and path. The
//! [`ErrorKind`] tells who can do something about it, and a program need not parse messages: the
//! parts of an error can be asked for. Where an option makes the call succeed, the error has an
//! [`Advice`], because programs have other names for the option than this library.

use crate::element::dtype::DType;
use std::fmt::{self, Write};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// The result of every fallible function of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error, which tells who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes break a rule of the format: the file is damaged, incomplete or not a tensilo file.
    /// [`Error::rule`] names the rule of the specification.
    Corrupt,
    /// The file uses a feature that this release does not know. A newer release reads it.
    TooNew,
    /// The file was written by a development version, before edition 1 of the format. Convert its
    /// source again.
    TooOld,
    /// The file or the call needs a cargo feature that this build lacks.
    NotBuilt,
    /// A limit would be exceeded: of the format (chapter 8 of the specification), of the caller, or
    /// of the memory of this machine.
    OverLimit,
    /// An argument does not fit: sample out of range, wrong length, contradicting options.
    BadArgument,
    /// The file has no column of this name. The message suggests a similar one.
    UnknownColumn,
    /// Values of another type than the column's were pushed or requested.
    WrongType,
    /// Another writer has locked the file. Try again when it is done.
    Busy,
    /// An input of an import is malformed, has values that a tensilo file cannot store, or was
    /// changed while it was read.
    BadInput,
    /// A progress callback ended the work. All files are as they were before.
    Cancelled,
    /// A fault of tensilo, or of the processor or memory of this machine. Neither the file nor the
    /// caller is at fault. Please report it.
    Internal,
    /// The operating system reported an error.
    Io,
}

/// An option with which a refused import or append succeeds; see [`Error::advice`].
///
/// Its `Display` says what to do and names the option of the library. A program that has another
/// name for the option shows [`action`](Self::action) and its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// `ConvertOptions::skip`.
    SkipColumns,
    /// `ConvertOptions::renames`.
    RenameColumns,
    /// `AppendOptions::skip_extra_columns`.
    SkipExtraColumns,
    /// `NullElements::Nan` or `NullElements::Zero`.
    ReplaceNulls,
    /// `NullElements::Zero`.
    ReplaceNullsWithZero,
    /// `ConvertOptions::shapes` with these extents, of which those that vary are `None`.
    DeclareShape(Vec<Option<u32>>),
    /// `ConvertOptions::shapes` with these extents, when all that is in the file is converted
    /// again.
    ConvertAgain(Vec<Option<u32>>),
    /// `ConvertOptions::casts` with this type, when the source is converted again.
    Cast(DType),
    /// `WriterOptions::discard_tail`.
    DiscardTail,
    /// `ExportOptions::stored_types`.
    StoredTypes,
    /// `ConvertOptions::ignore_statistics`.
    IgnoreStatistics,
}

impl Advice {
    /// Returns the advice in words, such as "leave out columns that the file does not have".
    pub fn action(&self) -> String {
        match self {
            Self::SkipColumns => "leave columns out".to_owned(),
            Self::RenameColumns => "give columns other names".to_owned(),
            Self::SkipExtraColumns => "leave out columns that the file does not have".to_owned(),
            Self::ReplaceNulls => "store NaN or zero in the place of null elements".to_owned(),
            Self::ReplaceNullsWithZero => "store zero in the place of null elements".to_owned(),
            Self::DeclareShape(extents) => format!("declare the shape [{}]", extents_text(extents)),
            Self::ConvertAgain(extents) => format!(
                "convert all again with the declared shape [{}], because the shapes of a file never change",
                extents_text(extents)
            ),
            Self::Cast(dtype) => format!("convert the source with a cast to {dtype}"),
            Self::StoredTypes => "export the types that the file states".to_owned(),
            Self::IgnoreStatistics => "do not trust what the input states of its nulls".to_owned(),
            Self::DiscardTail => "cut the bytes off, which loses what they hold".to_owned(),
        }
    }
}

/// `*,80`.
fn extents_text(extents: &[Option<u32>]) -> String {
    let texts = extents.iter().map(|extent| extent.map_or("*".to_owned(), |extent| extent.to_string()));
    texts.collect::<Vec<_>>().join(",")
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = match self {
            Self::SkipColumns => "ConvertOptions::skip",
            Self::RenameColumns => "ConvertOptions::renames",
            Self::SkipExtraColumns => "AppendOptions::skip_extra_columns",
            Self::ReplaceNulls => "NullElements::Nan`, `NullElements::Zero",
            Self::ReplaceNullsWithZero => "NullElements::Zero",
            Self::DeclareShape(_) | Self::ConvertAgain(_) => "ConvertOptions::shapes",
            Self::Cast(_) => "ConvertOptions::casts",
            Self::StoredTypes => "ExportOptions::stored_types",
            Self::IgnoreStatistics => "ConvertOptions::ignore_statistics",
            Self::DiscardTail => "WriterOptions::discard_tail",
        };
        write!(f, "{} (`{option}`)", self.action())
    }
}

/// The error of every function of the crate: what is wrong, where, and what to do next.
///
/// The message names file, column, sample range, byte offset and rule, as far as they are known. An
/// `Error` has the size of a pointer.
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
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    advice: Vec<Advice>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            message: message.into(),
            rule: None,
            path: None,
            column: None,
            samples: None,
            offset: None,
            source: None,
            advice: Vec::new(),
        }))
    }

    pub(crate) fn corrupt(rule: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::Corrupt, message);
        error.0.rule = Some(rule);
        error
    }

    /// A fault of tensilo or of the machine. The message says what is impossible.
    #[cold]
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        let message = format!(
            "{message}; this is a fault of tensilo, or of the processor or memory of this machine; try again, on \
             another machine if possible, and please report this message to the maintainers of tensilo"
        );
        Self::new(ErrorKind::Internal, message)
    }

    pub(crate) fn too_new(rule: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::TooNew, message);
        error.0.rule = Some(rule);
        error
    }

    pub(crate) fn too_old(rule: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::TooOld, message);
        error.0.rule = Some(rule);
        error
    }

    /// A column whose type this release does not know. The file breaks no rule.
    pub(crate) fn too_new_dtype(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooNew, message)
    }

    /// A file that breaks no rule, but that this release must not append to.
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

    /// Returns the error of an argument that is wrong: for crates that build on this one. The
    /// message says what was expected and found.
    pub fn bad_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadArgument, message)
    }

    pub(crate) fn no_column(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::UnknownColumn, message)
    }

    /// Returns the error of values of another type than the column's: for crates that build on this
    /// one. The message names both types.
    pub fn wrong_type(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::WrongType, message)
    }

    /// Returns the error of an input that cannot be converted: for the formats of a program. The
    /// message says where and what is wrong.
    #[cfg(feature = "import")]
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadInput, message)
    }

    /// Returns the error of work that a progress callback has broken off.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }

    /// Returns the error of an operation that the operating system refused: for functions of a
    /// caller that open files. `operation` is the operation, such as "opening the file". The kind is
    /// [`ErrorKind::Io`], or [`ErrorKind::Busy`] if the system reports
    /// [`io::ErrorKind::WouldBlock`].
    pub fn io(operation: &str, source: io::Error) -> Self {
        let kind = if source.kind() == io::ErrorKind::WouldBlock { ErrorKind::Busy } else { ErrorKind::Io };
        Self::new(kind, format!("{operation}: {source}")).with_source(source)
    }

    /// Sets the error that caused this one.
    pub(crate) fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Adds the file that the error concerns, unless the error has one.
    pub fn with_path(mut self, path: &Path) -> Self {
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

    /// Adds advice, unless the error has it already.
    pub(crate) fn with_advice(mut self, advice: impl IntoIterator<Item = Advice>) -> Self {
        for advice in advice {
            if !self.0.advice.contains(&advice) {
                self.0.advice.push(advice);
            }
        }
        self
    }

    /// Removes advice that the caller cannot follow.
    #[cfg(feature = "import")]
    pub(crate) fn without_advice(mut self, advice: &Advice) -> Self {
        self.0.advice.retain(|given| given != advice);
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the rule of the specification that the file breaks, such as `"R-2.6"`.
    pub fn rule(&self) -> Option<&'static str> {
        self.0.rule
    }

    /// Returns the path of the file, if it is known.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the name of the column, if one is concerned.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// Returns the range of samples, if some are concerned.
    pub fn samples(&self) -> Option<Range<u64>> {
        self.0.samples.clone()
    }

    /// Returns the offset in the file, in bytes, if it is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the message alone, without file, column, samples, offset and [advice](Self::advice).
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the options with which the call succeeds. `Display` ends with them, in the words of
    /// the library.
    pub fn advice(&self) -> &[Advice] {
        &self.0.advice
    }

    /// Returns the text of this error without the [advice](Self::advice), for a program that has
    /// its own words for that.
    pub fn plain(&self) -> impl fmt::Display {
        Plain(self)
    }
}

/// Converts the result of a progress callback.
pub(crate) fn check_cancelled(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}

/// Returns the text of a path for a message. Control characters are escaped, so that the name of a
/// file cannot steer a terminal or forge a line.
pub fn display_path(path: &Path) -> impl fmt::Display + '_ {
    EscapedPath(path)
}

struct EscapedPath<'a>(&'a Path);

impl fmt::Display for EscapedPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string_lossy().chars().try_for_each(|character| match character {
            character if character.is_control() => write!(f, "{}", character.escape_default()),
            character => f.write_char(character),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Plain(self).fmt(f)?;
        let mut separator = "; ";
        for advice in self.advice() {
            write!(f, "{separator}{advice}")?;
            separator = ", or ";
        }
        Ok(())
    }
}

/// An error without its advice.
struct Plain<'a>(&'a Error);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &*self.0.0;
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

/// The source is the error of the library below: an [`io::Error`], an `ArrowError` or a
/// `ParquetError`.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
