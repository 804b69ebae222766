//! The status that each call returns, and the error with its details.
//!
//! A status tells whether the file, the caller or the environment is at fault. A [`tensilo_error`]
//! adds the message, the location (file, column, samples and offset), and advice. Its strings live
//! as long as the error. Errors of `tensilo` and `tensilo-data` are converted only here.

use super::values::{Output, Text, fill};
use std::error::Error as _;
use std::ffi::c_char;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::ptr;
use tensilo::{Error, ErrorKind};
use tensilo_data::DataError;

/// The result of a call: `TENSILO_OK`, or the kind of the error, which tells whether the file, the
/// caller or the environment is at fault. Later releases may add values.
pub type tensilo_status = i32;

/// The call succeeded.
pub const TENSILO_OK: tensilo_status = 0;
/// The bytes break a rule of the format: the file is damaged, incomplete or not a tensilo file.
pub const TENSILO_ERROR_CORRUPT: tensilo_status = 1;
/// The file uses a feature that this release does not support. Use a newer release.
pub const TENSILO_ERROR_TOO_NEW: tensilo_status = 2;
/// The file or the call needs a cargo feature that this build of the library lacks.
pub const TENSILO_ERROR_NOT_BUILT: tensilo_status = 3;
/// The call would exceed a limit of the format, a limit that the caller set, or the memory of this
/// machine.
pub const TENSILO_ERROR_OVER_LIMIT: tensilo_status = 4;
/// An argument is not valid, for example a sample that is out of range, a wrong length, or NULL.
pub const TENSILO_ERROR_BAD_ARGUMENT: tensilo_status = 5;
/// An input has values that cannot be converted.
pub const TENSILO_ERROR_BAD_INPUT: tensilo_status = 6;
/// A callback cancelled the work.
pub const TENSILO_ERROR_CANCELLED: tensilo_status = 7;
/// A bug in tensilo, or a fault of the processor or memory of this machine. Please report this.
pub const TENSILO_ERROR_INTERNAL: tensilo_status = 8;
/// The operating system reported an error; see `os_code` in `tensilo_error_info`.
pub const TENSILO_ERROR_IO: tensilo_status = 9;
/// The state of a loader is damaged, or belongs to a job that this loader cannot continue.
pub const TENSILO_ERROR_BAD_STATE: tensilo_status = 10;
/// Another writer published the same version of the dataset first.
pub const TENSILO_ERROR_CONFLICT: tensilo_status = 11;
/// The file was written before edition 1 of the format. Convert its source again.
pub const TENSILO_ERROR_TOO_OLD: tensilo_status = 12;
/// The file or the batch has no column of this name.
pub const TENSILO_ERROR_UNKNOWN_COLUMN: tensilo_status = 13;
/// The caller passed or requested values of a type that differs from the type of the column.
pub const TENSILO_ERROR_WRONG_TYPE: tensilo_status = 14;
/// Another writer holds the lock of the file. Try again when it is done.
pub const TENSILO_ERROR_BUSY: tensilo_status = 15;

/// The result of work whose error is returned to C.
pub(crate) type Result<T> = std::result::Result<T, Box<tensilo_error>>;

/// An error: what is wrong, where, and what to do next.
///
/// Threads: any number may read an error at the same time. Free it with `tensilo_error_free`.
pub struct tensilo_error {
    status: tensilo_status,
    os_code: i32,
    text: Text,
    message: Text,
    rule: Option<Text>,
    path: Option<Text>,
    column: Option<Text>,
    samples: Option<Range<u64>>,
    offset: Option<u64>,
    advice: Vec<Text>,
}

/// The fields of an error. Strings live as long as the error. A string that is not known is NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_error_info {
    /// `sizeof(tensilo_error_info)`, set by the caller.
    pub struct_size: usize,
    /// The kind of the error.
    pub status: tensilo_status,
    /// The error code of the operating system (`errno`), or 0.
    pub os_code: i32,
    /// All fields in one human-readable string.
    pub text: *const c_char,
    /// The message only, without file, column, samples, offset and advice.
    pub message: *const c_char,
    /// The rule of the specification that the file breaks, such as `R-2.6`.
    pub rule: *const c_char,
    /// The path of the file.
    pub path: *const c_char,
    /// The name of the column.
    pub column: *const c_char,
    /// Whether `samples_start` and `samples_end` are known.
    pub has_samples: bool,
    /// Whether `offset` is known.
    pub has_offset: bool,
    /// The first affected sample.
    pub samples_start: u64,
    /// One more than the last affected sample.
    pub samples_end: u64,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The number of advice strings; see `tensilo_error_advice`.
    pub advice_count: usize,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_error_info {}

