//! Operations on a group of 64 bytes: two vectors of AVX2, one of AVX-512, four of NEON.
//!
//! Each byte of a group belongs to one element. A stream has bytes for only some of the elements.
//! [`Group::expand`] distributes the next bytes of a stream to the elements that a mask selects,
//! and [`Group::compress`] collects them again. AVX-512 has instructions for both. AVX2 and NEON
//! handle eight elements at a time with a byte shuffle. The eight bits of the mask select the
//! indices of the shuffle from a table. Prefix sums of bit counts give the position in the stream
//! at which each set of eight begins.

use crate::kernel::dispatch::intrinsics;
use crate::kernel::pad;
#[cfg(target_arch = "aarch64")]
use {
    super::aarch64::{load_8, load_64, mask_of, store_8, store_64},
    crate::kernel::dispatch::Neon,
    std::arch::aarch64::*,
};
#[cfg(target_arch = "x86_64")]
use {
    super::x86_64::{load_32, load_64, store_32, store_64},
    crate::kernel::dispatch::{Avx2, Avx512},
    std::arch::x86_64::*,
};

/// The size of a group in bytes.
pub const GROUP: usize = 64;

/// The number of stream bytes that [`Group::expand`] and [`Group::compress`] can access. They
/// access eight bytes at each of [`ranks_of_bytes`], which are at most 63.
pub const WINDOW: usize = 63 + 8;

/// A group of bytes, and masks of its bytes.
pub trait Group: Copy {
    /// One or more vectors that have 64 bytes in total.
    type Bytes: Copy;
    /// A selection of the 64 bytes.
    type Mask: Copy;

    fn load(self, bytes: &[u8; GROUP]) -> Self::Bytes;
    /// Loads the first 64 bytes of a slice. If the slice is shorter, pads it with zeros.
    #[inline(always)]
    fn load_padded(self, bytes: &[u8]) -> Self::Bytes {
        match bytes.first_chunk() {
            Some(whole) => self.load(whole),
            None => self.load(&pad(bytes)),
        }
    }

    fn store(self, bytes: Self::Bytes, to: &mut [u8; GROUP]);
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    fn subtract(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Subtracts 1 from each byte that is not zero.
    fn decrease(self, bytes: Self::Bytes) -> Self::Bytes;
    /// Selects the bytes that are zero.
    fn zeros(self, bytes: Self::Bytes) -> Self::Mask;
    /// Returns the mask as an integer with a bit for each byte.
    fn bits(self, mask: Self::Mask) -> u64;
    /// Returns an integer with a bit for each byte, which is set if the byte is not zero.
    #[inline(always)]
    fn nonzero(self, bytes: Self::Bytes) -> u64 {
        !self.bits(self.zeros(bytes))
    }
    /// Returns the bytes of `yes` where the mask selects a byte, and the bytes of `no` elsewhere.
    fn select(self, mask: Self::Mask, yes: Self::Bytes, no: Self::Bytes) -> Self::Bytes;
    /// Returns the next byte of `next` for each bit that is set, and zero for each other bit.
    fn expand(self, bits: u64, next: &[u8; WINDOW]) -> Self::Bytes;

    /// Like [`expand`](Self::expand), but returns bytes of `no` instead of zeros. `mask` and `bits`
    /// must be the same mask.
    #[inline(always)]
    fn expand_or(self, mask: Self::Mask, bits: u64, next: &[u8; WINDOW], no: Self::Bytes) -> Self::Bytes {
        self.select(mask, self.expand(bits, next), no)
    }

    /// Packs the selected bytes at the start of `to`. The bytes after them are unspecified.
    fn compress(self, bits: u64, bytes: Self::Bytes, to: &mut [u8; WINDOW]);
}

intrinsics! {
    [Avx2]
    impl Group for Avx2 {
        type Bytes = [__m256i; 2];
        type Mask = [__m256i; 2];

        fn load(v: Avx2, bytes: &[u8; GROUP]) -> [__m256i; 2] {
            let (halves, _) = bytes.as_chunks();
            [load_32(&halves[0]), load_32(&halves[1])] // in bounds: two halves
        }

        fn store(v: Avx2, [a, b]: [__m256i; 2], to: &mut [u8; GROUP]) {
            let (halves, _) = to.as_chunks_mut();
            store_32(&mut halves[0], a); // in bounds: two halves
            store_32(&mut halves[1], b); // in bounds: two halves
        }

        fn or(v: Avx2, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
            [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])]
        }

