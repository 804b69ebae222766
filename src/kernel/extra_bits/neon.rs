//! NEON: the lengths of a group are four vectors. Tables stand in for `pdep` and `pext`, four bits
//! at a time.

use std::arch::aarch64::*;

use super::generic::{Planes, deposit, extract, lengths};
use super::{GROUP, Kernel};
use crate::kernel::Width;
use crate::kernel::bytes::first_bytes;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::aarch64::{load_64, mask_of};

implement!(Neon: Kernel {
    fn lengths(width: Width, elements: &[u8], out: &mut [u8]) => { lengths }
    fn deposit(width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize => { match width {
        Width::W1 => deposit::<_, 8>,
        Width::W2 => deposit::<_, 16>,
        Width::W4 => deposit::<_, 32>,
        Width::W8 => deposit::<_, 64>,
    } }
    fn extract(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize => { match width {
        Width::W1 => extract::<_, 8>,
        Width::W2 => extract::<_, 16>,
        Width::W4 => extract::<_, 32>,
        Width::W8 => extract::<_, 64>,
    } }
});

impl Planes for Neon {
    type Lengths = [uint8x16_t; 4];

    #[inline(always)]
    fn load(self, lengths: &[u8]) -> [uint8x16_t; 4] {
        let mut padded = [0; GROUP];
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_64(first_bytes(lengths, &mut padded)) }
    }

    #[inline(always)]
    fn longer(self, lengths: &mut [uint8x16_t; 4]) -> u64 {
        let [a, b, c, d] = *lengths;
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let one = vdupq_n_u8(1);
            *lengths = [vqsubq_u8(a, one), vqsubq_u8(b, one), vqsubq_u8(c, one), vqsubq_u8(d, one)];
            mask_of([vtstq_u8(a, a), vtstq_u8(b, b), vtstq_u8(c, c), vtstq_u8(d, d)])
        }
    }

    #[inline(always)]
    fn deposit(self, mut bits: u64, mask: u64) -> u64 {
        let mut deposited = 0;
        for position in (0..64).step_by(4) {
            let four = (mask >> position & 15) as usize; // exact
            // in bounds: four bits each
            deposited |= u64::from(DEPOSIT[four][(bits & 15) as usize]) << position;
            bits >>= four.count_ones();
        }
        deposited
    }

    #[inline(always)]
    fn extract(self, bits: u64, mask: u64) -> u64 {
        let (mut extracted, mut count) = (0, 0);
        for position in (0..64).step_by(4) {
            let four = (mask >> position & 15) as usize; // exact
            // in bounds: four bits each; the shift is below 64
            extracted |= u64::from(EXTRACT[four][(bits >> position & 15) as usize]) << count;
            count += four.count_ones();
        }
        extracted
    }
}

/// [`Planes::deposit`] of four bits, by mask and bits.
static DEPOSIT: [[u8; 16]; 16] = by_mask_and_bits(true);

/// [`Planes::extract`] of four bits, by mask and bits.
static EXTRACT: [[u8; 16]; 16] = by_mask_and_bits(false);

const fn by_mask_and_bits(deposit: bool) -> [[u8; 16]; 16] {
    let mut table = [[0; 16]; 16];
    let mut entry = 0;
    while entry < 256 {
        let (mask, bits) = (entry / 16, entry % 16);
        let (mut position, mut rank) = (0, 0);
        while position < 4 {
            if mask >> position & 1 == 1 {
                let (from, to) = if deposit { (rank, position) } else { (position, rank) };
                table[mask][bits] |= (bits as u8 >> from & 1) << to; // exact: four bits
                rank += 1;
            }
            position += 1;
        }
        entry += 1;
    }
    table
}
