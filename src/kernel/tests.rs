//! Every implementation against the scalar one, and the scalar one against the definition, bit by bit.

use super::{BitShuffle, Width, available, best, scalar};

const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

/// Lengths to test, in elements: past two steps of the widest implementation.
const LENGTHS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=20 } else { 0..=1100 };

/// Byte around the destination that no implementation may change.
const GUARD: u8 = 0xA5;

/// Pseudo-random bytes (Marsaglia's xorshift64).
fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(len)
    .collect()
}

/// The definition, one bit at a time.
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

/// Runs `kernel` with both buffers off alignment by so many bytes, and checks the bytes around.
fn run_misaligned(kernel: impl Fn(&[u8], &mut [u8]), src: &[u8], (src_offset, dst_offset): (usize, usize)) -> Vec<u8> {
    let mut shifted = vec![0; src_offset];
    shifted.extend_from_slice(src);
    let mut guarded = vec![GUARD; 64 + dst_offset + src.len() + 64];
    let dst = 64 + dst_offset..64 + dst_offset + src.len();
    kernel(&shifted[src_offset..], &mut guarded[dst.clone()]);
    assert!(guarded[..dst.start].iter().all(|&byte| byte == GUARD), "wrote before the buffer");
    assert!(guarded[dst.end..].iter().all(|&byte| byte == GUARD), "wrote after the buffer");
    guarded[dst].to_vec()
}

fn check(kernel: &BitShuffle, width: Width, count: usize, offsets: (usize, usize)) {
    let elements = random_bytes(count as u64, count * width.bytes());
    let mut planes = vec![0; elements.len()];
    scalar::shuffle(width, &elements, &mut planes);
    let context = format!("{} {width:?} {count} {offsets:?}", kernel.name());
    let shuffled = run_misaligned(|s, d| kernel.shuffle(width, s, d), &elements, offsets);
    assert!(shuffled == planes, "shuffle: {context}");
    let unshuffled = run_misaligned(|s, d| kernel.unshuffle(width, s, d), &planes, offsets);
    assert!(unshuffled == elements, "unshuffle: {context}");
}

#[test]
fn scalar_is_the_definition() {
    for width in WIDTHS {
        for count in LENGTHS.take_while(|&count| count <= 300) {
            let elements = random_bytes(count as u64, count * width.bytes());
            let mut planes = vec![0; elements.len()];
            scalar::shuffle(width, &elements, &mut planes);
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

/// In release builds a broken contract shuffles what fits and leaves the rest alone.
#[test]
#[cfg(not(debug_assertions))]
fn unequal_buffers_are_cut_to_whole_elements() {
    let elements = random_bytes(1, 2049);
    let mut planes = vec![0; 2048];
    scalar::shuffle(Width::W2, &elements[..2048], &mut planes);
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

#[test]
fn widths_are_1_2_4_8() {
    for bytes in 0..=16 {
        let width = Width::from_bytes(bytes);
        assert_eq!(width.is_some(), [1, 2, 4, 8].contains(&bytes));
        assert!(width.is_none_or(|width| width.bytes() == bytes));
    }
}

/// CI names the implementations that its machine must have, lest a test pass for want of a CPU.
#[test]
fn required_kernels_are_available() {
    let names: Vec<_> = available().iter().map(BitShuffle::name).collect();
    println!("kernels under test: {}", names.join(", "));
    assert_eq!(names.first(), Some(&"scalar"));
    assert_eq!(names.last(), Some(&best().name()));
    let required = std::env::var("TENSILO_REQUIRE_KERNELS").unwrap_or_default();
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        assert!(names.contains(&name), "kernel {name} is required, this CPU has {names:?}");
    }
}
