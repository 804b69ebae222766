//! AVX2.

use std::arch::x86_64::*;

use super::body::implement;
use super::scalar::Word;
use super::undo::{Isa, copy_short};
use super::{Prediction, Width, Words};

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<Words> {
    is_x86_feature_detected!("avx2").then_some(Words { name: "avx2", kernel: &Avx2(()) })
}

/// Only [`detect`] hands a value out, and only where the CPU has AVX2.
#[derive(Clone, Copy)]
struct Avx2(());

implement!(Avx2, "avx2");

impl Isa for Avx2 {
    type Vector = __m256i;
    const BYTES: usize = 32;

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: there is a value of `Avx2`, `self`, only where the CPU has AVX2.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> __m256i {
        let mut copy = [0; 32];
        let whole = bytes.first_chunk().unwrap_or_else(|| {
            copy_short(bytes, &mut copy);
            &copy
        });
        // SAFETY: the array is good for 32 bytes; the load needs no alignment.
        unsafe { _mm256_loadu_si256(whole.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, vector: __m256i, bytes: &mut [u8]) {
        let mut copy = [0; 32];
        let whole = bytes.first_chunk_mut();
        let short = whole.is_none();
        let place = whole.unwrap_or(&mut copy).as_mut_ptr();
        // SAFETY: the array is good for 32 bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(place.cast(), vector) }
        if short {
            copy_short(&copy, bytes);
        }
    }

    #[inline(always)]
    fn plus<W: Word>(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: there is a value of `Avx2`, `self`, only where the CPU has AVX2.
        unsafe {
            match W::BYTES {
                1 => _mm256_add_epi8(a, b),
                2 => _mm256_add_epi16(a, b),
                4 => _mm256_add_epi32(a, b),
                _ => _mm256_add_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    fn rotate_right<W: Word>(self, x: __m256i) -> __m256i {
        // SAFETY: there is a value of `Avx2`, `self`, only where the CPU has AVX2.
        unsafe {
            let (half, lowest) = match W::BYTES {
                1 => {
                    let others = _mm256_set1_epi8(i8::MAX); // no shift of bytes: the bits of the byte beside are taken out
                    (
                        _mm256_and_si256(_mm256_srli_epi16::<1>(x), others),
                        _mm256_andnot_si256(others, _mm256_slli_epi16::<7>(x)),
                    )
                }
                2 => (_mm256_srli_epi16::<1>(x), _mm256_slli_epi16::<15>(x)),
                4 => (_mm256_srli_epi32::<1>(x), _mm256_slli_epi32::<31>(x)),
                _ => (_mm256_srli_epi64::<1>(x), _mm256_slli_epi64::<63>(x)),
            };
            _mm256_or_si256(half, lowest)
        }
    }

    #[inline(always)]
    fn order<W: Word>(self, x: __m256i) -> __m256i {
        let zero = self.zero();
        // SAFETY: there is a value of `Avx2`, `self`, only where the CPU has AVX2.
        unsafe {
            let (sign, others) = match W::BYTES {
                1 => (_mm256_cmpgt_epi8(zero, x), _mm256_set1_epi8(i8::MAX)),
                2 => (_mm256_srai_epi16::<15>(x), _mm256_set1_epi16(i16::MAX)),
                4 => (_mm256_srai_epi32::<31>(x), _mm256_set1_epi32(i32::MAX)),
                _ => (_mm256_cmpgt_epi64(zero, x), _mm256_set1_epi64x(i64::MAX)),
            };
            _mm256_xor_si256(x, _mm256_and_si256(sign, others))
        }
    }

    #[inline(always)]
    fn sums<W: Word>(self, mut sums: __m256i) -> __m256i {
        if W::BYTES <= 1 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<1>(W::BYTES) }));
        }
        if W::BYTES <= 2 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<2>(W::BYTES) }));
        }
        if W::BYTES <= 4 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<4>(W::BYTES) }));
        }
        sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<8>(W::BYTES) }));
        let lasts = self.spread(sums, const { &spread::<16>(W::BYTES) });
        // SAFETY: there is a value of `Avx2`, `self`, only where the CPU has AVX2.
        self.plus::<W>(sums, unsafe { _mm256_permute2x128_si256::<0x08>(lasts, lasts) }) // zero, and that of the lower lane
    }

    #[inline(always)]
    fn last<W: Word>(self, vector: __m256i) -> __m256i {
        // SAFETY: there is a value of `Avx2`, `self`, only where the CPU has AVX2.
        let upper = unsafe { _mm256_permute4x64_epi64::<0b11_11_11_11>(vector) };
        self.spread(upper, const { &spread::<16>(W::BYTES) })
    }
}

impl Avx2 {
    /// The bytes of each lane of `vector` in `order`, and 0 where that has its top bit set.
    #[inline(always)]
    fn spread(self, vector: __m256i, order: &[u8; 32]) -> __m256i {
        // SAFETY: there is a value of `Avx2`, `self`, only where the CPU has AVX2.
        unsafe { _mm256_shuffle_epi8(vector, self.load(order)) }
    }
}

/// Order for the second of each two units of `UNIT` bytes: the last element of the first, everywhere. For units of 16 bytes: the
/// last element of the lane, everywhere.
const fn spread<const UNIT: usize>(width: usize) -> [u8; 32] {
    let mut order = [0x80; 32];
    let mut k = 0;
    while k < 32 {
        let lane = k % 16;
        if UNIT == 16 {
            order[k] = (16 - width + k % width) as u8;
        } else if lane / UNIT % 2 == 1 && UNIT >= width {
            order[k] = (lane / UNIT * UNIT - width + k % width) as u8;
        }
        k += 1;
    }
    order
}
