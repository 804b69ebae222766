//! The only unsafe code of the crate: calls of the driver and of the kernels.

mod cuda;
mod driver;
#[cfg(feature = "emulator")]
mod emulated;
#[cfg(feature = "emulator")]
pub(crate) mod emulator;
pub(crate) mod gpu;
pub(crate) mod resident;
