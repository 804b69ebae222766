//! Look-ups element by element: no instruction set but AVX-512 has a faster one.

use super::PaletteTables;
use crate::kernel::Width;
use crate::kernel::bytes::copy;

/// See [`Kernel::look_up`](super::Kernel::look_up).
#[inline(always)]
pub(super) fn look_up<T>(_: T, tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
    match (tables.is_wide, tables.width) {
        (false, Width::W1) => of_bytes::<1>(tables, first, numbers, out),
        (false, Width::W2) => of_bytes::<2>(tables, first, numbers, out),
        (false, Width::W4) => of_bytes::<4>(tables, first, numbers, out),
        (false, Width::W8) => of_bytes::<8>(tables, first, numbers, out),
        (true, Width::W1) => one_by_one::<2, 1>(tables, first, numbers, out),
        (true, Width::W2) => one_by_one::<2, 2>(tables, first, numbers, out),
        (true, Width::W4) => one_by_one::<2, 4>(tables, first, numbers, out),
        (true, Width::W8) => one_by_one::<2, 8>(tables, first, numbers, out),
    }
}

/// Looks up values of `W` bytes, for numbers of one byte.
#[inline(always)]
fn of_bytes<const W: usize>(tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool {
    match tables.ends.len() {
        1 => by_turns::<1, W>(tables, first, numbers, out),
        2 => by_turns::<2, W>(tables, first, numbers, out),
        3 => by_turns::<3, W>(tables, first, numbers, out),
        4 => by_turns::<4, W>(tables, first, numbers, out),
        _ => one_by_one::<1, W>(tables, first, numbers, out),
    }
}

/// Does so in `N` tables, one element of each after the other.
#[inline(always)]
fn by_turns<const N: usize, const W: usize>(
    tables: &PaletteTables<'_>,
    first: usize,
    numbers: &[u8],
    out: &mut [u8],
) -> bool {
    // a table for any number, so that no look-up is checked
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
            *out = table[usize::from(number)]; // in bounds: one byte
        }
    }
    for ((out, &number), table) in last_out.iter_mut().zip(last).zip(&full) {
        *out = table[usize::from(number)]; // in bounds: one byte
    }
    are_in_tables(groups, last, &counts)
}

/// Returns whether numbers, in groups of one for each table, are less than the values of their
/// table.
#[inline(always)]
fn are_in_tables<const N: usize>(groups: &[[u8; N]], last: &[u8], counts: &[usize; N]) -> bool {
    let mut greatest = [[0; N]; 32]; // whole vectors
    let keep = |greatest: &mut [u8], numbers: &[u8]| {
        greatest.iter_mut().zip(numbers).for_each(|(greatest, &number)| *greatest = number.max(*greatest));
    };
    let (blocks, rest) = groups.as_chunks::<32>();
    blocks.iter().for_each(|block| keep(greatest.as_flattened_mut(), block.as_flattened()));
    keep(greatest.as_flattened_mut(), rest.as_flattened());
    keep(greatest.as_flattened_mut(), last);
    greatest.iter().all(|group| group.iter().zip(counts).all(|(&number, &count)| usize::from(number) < count))
}

/// Looks up values of `W` bytes, for numbers of `V` bytes, in one table after the other.
#[inline(always)]
fn one_by_one<const V: usize, const W: usize>(
    tables: &PaletteTables<'_>,
    first: usize,
    numbers: &[u8],
    out: &mut [u8],
) -> bool {
    let (numbers, out) = (numbers.as_chunks::<V>().0, out.as_chunks_mut::<W>().0);
    let count = tables.ends.len();
    let mut is_right = true;
    for (place, table) in tables.tables().enumerate() {
        let table = table.as_chunks::<W>().0;
        let mut look_up = |out: &mut [u8; W], number: &[u8; V]| match table.get(index(number)) {
            Some(value) => *out = *value,
            None => is_right = false,
        };
        if count == 1 {
            out.iter_mut().zip(numbers).for_each(|(out, number)| look_up(out, number));
        } else {
            // the first element of this table
            let start = (place + count - first % count) % count;
            // each on its own: a step of a pair of iterators goes through all between
            let outs = out.iter_mut().skip(start).step_by(count);
            outs.zip(numbers.iter().skip(start).step_by(count)).for_each(|(out, number)| look_up(out, number));
        }
    }
    is_right
}

#[inline(always)]
fn index<const V: usize>(number: &[u8; V]) -> usize {
    number.iter().rev().fold(0, |index, &byte| index << 8 | usize::from(byte))
}
