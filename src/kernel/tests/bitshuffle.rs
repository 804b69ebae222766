//! The bit-shuffle.

use super::support::{Guarded, Misaligned, Random, WIDTHS};
use crate::kernel::Width;
use crate::kernel::bitshuffle::{BitShuffle, available, best};

/// Lengths to test, in elements: more than two steps of the widest implementation.
const LENGTHS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=20 } else { 0..=1100 };

/// Shuffles one bit at a time, as the specification defines it.
fn shuffle_by_definition(width: Width, src: &[u8]) -> Vec<u8> {
    let w = width.bytes();
    let m = src.len() / w / 8;
    let mut dst = vec![0; src.len()];
    for p in 0..8 * w {
        for i in 0..m {
            for t in 0..8 {
                let bit = src[(8 * i + t) * w + p / 8] >> (p % 8) & 1;
                dst[p * m + i] |= bit << t;
            }
        }
    }
    dst[8 * w * m..].copy_from_slice(&src[8 * w * m..]);
    dst
}

fn scalar_shuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    available()[0].shuffle(width, src, dst);
}

fn check(kernel: &BitShuffle, width: Width, count: usize, (source, destination): (usize, usize)) {
    let elements = Random::new(count).bytes(count * width.bytes());
    let mut planes = vec![0; elements.len()];
    scalar_shuffle(width, &elements, &mut planes);
    let context = || format!("{} {width:?} {count} {source} {destination}", kernel.name());
    let mut out = Guarded::zeros(elements.len(), destination);
    kernel.shuffle(width, Misaligned::new(&elements, source).get(), out.get());
    out.assert_is(&planes, || format!("shuffle: {}", context()));
    let mut out = Guarded::zeros(elements.len(), destination);
    kernel.unshuffle(width, Misaligned::new(&planes, source).get(), out.get());
    out.assert_is(&elements, || format!("unshuffle: {}", context()));
}

#[test]
fn scalar_is_the_definition() {
    for width in WIDTHS {
        for count in LENGTHS.take_while(|&count| count <= 300) {
            let elements = Random::new(count).bytes(count * width.bytes());
            let mut planes = vec![0; elements.len()];
            scalar_shuffle(width, &elements, &mut planes);
            assert_eq!(planes, shuffle_by_definition(width, &elements), "{width:?} {count}");
        }
    }
}

#[test]
fn worked_example() {
    // Element t is 1 << t, so plane p has bit p of its one byte; the ninth element is the tail.
    let elements = [1, 2, 4, 8, 16, 32, 64, 128, 0xEE];
    let mut planes = [0; 9];
    best().shuffle(Width::W1, &elements, &mut planes);
    assert_eq!(planes, elements);
    // Bit 9 of element 3 is bit 3 of plane 9.
    let mut elements = [0; 16];
    elements[7] = 0b10;
    let mut planes = [0; 16];
    best().shuffle(Width::W2, &elements, &mut planes);
    assert_eq!(planes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn every_kernel_gives_the_bytes_of_scalar() {
    for kernel in available() {
        for width in WIDTHS {
            for count in LENGTHS {
                check(kernel, width, count, (0, 0));
            }
        }
    }
}

#[test]
fn buffers_need_no_alignment() {
    for kernel in available() {
        for width in WIDTHS {
            for count in LENGTHS.step_by(37) {
                for offsets in [(1, 0), (0, 1), (3, 7), (15, 17), (33, 31), (63, 63)] {
                    check(kernel, width, count, offsets);
                }
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
                check(kernel, width, bytes / width.bytes(), (0, 0));
            }
        }
    }
}

/// In release builds, unequal buffers are shuffled as far as both go.
#[test]
#[cfg(not(debug_assertions))]
fn unequal_buffers_are_cut_to_whole_elements() {
    use super::support::GUARD;
    let elements = Random::new(1).bytes(2049);
    let mut planes = vec![0; 2048];
    scalar_shuffle(Width::W2, &elements[..2048], &mut planes);
    for kernel in available() {
        let mut longer = vec![GUARD; 3000];
        kernel.shuffle(Width::W2, &elements, &mut longer);
        assert_eq!(longer[..2048], planes, "{}", kernel.name());
        assert!(longer[2048..].iter().all(|&byte| byte == GUARD), "{}", kernel.name());
        let mut shorter = vec![0; 1001];
        kernel.unshuffle(Width::W8, &elements, &mut shorter);
        assert_eq!(shorter[1000], 0, "{}", kernel.name());
    }
}
