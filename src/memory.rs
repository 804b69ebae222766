//! Memory of which a file or a caller says how much is needed: where it cannot be had, that is an error and not the end of the process.

use crate::{Error, Result};

/// Room for `count` more.
pub(crate) fn reserve<T>(out: &mut Vec<T>, count: usize) -> Result<()> {
    out.try_reserve(count).map_err(|_| {
        let bytes = count.saturating_mul(size_of::<T>());
        Error::over_limit(format!("{bytes} bytes of memory are needed and cannot be had; ask for less at a time"))
    })
}

/// An empty vector with room for `count`.
pub(crate) fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    reserve(&mut out, count).map(|()| out)
}

/// Changes the length of `out`; what is new has this value.
pub(crate) fn resize<T: Clone>(out: &mut Vec<T>, length: usize, value: T) -> Result<()> {
    reserve(out, length.saturating_sub(out.len()))?;
    out.resize(length, value);
    Ok(())
}
