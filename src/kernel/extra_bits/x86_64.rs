//! BMI2, and a deposit of AVX-512: a group is one vector for each byte of its elements.
//!
//! The planes of a group lie one after the other, so that a permutation and a product of matrices
//! turn them into elements. The bit-shuffle, whose planes are those of a block, would take as many
//! steps more as it loads lanes. To extract, both take the same time, so that AVX-512 has no
//! version of its own.

use super::{BLOCK, Bits, Kernel, Lengths, deposit_planes, extract, lengths};
use crate::kernel::Width;
use crate::kernel::bitshuffle::avx512::elements_of_planes;
use crate::kernel::dispatch::{Avx2, Avx512, implement, intrinsics};
use crate::kernel::elements::Word;
use crate::kernel::vectors::GROUP;
use crate::kernel::vectors::x86_64::store_up_to_64;
use std::arch::x86_64::{_pdep_u64, _pext_u64};

implement!([Avx512] Kernel {
    fn lengths(width: Width, elements: &[u8], out: &mut [u8]) => { lengths }
    fn deposit(width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize => { for W in width => deposit::<{ W::BYTES }> }
    fn extract(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize => { for W in width => extract::<_, { 8 * W::BYTES }> }
});

intrinsics! {
    [Avx2]
    impl Bits for Avx2 {
        fn deposit_bits(v: Avx2, bits: u64, mask: u64) -> u64 {
            _pdep_u64(bits, mask)
        }

        fn extract_bits(v: Avx2, bits: u64, mask: u64) -> u64 {
            _pext_u64(bits, mask)
        }
    }
}

intrinsics! {
    [Avx512]
    impl Bits for Avx512 {
        fn deposit_bits(v: Avx512, bits: u64, mask: u64) -> u64 {
            _pdep_u64(bits, mask)
        }

        fn extract_bits(v: Avx512, bits: u64, mask: u64) -> u64 {
            _pext_u64(bits, mask)
        }
    }
}

intrinsics! {
    [Avx512]
    /// [`Kernel::deposit`] of elements of `W` bytes: of a group, the planes become elements without
    /// a step through planes of a block.
    fn deposit<const W: usize>(
        v: Avx512,
        _width: Width,
        lengths: &[u8],
        bits: &[u8],
        mut at: usize,
        out: &mut [u8],
    ) -> usize {
        for (lengths, out) in lengths.chunks(BLOCK * GROUP).zip(out.chunks_mut(BLOCK * GROUP * W)) {
            let mut block = [[[0; 64]; W]; BLOCK];
            for (lengths, planes) in lengths.chunks(GROUP).zip(&mut block) {
                let (words, _) = planes.as_flattened_mut().as_chunks_mut();
                let (pairs, _) = words.as_chunks_mut();
                let pairs = pairs.iter_mut().map(|[even, odd]| [even, odd]);
                at = deposit_planes(v, pairs, bits, at, Lengths::new(v, lengths));
            }
            for (planes, out) in block.iter().zip(out.chunks_mut(GROUP * W)) {
                for (vector, out) in elements_of_planes(planes).into_iter().zip(out.chunks_mut(64)) {
                    store_up_to_64(out, vector);
                }
            }
        }
        at
    }
}
