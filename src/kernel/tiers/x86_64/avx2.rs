//! AVX2 with BMI2: a group of 64 codes or a block of 512 elements in a step.
//!
//! Escapes are spread over the symbols, and collected, eight at a time by byte shuffles out of a table. Planes become elements, and
//! the reverse, by the bit-shuffle of the same instruction set, extra bits by `pdep` and `pext`.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::portable::{self, COMPRESS, EXPAND, WINDOW, copy, first_bytes, lowest, ranks_of_bytes};
use super::super::{GROUP, Kernel, Tiers};
use crate::kernel::Width;
use crate::kernel::x86_64::avx2::{shuffle, unshuffle};

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<Tiers> {
    let detected = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    detected.then_some(Tiers { name: "avx2", kernel: &Avx2 })
}

struct Avx2;

// SAFETY, of all calls: only `detect` hands this out, and only where the CPU has the features.
impl Kernel for Avx2 {
    fn merge(&self, width: usize, codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                1 => merge::<1>(codes, table, escaped, out),
                2 => merge::<2>(codes, table, escaped, out),
                3 => merge::<3>(codes, table, escaped, out),
                _ => merge::<4>(codes, table, escaped, out),
            }
        }
    }

    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                1 => split::<1>(code_of, symbols, codes, escaped),
                2 => split::<2>(code_of, symbols, codes, escaped),
                3 => split::<3>(code_of, symbols, codes, escaped),
                _ => split::<4>(code_of, symbols, codes, escaped),
            }
        }
    }

    fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        // SAFETY: see above.
        unsafe { escapes(width, codes, range) }
    }

    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        // SAFETY: see above.
        unsafe { lengths(width, elements, out) }
    }

    fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                Width::W1 => deposit::<8>(width, lengths, bits, at, out),
                Width::W2 => deposit::<16>(width, lengths, bits, at, out),
                Width::W4 => deposit::<32>(width, lengths, bits, at, out),
                Width::W8 => deposit::<64>(width, lengths, bits, at, out),
            }
        }
    }

    fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                Width::W1 => extract::<8>(width, lengths, elements, words, at),
                Width::W2 => extract::<16>(width, lengths, elements, words, at),
                Width::W4 => extract::<32>(width, lengths, elements, words, at),
                Width::W8 => extract::<64>(width, lengths, elements, words, at),
            }
        }
    }
}

#[target_feature(enable = "popcnt")]
fn escapes(width: usize, codes: &[u8], range: Range<usize>) -> usize {
    super::super::escapes(width, codes, range)
}

#[target_feature(enable = "avx2,bmi2,popcnt")]
fn merge<const W: usize>(codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
    // an escape has no symbol of its own: it is put in place of a zero
    let mut table = *table;
    table[(1 << W) - 1] = 0; // in bounds: of 16
    let table = broadcast(&table);
    let mut escapes = 0;
    for (out, group) in out.chunks_mut(GROUP).zip(codes.chunks_exact(8 * W)) {
        let mask = portable::escape_mask(group) & lowest(out.len());
        let mut room = [0; WINDOW];
        let next = first_bytes(escaped.get(escapes..).unwrap_or(&[]), &mut room);
        let symbols = symbols::<W>(group, table, expand(mask, next));
        match out.first_chunk_mut() {
            Some(out) => store_group(out, symbols),
            None => {
                let mut last = [0; GROUP];
                store_group(&mut last, symbols);
                copy(&last, out);
            }
        }
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}

/// The symbols of a group of codes; the vectors have those of the escapes, for which `table` has 0.
#[inline]
#[target_feature(enable = "avx2")]
fn symbols<const W: usize>(group: &[u8], table: __m256i, [low, high]: [__m256i; 2]) -> [__m256i; 2] {
    [
        _mm256_or_si256(low, _mm256_shuffle_epi8(table, codes::<W>(group, 0))),
        _mm256_or_si256(high, _mm256_shuffle_epi8(table, codes::<W>(group, 1))),
    ]
}

/// The codes of half a group.
#[inline]
#[target_feature(enable = "avx2")]
fn codes<const W: usize>(group: &[u8], half: usize) -> __m256i {
    let (words, _) = group.as_chunks();
    let mut codes = _mm256_setzero_si256();
    for (bit, word) in words.iter().take(W).enumerate() {
        let plane = (u64::from_le_bytes(*word) >> (32 * half)) as u32; // the half alone
        let bit = _mm256_and_si256(spread(plane), _mm256_set1_epi8(1 << bit));
        codes = _mm256_or_si256(codes, bit);
    }
    codes
}

/// All ones for each bit that is set, zero for any other.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(bits: u32) -> __m256i {
    let bytes = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
    let each = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bits = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), bytes);
    _mm256_cmpeq_epi8(_mm256_and_si256(bits, each), each)
}

