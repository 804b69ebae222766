//! NEON, for aarch64: a group of 64 codes or a block of 512 elements in a step.
//!
//! Escapes are spread over the symbols, and collected, eight at a time by byte shuffles out of a table. Planes become elements, and
//! the reverse, by the bit-shuffle of the same instruction set. There is no `pdep` or `pext`: bits go four at a time by table.

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::portable::{self, COMPRESS, EXPAND, WINDOW, copy, first_bytes, lowest, ranks_of_bytes};
use super::{GROUP, Kernel, Tiers};
use crate::kernel::Width;
use crate::kernel::aarch64::{shuffle, unshuffle};

/// A group of bytes.
type Group = [uint8x16_t; 4];

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<Tiers> {
    let detected = is_aarch64_feature_detected!("neon");
    detected.then_some(Tiers { name: "neon", kernel: &Neon })
}

struct Neon;

// SAFETY, of all calls: only `detect` hands this out, and only where the CPU has NEON.
impl Kernel for Neon {
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

    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        portable::lengths(width, elements, out); // every aarch64 target has NEON
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

#[target_feature(enable = "neon")]
fn merge<const W: usize>(codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
    // an escape has no symbol of its own: it is put in place of a zero
    let mut table = *table;
    table[(1 << W) - 1] = 0; // in bounds: of 16
    let table = load(&table);
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

/// The symbols of a group of codes; `escaped` has those of the escapes, for which `table` has 0.
#[inline]
#[target_feature(enable = "neon")]
fn symbols<const W: usize>(group: &[u8], table: uint8x16_t, mut escaped: Group) -> Group {
    let (planes, _) = group.as_chunks::<8>();
    for (quarter, symbols) in escaped.iter_mut().enumerate() {
        let mut codes = vdupq_n_u8(0);
        for (bit, plane) in planes.iter().take(W).enumerate() {
            let bits = [2 * quarter, 2 * quarter + 1].map(|byte| vdup_n_u8(plane[byte])); // in bounds: 8 bytes, 4 quarters
            let ones = vtstq_u8(vcombine_u8(bits[0], bits[1]), load(&BIT_OF_PLACE));
            codes = vorrq_u8(codes, vandq_u8(ones, vdupq_n_u8(1 << bit)));
        }
        *symbols = vorrq_u8(*symbols, vqtbl1q_u8(table, codes));
    }
    escaped
}

/// The bytes in order, one for each bit that is set, and zero for any other.
#[inline]
#[target_feature(enable = "neon")]
fn expand(mask: u64, bytes: &[u8; WINDOW]) -> Group {
    let ranks = ranks_of_bytes(mask);
    let mut eights = [vdup_n_u8(0); 8];
    for ((eight, mask), rank) in eights.iter_mut().zip(mask.to_le_bytes()).zip(ranks) {
        let next = &bytes[rank..].as_chunks().0[0]; // in bounds: see WINDOW
        *eight = vtbl1_u8(load_8(next), load_8(&EXPAND[usize::from(mask)])); // in bounds: a byte
    }
    let [a, b, c, d, e, f, g, h] = eights;
    [vcombine_u8(a, b), vcombine_u8(c, d), vcombine_u8(e, f), vcombine_u8(g, h)]
}

#[target_feature(enable = "neon")]
fn split<const W: usize>(code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
    let tables = tables(code_of);
    let mut escapes = 0;
    for (symbols, codes) in symbols.chunks(GROUP).zip(codes.chunks_exact_mut(8 * W)) {
        let present = lowest(symbols.len());
        let mut room = [0; GROUP];
        let group = first_bytes(symbols, &mut room);
        let mask = split_group::<W>(&tables, group, present, codes);
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

/// A table of 256 in four quarters.
#[inline]
#[target_feature(enable = "neon")]
fn tables(code_of: &[u8; 256]) -> [uint8x16x4_t; 4] {
    let mut tables = [uint8x16x4_t(vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0)); 4];
    for (table, codes) in tables.iter_mut().zip(code_of.as_chunks().0) {
        let [a, b, c, d] = load_group(codes);
        *table = uint8x16x4_t(a, b, c, d);
    }
    tables
}

/// Stores the codes of a group of symbols of which those are `present`, and returns which of these escape.
#[inline]
#[target_feature(enable = "neon")]
fn split_group<const W: usize>(
    tables: &[uint8x16x4_t; 4],
    symbols: &[u8; GROUP],
    present: u64,
    codes: &mut [u8],
) -> u64 {
    let group = load_group(symbols).map(|mut symbols| {
        let mut codes = vdupq_n_u8(0);
        for table in tables {
            codes = vorrq_u8(codes, vqtbl4q_u8(*table, symbols)); // 0 unless below 64
            symbols = vsubq_u8(symbols, vdupq_n_u8(64));
        }
        codes
    });
    let (words, _) = codes.as_chunks_mut();
    let mut mask = present;
    for (bit, word) in words.iter_mut().take(W).enumerate() {
        let plane = mask_of(group.map(|codes| vtstq_u8(codes, vdupq_n_u8(1 << bit))));
        *word = (plane & present).to_le_bytes();
        mask &= plane;
    }
    mask
}

/// Brings the bytes whose bit is set to the start of `out`. What follows them there is unspecified.
#[inline]
#[target_feature(enable = "neon")]
fn compress(mask: u64, bytes: &[u8; GROUP], out: &mut [u8; WINDOW]) {
    let (eights, _) = bytes.as_chunks();
    for ((eight, mask), rank) in eights.iter().zip(mask.to_le_bytes()).zip(ranks_of_bytes(mask)) {
        let compressed = vtbl1_u8(load_8(eight), load_8(&COMPRESS[usize::from(mask)])); // in bounds: a byte
        store_8(&mut out[rank..].as_chunks_mut().0[0], compressed); // in bounds: see WINDOW
    }
}

#[target_feature(enable = "neon")]
fn deposit<const PLANES: usize>(width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize {
    let unshuffle = |planes: &[u8], elements: &mut [u8]| unshuffle(width, planes, elements);
    portable::deposit_blocks::<PLANES, _>((lengths, bits, at, out), |lengths| nonzero(lengths), deposit_bits, unshuffle)
}

#[target_feature(enable = "neon")]
fn extract<const PLANES: usize>(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize {
    let shuffle = |elements: &[u8], planes: &mut [u8]| shuffle(width, elements, planes);
    portable::extract_blocks::<PLANES, _>(
        (lengths, elements, words, at),
        |lengths| nonzero(lengths),
        extract_bits,
        shuffle,
    )
}

/// Call by call, which lengths are greater than 0, 1, 2 and so on.
#[inline]
#[target_feature(enable = "neon")]
fn nonzero(lengths: &[u8; GROUP]) -> impl FnMut() -> u64 + use<> {
    let mut lengths = load_group(lengths);
    move || {
        let mask = mask_of(lengths.map(|lengths| vtstq_u8(lengths, lengths)));
        lengths = lengths.map(|lengths| vqsubq_u8(lengths, vdupq_n_u8(1)));
        mask
    }
}

/// A bit for each byte, which is all ones or zero.
#[inline]
#[target_feature(enable = "neon")]
fn mask_of(bytes: Group) -> u64 {
    let [a, b, c, d] = bytes.map(|bytes| vandq_u8(bytes, load(&BIT_OF_PLACE)));
    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d)); // of four bytes each, in order
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
}

/// For each of 16 places its bit in a byte.
const BIT_OF_PLACE: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// Puts the lowest bits in order to the places that `mask` has, as `pdep` does.
#[inline]
fn deposit_bits(mut bits: u64, mask: u64) -> u64 {
    let mut deposited = 0;
    for place in (0..64).step_by(4) {
        let four = (mask >> place & 15) as usize; // exact
        deposited |= u64::from(DEPOSIT[four][(bits & 15) as usize]) << place; // in bounds: four bits each
        bits >>= four.count_ones();
    }
    deposited
}

/// Brings the bits that `mask` has to the lowest places, as `pext` does.
#[inline]
fn extract_bits(word: u64, mask: u64) -> u64 {
    let (mut extracted, mut count) = (0, 0);
    for place in (0..64).step_by(4) {
        let four = (mask >> place & 15) as usize; // exact
        extracted |= u64::from(EXTRACT[four][(word >> place & 15) as usize]) << count; // in bounds: four bits each; below 64
        count += four.count_ones();
    }
    extracted
}

/// [`deposit_bits`] of four bits, by mask and bits.
static DEPOSIT: [[u8; 16]; 16] = by_mask_and_bits(true);

/// [`extract_bits`] of four bits, by mask and bits.
static EXTRACT: [[u8; 16]; 16] = by_mask_and_bits(false);

const fn by_mask_and_bits(deposit: bool) -> [[u8; 16]; 16] {
    let mut table = [[0; 16]; 16];
    let mut entry = 0;
    while entry < 256 {
        let (mask, bits) = (entry / 16, entry % 16);
        let (mut place, mut rank) = (0, 0);
        while place < 4 {
            if mask >> place & 1 == 1 {
                let (from, to) = if deposit { (rank, place) } else { (place, rank) };
                table[mask][bits] |= (bits as u8 >> from & 1) << to; // exact: four bits
                rank += 1;
            }
            place += 1;
        }
        entry += 1;
    }
    table
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference is good for 16 bytes; the load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_8(bytes: &[u8; 8]) -> uint8x8_t {
    // SAFETY: the reference is good for 8 bytes; the load needs no alignment.
    unsafe { vld1_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_group(bytes: &[u8; GROUP]) -> Group {
    let mut group = [vdupq_n_u8(0); 4];
    for (vector, bytes) in group.iter_mut().zip(bytes.as_chunks().0) {
        *vector = load(bytes);
    }
    group
}

#[inline]
#[target_feature(enable = "neon")]
fn store_8(bytes: &mut [u8; 8], vector: uint8x8_t) {
    // SAFETY: the reference is good for 8 bytes; the store needs no alignment.
    unsafe { vst1_u8(bytes.as_mut_ptr(), vector) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_group(bytes: &mut [u8; GROUP], group: Group) {
    for (bytes, vector) in bytes.as_chunks_mut::<16>().0.iter_mut().zip(group) {
        // SAFETY: the reference is good for 16 bytes; the store needs no alignment.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) }
    }
}
