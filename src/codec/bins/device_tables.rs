//! The tables of bins for decoders on devices: each field has a place.
//!
//! A file has the fields one after the other, in as few bytes as possible, and dictionaries as
//! steps that are decoded one by one. That takes one pass over the tables of a chunk, which a
//! device would repeat for each block; so it is made here, once, with all checks. The kernels of
//! `crates/tensilo-cuda` read this layout: `kernels/bin_tables.h` has the same offsets.

use super::cut;
use super::mappings::Mapping;
use super::tables::{BinTables, TABLE_HEAD_BYTES};
use crate::codec::part::PartSpec;
use crate::kernel::bins::BINS;
use crate::{Result, memory};

const LOW_BYTES: usize = 16;
const CLASS_COUNT: usize = 17;
const MAPPING: usize = 18;
const NUMBER_BYTES: usize = 19;
const FLOAT_TYPE: usize = 20;
const DETAIL_BITS: usize = 21;
const GAP_RICE: usize = 22;
const UPPER_BITS: usize = 24;
const OUTLIER_RICE: usize = 25;
const TAPS: usize = 27;
const FILTER_COUNT: usize = 28;
const DICTIONARY_COUNT: usize = 29;
const FILTER_ZERO: usize = 30;
const RESTART_SEGMENTS: usize = 32;
const EXPONENT: usize = 34;
const DIVISOR: usize = 36;
const FILLER: usize = 40;
const FACTOR: usize = 48;
const BITS: usize = 56;
const FREQUENCIES: usize = BITS + BINS;
const COEFFICIENTS: usize = FREQUENCIES + 4 * BINS;
/// The ends of dictionaries, and then their values from the next multiple of 8 on.
const DICTIONARIES: usize = COEFFICIENTS + 2 * 16 * 16;

/// Checks tables, and appends them in the layout for devices.
pub(super) fn write(spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let parsed = BinTables::parse(spec, tables)?;
    let start = out.len();
    memory::resize(out, start + DICTIONARIES, 0)?;
    let fixed = out.get_mut(start..).unwrap_or(&mut []);
    // the tables are whole: they were parsed
    let (head, rest) = tables.split_at_checked(TABLE_HEAD_BYTES).ok_or_else(cut)?;
    put(fixed, 0, head.get(4..20).unwrap_or(&[]));
    put(fixed, LOW_BYTES, &[parsed.low_bytes as u8]); // exact, as the next: small counts
    put(fixed, CLASS_COUNT, &[parsed.class_count as u8]);
    put(fixed, MAPPING, head.get(23..24).unwrap_or(&[]));
    let (bits, mut rest) = rest.split_at_checked(parsed.bin_count).ok_or_else(cut)?;
    put(fixed, BITS, bits);
    for class in 0..parsed.class_count {
        let ([first, count], after) = rest.split_first_chunk().ok_or_else(cut)?;
        let (frequencies, after) = after.split_at_checked(usize::from(*count)).ok_or_else(cut)?;
        put(fixed, FREQUENCIES + class * BINS + usize::from(*first), frequencies);
        rest = after;
    }
    if let Some(gaps) = parsed.options.gaps {
        put(fixed, FILLER, &gaps.filler);
        put(fixed, GAP_RICE, &gaps.parameters.to_bytes());
    }
    if let Some(outliers) = parsed.options.outliers {
        put(fixed, UPPER_BITS, &[outliers.upper_bits]);
        put(fixed, OUTLIER_RICE, &outliers.parameters.to_bytes());
    }
    if let Some(filters) = parsed.options.filters {
        let bank = filters.bank;
        put(fixed, TAPS, &[bank.taps as u8]); // exact, as the next: at most 16
        put(fixed, FILTER_COUNT, &[filters.filter_count as u8]);
        put(fixed, FILTER_ZERO, &bank.zero.to_le_bytes());
        put(fixed, RESTART_SEGMENTS, &bank.restart.to_le_bytes());
        let coefficients = bank.coefficients.iter().flatten();
        for (i, coefficient) in coefficients.enumerate() {
            put(fixed, COEFFICIENTS + 2 * i, &coefficient.to_le_bytes());
        }
    }
    let number_bytes = parsed.mapping.widths(spec.width_and_count()?.0).number.bytes();
    put(fixed, NUMBER_BYTES, &[number_bytes as u8]); // exact: at most 8
    match &parsed.mapping {
        Mapping::None => {}
        Mapping::Quotient(quotient) => {
            put(fixed, FLOAT_TYPE, &[quotient.float_type.code()]);
            put(fixed, DETAIL_BITS, &[quotient.detail_bits]);
            put(fixed, EXPONENT, &quotient.exponent.to_le_bytes());
            put(fixed, DIVISOR, &quotient.divisor.to_le_bytes());
        }
        Mapping::Multiple(multiple) => put(fixed, FACTOR, &multiple.factor.to_le_bytes()),
        Mapping::Palette(palettes) => {
            put(fixed, DICTIONARY_COUNT, &[palettes.ends.len() as u8]); // exact: a byte in the file
            for &end in &palettes.ends {
                out.extend_from_slice(&u32::try_from(end).map_err(|_| cut())?.to_le_bytes());
            }
            let aligned = start + (out.len() - start).next_multiple_of(8);
            memory::resize(out, aligned, 0)?;
            memory::extend(out, &palettes.values)?;
        }
    }
    Ok(())
}

/// Sets the bytes from `at` on, which are there.
fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(to) = out.get_mut(at..at + bytes.len()) {
        to.copy_from_slice(bytes); // equal lengths
    }
}
