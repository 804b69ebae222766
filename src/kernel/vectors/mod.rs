//! Loads and stores of vectors: the only code of the kernels that uses pointers.
//!
//! Buffers need no alignment. Each function enables the features that it needs, so that only code
//! compiled for the instruction set can call it without `unsafe`.

#[cfg(target_arch = "aarch64")]
pub(super) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86_64;
