//! Converts errors of the crates to Python exceptions.
//!
//! An error that fits a built-in exception becomes one: `ValueError`, `OSError` with its `errno`,
//! `KeyboardInterrupt`. Other errors become instances of the classes in `tensilo/_errors.py`, with
//! the path, column, samples and offset as attributes. Where the crates suggest an option, the
//! message names the Python argument instead. A note says what to do about damage.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::error::Error as _;
use std::io;
use std::path::Path;
use tensilo::error::Advice;
use tensilo::{Error, ErrorKind};
use tensilo_cuda::CudaError;
use tensilo_data::DataError;

/// The result of a function of the crates.
pub type Result<T> = std::result::Result<T, DataError>;

/// An exception class of `tensilo._errors`.
struct ErrorClass {
    name: &'static str,
    class: PyOnceLock<Py<PyType>>,
}

impl ErrorClass {
    const fn new(name: &'static str) -> Self {
        Self { name, class: PyOnceLock::new() }
    }

    /// Returns an exception with this text and context.
    fn exception(&self, py: Python<'_>, text: String, context: &ErrorContext<'_>) -> PyErr {
        let make = || -> PyResult<PyErr> {
            let exception = self.class.import(py, "tensilo._errors", self.name)?.call1((text,))?;
            exception.setattr("path", context.path.map(Path::to_string_lossy))?;
            exception.setattr("column", context.column)?;
            exception.setattr("samples", context.samples)?;
            exception.setattr("offset", context.offset)?;
            exception.setattr("rule", context.rule)?;
            if let Some(note) = &context.note {
                exception.call_method1("add_note", (note,))?;
            }
            Ok(PyErr::from_value(exception))
        };
        make().unwrap_or_else(|error| error)
    }
}

static TENSILO: ErrorClass = ErrorClass::new("TensiloError");
static CORRUPTION: ErrorClass = ErrorClass::new("CorruptionError");
static UNSUPPORTED: ErrorClass = ErrorClass::new("UnsupportedError");
static LIMIT: ErrorClass = ErrorClass::new("LimitError");
static INPUT: ErrorClass = ErrorClass::new("InputError");
static CONFLICT: ErrorClass = ErrorClass::new("ConflictError");

/// Where an error occurred, if known, and what to do next.
#[derive(Default)]
struct ErrorContext<'a> {
    path: Option<&'a Path>,
    column: Option<&'a str>,
    samples: Option<(u64, u64)>,
    offset: Option<u64>,
    rule: Option<&'a str>,
    note: Option<String>,
}

/// Converts an error to an exception.
pub fn exception(py: Python<'_>, error: &DataError) -> PyErr {
    match error {
        DataError::BadArgument(message) | DataError::BadState(message) => PyValueError::new_err(message.clone()),
        DataError::Corrupt { path, rule, .. } => {
            let note = Some("tensilo.verify(path) lists the damage".to_owned());
            let context = ErrorContext { path: Some(path), rule: Some(rule), note, ..ErrorContext::default() };
            CORRUPTION.exception(py, error.to_string(), &context)
        }
        DataError::Conflict { path, .. } => {
            CONFLICT.exception(py, error.to_string(), &ErrorContext { path: Some(path), ..ErrorContext::default() })
        }
        DataError::Io { path, operation, error } => os_error(error, operation, Some(path)),
        DataError::File(error) => exception_of_file(py, error),
        DataError::Gpu(CudaError::Read(error)) => exception_of_file(py, error),
        DataError::Memory(error) => match error.downcast_ref::<PyErr>() {
            Some(raised) => raised.clone_ref(py), // such as PyTorch's OutOfMemoryError
            None => TENSILO.exception(py, error.to_string(), &ErrorContext::default()),
        },
        other => TENSILO.exception(py, other.to_string(), &ErrorContext::default()),
    }
}

/// Converts an error in one file to an exception.
fn exception_of_file(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Corrupt => &CORRUPTION,
        ErrorKind::TooNew | ErrorKind::TooOld | ErrorKind::NotBuilt => &UNSUPPORTED,
        ErrorKind::OverLimit => &LIMIT,
        ErrorKind::BadInput => &INPUT,
        ErrorKind::BadArgument | ErrorKind::UnknownColumn | ErrorKind::WrongType => {
            return PyValueError::new_err(text(error));
        }
        ErrorKind::Cancelled => return PyKeyboardInterrupt::new_err("cancelled"),
        ErrorKind::Io | ErrorKind::Busy => {
            let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            match source {
                Some(source) => return os_error(source, error.message(), error.path()),
                None => return PyOSError::new_err(text(error)),
            }
        }
        _ => &TENSILO,
    };
    let context = ErrorContext {
        path: error.path(),
        column: error.column(),
        samples: error.samples().map(|samples| (samples.start, samples.end)),
        offset: error.offset(),
        rule: error.rule(),
        note: note(error),
    };
    class.exception(py, text(error), &context)
}