/// The bytes in order, one for each bit that is set, and zero for any other.
#[inline]
#[target_feature(enable = "avx2")]
fn expand(mask: u64, bytes: &[u8; WINDOW]) -> [__m256i; 2] {
    let ranks = ranks_of_bytes(mask);
    let mut eights = [_mm_setzero_si128(); 8];
    for ((eight, mask), rank) in eights.iter_mut().zip(mask.to_le_bytes()).zip(ranks) {
        let next = &bytes[rank..].as_chunks().0[0]; // in bounds: see WINDOW
        *eight = _mm_shuffle_epi8(load_8(next), load_8(&EXPAND[usize::from(mask)])); // in bounds: a byte
    }
    let [a, b, c, d, e, f, g, h] = eights;
    let join = |a, b, c, d| _mm256_set_m128i(_mm_unpacklo_epi64(c, d), _mm_unpacklo_epi64(a, b));
    [join(a, b, c, d), join(e, f, g, h)]
}

/// Symbols that have the same upper half, and the codes of these, in which an escape is 0.
#[derive(Clone, Copy)]
struct Row {
    upper: __m256i,
    codes: __m256i,
}

#[target_feature(enable = "avx2,bmi2,popcnt")]
fn split<const W: usize>(code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
    let none = Row { upper: _mm256_setzero_si256(), codes: _mm256_setzero_si256() };
    let mut rows = [none; 16];
    let rows = rows_with_codes::<W>(code_of, &mut rows);
    let mut escapes = 0;
    for (symbols, codes) in symbols.chunks(GROUP).zip(codes.chunks_exact_mut(8 * W)) {
        let present = lowest(symbols.len());
        let mut room = [0; GROUP];
        let group = first_bytes(symbols, &mut room);
        let mask = split_group::<W>(rows, group, present, codes);
        let escaped = escaped.get_mut(escapes..).unwrap_or(&mut []);
        match escaped.first_chunk_mut() {
            Some(room) => compress(mask, group, room),
            None => {
                let mut last = [0; WINDOW];
                compress(mask, group, &mut last);
                copy(&last, escaped);
            }
        }
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}

/// The rows in which any symbol has a code.
#[inline]
#[target_feature(enable = "avx2")]
fn rows_with_codes<'r, const W: usize>(code_of: &[u8; 256], rows: &'r mut [Row; 16]) -> &'r [Row] {
    let escape = (1 << W) - 1;
    let mut count = 0;
    for (upper, codes) in code_of.as_chunks::<16>().0.iter().enumerate() {
        let codes = codes.map(|code| code & escape ^ escape);
        if let Some(row) = rows.get_mut(count).filter(|_| codes != [0; 16]) {
            *row = Row { upper: _mm256_set1_epi8((upper << 4) as i8), codes: broadcast(&codes) }; // all 8 bits
            count += 1;
        }
    }
    rows.get(..count).unwrap_or(&[]) // never: at most 16
}