impl tensilo_error {
    fn new(status: tensilo_status, message: &str) -> Box<Self> {
        Box::new(Self {
            status,
            os_code: 0,
            text: Text::new(message),
            message: Text::new(message),
            rule: None,
            path: None,
            column: None,
            samples: None,
            offset: None,
            advice: Vec::new(),
        })
    }

    /// Returns the error for an argument that is not valid.
    #[cold]
    pub(crate) fn bad_argument(message: impl AsRef<str>) -> Box<Self> {
        Self::new(TENSILO_ERROR_BAD_ARGUMENT, message.as_ref())
    }

    /// Returns the error for a call that needs a cargo feature that this build lacks.
    #[cold]
    #[cfg_attr(
        all(feature = "arrow", feature = "mmap", feature = "object", feature = "io-uring"),
        allow(dead_code, reason = "used only by builds that lack a feature")
    )]
    pub(crate) fn not_built(feature: &str, what: &str) -> Box<Self> {
        let message = format!("{what} needs the cargo feature \"{feature}\", which this build lacks; enable it");
        Self::new(TENSILO_ERROR_NOT_BUILT, &message)
    }

    /// Returns the error for a request that does not fit in memory.
    #[cold]
    pub(crate) fn out_of_memory(what: &str) -> Box<Self> {
        Self::new(TENSILO_ERROR_OVER_LIMIT, &format!("{what} do not fit in memory: request less at a time"))
    }

    /// Returns the error for a bug in the library.
    #[cold]
    pub(crate) fn internal(what: &str) -> Box<Self> {
        Self::new(TENSILO_ERROR_INTERNAL, &format!("internal error: {what}; please report this"))
    }

    /// Returns the kind.
    pub(super) fn status(&self) -> tensilo_status {
        self.status
    }

    fn with_path(mut self: Box<Self>, path: &Path) -> Box<Self> {
        self.path = Some(Text::from_path(path));
        self
    }

    /// Adds advice to the error and to its full message.
    fn with_advice(mut self: Box<Self>, text: &str, advice: Vec<String>) -> Box<Self> {
        let separator = if advice.is_empty() { "" } else { "; " };
        self.text = Text::new(format!("{text}{separator}{}", advice.join(", or ")));
        self.advice = advice.into_iter().map(Text::new).collect();
        self
    }
}

fn status_of(kind: ErrorKind) -> tensilo_status {
    match kind {
        ErrorKind::Corrupt => TENSILO_ERROR_CORRUPT,
        ErrorKind::TooNew => TENSILO_ERROR_TOO_NEW,
        ErrorKind::TooOld => TENSILO_ERROR_TOO_OLD,
        ErrorKind::NotBuilt => TENSILO_ERROR_NOT_BUILT,
        ErrorKind::OverLimit => TENSILO_ERROR_OVER_LIMIT,
        ErrorKind::BadArgument => TENSILO_ERROR_BAD_ARGUMENT,
        ErrorKind::UnknownColumn => TENSILO_ERROR_UNKNOWN_COLUMN,
        ErrorKind::WrongType => TENSILO_ERROR_WRONG_TYPE,
        ErrorKind::Busy => TENSILO_ERROR_BUSY,
        ErrorKind::BadInput => TENSILO_ERROR_BAD_INPUT,
        ErrorKind::Cancelled => TENSILO_ERROR_CANCELLED,
        ErrorKind::Io => TENSILO_ERROR_IO,
        _ => TENSILO_ERROR_INTERNAL, // a kind newer than this crate
    }
}

/// Returns the advice as text, because the options of the Rust library have no names in C.
fn advice_of(error: &Error) -> Vec<String> {
    let mut advice: Vec<String> = error.advice().iter().map(|advice| advice.action()).collect();
    if error.kind() == ErrorKind::Corrupt && error.path().is_some() {
        advice.push("list all damage with tensilo_verify, and recover the intact chunks with: tensilo salvage".into());
    }
    advice
}

impl From<Error> for Box<tensilo_error> {
    fn from(error: Error) -> Self {
        let mut made = tensilo_error::new(status_of(error.kind()), error.message());
        let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        made.os_code = io.and_then(io::Error::raw_os_error).unwrap_or(0);
        made.rule = error.rule().map(Text::new);
        made.path = error.path().map(Text::from_path);
        made.column = error.column().map(Text::new);
        made.samples = error.samples();
        made.offset = error.offset();
        made.with_advice(&error.plain().to_string(), advice_of(&error))
    }
}

