//! Looks up values by their numbers: the last step of undoing the mapping *dictionary* (chapter
//! 5.14 of the specification).
//!
//! A mapping can have several dictionaries, called tables here. They alternate: consecutive
//! elements belong to consecutive tables, so each column of a row can have its own table. AVX2 and
//! NEON have no instruction that looks up several values at once in tables of this length, so
//! values are looked up one by one. If numbers have one byte and there are at most four tables, the
//! tables are first padded to 256 values. Look-ups then need no branch, and vectors compare the
//! numbers with the lengths of their tables afterwards. AVX-512 looks up values of two bytes in
//! registers.

use super::dispatch::{Implementation, Scalar, implement, implementations};
use super::{Width, Word, copy, for_width};

/// Tables of values, which consecutive elements use in turn.
#[derive(Clone, Copy, Debug)]
pub struct DictionaryTables<'a> {
    /// The width of a value.
    pub width: Width,
    /// Whether numbers have two bytes instead of one.
    pub is_wide: bool,
    /// The values of all tables.
    pub values: &'a [u8],
    /// The cumulative number of values at the end of each table.
    pub ends: &'a [usize],
}

impl<'a> DictionaryTables<'a> {
    /// Returns the size of a number in bytes.
    const fn number_bytes(&self) -> usize {
        if self.is_wide { 2 } else { 1 }
    }

    /// Returns the values of each table.
    fn tables(&self) -> impl Iterator<Item = &'a [u8]> {
        let Self { width, values, ends, .. } = *self;
        ends.iter().scan(0, move |start, &end| {
            let range = std::mem::replace(start, end) * width.bytes()..end * width.bytes();
            Some(values.get(range).unwrap_or(&[]))
        })
    }
}