        fn subtract(v: Avx2, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
            [_mm256_sub_epi8(a[0], b[0]), _mm256_sub_epi8(a[1], b[1])]
        }

        fn decrease(v: Avx2, [a, b]: [__m256i; 2]) -> [__m256i; 2] {
            let one = _mm256_set1_epi8(1);
            [_mm256_subs_epu8(a, one), _mm256_subs_epu8(b, one)]
        }

        fn zeros(v: Avx2, [a, b]: [__m256i; 2]) -> [__m256i; 2] {
            let zero = _mm256_setzero_si256();
            [_mm256_cmpeq_epi8(a, zero), _mm256_cmpeq_epi8(b, zero)]
        }

        fn bits(v: Avx2, [a, b]: [__m256i; 2]) -> u64 {
            let [a, b] = [_mm256_movemask_epi8(a), _mm256_movemask_epi8(b)];
            u64::from(b.cast_unsigned()) << 32 | u64::from(a.cast_unsigned())
        }

        fn select(v: Avx2, mask: [__m256i; 2], yes: [__m256i; 2], no: [__m256i; 2]) -> [__m256i; 2] {
            [_mm256_blendv_epi8(no[0], yes[0], mask[0]), _mm256_blendv_epi8(no[1], yes[1], mask[1])]
        }

        fn expand(v: Avx2, bits: u64, next: &[u8; WINDOW]) -> [__m256i; 2] {
            let [a, b, c, d, e, f, g, h] = expand(v, bits, next);
            [
                _mm256_set_m128i(_mm_unpacklo_epi64(c, d), _mm_unpacklo_epi64(a, b)),
                _mm256_set_m128i(_mm_unpacklo_epi64(g, h), _mm_unpacklo_epi64(e, f)),
            ]
        }

        fn compress(v: Avx2, bits: u64, bytes: [__m256i; 2], to: &mut [u8; WINDOW]) {
            compress(v, bits, bytes, to);
        }
    }
}

intrinsics! {
    [Avx2]
    impl Eights for Avx2 {
        type Eight = __m128i;

        fn zero(v: Avx2) -> __m128i {
            _mm_setzero_si128()
        }

        fn shuffle(v: Avx2, bytes: &[u8; 8], order: &[u8; 8]) -> __m128i {
            let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(*bytes));
            _mm_shuffle_epi8(bytes, _mm_cvtsi64_si128(i64::from_le_bytes(*order)))
        }

        fn store_eight(v: Avx2, eight: __m128i, to: &mut [u8; 8]) {
            *to = _mm_cvtsi128_si64(eight).to_le_bytes();
        }
    }
}

