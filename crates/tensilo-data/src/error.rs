//! The error type of the crate.

/// An error of the crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// An argument does not fit.
    #[error("{0}")]
    BadArgument(String),
    /// A state is damaged, or of a job that this one cannot continue.
    #[error("{0}")]
    BadState(String),
}

/// The result of a function of this crate.
pub(crate) type Result<T> = std::result::Result<T, DataError>;
