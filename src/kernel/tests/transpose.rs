//! Transposes.

use super::support::{Guarded, Misaligned, WIDTHS, contents, offsets};
use crate::kernel::Width;
use crate::kernel::transpose::{Transposes, available};

/// Columns to test: more than some vectors have, and some usual numbers.
fn columns() -> impl Iterator<Item = usize> {
    let few = if cfg!(miri) { 1..=9 } else { 1..=140 };
    few.chain(if cfg!(miri) { 0..=0 } else { 383..=385 }).filter(|&row| row > 0)
}

fn check(kernel: &Transposes, width: Width, rows: usize, row: usize) {
    let context = || format!("{} {width:?} {rows} {row}", kernel.name());
    let elements = contents(rows + row, rows * row * width.bytes());
    let mut due = vec![0; elements.len()];
    available()[0].to_rows(width, rows, &elements, &mut due);
    let (source, destination) = offsets(rows + row);
    let mut out = Guarded::zeros(elements.len(), destination);
    kernel.to_rows(width, rows, Misaligned::new(&elements, source).get(), out.get());
    out.assert_is(&due, context);
}

#[test]
fn tile_of_two_rows() {
    for kernel in available() {
        let mut out = [0; 12];
        kernel.to_rows(Width::W2, 2, &[1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60], &mut out);
        assert_eq!(out, [1, 10, 3, 30, 5, 50, 2, 20, 4, 40, 6, 60], "{}", kernel.name());
    }
}

#[test]
fn every_count_of_rows_and_columns() {
    for kernel in available() {
        for width in WIDTHS {
            for row in columns() {
                (1..=if cfg!(miri) { 9 } else { 66 }).for_each(|rows| check(kernel, width, rows, row));
            }
        }
    }
}

/// In release builds, nothing is written to buffers that have no whole columns.
#[test]
#[cfg(not(debug_assertions))]
fn buffers_without_whole_columns() {
    use super::support::GUARD;
    for kernel in available() {
        let mut out = [GUARD; 8];
        kernel.to_rows(Width::W2, 3, &[1; 8], &mut out);
        kernel.to_rows(Width::W2, 2, &[1; 4], &mut out);
        kernel.to_rows(Width::W2, 0, &[1; 8], &mut out);
        kernel.to_rows(Width::W2, usize::MAX, &[1; 8], &mut out);
        assert_eq!(out, [GUARD; 8], "{}", kernel.name());
    }
}
