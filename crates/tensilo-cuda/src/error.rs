//! Errors of GPUs.

use thiserror::Error;

/// What can fail.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The machine has no driver.
    #[error(
        "there is no CUDA driver: libcuda was not found; decode on the CPU, or install a driver of release 580 or later"
    )]
    NoDriver,
    /// The driver has no such GPU.
    #[error("there is no GPU {ordinal}: the driver has {count}")]
    NoDevice {
        /// The number that was asked for, from 0.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// An operation of the driver failed.
    #[error("{operation}: {message}")]
    Driver {
        /// The operation, such as "copying a batch to the GPU".
        operation: &'static str,
        /// What the driver says.
        message: String,
    },
    /// A file, or an argument.
    #[error(transparent)]
    Read(#[from] tensilo::Error),
}

/// A result of GPUs.
pub type Result<T> = std::result::Result<T, CudaError>;
