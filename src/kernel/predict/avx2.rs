//! AVX2: vectors of two lanes.
//!
//! Only shuffles of whole lanes move data between lanes, so sums are first computed within each
//! lane. No instruction shifts or multiplies bytes. Bytes are therefore computed as the halves of
//! elements of 2 bytes, and masks remove the bits that come from the other half.

use super::vectors::{COLUMNS, Vectors};
use crate::kernel::dispatch::{Avx2, intrinsics};
use crate::kernel::vectors::RowOffsets;
use crate::kernel::vectors::x86_64::{load_32, load_lanes, load_rows, store_16, store_32, store_rows};
use crate::kernel::{Word, copy_short};
use std::arch::x86_64::*;

intrinsics! {
    [Avx2]
    impl Vectors for Avx2 {
        type Vector = __m256i;
        type Narrower = Avx2;
        const BYTES: usize = 32;
        const LANE: usize = 16;

        fn zero(v: Avx2) -> __m256i {
            _mm256_setzero_si256()
        }

        fn load(v: Avx2, bytes: &[u8]) -> __m256i {
            if let Some(whole) = bytes.first_chunk() {
                load_32(whole)
            } else {
                let mut padded = [0; 32];
                copy_short(bytes, &mut padded);
                load_32(&padded)
            }
        }

        fn store(v: Avx2, vector: __m256i, bytes: &mut [u8]) {
            if let Some(whole) = bytes.first_chunk_mut() {
                store_32(whole, vector)
            } else {
                let mut padded = [0; 32];
                store_32(&mut padded, vector);
                copy_short(&padded, bytes);
            }
        }

        fn plus<W: Word>(v: Avx2, a: __m256i, b: __m256i) -> __m256i {
            match W::BYTES {
                1 => _mm256_add_epi8(a, b),
                2 => _mm256_add_epi16(a, b),
                4 => _mm256_add_epi32(a, b),
                _ => _mm256_add_epi64(a, b),
            }
        }

        fn rotate_right<W: Word>(v: Avx2, x: __m256i) -> __m256i {
            let (half, lowest) = match W::BYTES {
                1 => {
                    // no instruction shifts bytes: the mask removes the bits of the next byte
                    let others = _mm256_set1_epi8(i8::MAX);
                    (
                        _mm256_and_si256(_mm256_srli_epi16::<1>(x), others),
                        _mm256_andnot_si256(others, _mm256_slli_epi16::<7>(x)),
                    )
                }
                2 => (_mm256_srli_epi16::<1>(x), _mm256_slli_epi16::<15>(x)),
                4 => (_mm256_srli_epi32::<1>(x), _mm256_slli_epi32::<31>(x)),
                _ => (_mm256_srli_epi64::<1>(x), _mm256_slli_epi64::<63>(x)),
            };
            _mm256_or_si256(half, lowest)
        }

        fn invert_negative<W: Word>(v: Avx2, x: __m256i) -> __m256i {
            let zero = v.zero();
            let (sign, others) = match W::BYTES {
                1 => (_mm256_cmpgt_epi8(zero, x), _mm256_set1_epi8(i8::MAX)),
                2 => (_mm256_srai_epi16::<15>(x), _mm256_set1_epi16(i16::MAX)),
                4 => (_mm256_srai_epi32::<31>(x), _mm256_set1_epi32(i32::MAX)),
                _ => (_mm256_cmpgt_epi64(zero, x), _mm256_set1_epi64x(i64::MAX)),
            };
            _mm256_xor_si256(x, _mm256_and_si256(sign, others))
        }

        fn load_lanes(v: Avx2, bytes: &[u8], lane: usize) -> __m256i {
            let mut padded = [0; 32];
            let bytes = if bytes.len() < lane + 16 {
                copy_short(bytes, &mut padded);
                &padded
            } else {
                bytes
            };
            match (bytes.first_chunk(), bytes.get(lane..).and_then(<[u8]>::first_chunk)) {
                (Some(lower), Some(upper)) => load_lanes(lower, upper),
                _ => v.zero(), // never: both lanes are in `bytes`, which is padded if it is short
            }
        }

        fn store_lanes(v: Avx2, vector: __m256i, bytes: &mut [u8], lane: usize) {
            // the upper lane overwrites the bytes that follow the lower lane
            let [lower, upper] = [_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector)];
            for (start, part) in [(0, lower), (lane, upper)] {
                if let Some(to) = bytes.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
                    store_16(to, part)
                }
            }
        }

        fn shuffle(v: Avx2, vector: __m256i, order: __m256i) -> __m256i {
            _mm256_shuffle_epi8(vector, order)
        }

        fn lane_before(v: Avx2, vector: __m256i) -> __m256i {
            _mm256_permute2x128_si256::<0x08>(vector, vector)
        }

        fn last_lane(v: Avx2, vector: __m256i) -> __m256i {
            _mm256_permute2x128_si256::<0x11>(vector, vector)
        }

        fn eighths<W: Word>(v: Avx2, x: __m256i, weight: u8) -> __m256i {
            match W::BYTES {
                // `mulhrs` divides the product by 2^15, so an element is placed in the upper byte
                // of a factor
                1 => {
                    let weight = _mm256_set1_epi16(i16::from(weight) << 4);
                    let low = _mm256_mulhrs_epi16(_mm256_slli_epi16::<8>(x), weight);
                    let high = _mm256_mulhrs_epi16(_mm256_andnot_si256(_mm256_set1_epi16(0xFF), x), weight);
                    _mm256_or_si256(_mm256_and_si256(_mm256_set1_epi16(0xFF), low), _mm256_slli_epi16::<8>(high))
                }
                2 => _mm256_mulhrs_epi16(x, _mm256_set1_epi16(i16::from(weight) << 12)),
                _ => {
                    let (weight, seven) = (_mm256_set1_epi32(weight.into()), _mm256_set1_epi32(7));
                    let whole = _mm256_mullo_epi32(_mm256_srai_epi32::<3>(x), weight);
                    let rest = _mm256_mullo_epi16(_mm256_and_si256(x, seven), weight); // at most 49
                    let rest = _mm256_srli_epi32::<3>(_mm256_add_epi32(rest, _mm256_set1_epi32(4)));
                    _mm256_add_epi32(whole, rest)
                }
            }
        }

        fn narrower(v: Avx2) -> Avx2 {
            v
        }

        fn load_rows(v: Avx2, bytes: &[u8], rows: &RowOffsets) -> [__m256i; COLUMNS] {
            load_rows(bytes, rows)
        }

        fn store_rows(v: Avx2, tile: [__m256i; COLUMNS], bytes: &mut [u8], rows: &RowOffsets) {
            store_rows(bytes, rows, tile)
        }

        fn interleave(v: Avx2, a: __m256i, b: __m256i) -> [__m256i; 2] {
            [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
        }

        fn minus(v: Avx2, a: __m256i, b: __m256i) -> __m256i {
            _mm256_sub_epi16(a, b)
        }

        fn and(v: Avx2, a: __m256i, b: __m256i) -> __m256i {
            _mm256_and_si256(a, b)
        }

        fn multiply(v: Avx2, a: __m256i, b: __m256i) -> __m256i {
            _mm256_mulhrs_epi16(a, b)
        }

        fn pairs(v: Avx2, last: __m256i, before: __m256i) -> [__m256i; 2] {
            let even = _mm256_blend_epi16::<0xAA>(last, _mm256_slli_epi32::<16>(before));
            let odd = _mm256_blend_epi16::<0xAA>(_mm256_srli_epi32::<16>(last), before);
            [even, odd]
        }

        fn add_products(v: Avx2, sums: __m256i, pairs: __m256i, factors: __m256i) -> __m256i {
            _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, factors))
        }

        fn join_sums(v: Avx2, [even, odd]: [__m256i; 2]) -> __m256i {
            _mm256_blend_epi16::<0xAA>(_mm256_srli_epi32::<12>(even), _mm256_slli_epi32::<4>(odd))
        }
    }
}
