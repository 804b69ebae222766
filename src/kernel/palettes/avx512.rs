//! AVX-512 with VBMI: a table of 256 bytes is four registers, so that values of two bytes are two
//! look-ups in registers.
//!
//! For up to four tables, each vector of numbers is looked up in every table, and a mask keeps what
//! is of that table. The masks rotate from vector to vector, because tables take turns. Numbers are
//! first brought into the order in which lower and upper bytes are then interleaved.

use std::arch::x86_64::*;

use super::{Kernel, PaletteTables};
use crate::kernel::Width;
use crate::kernel::dispatch::{Avx512, implement};
use crate::kernel::vectors::x86_64::{load_64, load_up_to_64, look_up_256, store_up_to_64};

implement!([Avx512] Kernel {
    fn look_up(tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool => { look_up }
});

#[inline(always)]
fn look_up(token: Avx512, tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
    // SAFETY: the token proves that this CPU has AVX-512 with VBMI, and BMI2.
    unsafe {
        match (tables.is_wide, tables.width, tables.ends.len()) {
            (false, Width::W2, 1) => pairs::<1>(tables, first, numbers, out),
            (false, Width::W2, 2) => pairs::<2>(tables, first, numbers, out),
            (false, Width::W2, 3) => pairs::<3>(tables, first, numbers, out),
            (false, Width::W2, 4) => pairs::<4>(tables, first, numbers, out),
            _ => super::look_up(token, tables, first, numbers, out),
        }
    }
}

/// Looks up values of two bytes in `N` tables, for numbers of one byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
fn pairs<const N: usize>(tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
    let mut pair_tables = [PairTable::new(&[]); N];
    tables.tables().zip(&mut pair_tables).for_each(|(values, table)| *table = PairTable::new(values));
    let mut masks = masks::<N>(first);
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); // `QUADWORDS`
    let mut beyond = 0;
    for (numbers, out) in numbers.chunks(64).zip(out.chunks_mut(128)) {
        let numbers = _mm512_permutexvar_epi64(order, load_up_to_64(numbers));
        let [mut lower, mut upper] = [_mm512_setzero_si512(); 2];
        for (table, mask) in pair_tables.iter().zip(masks) {
            lower = _mm512_mask_mov_epi8(lower, mask, look_up_256(&table.lower, numbers));
            upper = _mm512_mask_mov_epi8(upper, mask, look_up_256(&table.upper, numbers));
            beyond |= _mm512_mask_cmpgt_epu8_mask(mask, numbers, table.greatest);
        }
        masks.rotate_right(64 % N); // the tables of the next 64 numbers
        let (first, second) = out.split_at_mut(out.len().min(64)); // in bounds
        store_up_to_64(first, _mm512_unpacklo_epi8(lower, upper));
        store_up_to_64(second, _mm512_unpackhi_epi8(lower, upper));
    }
    beyond == 0
}

/// A table of values of two bytes.
#[derive(Clone, Copy)]
struct PairTable {
    lower: [__m512i; 4],
    upper: [__m512i; 4],
    /// The greatest number, everywhere.
    greatest: __m512i,
}

impl PairTable {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    fn new(values: &[u8]) -> Self {
        let (values, _) = values.as_chunks();
        let [mut lower, mut upper] = [[[0; 64]; 4]; 2];
        let both = lower.as_flattened_mut().iter_mut().zip(upper.as_flattened_mut());
        both.zip(values).for_each(|((lower, upper), value)| [*lower, *upper] = *value);
        let greatest = values.len().clamp(1, 256) - 1;
        Self {
            lower: lower.each_ref().map(|quarter| load_64(quarter)),
            upper: upper.each_ref().map(|quarter| load_64(quarter)),
            greatest: _mm512_set1_epi8(greatest as i8), // the same bits: below 256
        }
    }
}

/// The order in which quadwords of two vectors are interleaved to elements in order: the lower half
/// of each lane, and then the upper.
const QUADWORDS: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// Returns, for each table, which numbers of a vector in that order are of it. The first number is
/// of table `first`.
fn masks<const N: usize>(first: usize) -> [u64; N] {
    let mut masks = [0; N];
    for (k, quadword) in QUADWORDS.into_iter().enumerate() {
        for byte in 0..8 {
            // in bounds: the remainder is less than `N`
            masks[(first % N + 8 * quadword + byte) % N] |= 1 << (8 * k + byte);
        }
    }
    masks
}
