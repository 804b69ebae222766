//! Announces bytes to the caches of the processor.

/// Bytes of a line of the cache.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks for bytes that will be read soon, so that they are in a cache then. Costs about a cycle for
/// each 64 bytes. Does nothing where the language has no such instruction.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch of any address has no effect that a program
        // can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