/// Stores the codes of a group of symbols of which those are `present`, and returns which of these escape.
#[inline]
#[target_feature(enable = "avx2")]
fn split_group<const W: usize>(rows: &[Row], symbols: &[u8; GROUP], present: u64, codes: &mut [u8]) -> u64 {
    let (halves, _) = symbols.as_chunks();
    let mut inverted = [_mm256_setzero_si256(); 2];
    for row in rows {
        for (inverted, symbols) in inverted.iter_mut().zip(halves) {
            // 0 to 15 becomes 70 to 7F, for which a shuffle takes the lower half, and anything else 80 to FF, for which it gives 0
            let lower = _mm256_xor_si256(load(symbols), row.upper);
            let index = _mm256_adds_epu8(lower, _mm256_set1_epi8(0x70));
            *inverted = _mm256_or_si256(*inverted, _mm256_shuffle_epi8(row.codes, index));
        }
    }
    let (words, _) = codes.as_chunks_mut();
    let mut mask = present;
    for (bit, word) in words.iter_mut().take(W).enumerate() {
        let plane = !top_bits(inverted.map(|codes| _mm256_sll_epi16(codes, _mm_cvtsi32_si128(7 - bit as i32)))); // exact: below 4
        *word = (plane & present).to_le_bytes();
        mask &= plane;
    }
    mask
}

/// The top bit of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn top_bits([low, high]: [__m256i; 2]) -> u64 {
    let [low, high] = [low, high].map(|half| u64::from(_mm256_movemask_epi8(half) as u32)); // all 32 bits
    high << 32 | low
}

/// Brings the bytes whose bit is set to the start of `out`. What follows them there is unspecified.
#[inline]
#[target_feature(enable = "avx2")]
fn compress(mask: u64, bytes: &[u8; GROUP], out: &mut [u8; WINDOW]) {
    let ranks = ranks_of_bytes(mask);
    let (eights, _) = bytes.as_chunks();
    for ((eight, mask), rank) in eights.iter().zip(mask.to_le_bytes()).zip(ranks) {
        let compressed = _mm_shuffle_epi8(load_8(eight), load_8(&COMPRESS[usize::from(mask)])); // in bounds: a byte
        out[rank..].as_chunks_mut().0[0] = _mm_cvtsi128_si64(compressed).to_le_bytes(); // in bounds: see WINDOW
    }
}

#[target_feature(enable = "avx2,lzcnt")]
fn lengths(width: Width, elements: &[u8], out: &mut [u8]) {
    portable::lengths(width, elements, out);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn deposit<const PLANES: usize>(width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize {
    let deposit = |bits, mask| _pdep_u64(bits, mask);
    let unshuffle = |planes: &[u8], elements: &mut [u8]| unshuffle(width, planes, elements);
    portable::deposit_blocks::<PLANES, _>(lengths, bits, at, out, |group| nonzero(group), deposit, unshuffle)
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn extract<const PLANES: usize>(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize {
    let extract = |plane, mask| _pext_u64(plane, mask);
    let shuffle = |elements: &[u8], planes: &mut [u8]| shuffle(width, elements, planes);
    portable::extract_blocks::<PLANES, _>(lengths, elements, words, at, |group| nonzero(group), extract, shuffle)
}

/// Call by call, which lengths are greater than 0, 1, 2 and so on.
#[inline]
#[target_feature(enable = "avx2")]
fn nonzero(lengths: &[u8; GROUP]) -> impl FnMut() -> u64 + use<> {
    let (halves, _) = lengths.as_chunks();
    let mut lengths = [load(&halves[0]), load(&halves[1])]; // in bounds: two halves
    move || {
        let zero = top_bits(lengths.map(|half| _mm256_cmpeq_epi8(half, _mm256_setzero_si256())));
        lengths = lengths.map(|half| _mm256_subs_epu8(half, _mm256_set1_epi8(1)));
        !zero
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(bytes: &[u8; 16]) -> __m256i {
    // SAFETY: the reference is good for 16 bytes; the load needs no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_8(bytes: &[u8; 8]) -> __m128i {
    _mm_cvtsi64_si128(i64::from_le_bytes(*bytes))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is good for 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the reference is good for 32 bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_group(bytes: &mut [u8; GROUP], vectors: [__m256i; 2]) {
    let (halves, _) = bytes.as_chunks_mut();
    for (half, vector) in halves.iter_mut().zip(vectors) {
        store(half, vector);
    }
}
