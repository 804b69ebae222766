//! Loads and stores of vectors: the only code of the kernels that uses pointers.
//!
//! Buffers need no alignment. Each function enables the features that it needs, so that only code
//! compiled for the instruction set can call it without `unsafe`.

#[cfg(target_arch = "aarch64")]
pub(super) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86_64;

/// Whether a buffer of `len` bytes has 16 bytes at the start of each of `count` rows, which begin
/// `stride` bytes apart. If it has, no offset of a row overflows.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn has_rows(len: usize, stride: usize, count: usize) -> bool {
    let last = stride.checked_mul(count - 1);
    last.and_then(|last| last.checked_add(16)).is_some_and(|end| end <= len)
}
