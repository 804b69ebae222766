//! The only unsafe code in the crate: calls to the CUDA driver, and kernel launches.

mod cuda;
mod driver;
#[cfg(feature = "emulator")]
mod emulated;
#[cfg(feature = "emulator")]
pub(crate) mod emulator;
pub(crate) mod gpu;
pub(crate) mod resident;