/// Converts an I/O error to an exception of the matching `OSError` subclass.
pub fn os_error(error: &io::Error, operation: &str, path: Option<&Path>) -> PyErr {
    let path = path.map(|path| path.to_string_lossy().into_owned());
    match error.raw_os_error() {
        // Python chooses the subclass by `errno`
        Some(number) => PyOSError::new_err((number, doing_text(error, operation), path)),
        None => {
            let context = path.map_or(String::new(), |path| format!("{path}: "));
            let reason = error.to_string();
            let operation = without_reason(operation, &reason);
            let reason = reason.replace("allow overwriting", "pass overwrite=True");
            io::Error::new(error.kind(), format!("{context}{operation}: {reason}")).into()
        }
    }
}

/// Returns the reason followed by the operation that failed.
fn doing_text(error: &io::Error, operation: &str) -> String {
    let whole = error.to_string();
    // the number is already the first argument of the exception
    let reason = whole.split(" (os error").next().unwrap_or_default();
    format!("{reason}, {}", without_reason(operation, &whole))
}

/// Removes the reason at the end of the operation, because the reason is printed separately.
fn without_reason<'d>(operation: &'d str, reason: &str) -> &'d str {
    operation.strip_suffix(reason).and_then(|operation| operation.strip_suffix(": ")).unwrap_or(operation)
}

/// Returns advice for a damaged file; `None` for other errors.
fn note(error: &Error) -> Option<String> {
    let path = error.path()?.to_string_lossy();
    match (error.kind(), error.rule()) {
        // a wrong magic: most likely not a tensilo file
        (ErrorKind::Corrupt, Some("R-2.2")) => Some(format!(
            "if this is a Parquet or Arrow file, use tensilo.convert; if it is a damaged tensilo file, tensilo.salvage({path:?}, \"intact.tsl\") recovers the intact samples"
        )),
        (ErrorKind::Corrupt, _) => Some(format!(
            "tensilo.verify({path:?}) lists all damage; tensilo.salvage({path:?}, \"intact.tsl\") recovers the intact samples"
        )),
        _ => None,
    }
}

/// Returns the message of an error, with Python arguments in place of the options of the crates.
pub fn text(error: &Error) -> String {
    let advice =
        error.advice().iter().map(|advice| format!("{} ({})", advice.action(), argument(advice, error.column())));
    let advice: Vec<String> = advice.collect();
    let separator = if advice.is_empty() { "" } else { "; " };
    format!("{}{separator}{}", error.plain(), advice.join(", or "))
}

fn argument(advice: &Advice, column: Option<&str>) -> String {
    let name = column.unwrap_or("NAME");
    match advice {
        Advice::SkipColumns => format!("skip=[{name:?}]"),
        Advice::RenameColumns => format!("rename={{{name:?}: \"new\"}}"),
        Advice::SkipExtraColumns => "skip_extra_columns=True".to_owned(),
        Advice::ReplaceNulls => "null_elements=\"nan\" or \"zero\"".to_owned(),
        Advice::ReplaceNullsWithZero => "null_elements=\"zero\"".to_owned(),
        Advice::DeclareShape(extents) | Advice::ConvertAgain(extents) => {
            let extents = extents.iter().map(|extent| extent.map_or("None".to_owned(), |extent| extent.to_string()));
            format!("shapes={{{name:?}: ({},)}}", extents.collect::<Vec<_>>().join(", "))
        }
        Advice::Cast(dtype) => format!("casts={{{name:?}: \"{dtype}\"}}"),
        Advice::IgnoreStatistics => "ignore_statistics=True".to_owned(),
        Advice::DiscardTail => "discard_tail=True".to_owned(),
        other => other.to_string(), // advice of exports, or newer than this package
    }
}

/// Converts results of the crates to results of PyO3.
pub trait OrRaise<T> {
    /// Returns the value, or converts the error to an exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}

impl<T> OrRaise<T> for tensilo::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception_of_file(py, &error))
    }
}