intrinsics! {
    [Avx512]
    impl Group for Avx512 {
        type Bytes = __m512i;
        type Mask = u64;

        fn load(v: Avx512, bytes: &[u8; GROUP]) -> __m512i {
            load_64(bytes)
        }

        fn store(v: Avx512, bytes: __m512i, to: &mut [u8; GROUP]) {
            store_64(to, bytes);
        }

        fn or(v: Avx512, a: __m512i, b: __m512i) -> __m512i {
            _mm512_or_si512(a, b)
        }

        fn subtract(v: Avx512, a: __m512i, b: __m512i) -> __m512i {
            _mm512_sub_epi8(a, b)
        }

        fn decrease(v: Avx512, bytes: __m512i) -> __m512i {
            _mm512_subs_epu8(bytes, _mm512_set1_epi8(1))
        }

        fn zeros(v: Avx512, bytes: __m512i) -> u64 {
            _mm512_testn_epi8_mask(bytes, bytes)
        }

        fn bits(v: Avx512, mask: u64) -> u64 {
            mask
        }

        fn nonzero(v: Avx512, bytes: __m512i) -> u64 {
            _mm512_test_epi8_mask(bytes, bytes)
        }

        fn select(v: Avx512, mask: u64, yes: __m512i, no: __m512i) -> __m512i {
            _mm512_mask_blend_epi8(mask, no, yes)
        }

        fn expand(v: Avx512, bits: u64, next: &[u8; WINDOW]) -> __m512i {
            let next = next.first_chunk().unwrap_or(&[0; GROUP]); // a window is longer
            _mm512_maskz_expand_epi8(bits, load_64(next))
        }

        fn expand_or(v: Avx512, mask: u64, _bits: u64, next: &[u8; WINDOW], no: __m512i) -> __m512i {
            let next = next.first_chunk().unwrap_or(&[0; GROUP]); // a window is longer
            _mm512_mask_expand_epi8(no, mask, load_64(next))
        }

        fn compress(v: Avx512, bits: u64, bytes: __m512i, to: &mut [u8; WINDOW]) {
            let Some(to) = to.first_chunk_mut() else { return }; // never: a window is longer
            store_64(to, _mm512_maskz_compress_epi8(bits, bytes));
        }
    }
}

intrinsics! {
    [Neon]
    impl Group for Neon {
        type Bytes = [uint8x16_t; 4];
        type Mask = [uint8x16_t; 4];

        fn load(v: Neon, bytes: &[u8; GROUP]) -> [uint8x16_t; 4] {
            load_64(bytes)
        }

        fn store(v: Neon, bytes: [uint8x16_t; 4], to: &mut [u8; GROUP]) {
            store_64(to, bytes);
        }

        fn or(v: Neon, a: [uint8x16_t; 4], b: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
            [vorrq_u8(a[0], b[0]), vorrq_u8(a[1], b[1]), vorrq_u8(a[2], b[2]), vorrq_u8(a[3], b[3])]
        }

        fn subtract(v: Neon, a: [uint8x16_t; 4], b: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
            [vsubq_u8(a[0], b[0]), vsubq_u8(a[1], b[1]), vsubq_u8(a[2], b[2]), vsubq_u8(a[3], b[3])]
        }

        fn decrease(v: Neon, [a, b, c, d]: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
            let one = vdupq_n_u8(1);
            [vqsubq_u8(a, one), vqsubq_u8(b, one), vqsubq_u8(c, one), vqsubq_u8(d, one)]
        }

        fn zeros(v: Neon, [a, b, c, d]: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
            [vceqzq_u8(a), vceqzq_u8(b), vceqzq_u8(c), vceqzq_u8(d)]
        }

        fn bits(v: Neon, mask: [uint8x16_t; 4]) -> u64 {
            mask_of(mask)
        }

        fn select(v: Neon, mask: [uint8x16_t; 4], yes: [uint8x16_t; 4], no: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
            let mut selected = no;
            for i in 0..4 {
                selected[i] = vbslq_u8(mask[i], yes[i], no[i]); // in bounds: four quarters
            }
            selected
        }

        fn expand(v: Neon, bits: u64, next: &[u8; WINDOW]) -> [uint8x16_t; 4] {
            let [a, b, c, d, e, f, g, h] = expand(v, bits, next);
            [vcombine_u8(a, b), vcombine_u8(c, d), vcombine_u8(e, f), vcombine_u8(g, h)]
        }

        fn compress(v: Neon, bits: u64, bytes: [uint8x16_t; 4], to: &mut [u8; WINDOW]) {
            compress(v, bits, bytes, to);
        }
    }
}

