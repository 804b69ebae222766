//! Byte planes (chapters 5.8 and 5.10 of the specification), and the rotation of elements (chapter
//! 5.6).
//!
//! Byte plane `j` has byte `j` of each element, and byte 0 is the least significant. The plane of
//! the most significant bytes is the *top* plane, and the others are the *low* planes. A float that
//! was rotated left by one bit has its exponent in the top plane.

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

/// The kernels of one instruction set. All slices have the lengths that [`BytePlanes`] states.
pub trait Kernel: Sync {
    /// See [`BytePlanes::join`].
    fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]);
    /// See [`BytePlanes::split`].
    fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]);
    /// See [`BytePlanes::rotate_right`].
    fn rotate_right(&self, width: Width, data: &mut [u8]);
}

/// One implementation of byte planes.
pub type BytePlanes = Implementation<dyn Kernel>;

impl BytePlanes {
    /// Joins elements from their byte planes. If `rotate` is set, rotates each right by one bit
    /// then.
    ///
    /// `low` has `width - 1` planes as long as `top`, and `out` is `width` times as long. If a
    /// caller breaks this, nothing is written (debug builds assert).
    pub fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) {
        let fits = low.len() + 1 == width.bytes()
            && low.iter().all(|low| low.len() == top.len())
            && out.len() == top.len() * width.bytes();
        debug_assert!(fits, "buffers differ in elements");
        if fits {
            self.kernel.join(width, rotate, low, top, out);
        }
    }

    /// Splits elements into their byte planes: the inverse of [`join`](Self::join), under the same
    /// conditions. If `rotate` is set, rotates each element left by one bit first.
    pub fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) {
        let fits = low.len() + 1 == width.bytes()
            && low.iter().all(|low| low.len() == top.len())
            && elements.len() == top.len() * width.bytes();
        debug_assert!(fits, "buffers differ in elements");
        if fits {
            self.kernel.split(width, rotate, elements, low, top);
        }
    }

    /// Rotates each whole element of `data` right by one bit.
    pub fn rotate_right(&self, width: Width, data: &mut [u8]) {
        self.kernel.rotate_right(width, data);
    }
}

implementations!(Kernel);
