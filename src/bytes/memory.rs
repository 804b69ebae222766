//! Fallible allocation, for every size that comes from a file or a caller. If memory runs out, the
//! result is an error instead of an abort, so a hostile file cannot end the process.

use crate::{Error, Result};

/// Reserves capacity for `count` more elements.
#[inline]
pub(crate) fn reserve<T>(out: &mut Vec<T>, count: usize) -> Result<()> {
    out.try_reserve(count).map_err(|_| too_many(count.saturating_mul(size_of::<T>())))
}

#[cold]
fn too_many(bytes: usize) -> Error {
    Error::over_limit(format!("cannot allocate {bytes} bytes of memory; request less at a time"))
}

/// Returns an empty vector with capacity for `count` elements.
pub(crate) fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    reserve(&mut out, count).map(|()| out)
}

/// Appends a copy of elements.
pub(crate) fn extend<T: Copy>(out: &mut Vec<T>, from: &[T]) -> Result<()> {
    reserve(out, from.len())?;
    out.extend_from_slice(from);
    Ok(())
}

/// Returns a copy of elements.
pub(crate) fn copied<T: Copy>(from: &[T]) -> Result<Vec<T>> {
    let mut out = Vec::new();
    extend(&mut out, from).map(|()| out)
}

/// Changes the length of `out`, filling new elements with `value`.
pub(crate) fn resize<T: Clone>(out: &mut Vec<T>, length: usize, value: T) -> Result<()> {
    reserve(out, length.saturating_sub(out.len()))?;
    out.resize(length, value);
    Ok(())
}
