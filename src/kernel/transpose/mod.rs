//! From columns to rows (chapter 5.15 of the specification).
//!
//! A tile of some rows is stored column by column. It becomes the same elements row by row.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::Width;
use super::implementation::{Implementation, implementations};

/// The kernels of one instruction set. All slices have the lengths that [`Transposes`] states.
pub trait Kernel: Sync {
    /// See [`Transposes::to_rows`].
    fn to_rows(&self, width: Width, rows: usize, columns: &[u8], out: &mut [u8]);
}

/// One implementation of transposes.
pub type Transposes = Implementation<dyn Kernel>;

impl Transposes {
    /// Sets `out` to the elements of `columns`, row by row.
    ///
    /// Both buffers are equally long and have some whole columns of `rows` elements, at least one
    /// element. If a caller breaks this, nothing is written (debug builds assert).
    pub fn to_rows(&self, width: Width, rows: usize, columns: &[u8], out: &mut [u8]) {
        // no remainder of a positive length: `rows` is not 0, and its bytes are at most the length
        let column = rows.saturating_mul(width.bytes());
        let fits = columns.len() == out.len() && column > 0 && columns.len().is_multiple_of(column);
        debug_assert!(fits, "buffers differ in length or have no whole columns");
        if fits && !columns.is_empty() {
            self.kernel.to_rows(width, rows, columns, out);
        }
    }
}

implementations!(Kernel);
