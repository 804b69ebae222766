//! The error type of the crate.

use std::any::Any;
use std::io;

/// An error of the crate. The address of the object is in the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// An address is not one that this crate reads.
    #[error("{address}: {message}")]
    BadAddress {
        /// The text.
        address: String,
        /// The finding.
        message: String,
    },
    /// A request failed, and was repeated as often as the options allow.
    #[error("{address}: {operation}: {error}")]
    Io {
        /// The object or prefix.
        address: String,
        /// The operation.
        operation: &'static str,
        /// The cause. Its kind says whether the object is missing, forbidden or replaced.
        #[source]
        error: io::Error,
    },
}

impl ObjectError {
    /// Returns the cause without the address, for callers that add it themselves.
    pub fn into_io(self) -> io::Error {
        match self {
            Self::Io { error, .. } => error,
            Self::BadAddress { message, .. } => io::Error::new(io::ErrorKind::InvalidInput, message),
        }
    }
}

/// The result of a function of this crate.
pub(crate) type Result<T> = std::result::Result<T, ObjectError>;

/// Returns an error of a request as one of the system. The kind is
/// [`io::ErrorKind::StaleNetworkFileHandle`] if the object was replaced since it was opened.
pub(crate) fn io_error(error: object_store::Error) -> io::Error {
    use object_store::Error as E;
    let (kind, text) = match &error {
        // the answer of the store adds nothing to these
        E::NotFound { .. } => return io::Error::new(io::ErrorKind::NotFound, "the object does not exist"),
        E::AlreadyExists { .. } => return io::Error::new(io::ErrorKind::AlreadyExists, "the object exists"),
        E::Precondition { .. } => return replaced(),
        E::PermissionDenied { .. } => (io::ErrorKind::PermissionDenied, "the store forbids this to these credentials"),
        E::Unauthenticated { .. } => (io::ErrorKind::PermissionDenied, "the store does not accept the credentials"),
        E::NotSupported { .. } | E::NotImplemented { .. } => {
            (io::ErrorKind::Unsupported, "the store does not support this")
        }
        E::InvalidPath { .. } => (io::ErrorKind::InvalidInput, "a store has no object of this name"),
        _ => (io::ErrorKind::Other, "the request failed"),
    };
    io::Error::new(kind, RequestError { text, error })
}

/// Returns the error of an object that is not the one that was opened.
pub(crate) fn replaced() -> io::Error {
    let text = "the object was replaced since it was opened: open it again";
    io::Error::new(io::ErrorKind::StaleNetworkFileHandle, text)
}

/// The beginning of the text of [`panicked`].
pub(crate) const PANICKED: &str = "a library failed while it prepared or sent the request";

/// Returns the error of a library that panicked.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> io::Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    io::Error::other(format!("{PANICKED} ({})", text.unwrap_or("no message")))
}

/// A request that failed, in words, and the reason that the store or the network gave.
#[derive(Debug, thiserror::Error)]
#[error("{text}: {error}")]
struct RequestError {
    text: &'static str,
    #[source]
    error: object_store::Error,
}
