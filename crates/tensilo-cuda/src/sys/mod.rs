//! The only unsafe code of the crate: calls of the kernels.

#[cfg(feature = "emulator")]
pub(crate) mod emulator;
