//! The only error type of the crate.
//!
//! An error is completed on its way to the caller. The function that fails states what is wrong:
//! the broken rule of the format, or the wrong argument. Its callers add the location: column,
//! samples, byte offset and path. Each of these is set only if it is still missing, so the value
//! from the innermost function, which is the most precise, is kept.
//!
//! Programs need not parse messages. [`ErrorKind`] tells whether the file, the caller or the
//! environment is at fault, and each detail of an error has an accessor. If an option would make
//! the call succeed, the error has an [`Advice`] instead of naming the option in its text, because
//! the option has different names on the command line, in Python and in C.
//!
//! An [`Error`] is a single pointer, so a `Result<T>` that succeeds is hardly larger than its `T`.

use crate::element::dtype::DType;
use std::fmt::{self, Write};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// The result of every fallible function of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error, which tells whether the file, the caller or the environment is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes break a rule of the format: the file is damaged, incomplete or not a tensilo file.
    /// [`Error::rule`] names the rule of the specification.
    Corrupt,
    /// The file uses a feature that this release does not support. A newer release can read it.
    TooNew,
    /// The file was written by a development version, before edition 1 of the format. Convert its
    /// source again.
    TooOld,
    /// The file or the call needs a cargo feature that this build lacks.
    NotBuilt,
    /// A limit would be exceeded: a limit of the format (chapter 8 of the specification), a limit
    /// set by the caller, or this machine's memory.
    OverLimit,
    /// An argument is wrong: for example, a sample is out of range, a length is wrong, or options
    /// contradict each other.
    BadArgument,
    /// The file has no column with this name. The message suggests a similar name.
    UnknownColumn,
    /// The type of pushed or requested values is not the column's type.
    WrongType,
    /// Another writer has locked the file. Try again when it is done.
    Busy,
    /// The input of an import is malformed, has values that a tensilo file cannot store, or changed
    /// while it was read.
    BadInput,
    /// A progress callback stopped the work. All files are unchanged.
    Cancelled,
    /// A bug in tensilo, or a fault of this machine's processor or memory. The cause is neither the
    /// file nor the caller. Please report this.
    Internal,
    /// The operating system reported an error.
    Io,
}

/// An option that would make a refused call succeed; see [`Error::advice`].
///
/// `Display` says what to do and names the option of this library. A program that has another name
/// for the option can show [`action`](Self::action) with its own name instead.
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
    /// `ConvertOptions::shapes` with these extents; `None` is a varying extent.
    DeclareShape(Vec<Option<u32>>),
    /// `ConvertOptions::shapes` with these extents, in a new conversion of all inputs.
    ConvertAgain(Vec<Option<u32>>),
    /// `ConvertOptions::casts` with this type, in a new conversion of the source.
    Cast(DType),
    /// `WriterOptions::discard_tail`.
    DiscardTail,
    /// `ExportOptions::stored_types`.
    StoredTypes,
    /// `ConvertOptions::ignore_statistics`.
    IgnoreStatistics,
}

impl Advice {
    /// Returns the action to take, such as "skip columns that the file does not have". The text is
    /// an imperative that can follow "; " or ", or " in a message.
    pub fn action(&self) -> String {
        match self {
            Self::SkipColumns => "skip columns".to_owned(),
            Self::RenameColumns => "rename columns".to_owned(),
            Self::SkipExtraColumns => "skip columns that the file does not have".to_owned(),
            Self::ReplaceNulls => "store null elements as NaN or zero".to_owned(),
            Self::ReplaceNullsWithZero => "store null elements as zero".to_owned(),
            Self::DeclareShape(extents) => format!("declare the shape [{}]", extents_text(extents)),
            Self::ConvertAgain(extents) => format!(
                "convert all inputs again with the declared shape [{}], because the shapes of a file cannot change",
                extents_text(extents)
            ),
            Self::Cast(dtype) => format!("convert the source with a cast to {dtype}"),
            Self::StoredTypes => "export the stored types".to_owned(),
            Self::IgnoreStatistics => "ignore the null counts in the statistics of the input".to_owned(),
            Self::DiscardTail => "discard these bytes, which loses the data in them".to_owned(),
        }
    }
}

/// Formats extents, for example as `*,80`.
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

/// The error of every fallible function of the crate: what is wrong, where, and what to do next.
///
/// `Display` names the file, column, samples, byte offset and rule, if they are known. An `Error`
/// has the size of a pointer.
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

    /// Creates the error for a bug or a hardware fault. The message must describe the impossible
    /// state that was found.
    #[cold]
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        let message = format!(
            "{message}; this is a bug in tensilo, or a fault of this machine's processor or memory; try again, on \
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

    /// Creates the error for a column whose type this release does not support. The file does not
    /// break a rule.
    pub(crate) fn too_new_dtype(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooNew, message)
    }

    /// Creates the error for a valid file that this release must not append to.
    pub(crate) fn too_new_to_append(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooNew, message)
    }

    #[cfg_attr(feature = "zstd", allow(dead_code, reason = "used only if a codec is not built"))]
    pub(crate) fn not_built(feature: &str, what: &str) -> Self {
        let message = format!("{what} needs the cargo feature \"{feature}\", which this build lacks; enable it");
        Self::new(ErrorKind::NotBuilt, message)
    }

    pub(crate) fn over_limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::OverLimit, message)
    }

    /// Returns the error for a wrong argument, for crates that build on this one. The message
    /// should say what was expected and what was found.
    pub fn bad_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadArgument, message)
    }

    pub(crate) fn no_column(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::UnknownColumn, message)
    }

    /// Returns the error for values that do not have the column's type, for crates that build on
    /// this one. The message should name both types.
    pub fn wrong_type(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::WrongType, message)
    }

    /// Returns the error for an input that cannot be converted, for programs that add an input
    /// format. The message should say what is wrong, and where.
    #[cfg(feature = "import")]
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadInput, message)
    }

    /// Returns the error for work that a progress callback has stopped.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }

    /// Returns the error for a failed call of the operating system, for callers that open files
    /// themselves. `operation` names what failed, such as "opening the file". The kind is
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

    /// Adds the path of the file, unless the error already has one.
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

    /// Adds the advice that the error does not have yet.
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

    /// Returns the name of the column, if the error concerns a column.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// Returns the range of samples, if the error concerns certain samples.
    pub fn samples(&self) -> Option<Range<u64>> {
        self.0.samples.clone()
    }

    /// Returns the offset in the file, in bytes, if it is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns only the message, without path, column, samples, offset, rule and
    /// [advice](Self::advice).
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the options that would make the call succeed. `Display` lists them at the end, with
    /// their names in this library.
    pub fn advice(&self) -> &[Advice] {
        &self.0.advice
    }

    /// Returns the text of this error without the [advice](Self::advice), for programs that phrase
    /// the advice themselves.
    pub fn plain(&self) -> impl fmt::Display {
        Plain(self)
    }
}

/// Returns an error if the result of a progress callback is `Break`.
pub(crate) fn check_cancelled(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}

/// Formats a path for a message. Control characters are escaped, so a file name cannot control the
/// terminal or fake a line of output.
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

/// The source is the underlying error: an [`io::Error`], an `ArrowError` or a `ParquetError`.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
