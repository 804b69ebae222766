//! AVX-512: a vector has the costs of four bins in all classes.

use super::{BinCosts, ClassSums, GroupCounts, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx512;
use std::arch::x86_64::*;

implement!(Avx512: Kernel {
    fn add(costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) => { add }
});

/// Adds the costs of groups.
#[inline(always)]
fn add(_: Avx512, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
    let quads: &[[[f32; 16]; 4]] = costs.as_flattened().as_chunks().0.as_chunks().0;
    // SAFETY: the token proves that this CPU has AVX-512. Each load and store is of an array that
    // is as long as the vector.
    unsafe {
        let first = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        for (group, sums) in groups.iter().zip(sums) {
            let [mut even, mut odd] = [_mm512_setzero_ps(); 2];
            for (counts, [a, b, c, d]) in group.as_chunks::<16>().0.iter().zip(quads) {
                let counts = _mm512_cvtepu16_epi32(_mm256_loadu_si256(counts.as_ptr().cast()));
                let counts = _mm512_cvtepi32_ps(counts);
                let spread = |quad| _mm512_permutexvar_ps(_mm512_add_epi32(first, _mm512_set1_epi32(4 * quad)), counts);
                even = _mm512_fmadd_ps(spread(0), _mm512_loadu_ps(a.as_ptr()), even);
                odd = _mm512_fmadd_ps(spread(1), _mm512_loadu_ps(b.as_ptr()), odd);
                even = _mm512_fmadd_ps(spread(2), _mm512_loadu_ps(c.as_ptr()), even);
                odd = _mm512_fmadd_ps(spread(3), _mm512_loadu_ps(d.as_ptr()), odd);
            }
            let all = _mm512_add_ps(even, odd);
            let halves = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
            let quad = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
            _mm_storeu_ps(sums.as_mut_ptr(), _mm_add_ps(_mm_loadu_ps(sums.as_ptr()), quad));
        }
    }
}
