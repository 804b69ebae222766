//! The error type of the crate.
//!
//! Errors in single files come from the `tensilo` crate and pass through unchanged. The other
//! variants concern datasets and loaders, which only this crate has.

use std::io;
use std::path::PathBuf;
use tensilo::ErrorKind;
use tensilo::error::display_path;

/// An error of this crate.
///
/// [`DataError::File`] holds an error in a single file, as the `tensilo` crate reports it. The
/// other variants concern datasets and loaders. [`DataError::kind`] maps each error to an
/// [`ErrorKind`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// An argument is invalid.
    #[error("{0}")]
    BadArgument(String),
    /// A saved state is damaged, or belongs to a job that this loader cannot continue.
    #[error("{0}")]
    BadState(String),
    /// A manifest is damaged, or a file is not the one that the manifest lists.
    #[error("{}: {message} ({rule})", display_path(path))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The broken rule of `MANIFEST.md`, such as `M-2.1`.
        rule: &'static str,
        /// What was found.
        message: String,
    },
    /// Another writer published a version first. Open the dataset again, and repeat the change.
    #[error(
        "{}: another writer has published version {version}; open the dataset again and repeat the change",
        display_path(path)
    )]
    Conflict {
        /// The folder of the dataset.
        path: PathBuf,
        /// The version.
        version: u64,
    },
    /// The operating system reported an error.
    #[error("{}: {operation}: {error}", display_path(path))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// A GPU failed.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Gpu(#[from] tensilo_cuda::CudaError),
    /// A [`DeviceAllocator`](crate::DeviceAllocator) has no memory for a batch.
    #[cfg(feature = "cuda")]
    #[error("no memory for a batch on the GPU: {0}")]
    Memory(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The function of [`LoaderOptions::transform`](crate::LoaderOptions::transform) failed.
    #[error("the function that maps batches failed: {0}")]
    Transform(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A bug in this crate; please report this.
    #[error("internal error: {0}; please report this")]
    Internal(String),
    /// A tensilo file could not be read or written.
    #[error(transparent)]
    File(#[from] tensilo::Error),
}

impl DataError {
    /// Returns the kind of the error, which tells whether the file, the caller or the environment
    /// is at fault. A conflict is [`ErrorKind::Busy`]: open the dataset again, and repeat the
    /// change.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadArgument(_) | Self::BadState(_) => ErrorKind::BadArgument,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Conflict { .. } => ErrorKind::Busy,
            Self::Io { .. } => ErrorKind::Io,
            #[cfg(feature = "cuda")]
            Self::Gpu(tensilo_cuda::CudaError::Read(error)) => error.kind(),
            #[cfg(feature = "cuda")]
            Self::Gpu(_) => ErrorKind::Io,
            #[cfg(feature = "cuda")]
            Self::Memory(_) => ErrorKind::OverLimit,
            Self::Transform(_) => ErrorKind::BadArgument,
            Self::Internal(_) => ErrorKind::Internal,
            Self::File(error) => error.kind(),
        }
    }

    /// Returns whether the error is about the contents of a dataset: a file is missing, damaged, or
    /// not the one that the manifest lists. Other errors, such as a missing permission or a store
    /// that does not answer, may not occur again if the operation is repeated.
    pub fn is_permanent(&self) -> bool {
        let source = std::error::Error::source(self).and_then(|source| source.downcast_ref::<io::Error>());
        let is_missing = source.is_some_and(|source| source.kind() == io::ErrorKind::NotFound);
        is_missing || matches!(self.kind(), ErrorKind::Corrupt | ErrorKind::BadArgument)
    }
}

/// The result of a function of this crate.
pub(crate) type Result<T> = std::result::Result<T, DataError>;
