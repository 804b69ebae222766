//! The error type of the crate, and the conversion of client errors to [`io::Error`].
//!
//! Callers use the kind of an error to decide what to do, for example if an object is missing or
//! was replaced. The text is for people.

use std::any::Any;
use std::io;

/// An error of the crate. Its text contains the address of the object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// An address that this crate cannot use.
    #[error("{address}: {message}")]
    BadAddress {
        /// The text that was given as an address.
        address: String,
        /// What is wrong with it.
        message: String,
    },
    /// A request failed, after as many retries as the options allow.
    #[error("{address}: {operation}: {error}")]
    Io {
        /// The object or prefix.
        address: String,
        /// The operation that failed.
        operation: &'static str,
        /// The cause. Its kind says whether the object is missing, forbidden or replaced.
        #[source]
        error: io::Error,
    },
}

impl ObjectError {
    /// Returns the cause without the address, for callers that add the address themselves.
    pub fn into_io(self) -> io::Error {
        match self {
            Self::Io { error, .. } => error,
            Self::BadAddress { message, .. } => io::Error::new(io::ErrorKind::InvalidInput, message),
        }
    }
}

/// The result of a function of this crate.
pub(crate) type Result<T> = std::result::Result<T, ObjectError>;

/// Converts the error of a request. The kind is [`io::ErrorKind::StaleNetworkFileHandle`] if the
/// object was replaced after it was opened.
pub(crate) fn io_error(error: object_store::Error) -> io::Error {
    use object_store::Error as E;
    let (kind, text) = match &error {
        // the store's response adds nothing to these
        E::NotFound { .. } => return io::Error::new(io::ErrorKind::NotFound, "the object does not exist"),
        E::AlreadyExists { .. } => return io::Error::new(io::ErrorKind::AlreadyExists, "the object already exists"),
        E::Precondition { .. } => return replaced(),
        E::PermissionDenied { .. } => (io::ErrorKind::PermissionDenied, "the credentials do not allow this operation"),
        E::Unauthenticated { .. } => (io::ErrorKind::PermissionDenied, "the store rejects the credentials"),
        E::NotSupported { .. } | E::NotImplemented { .. } => {
            (io::ErrorKind::Unsupported, "the store does not support this operation")
        }
        E::InvalidPath { .. } => (io::ErrorKind::InvalidInput, "the object name is not valid"),
        _ => (io::ErrorKind::Other, "the request failed"),
    };
    io::Error::new(kind, RequestError { text, error })
}

/// Returns the error for an object that was replaced.
pub(crate) fn replaced() -> io::Error {
    let text = "the object was replaced after it was opened: open it again";
    io::Error::new(io::ErrorKind::StaleNetworkFileHandle, text)
}

/// The start of the text of [`panicked`].
pub(crate) const PANICKED: &str = "a library panicked while preparing or sending the request";

/// Returns the error for a panic in a library.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> io::Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    io::Error::other(format!("{PANICKED} ({})", text.unwrap_or("no message")))
}

/// The error of a failed request: a summary, and the reason that the store or the network gave.
#[derive(Debug, thiserror::Error)]
#[error("{text}: {error}")]
struct RequestError {
    text: &'static str,
    #[source]
    error: object_store::Error,
}