impl From<DataError> for Box<tensilo_error> {
    fn from(error: DataError) -> Self {
        let text = error.to_string();
        let (status, path) = match &error {
            DataError::BadArgument(_) => (TENSILO_ERROR_BAD_ARGUMENT, None),
            DataError::BadState(_) => (TENSILO_ERROR_BAD_STATE, None),
            DataError::Corrupt { path, .. } => (TENSILO_ERROR_CORRUPT, Some(path)),
            DataError::Conflict { path, .. } => (TENSILO_ERROR_CONFLICT, Some(path)),
            DataError::Io { path, .. } => (TENSILO_ERROR_IO, Some(path)),
            _ => (TENSILO_ERROR_INTERNAL, None),
        };
        let message = match &error {
            DataError::Corrupt { message, .. } => message.clone(),
            DataError::Io { operation, error, .. } => format!("{operation}: {error}"),
            _ => text.clone(),
        };
        let mut made = tensilo_error::new(status, &message);
        made = path.into_iter().fold(made, |made, path| made.with_path(path));
        match error {
            DataError::File(error) => return error.into(),
            DataError::Corrupt { rule, .. } => made.rule = Some(Text::new(rule)),
            DataError::Io { error, .. } => made.os_code = error.raw_os_error().unwrap_or(0),
            _ => {}
        }
        made.with_advice(&text, Vec::new())
    }
}

/// Returns the kind of an error; `TENSILO_OK` for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_error_status(error: *const tensilo_error) -> tensilo_status {
    // SAFETY: NULL or an error, by the rules in `tensilo.h`.
    unsafe { error.as_ref() }.map_or(TENSILO_OK, |error| error.status)
}

/// Returns all details of an error in one human-readable string, or an empty string for NULL. The
/// string lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_error_text(error: *const tensilo_error) -> *const c_char {
    // SAFETY: NULL or an error, by the rules in `tensilo.h`.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.text.pointer())
}

/// Returns advice string number `index` of an error, counted from 0. It describes an action that
/// makes the call succeed, or that helps in another way. Returns NULL after the last string. The
/// string lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_error_advice(error: *const tensilo_error, index: usize) -> *const c_char {
    // SAFETY: NULL or an error, by the rules in `tensilo.h`.
    let advice = unsafe { error.as_ref() }.and_then(|error| error.advice.get(index));
    Text::pointer_of(advice)
}

/// Fills `info` with the fields of an error. Fails only if an argument is NULL or `struct_size` of
/// `info` is not set. In this case, it returns a status but no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_error_get_info(
    error: *const tensilo_error,
    info: *mut tensilo_error_info,
) -> tensilo_status {
    // SAFETY: NULL or an error, by the rules in `tensilo.h`.
    let Some(found) = (unsafe { error.as_ref() }) else { return TENSILO_ERROR_BAD_ARGUMENT };
    let samples = found.samples.clone().unwrap_or(0..0);
    let value = tensilo_error_info {
        struct_size: 0,
        status: found.status,
        os_code: found.os_code,
        text: found.text.pointer(),
        message: found.message.pointer(),
        rule: Text::pointer_of(found.rule.as_ref()),
        path: Text::pointer_of(found.path.as_ref()),
        column: Text::pointer_of(found.column.as_ref()),
        has_samples: found.samples.is_some(),
        has_offset: found.offset.is_some(),
        samples_start: samples.start,
        samples_end: samples.end,
        offset: found.offset.unwrap_or(0),
        advice_count: found.advice.len(),
    };
    // SAFETY: NULL or a struct whose first member is its size, by the rules in `tensilo.h`.
    if unsafe { fill(info, value) }.is_ok() { TENSILO_OK } else { TENSILO_ERROR_BAD_ARGUMENT }
}

/// Frees an error and sets the pointer to NULL. Does nothing if `error` or `*error` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_error_free(error: *mut *mut tensilo_error) {
    // SAFETY: NULL, or a slot that holds NULL or an error of this library, by the rules in
    // `tensilo.h`.
    if let Some(slot) = unsafe { error.as_mut() } {
        let error = std::mem::replace(slot, ptr::null_mut());
        if !error.is_null() {
            // SAFETY: created by `call` and taken out of its slot, so it is freed once.
            drop(unsafe { Box::from_raw(error) });
        }
    }
}
