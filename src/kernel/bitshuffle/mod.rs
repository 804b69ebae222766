//! The bit-shuffle: `n` elements of `w` bytes become `8 * w` bit planes (chapter 5.4 of the
//! specification).
//!
//! Let `m = n / 8`, rounded down. Plane `p = 8 * byte + bit` takes up the `m` bytes from offset
//! `p * m` on. Bit `t` of byte `i` of the plane is bit `p` of element `8 * i + t`. Elements are
//! little-endian, and bit 0 is the least significant. The last `n % 8` elements follow the planes
//! unchanged, so the output is as long as the input.
//!
//! A *group* is eight elements whose bits share one byte of every plane. For each `j`, bytes `j` of
//! these eight elements form a matrix of 8 x 8 bits, which is transposed. The definition transposes
//! it within a word, AVX2 and NEON across vectors, and AVX-512 with one instruction.
//!
//! AVX2 and NEON work in lanes of 16 bytes. They divide the `8 * W` bytes of a group into `C`
//! columns of `N` bytes, where `N` is 16, or 8 if `W` is 1. First, they transpose the bytes of as
//! many groups as a vector has bytes: vector `W * t + j` receives byte `j` of element `t` of each
//! group. Second, they transpose the bits of the eight vectors with the same `j`, which yields
//! eight planes. The inverse performs the two steps in reverse order.

use super::dispatch::{Implementation, Scalar, implement, implementations, intrinsics};
use super::{Width, Word, for_width, whole_elements};
#[cfg(target_arch = "x86_64")]
use {
    crate::kernel::dispatch::Avx2,
    crate::kernel::vectors::x86_64::{load_32, load_lanes, store_32, store_lanes},
    std::arch::x86_64::*,
};
#[cfg(target_arch = "aarch64")]
use {
    crate::kernel::dispatch::Neon,
    crate::kernel::vectors::aarch64::{load_16, store_16},
    std::arch::aarch64::*,
};

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;

/// The kernels of one instruction set. Both buffers have the same whole number of elements.
pub trait Kernel: Sync {
    /// See [`BitShuffle::shuffle`].
    fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]);
    /// See [`BitShuffle::unshuffle`].
    fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]);
}

/// One implementation of the bit-shuffle.
pub type BitShuffle = Implementation<dyn Kernel>;

impl BitShuffle {
    /// Splits the elements of `src` into bit planes in `dst`.
    ///
    /// Both buffers must have the same length, a multiple of the width. Debug builds assert this.
    /// Release builds shuffle only the whole elements that fit in both buffers, and leave the other
    /// bytes of `dst` unchanged.
    pub fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        let (src, dst) = whole_elements(width, src, dst);
        self.kernel.shuffle(width, src, dst);
    }

    /// Joins the bit planes of `src` into elements in `dst`: the inverse of
    /// [`shuffle`](Self::shuffle), under the same conditions.
    pub fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        let (src, dst) = whole_elements(width, src, dst);
        self.kernel.unshuffle(width, src, dst);
    }
}

implementations!(Kernel);

// ---- the definition in code

// The other implementations call these methods for short buffers. They are not inlined, so they are
// compiled only once.
impl Kernel for Scalar {
    #[inline(never)]
    fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        for_width!(width, W => shuffle_words::<{ W::BYTES }>(src, dst));
    }

    #[inline(never)]
    fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        for_width!(width, W => unshuffle_words::<{ W::BYTES }>(src, dst));
    }
}

/// Returns the number of groups in a buffer of `len` bytes, which is also the size of a plane in
/// bytes.
const fn group_count(width_bytes: usize, len: usize) -> usize {
    len / (8 * width_bytes)
}

/// Copies the elements after the last whole group.
fn copy_tail(width_bytes: usize, src: &[u8], dst: &mut [u8]) {
    let tail = 8 * width_bytes * group_count(width_bytes, src.len());
    dst[tail..].copy_from_slice(&src[tail..]); // in bounds: equal lengths, and whole groups fit
}

/// [`Kernel::shuffle`] for elements of `W` bytes.
fn shuffle_words<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    for j in 0..W {
        for (i, group) in src.chunks_exact(8 * W).enumerate() {
            let bytes = std::array::from_fn(|t| group[W * t + j]); // in bounds: t < 8, j < W
            for (bit, plane) in transpose(bytes).into_iter().enumerate() {
                dst[(8 * j + bit) * m + i] = plane; // in bounds: 8 * W planes of m bytes, i < m
            }
        }
    }
    copy_tail(W, src, dst);
}

