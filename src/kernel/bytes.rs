//! Copies between slices of different lengths, and blocks of a fixed length.
//!
//! Slices that a kernel is given need not end with a whole vector, and no vector may be loaded
//! beyond their end. These functions pad what is short, and never panic: of a block beyond the end
//! of a slice, zeros are read and nothing is written.

/// Bytes of a [`block`]: one vector of AVX-512, two of AVX2, four of NEON.
pub(super) const BLOCK: usize = 64;

/// Returns the block of `bytes` that begins at `offset`. Returns zeros if `bytes` ends before its
/// end.
#[inline(always)]
pub(super) fn block(bytes: &[u8], offset: usize) -> &[u8; BLOCK] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; BLOCK])
}

/// Sets the block of `bytes` that begins at `offset`. Does nothing if `bytes` ends before its end.
#[inline(always)]
pub(super) fn set_block(bytes: &mut [u8], offset: usize, block: &[u8; BLOCK]) {
    if let Some(to) = bytes.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
        *to = *block;
    }
}

/// Copies as many bytes as both slices have.
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Returns the first `N` bytes of slices that are shorter, with zeros after them.
#[cold]
pub(super) fn pad<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    copy(bytes, &mut padded);
    padded
}

/// Copies as many bytes as both slices have, at most 63.
///
/// All copies are of constant lengths. A call to `memcpy` would make the caller save its vectors.
#[inline(always)]
pub(super) fn copy_short(from: &[u8], to: &mut [u8]) {
    let len = from.len().min(to.len());
    let (Some(from), Some(to)) = (from.get(..len), to.get_mut(..len)) else { return };
    let done = copy_ends::<32>(from, to)
        || copy_ends::<16>(from, to)
        || copy_ends::<8>(from, to)
        || copy_ends::<4>(from, to)
        || copy_ends::<2>(from, to)
        || copy_ends::<1>(from, to);
    debug_assert!(done || len == 0, "bytes were left out");
}

/// Copies the first `N` bytes and the last `N` bytes. Returns `false` if there are fewer than `N`.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
    true
}
