//! Errors in the use of a GPU.

use thiserror::Error;

/// An error of a GPU, of its driver, or of a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The machine has no CUDA driver.
    #[error("no CUDA driver: libcuda was not found; install driver release 580 or later, or decode on the CPU")]
    NoDriver,
    /// The requested GPU does not exist.
    #[error("there is no GPU {ordinal}: GPUs are counted from 0, and the driver reports {count}")]
    NoDevice {
        /// The number of the requested GPU, counted from 0.
        ordinal: usize,
        /// The number of GPUs.
        count: usize,
    },
    /// An operation of the driver failed.
    #[error("{operation}: {message}")]
    Driver {
        /// The operation, such as "copying a batch to the GPU".
        operation: &'static str,
        /// The error that the driver returned.
        message: String,
    },
    /// A file could not be read, or an argument is invalid.
    #[error(transparent)]
    Read(#[from] tensilo::Error),
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, CudaError>;