/// [`Kernel::unshuffle`] for elements of `W` bytes.
fn unshuffle_words<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    for j in 0..W {
        for (i, group) in dst.chunks_exact_mut(8 * W).enumerate() {
            // in bounds: 8 * W planes of m bytes, i < m
            let planes = std::array::from_fn(|bit| src[(8 * j + bit) * m + i]);
            for (t, byte) in transpose(planes).into_iter().enumerate() {
                group[W * t + j] = byte; // in bounds: t < 8, j < W
            }
        }
    }
    copy_tail(W, src, dst);
}

/// Transposes a matrix of 8 x 8 bits: bit `r` of byte `c` of the result is bit `c` of byte `r`.
///
/// Swaps the off-diagonal quarters of ever larger squares (Warren, Hacker's Delight, 7-3).
fn transpose(rows: [u8; 8]) -> [u8; 8] {
    const STEPS: [(u32, u64); 3] =
        [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)];
    let mut x = u64::from_le_bytes(rows);
    for (distance, mask) in STEPS {
        let swapped = (x ^ (x >> distance)) & mask;
        x ^= swapped ^ (swapped << distance);
    }
    x.to_le_bytes()
}

// ---- vectors of lanes

/// The number of groups per step, which take up one cache line of every plane.
///
/// Planes that are a multiple of 4096 bytes apart compete for one set of the L1 cache. With whole
/// lines, each line is fetched only once.
const STEP: usize = 64;

/// The size of a lane in bytes.
const LANE: usize = 16;

/// Vectors of one or more lanes. Each method compiles to one or two instructions.
trait Vectors: Copy {
    type Vector: Copy;
    fn zero(self) -> Self::Vector;
    /// Loads lane `k` from lane `index + k * distance` of `lanes`.
    fn gather(self, lanes: &[[u8; LANE]], index: usize, distance: usize) -> Self::Vector;
    /// Stores lane `k` to lane `index + k * distance` of `lanes`.
    fn scatter(self, vector: Self::Vector, lanes: &mut [[u8; LANE]], index: usize, distance: usize);
    /// Loads vector `part` of a cache line.
    fn load(self, line: &[u8; STEP], part: usize) -> Self::Vector;
    /// Stores vector `part` of a cache line.
    fn store(self, vector: Self::Vector, line: &mut [u8; STEP], part: usize);
    /// Zips the lower and the upper halves of two vectors, byte by byte and lane by lane.
    fn zip(self, a: Self::Vector, b: Self::Vector) -> [Self::Vector; 2];
    /// Swaps the bits `mask << SHIFT` of each byte of `a` with the bits `mask` of `b`.
    fn swap_bits<const SHIFT: i32>(self, a: Self::Vector, b: Self::Vector, mask: u8) -> [Self::Vector; 2];
}

/// The number of vectors in a cache line.
const PARTS: usize = STEP / if cfg!(target_arch = "x86_64") { 32 } else { 16 };

/// Returns the number of columns of a group whose elements have `width` bytes.
const fn columns(width: usize) -> usize {
    width.div_ceil(LANE / 8)
}

implement!([Avx2, Neon] Kernel {
    fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) => { for W in width => shuffle::<_, PARTS, { columns(W::BYTES) }, { 8 * W::BYTES / columns(W::BYTES) }> }
    fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) => { for W in width => unshuffle::<_, PARTS, { columns(W::BYTES) }, { 8 * W::BYTES / columns(W::BYTES) }> }
});

/// Returns the first group of each step. The steps cover all `groups` groups, which must be at
/// least `STEP`. If `STEP` does not divide `groups`, the last step overlaps the step before it.
fn steps(groups: usize) -> impl Iterator<Item = usize> {
    (0..groups).step_by(STEP).map(move |first| first.min(groups - STEP))
}

/// Returns the cache line of `bytes` at `offset`.
#[inline(always)]
fn line(bytes: &[u8], offset: usize) -> &[u8; STEP] {
    &bytes[offset..].as_chunks().0[0] // in bounds: a step is a line of each plane
}

/// See [`line()`].
#[inline(always)]
fn line_mut(bytes: &mut [u8], offset: usize) -> &mut [u8; STEP] {
    &mut bytes[offset..].as_chunks_mut().0[0] // in bounds, like `line`
}

