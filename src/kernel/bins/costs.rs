//! The costs of groups of bins in each class. [The parent module](super) explains groups and
//! classes. Encoders use them to choose the class of each group.
//!
//! The cost of a group in a class is a sum over its bins: the number of occurrences of a bin, times
//! the cost of the bin in the class. Costs are integers stored as floats, because processors
//! multiply floats faster than integers. Sums below 2^24 are exact in any order, so all
//! implementations agree. A vector holds the costs of four bins in all classes.

use super::{BINS, CLASSES};
use crate::kernel::dispatch::{Implementation, Scalar, implement, implementations};

/// How often each bin occurs in a group.
pub type GroupCounts = [u16; BINS];

/// The cost of each bin in each class. Costs are integers, so sums below 2^24 are exact in any
/// order.
pub type BinCosts = [[f32; CLASSES]; BINS];

/// The costs of a group in each class.
pub type ClassSums = [f32; CLASSES];

/// The kernels of one instruction set. Both slices have the same length.
pub trait Kernel: Sync {
    /// See [`GroupCosts::add`].
    fn add(&self, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]);
}

/// One implementation of the kernels for costs.
pub type GroupCosts = Implementation<dyn Kernel>;

impl GroupCosts {
    /// Adds the costs of each group to its entry in `sums`.
    ///
    /// If the lengths differ, the surplus groups or sums are ignored.
    pub fn add(&self, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
        let count = groups.len().min(sums.len());
        // in bounds: `count` exceeds neither length
        self.kernel.add(costs, &groups[..count], &mut sums[..count]);
    }
}

implementations!(Kernel);

// ---- the definition in code

impl Kernel for Scalar {
    fn add(&self, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
        for (group, sums) in groups.iter().zip(sums) {
            for (costs, &count) in costs.iter().zip(group) {
                let count = f32::from(count);
                sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost * count);
            }
        }
    }
}

// ---- vectors

implement!([Avx2, Neon] Kernel {
    fn add(costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) => { add }
});

/// The number of bins whose costs are added together.
const QUAD: usize = 4;

/// See [`Kernel::add`]. A vector has the costs of four bins.
#[inline(always)]
fn add<T>(_: T, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
    for (group, sums) in groups.iter().zip(sums) {
        let counts = group.map(f32::from);
        let mut all = [0.0; CLASSES * QUAD];
        for (costs, counts) in costs.as_chunks::<QUAD>().0.iter().zip(counts.as_chunks::<QUAD>().0) {
            let costs = costs.as_flattened();
            for (i, (all, cost)) in all.iter_mut().zip(costs).enumerate() {
                *all += cost * counts[i / CLASSES]; // in bounds
            }
        }
        add_quad(&all, sums);
    }
}

/// Adds the costs of four bins to the sums of all classes.
#[inline(always)]
fn add_quad(quad: &[f32; CLASSES * QUAD], sums: &mut ClassSums) {
    for costs in quad.as_chunks::<CLASSES>().0 {
        sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
    }
}

/// Written by hand, because compiler-generated code spends more time on shuffles than on additions.
/// This code takes a sixth of the time.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{BinCosts, ClassSums, GroupCounts, Kernel, add_quad};
    use crate::kernel::dispatch::{implement, intrinsics};
    use crate::kernel::vectors::x86_64::{load_floats, load_words, store_floats};
    use std::arch::x86_64::*;

    implement!([Avx512] Kernel {
        fn add(costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) => { add }
    });

    intrinsics! {
        [Avx512]
        fn add(_: Avx512, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
            let quads: &[[[f32; 16]; 4]] = costs.as_flattened().as_chunks().0.as_chunks().0;
            let first = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
            for (group, sums) in groups.iter().zip(sums) {
                let mut both = [_mm512_setzero_ps(); 2]; // two sums, so that additions overlap
                for (counts, quads) in group.as_chunks::<16>().0.iter().zip(quads) {
                    let counts = load_words(counts);
                    for (quad, costs) in (0..).zip(quads) {
                        let spread = _mm512_add_epi32(first, _mm512_set1_epi32(4 * quad));
                        let counts = _mm512_permutexvar_ps(spread, counts);
                        let sum = &mut both[quad as usize % 2]; // in bounds
                        *sum = _mm512_fmadd_ps(counts, load_floats(costs), *sum);
                    }
                }
                let mut all = [0.0; 16];
                store_floats(&mut all, _mm512_add_ps(both[0], both[1]));
                add_quad(&all, sums);
            }
        }
    }
}