intrinsics! {
    [Neon]
    impl Eights for Neon {
        type Eight = uint8x8_t;

        fn zero(v: Neon) -> uint8x8_t {
            vdup_n_u8(0)
        }

        fn shuffle(v: Neon, bytes: &[u8; 8], order: &[u8; 8]) -> uint8x8_t {
            vtbl1_u8(load_8(bytes), load_8(order))
        }

        fn store_eight(v: Neon, eight: uint8x8_t, to: &mut [u8; 8]) {
            store_8(to, eight);
        }
    }
}

// ---- shuffles of eight bytes

/// Operations on vectors of eight bytes.
trait Eights: Copy {
    type Eight: Copy;
    fn zero(self) -> Self::Eight;
    /// Returns the bytes at the indices in `order`. For the index [`ZERO`], returns 0.
    fn shuffle(self, bytes: &[u8; 8], order: &[u8; 8]) -> Self::Eight;
    fn store_eight(self, eight: Self::Eight, to: &mut [u8; 8]);
}

/// The index for which `pshufb` and `tbl` return 0.
const ZERO: u8 = 0x80;

/// [`Group::expand`], eight bytes at a time.
#[inline(always)]
fn expand<V: Eights>(v: V, bits: u64, next: &[u8; WINDOW]) -> [V::Eight; 8] {
    let mut eights = [v.zero(); 8];
    for ((eight, set), rank) in eights.iter_mut().zip(bits.to_le_bytes()).zip(ranks_of_bytes(bits)) {
        let next = &next[rank..].as_chunks().0[0]; // in bounds: see `WINDOW`
        *eight = v.shuffle(next, &ORDERS.expand[usize::from(set)]); // in bounds: a byte
    }
    eights
}

/// [`Group::compress`], eight bytes at a time.
#[inline(always)]
fn compress<V: Group + Eights>(v: V, bits: u64, bytes: V::Bytes, to: &mut [u8; WINDOW]) {
    let mut group = [0; GROUP];
    v.store(bytes, &mut group);
    for ((eight, set), rank) in group.as_chunks().0.iter().zip(bits.to_le_bytes()).zip(ranks_of_bytes(bits)) {
        let compressed = v.shuffle(eight, &ORDERS.compress[usize::from(set)]); // in bounds: a byte
        v.store_eight(compressed, &mut to[rank..].as_chunks_mut().0[0]); // in bounds: see `WINDOW`
    }
}

/// The indices of two shuffles that undo each other, for each subset of eight positions.
struct Orders {
    /// Each position in the subset receives the byte whose index is the position's rank in the
    /// subset. Each other position receives zero.
    expand: [[u8; 8]; 256],
    /// The bytes at the positions in the subset move to the start, in order.
    compress: [[u8; 8]; 256],
}

static ORDERS: Orders = {
    let mut orders = Orders { expand: [[ZERO; 8]; 256], compress: [[ZERO; 8]; 256] };
    let mut set = 0;
    while set < 256 {
        let (mut position, mut rank) = (0, 0);
        while position < 8 {
            if set >> position & 1 == 1 {
                orders.expand[set][position] = rank as u8; // exact: below 8
                orders.compress[set][rank] = position as u8; // exact: below 8
                rank += 1;
            }
            position += 1;
        }
        set += 1;
    }
    orders
};

/// Returns, for each byte of `mask`, the number of bits that are set in the lower bytes: at most
/// 56.
#[inline(always)]
fn ranks_of_bytes(mask: u64) -> [usize; 8] {
    // bit counts of pairs, nibbles and bytes (Warren, Hacker's Delight, 5-1), then sums of bytes
    let pairs = mask - (mask >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    let ranks = (bytes << 8).wrapping_mul(0x0101_0101_0101_0101);
    // `& 63` allows the compiler to drop the bounds checks of a window
    ranks.to_le_bytes().map(|rank| usize::from(rank & 63))
}
