//! Checks that c-blosc2 runs its SIMD kernels. A build without them works as well, only slower, and
//! would make the comparison unfair.
//!
//! Constants of the library state which kernels are compiled in. To see which one runs, the
//! bit-shuffle that c-blosc2 picks on this machine is timed against its scalar and its AVX2 kernel,
//! on a block in the second-level cache.

use anyhow::{Result, ensure};
use std::fmt;

/// The results of the check.
pub struct Report {
    /// Whether the library has kernels for AVX2.
    pub has_avx2: bool,
    /// Whether the library has kernels for AVX-512.
    pub has_avx512: bool,
    /// GB/s of the bit-shuffle that c-blosc2 uses.
    pub chosen: f64,
    /// GB/s of its scalar kernel.
    pub scalar: f64,
    /// GB/s of its AVX2 kernel.
    pub avx2: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chosen, scalar, avx2, .. } = self;
        let word = |compiled| if compiled { "yes" } else { "no" };
        write!(
            f,
            "bit-shuffle of 64 KiB: {chosen:.1} GB/s as used, {scalar:.1} scalar, {avx2:.1} AVX2; compiled in: "
        )?;
        write!(f, "AVX2 {}, AVX-512 {}", word(self.has_avx2), word(self.has_avx512))
    }
}

/// Returns an error if this machine has AVX2, and c-blosc2 does not use AVX2 or better.
#[cfg(target_arch = "x86_64")]
pub fn check() -> Result<Option<Report>> {
    if !is_x86_feature_detected!("avx2") {
        return Ok(None);
    }
    let report = x86_64::measure()?;
    ensure!(report.has_avx2, "c-blosc2 was compiled without AVX2");
    ensure!(report.chosen > 1.5 * report.scalar, "c-blosc2 does not use its SIMD kernels: {report}");
    Ok(Some(report))
}

/// Checks nothing: on other architectures, c-blosc2's bit-shuffle is scalar.
#[cfg(not(target_arch = "x86_64"))]
pub fn check() -> Result<Option<Report>> {
    Ok(None)
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::Report;
    use crate::measure::{Stats, seconds_per_call};
    use anyhow::{Result, ensure};
    use std::ffi::c_void;
    use std::hint::black_box;
    use std::time::Duration;

    /// Elements of two bytes in a block of 64 KiB.
    const ELEMENTS: usize = 32 << 10;
    const BLOCK_BYTES: usize = 2 * ELEMENTS;

    type Kernel = unsafe extern "C" fn(*const c_void, *mut c_void, usize, usize) -> i64;

    unsafe extern "C" {
        static is_bshuf_AVX: bool;
        static is_bshuf_AVX512: bool;
        /// Runs the kernel that the library picks for this machine.
        fn bitshuffle(type_bytes: i32, block_bytes: i32, from: *const u8, to: *mut u8) -> i32;
        fn bshuf_trans_bit_elem_scal(from: *const c_void, to: *mut c_void, elements: usize, type_bytes: usize) -> i64;
        fn bshuf_trans_bit_elem_AVX(from: *const c_void, to: *mut c_void, elements: usize, type_bytes: usize) -> i64;
    }

    /// Calls `bitshuffle` with the signature of a kernel.
    ///
    /// # Safety
    ///
    /// Both blocks must have `elements` elements of `type_bytes` bytes.
    unsafe extern "C" fn chosen(from: *const c_void, to: *mut c_void, elements: usize, type_bytes: usize) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { bitshuffle(type_bytes as i32, (type_bytes * elements) as i32, from.cast(), to.cast()) }.into()
    }

    /// Measures the kernels. The machine must have AVX2.
    pub fn measure() -> Result<Report> {
        // SAFETY: constants of the library, which nothing writes.
        let (has_avx2, has_avx512) = unsafe { (is_bshuf_AVX, is_bshuf_AVX512) };
        let mut rates = [chosen as Kernel, bshuf_trans_bit_elem_scal, bshuf_trans_bit_elem_AVX].into_iter();
        let mut next = || rates.next().map_or(Ok(0.0), gigabytes_per_second);
        let (chosen, scalar) = (next()?, next()?);
        let avx2 = if has_avx2 { next()? } else { 0.0 };
        Ok(Report { has_avx2, has_avx512, chosen, scalar, avx2 })
    }

    fn gigabytes_per_second(kernel: Kernel) -> Result<f64> {
        let from: Vec<u8> = (0..BLOCK_BYTES).map(|i| (i * 7 % 251) as u8).collect();
        let mut to = vec![0; BLOCK_BYTES];
        let mut rates = Vec::new();
        for _ in 0..9 {
            let seconds = seconds_per_call(Duration::from_millis(2), || {
                // SAFETY: both blocks have ELEMENTS elements of two bytes; the machine has AVX2.
                let returned = unsafe { kernel(black_box(&from).as_ptr().cast(), to.as_mut_ptr().cast(), ELEMENTS, 2) };
                ensure!(returned > 0, "bit-shuffle of c-blosc2: error {returned}");
                black_box(&mut to);
                Ok(())
            })?;
            rates.push(BLOCK_BYTES as f64 / seconds / 1e9);
        }
        Ok(Stats::of(&rates).median)
    }
}
