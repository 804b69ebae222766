//! Errors of the formats.

use tensilo::{Error, ErrorKind};

/// Adds the name of an array to an error about what is in it.
pub(crate) fn of_array(name: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::BadInput => Error::bad_input(format!("array {name:?}: {}", error.message())),
        _ => error,
    }
}

/// Returns the error about a file that cannot be read.
pub(crate) fn unreadable(error: std::io::Error) -> Error {
    Error::io("reading the file", error)
}