/// [`Kernel::shuffle`] for elements of `C * N / 8` bytes. A cache line has `PARTS` vectors.
#[inline(always)]
fn shuffle<V: Vectors, const PARTS: usize, const C: usize, const N: usize>(
    v: V,
    width: Width,
    src: &[u8],
    dst: &mut [u8],
) {
    let w = C * N / 8;
    let m = group_count(w, src.len());
    if m < STEP {
        return Scalar.shuffle(width, src, dst);
    }
    let mut parts = [[[v.zero(); N]; C]; PARTS];
    for i in steps(m) {
        let groups = src[8 * w * i..][..8 * w * STEP].chunks_exact(8 * w * STEP / PARTS);
        for (columns, groups) in parts.iter_mut().zip(groups) {
            load_groups(v, groups, columns);
        }
        for j in 0..w {
            let mut lines = [[v.zero(); PARTS]; 8];
            for (part, columns) in parts.iter().enumerate() {
                let mut bytes = [v.zero(); 8];
                for (t, vector) in bytes.iter_mut().enumerate() {
                    *vector = columns.as_flattened()[w * t + j]; // in bounds: 8 * w vectors
                }
                for (line, plane) in lines.iter_mut().zip(&transpose_bits(v, bytes)) {
                    line[part] = *plane; // in bounds: PARTS parts
                }
            }
            for (bit, vectors) in lines.iter().enumerate() {
                let line = line_mut(dst, (8 * j + bit) * m + i);
                for (part, vector) in vectors.iter().enumerate() {
                    v.store(*vector, line, part);
                }
            }
        }
    }
    copy_tail(w, src, dst);
}

/// [`Kernel::unshuffle`], with the parameters of [`shuffle`].
#[inline(always)]
fn unshuffle<V: Vectors, const PARTS: usize, const C: usize, const N: usize>(
    v: V,
    width: Width,
    src: &[u8],
    dst: &mut [u8],
) {
    let w = C * N / 8;
    let m = group_count(w, src.len());
    if m < STEP {
        return Scalar.unshuffle(width, src, dst);
    }
    let mut parts = [[[v.zero(); N]; C]; PARTS];
    for i in steps(m) {
        for j in 0..w {
            let mut lines = [[v.zero(); PARTS]; 8];
            for (bit, vectors) in lines.iter_mut().enumerate() {
                let line = line(src, (8 * j + bit) * m + i);
                for (part, vector) in vectors.iter_mut().enumerate() {
                    *vector = v.load(line, part);
                }
            }
            for (part, columns) in parts.iter_mut().enumerate() {
                let mut planes = [v.zero(); 8];
                for (plane, line) in planes.iter_mut().zip(&lines) {
                    *plane = line[part]; // in bounds: PARTS parts
                }
                for (t, vector) in transpose_bits(v, planes).iter().enumerate() {
                    columns.as_flattened_mut()[w * t + j] = *vector; // in bounds: 8 * w vectors
                }
            }
        }
        let groups = dst[8 * w * i..][..8 * w * STEP].chunks_exact_mut(8 * w * STEP / PARTS);
        for (columns, groups) in parts.iter().zip(groups) {
            store_groups(v, groups, columns);
        }
    }
    copy_tail(w, src, dst);
}

/// Loads as many groups as a vector has bytes, and transposes them: vector `c` receives byte `c` of
/// each group.
#[inline(always)]
fn load_groups<V: Vectors, const C: usize, const N: usize>(v: V, groups: &[u8], columns: &mut [[V::Vector; N]; C]) {
    let lanes = groups.as_chunks().0;
    for (c, column) in columns.iter_mut().enumerate() {
        let mut rows = [v.zero(); N];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = v.gather(lanes, C * r + c, C * N);
        }
        for _ in 0..LANE.ilog2() {
            rows = zip_halves(v, rows);
        }
        *column = rows;
    }
}

/// Inverse of [`load_groups`].
#[inline(always)]
fn store_groups<V: Vectors, const C: usize, const N: usize>(v: V, groups: &mut [u8], columns: &[[V::Vector; N]; C]) {
    let lanes = groups.as_chunks_mut().0;
    for (c, column) in columns.iter().enumerate() {
        let mut rows = *column;
        for _ in 0..N.ilog2() {
            rows = zip_halves(v, rows);
        }
        for (r, row) in rows.iter().enumerate() {
            v.scatter(*row, lanes, C * r + c, C * N);
        }
    }
}

