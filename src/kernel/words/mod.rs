//! Elements and the integers that are coded in their place (chapter 5.6 of the specification), and their bytes.
//!
//! `scalar` is the definition in code. Every other implementation gives the same bytes, faster.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod body;
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod neon;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod residuals;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod undo;

use super::Width;
use std::fmt;
use std::sync::LazyLock;

/// Predicts each element of a part from those before it in its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The 2-D Lorenzo predictor (Ibarria et al., 2003): `left + above - above_left`; else from
    /// above alone.
    pub lorenzo: bool,
    /// The elements are floats: their bits are put in the order of the numbers first.
    pub float: bool,
    /// Elements of a sample; 0 counts as 1.
    pub restart: u32,
    /// Elements of a row; 0 counts as 1.
    pub stride: u32,
}

/// What an implementation does; all slices have the lengths that [`Words`] promises.
trait Kernel: Sync {
    fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]);
    fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]);
    fn rotate_right(&self, width: Width, data: &mut [u8]);
    fn residuals(&self, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]);
    fn undo(&self, prediction: &Prediction, width: Width, data: &mut [u8]);
}

/// One implementation. That a value exists proves that this CPU can run it.
pub struct Words {
    name: &'static str,
    kernel: &'static dyn Kernel,
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Words").field(&self.name).finish()
    }
}

impl Words {
    /// Name of the instruction set: `scalar`, `avx2`, `avx512` or `neon`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Joins elements from their bytes: `top` has the most significant byte of each, `low[j]` byte `j`. With `rotate` each is then
    /// rotated right by one bit.
    ///
    /// `low` has `width - 1` slices as long as `top`, and `out` is `width` times as long; where a caller breaks this, nothing is
    /// written (debug builds assert).
    pub fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) {
        let fits = low.len() + 1 == width.bytes()
            && low.iter().all(|low| low.len() == top.len())
            && out.len() == top.len() * width.bytes();
        debug_assert!(fits, "slices of other lengths");
        if fits {
            self.kernel.join(width, rotate, low, top, out);
        }
    }

    /// The inverse of [`join`](Self::join), under the same conditions: with `rotate` each element is first rotated left by one bit.
    pub fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) {
        let fits = low.len() + 1 == width.bytes()
            && low.iter().all(|low| low.len() == top.len())
            && elements.len() == top.len() * width.bytes();
        debug_assert!(fits, "slices of other lengths");
        if fits {
            self.kernel.split(width, rotate, elements, low, top);
        }
    }

    /// Rotates each whole element of `data` right by one bit.
    pub fn rotate_right(&self, width: Width, data: &mut [u8]) {
        self.kernel.rotate_right(width, data);
    }

    /// The coded integers of the elements in `elements`, to `out`, which is as long (else only the whole elements that fit in both
    /// are done; debug builds assert).
    pub fn residuals(&self, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) {
        let (elements, out) = super::whole_elements(width, elements, out);
        self.kernel.residuals(prediction, width, elements, out);
    }

    /// The elements of the coded integers in `data`, in their place: the inverse of [`residuals`](Self::residuals). `data` begins where
    /// prediction starts anew.
    pub fn undo(&self, prediction: &Prediction, width: Width, data: &mut [u8]) {
        let whole = data.len() - data.len() % width.bytes();
        if let Some(data) = data.get_mut(..whole) {
            self.kernel.undo(prediction, width, data);
        }
    }
}

/// All implementations that this CPU can run, slowest (`scalar`) first.
pub fn available() -> &'static [Words] {
    static AVAILABLE: LazyLock<Vec<Words>> = LazyLock::new(|| {
        #[allow(unused_mut, reason = "not every target adds to the list")]
        let mut list = vec![scalar::WORDS];
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        list.extend([avx2::detect(), avx512::detect()].into_iter().flatten());
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        list.extend(neon::detect());
        list
    });
    &AVAILABLE
}

/// The fastest implementation that this CPU can run; chosen once for each process.
pub fn best() -> &'static Words {
    available().last().unwrap_or(&scalar::WORDS)
}