/// The kernels of one instruction set. There is an element for each number, and at least one table.
pub trait Kernel: Sync {
    /// See [`DictionaryValues::look_up`].
    fn look_up(&self, tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool;
}

/// One implementation of dictionary look-ups.
pub type DictionaryValues = Implementation<dyn Kernel>;

impl DictionaryValues {
    /// Sets `out` to the values of `numbers`. The first number belongs to table `first`, modulo the
    /// number of tables. Each following number belongs to the next table. Returns whether all
    /// numbers have a value in their table. If not, the elements are unspecified.
    ///
    /// Each table must have at least one value. `out` should have an element for each number.
    /// Surplus numbers are ignored; surplus elements keep their value.
    pub fn look_up(&self, tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
        let (v, w) = (tables.number_bytes(), tables.width.bytes());
        let count = (numbers.len() / v).min(out.len() / w);
        let Some(first) = first.checked_rem(tables.ends.len()) else { return count == 0 };
        // in bounds: `count` exceeds neither length
        self.kernel.look_up(tables, first, &numbers[..count * v], &mut out[..count * w])
    }
}

implementations!(Kernel);

// ---- the definition in code

impl Kernel for Scalar {
    fn look_up(&self, tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
        let w = tables.width.bytes();
        let all: Vec<&[u8]> = tables.tables().collect();
        let each = numbers.chunks_exact(tables.number_bytes()).zip(out.chunks_exact_mut(w));
        let mut each = each.zip(all.iter().cycle().skip(first));
        each.all(|((number, element), table)| {
            let index = index(number);
            let value = table.get(index * w..index * w + w);
            value.is_some_and(|value| {
                element.copy_from_slice(value); // equal lengths
                true
            })
        })
    }
}

// ---- tables without branches

implement!([Avx2, Neon] Kernel {
    fn look_up(tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool => { look_up }
});

/// See [`Kernel::look_up`].
#[inline(always)]
fn look_up<T>(_: T, tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
    match tables.is_wide {
        false => for_width!(tables.width, W => of_bytes::<{ W::BYTES }>(tables, first, numbers, out)),
        true => for_width!(tables.width, W => one_by_one::<2, { W::BYTES }>(tables, first, numbers, out)),
    }
}

/// Looks up values of `W` bytes by numbers of one byte.
#[inline(always)]
fn of_bytes<const W: usize>(tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
    match tables.ends.len() {
        1 => by_turns::<1, W>(tables, first, numbers, out),
        2 => by_turns::<2, W>(tables, first, numbers, out),
        3 => by_turns::<3, W>(tables, first, numbers, out),
        4 => by_turns::<4, W>(tables, first, numbers, out),
        _ => one_by_one::<1, W>(tables, first, numbers, out),
    }
}

/// Like [`of_bytes`], for `N` tables. Pads the tables.
#[inline(always)]
fn by_turns<const N: usize, const W: usize>(
    tables: &DictionaryTables<'_>,
    first: usize,
    numbers: &[u8],
    out: &mut [u8],
) -> bool {
    // in a padded table every number has a value, so no look-up needs a check
    let mut full = [[[0; W]; 256]; N];
    let mut counts = [0; N];
    for ((table, full), count) in tables.tables().zip(&mut full).zip(&mut counts) {
        copy(table, full.as_flattened_mut());
        *count = table.len() / W;
    }
    full.rotate_left(first % N);
    counts.rotate_left(first % N);
    let (groups, last) = numbers.as_chunks::<N>();
    let (outs, last_out) = out.as_chunks_mut::<W>().0.as_chunks_mut::<N>();
    for (outs, numbers) in outs.iter_mut().zip(groups) {
        for ((out, &number), table) in outs.iter_mut().zip(numbers).zip(&full) {
            *out = table[usize::from(number)]; // in bounds: a byte is below 256
        }
    }
    for ((out, &number), table) in last_out.iter_mut().zip(last).zip(&full) {
        *out = table[usize::from(number)]; // in bounds: a byte is below 256
    }
    are_in_tables(groups, last, &counts)
}

/// Returns whether each number is below the number of values in its table. A group has one number
/// per table.
#[inline(always)]
fn are_in_tables<const N: usize>(groups: &[[u8; N]], last: &[u8], counts: &[usize; N]) -> bool {
    let mut max_number = [[0; N]; 32]; // 32 groups fill whole vectors
    let update = |max_number: &mut [u8], numbers: &[u8]| {
        max_number.iter_mut().zip(numbers).for_each(|(max_number, &number)| *max_number = number.max(*max_number));
    };
    let (blocks, rest) = groups.as_chunks::<32>();
    blocks.iter().for_each(|block| update(max_number.as_flattened_mut(), block.as_flattened()));
    update(max_number.as_flattened_mut(), rest.as_flattened());
    update(max_number.as_flattened_mut(), last);
    max_number.iter().all(|group| group.iter().zip(counts).all(|(&number, &count)| usize::from(number) < count))
}

/// Looks up values of `W` bytes by numbers of `V` bytes, table after table.
#[inline(always)]
fn one_by_one<const V: usize, const W: usize>(
    tables: &DictionaryTables<'_>,
    first: usize,
    numbers: &[u8],
    out: &mut [u8],
) -> bool {
    let (numbers, out) = (numbers.as_chunks::<V>().0, out.as_chunks_mut::<W>().0);
    let count = tables.ends.len();
    let mut is_valid = true;
    for (table_index, table) in tables.tables().enumerate() {
        let table = table.as_chunks::<W>().0;
        let mut look_up = |out: &mut [u8; W], number: &[u8; V]| match table.get(index(number)) {
            Some(value) => *out = *value,
            None => is_valid = false,
        };
        if count == 1 {
            out.iter_mut().zip(numbers).for_each(|(out, number)| look_up(out, number));
        } else {
            // the first element of this table
            let start = (table_index + count - first % count) % count;
            // the two iterators are stepped separately, because stepping their `zip` would visit
            // all elements in between
            let outs = out.iter_mut().skip(start).step_by(count);
            outs.zip(numbers.iter().skip(start).step_by(count)).for_each(|(out, number)| look_up(out, number));
        }
    }
    is_valid
}

/// Returns a little-endian number.
#[inline(always)]
fn index(number: &[u8]) -> usize {
    number.iter().rev().fold(0, |index, &byte| index << 8 | usize::from(byte))
}

// ---- AVX-512

/// AVX-512 with VBMI. A table of 256 bytes fits in four registers, so looking up a value of two
/// bytes takes two register look-ups.
///
/// If there are at most four tables, each vector of numbers is looked up in every table, and a mask
/// selects the elements that belong to the table. The masks rotate from vector to vector, because
/// tables alternate. Numbers are first permuted, so that interleaving lower and upper bytes
/// restores their order.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{DictionaryTables, Kernel};
    use crate::kernel::Width;
    use crate::kernel::dispatch::{Avx512, implement};
    use crate::kernel::vectors::x86_64::{load_64, load_up_to_64, look_up_256, store_up_to_64};

    implement!([Avx512] Kernel {
        fn look_up(tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool => { look_up }
    });

    #[inline(always)]
    fn look_up(token: Avx512, tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
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

    /// Looks up values of two bytes in `N` tables by numbers of one byte.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    fn pairs<const N: usize>(tables: &DictionaryTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
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
                beyond |= _mm512_mask_cmpgt_epu8_mask(mask, numbers, table.max_number);
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
        /// The maximum number, repeated in each byte.
        max_number: __m512i,
    }

    impl PairTable {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
        fn new(values: &[u8]) -> Self {
            let (values, _) = values.as_chunks();
            let [mut lower, mut upper] = [[[0; 64]; 4]; 2];
            let both = lower.as_flattened_mut().iter_mut().zip(upper.as_flattened_mut());
            both.zip(values).for_each(|((lower, upper), value)| [*lower, *upper] = *value);
            let max_number = values.len().clamp(1, 256) - 1;
            Self {
                lower: lower.each_ref().map(|quarter| load_64(quarter)),
                upper: upper.each_ref().map(|quarter| load_64(quarter)),
                max_number: _mm512_set1_epi8(max_number as i8), // same bits: below 256
            }
        }
    }

    /// The order of quadwords with which unpacking two vectors yields the elements in order.
    /// Unpacking interleaves the lower halves of each lane, then the upper halves.
    const QUADWORDS: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

    /// Returns a mask for each table: the positions of its numbers in a vector with the order
    /// [`QUADWORDS`]. The first number belongs to table `first`.
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
}