/// Zips the bytes of the first half of the vectors with the bytes of the second half, lane by lane.
///
/// Let the address of a byte be the number of its vector, followed by its index in the lane.
/// Zipping rotates the bits of the address left by one. Four zips bring the four bits of the index
/// to the top. One further zip for each bit of the vector number brings them back.
#[inline(always)]
fn zip_halves<V: Vectors, const N: usize>(v: V, vectors: [V::Vector; N]) -> [V::Vector; N] {
    let mut zipped = [v.zero(); N];
    for k in 0..N / 2 {
        // in bounds: k < N / 2
        [zipped[2 * k], zipped[2 * k + 1]] = v.zip(vectors[k], vectors[N / 2 + k]);
    }
    zipped
}

/// Transposes 8 x 8 bits across the vectors: bit `r` of vector `c` of the result is bit `c` of
/// vector `r`.
#[inline(always)]
fn transpose_bits<V: Vectors>(v: V, mut x: [V::Vector; 8]) -> [V::Vector; 8] {
    for k in [0, 1, 2, 3] {
        [x[k], x[k + 4]] = v.swap_bits::<4>(x[k], x[k + 4], 0x0F);
    }
    for k in [0, 1, 4, 5] {
        [x[k], x[k + 2]] = v.swap_bits::<2>(x[k], x[k + 2], 0x33);
    }
    for k in [0, 2, 4, 6] {
        [x[k], x[k + 1]] = v.swap_bits::<1>(x[k], x[k + 1], 0x55);
    }
    x
}

// ---- operations

intrinsics! {
    [Avx2]
    impl Vectors for Avx2 {
        type Vector = __m256i;

        fn zero(v: Avx2) -> __m256i {
            _mm256_setzero_si256()
        }

        fn gather(v: Avx2, lanes: &[[u8; 16]], index: usize, distance: usize) -> __m256i {
            let (lower, upper) = lanes.split_at(distance);
            load_lanes(&lower[index], &upper[index])
        }

        fn scatter(v: Avx2, vector: __m256i, lanes: &mut [[u8; 16]], index: usize, distance: usize) {
            let (lower, upper) = lanes.split_at_mut(distance);
            store_lanes(&mut lower[index], &mut upper[index], vector)
        }

        fn load(v: Avx2, line: &[u8; STEP], part: usize) -> __m256i {
            load_32(&line.as_chunks().0[part])
        }

        fn store(v: Avx2, vector: __m256i, line: &mut [u8; STEP], part: usize) {
            store_32(&mut line.as_chunks_mut().0[part], vector)
        }

        fn zip(v: Avx2, a: __m256i, b: __m256i) -> [__m256i; 2] {
            [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
        }

        fn swap_bits<const SHIFT: i32>(v: Avx2, a: __m256i, b: __m256i, mask: u8) -> [__m256i; 2] {
            let differ = _mm256_xor_si256(_mm256_srli_epi16::<SHIFT>(a), b);
            let differ = _mm256_and_si256(differ, _mm256_set1_epi8(mask.cast_signed()));
            [_mm256_xor_si256(a, _mm256_slli_epi16::<SHIFT>(differ)), _mm256_xor_si256(b, differ)]
        }
    }
}

intrinsics! {
    [Neon]
    impl Vectors for Neon {
        type Vector = uint8x16_t;

        fn zero(v: Neon) -> uint8x16_t {
            vdupq_n_u8(0)
        }

        fn gather(v: Neon, lanes: &[[u8; 16]], index: usize, _: usize) -> uint8x16_t {
            load_16(&lanes[index])
        }

        fn scatter(v: Neon, vector: uint8x16_t, lanes: &mut [[u8; 16]], index: usize, _: usize) {
            store_16(&mut lanes[index], vector)
        }

        fn load(v: Neon, line: &[u8; STEP], part: usize) -> uint8x16_t {
            load_16(&line.as_chunks().0[part])
        }

        fn store(v: Neon, vector: uint8x16_t, line: &mut [u8; STEP], part: usize) {
            store_16(&mut line.as_chunks_mut().0[part], vector)
        }

        fn zip(v: Neon, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
            [vzip1q_u8(a, b), vzip2q_u8(a, b)]
        }

        fn swap_bits<const SHIFT: i32>(v: Neon, a: uint8x16_t, b: uint8x16_t, mask: u8) -> [uint8x16_t; 2] {
            let mask = vdupq_n_u8(mask);
            [vbslq_u8(mask, a, vshlq_n_u8::<SHIFT>(b)), vbslq_u8(mask, vshrq_n_u8::<SHIFT>(a), b)]
        }
    }
}
