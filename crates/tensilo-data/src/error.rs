//! The error type of the crate.

use std::io;
use std::path::PathBuf;
use tensilo::ErrorKind;
use tensilo::error::display_path;

/// An error of the crate.
///
/// [`DataError::File`] holds the errors of single files, which the core reports. The other variants
/// concern datasets and loaders, which the core does not know. [`DataError::kind`] sorts all of
/// them by the kinds of the core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// An argument does not fit.
    #[error("{0}")]
    BadArgument(String),
    /// A state is damaged, or of a job that this one cannot continue.
    #[error("{0}")]
    BadState(String),
    /// A manifest is damaged, or a file is not the one that the manifest lists.
    #[error("{}: {message} ({rule})", display_path(path))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The rule of `MANIFEST.md` that is broken, such as `M-2.1`.
        rule: &'static str,
        /// The finding.
        message: String,
    },
    /// Another writer has published the version first. Nothing of this writer is left: open the
    /// dataset again, and repeat what failed.
    #[error(
        "{}: another writer has published version {version} meanwhile; open the dataset again and repeat",
        display_path(path)
    )]
    Conflict {
        /// The folder of the dataset.
        path: PathBuf,
        /// The version.
        version: u64,
    },
    /// The operating system refused.
    #[error("{}: {operation}: {error}", display_path(path))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// A GPU has failed.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Gpu(#[from] tensilo_cuda::CudaError),
    /// A [`DeviceAllocator`](crate::DeviceAllocator) has no memory for a batch.
    #[cfg(feature = "cuda")]
    #[error("no memory for a batch on the GPU: {0}")]
    Memory(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The function of [`LoaderOptions::map`](crate::LoaderOptions::map) has failed.
    #[error("the function that maps batches failed: {0}")]
    Map(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A fault of this crate; please report it.
    #[error("internal error: {0}; please report it")]
    Internal(String),
    /// A tensilo file could not be read or written.
    #[error(transparent)]
    File(#[from] tensilo::Error),
}

impl DataError {
    /// Returns who can do something about the error. A conflict is [`ErrorKind::Busy`]: open the
    /// dataset again, and repeat.
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
            Self::Map(_) => ErrorKind::BadArgument,
            Self::Internal(_) => ErrorKind::Internal,
            Self::File(error) => error.kind(),
        }
    }

    /// Returns whether the error is about what a dataset has: a file is missing, damaged, or not
    /// the one that the manifest lists. Others, such as a missing permission or a store that does
    /// not answer, may be gone the next time.
    pub fn is_permanent(&self) -> bool {
        let source = std::error::Error::source(self).and_then(|source| source.downcast_ref::<io::Error>());
        let is_missing = source.is_some_and(|source| source.kind() == io::ErrorKind::NotFound);
        is_missing || matches!(self.kind(), ErrorKind::Corrupt | ErrorKind::BadArgument)
    }
}

/// The result of a function of this crate.
pub(crate) type Result<T> = std::result::Result<T, DataError>;
