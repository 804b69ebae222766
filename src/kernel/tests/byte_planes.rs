//! Byte planes and rotation.

use super::support::{Guarded, WIDTHS, contents};
use crate::kernel::Width;
use crate::kernel::byte_planes::{BytePlanes, available};

/// Counts to test, in elements: more than some steps of the widest implementation.
const COUNTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=20 } else { 0..=1024 };

fn check_bytes(kernel: &BytePlanes, width: Width, rotate: bool, count: usize, offset: usize) {
    let context = || format!("{} {width:?} {rotate} {count} {offset}", kernel.name());
    let elements = contents(count, count * width.bytes());
    let mut planes = vec![vec![0; count]; width.bytes()];
    let (top, low) = planes.split_last_mut().unwrap();
    let mut low: Vec<&mut [u8]> = low.iter_mut().map(Vec::as_mut_slice).collect();
    available()[0].split(width, rotate, &elements, &mut low, top);

    let mut input = Guarded::new(&elements, offset);
    let mut split: Vec<Guarded> =
        (0..width.bytes()).map(|j| Guarded::new(&vec![0; count], (offset * j) % 64)).collect();
    let (top, low) = split.split_last_mut().unwrap();
    let mut low: Vec<&mut [u8]> = low.iter_mut().map(Guarded::get).collect();
    kernel.split(width, rotate, input.get(), &mut low, top.get());
    for (split, plane) in split.iter().zip(&planes) {
        split.assert_is(plane, || format!("split: {}", context()));
    }

    let mut joined = Guarded::new(&vec![0; elements.len()], offset + 1);
    let (top, low) = split.split_last_mut().unwrap();
    let low: Vec<&[u8]> = low.iter_mut().map(|low| &*low.get()).collect();
    kernel.join(width, rotate, &low, top.get(), joined.get());
    joined.assert_is(&elements, || format!("join: {}", context()));

    let mut due = elements;
    available()[0].rotate_right(width, &mut due);
    kernel.rotate_right(width, joined.get());
    joined.assert_is(&due, || format!("rotate: {}", context()));
}

#[test]
fn worked_example() {
    for kernel in available() {
        let mut elements = [0; 4];
        kernel.join(Width::W2, true, &[&[1, 2]], &[0x7F, 0x80], &mut elements);
        assert_eq!(elements, [0x80, 0xBF, 0x01, 0x40], "{}", kernel.name());
    }
}

#[test]
fn bytes_of_every_count() {
    for kernel in available() {
        for width in WIDTHS {
            for count in COUNTS {
                check_bytes(kernel, width, false, count, 0);
                check_bytes(kernel, width, true, count, count % 64);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn chunks_of_usual_size() {
    for kernel in available() {
        for width in WIDTHS {
            for bytes in [64 << 10, (64 << 10) + 8 * 77, 40_000] {
                check_bytes(kernel, width, true, bytes / width.bytes(), 0);
            }
        }
    }
}

#[test]
fn a_part_of_an_element_is_left_alone() {
    for kernel in available() {
        let content = contents(5, 64 * 8 + 7);
        let mut data = content.clone();
        kernel.rotate_right(Width::W8, &mut data);
        assert_eq!(data[64 * 8..], content[64 * 8..], "{}", kernel.name());
    }
}

/// In release builds, nothing is written to buffers that differ in elements.
#[test]
#[cfg(not(debug_assertions))]
fn buffers_of_other_lengths() {
    use super::support::GUARD;
    for kernel in available() {
        let mut out = [GUARD; 9];
        kernel.join(Width::W2, true, &[&[1; 4]], &[2; 5], &mut out);
        kernel.join(Width::W2, true, &[], &[2; 4], &mut out[..8]);
        kernel.split(Width::W2, true, &[1; 7], &mut [&mut out[..4]], &mut [0; 4]);
        assert_eq!(out, [GUARD; 9], "{}", kernel.name());
    }
}
