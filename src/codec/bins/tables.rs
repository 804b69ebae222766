//! The stored form of bins (chapter 5.13): the tables of a part, and the sections of a block.
//!
//! The tables hold the transform, the bins, the frequencies of each class, the mapping and the
//! options. Decoding a block requires no other tables. Parsing checks everything that decoding
//! relies on: bins cover the window without gaps, the frequencies of a class add up to 256, and the
//! fields of mapping and options fit the widths of elements and numbers. A reader caches the tables
//! that it parsed last, because a sample usually follows another sample of the same chunk.
//!
//! A file stores the fields back to back, in as few bytes as possible, and dictionaries as steps. A
//! device would have to parse this form for each block, so [`write_device_tables`] runs all checks
//! once and puts each field at a fixed offset.
//!
//! A block has class codes, low bytes, states and a stream. Windows are decoded in order, so the
//! first elements of a block can be decoded without the others. If elements have two bytes, their
//! windows are the elements; otherwise, windows are joined with the bytes below them.

use super::mapping::Mapping;
use super::options::Options;
use super::{cut, malformed_block, malformed_tables};
use crate::bytes::le::{Fields, structure};
use crate::bytes::memory;
use crate::codec::{
    bits::{ClassCodes, with_width},
    part::{Description, PartSpec},
    transform::Transform,
};
use crate::kernel::{
    Width,
    bins::{BINS, BinModel, CLASSES, CodedBlock, GROUP, best},
};
use crate::{Error, Result};
use std::sync::Arc;

structure! {
    /// Chapter 5.13: the length of the tables.
    mod length: 4 bytes {
        0 => TABLE_BYTES: u32,
    }
}

structure! {
    /// Chapter 5.13: the fixed fields of the tables.
    mod table_header: 24 bytes with length {
        4 => TRANSFORM: [u8; 16],
        20 => LOW_BYTES: u8,
        21 => BIN_COUNT: u8,
        22 => CLASS_COUNT: u8,
        23 => MAPPING: u8,
    }
}

const MAX_BIN_BITS: u8 = 15;

pub(super) const TABLE_HEADER_BYTES: usize = table_header::SIZE;

/// The tables of a part, parsed.
#[derive(Clone)]
pub(crate) struct BinTables {
    pub transform: Transform,
    /// The number of bytes of a coded integer below its window.
    pub low_bytes: usize,
    pub model: BinModel,
    pub bin_count: usize,
    pub class_count: usize,
    pub mapping: Mapping,
    pub options: Options,
}

/// Returns the length of the tables at the start of `tables`; `None` if there are too few bytes, or
/// if the length does not even include its own field.
pub(crate) fn table_bytes(tables: &[u8]) -> Option<usize> {
    let bytes = usize::try_from(length::TABLE_BYTES.get(tables.first_chunk()?)).ok()?;
    (bytes >= length::SIZE).then_some(bytes)
}

/// The fields of the tables that writers choose.
#[derive(Clone, Copy)]
pub(super) struct TableFields<'a> {
    /// The width of elements.
    pub width: Width,
    pub mapping: &'a Mapping,
    pub options: &'a Options,
    pub transform: Transform,
    pub low_bytes: usize,
}

pub(super) fn write_tables(
    header: TableFields<'_>,
    bins: &[u8],
    classes: &[Frequencies],
    tables: &mut Vec<u8>,
) -> Result<()> {
    let start = tables.len();
    tables.resize(start + table_header::SIZE, 0);
    tables.extend_from_slice(bins);
    for class in classes {
        let (first, frequencies) = class.range();
        tables.extend([first as u8, frequencies.len() as u8]); // exact: at most 64
        tables.extend_from_slice(frequencies);
    }
    header.mapping.write(tables);
    header.options.write(header.width, tables);
    let field = |count: usize| u8::try_from(count).map_err(|_| Error::internal("a table field exceeds 255"));
    let table_bytes = u32::try_from(tables.len() - start).map_err(|_| cut())?;
    let to = tables.get_mut(start..).and_then(<[u8]>::first_chunk_mut).ok_or_else(cut)?;
    table_header::TRANSFORM.put(to, header.transform.to_bytes());
    table_header::LOW_BYTES.put(to, field(header.low_bytes)?);
    table_header::BIN_COUNT.put(to, field(bins.len())?);
    table_header::CLASS_COUNT.put(to, field(classes.len())?);
    table_header::MAPPING.put(to, header.mapping.kind() | header.options.bits());
    let to = to.first_chunk_mut().ok_or_else(cut)?;
    length::TABLE_BYTES.put(to, table_bytes);
    Ok(())
}

impl BinTables {
    /// Parses tables, and checks.
    pub(crate) fn parse(spec: PartSpec<'_>, tables: &[u8]) -> Result<Self> {
        let mut parsed = Self {
            transform: Transform::None,
            low_bytes: 0,
            model: BinModel::default(),
            bin_count: 0,
            class_count: 0,
            mapping: Mapping::None,
            options: Options::default(),
        };
        parsed.set(spec, tables).map(|()| parsed)
    }

    /// Like [`BinTables::parse`], but in place. After an error, the contents are unspecified.
    fn set(&mut self, spec: PartSpec<'_>, tables: &[u8]) -> Result<()> {
        let (width, _) = spec.width_and_count()?;
        let (header, rest) = tables.split_first_chunk::<{ table_header::SIZE }>().ok_or_else(cut)?;
        self.transform = Transform::parse_for_bins(&table_header::TRANSFORM.get(header))?;
        self.low_bytes = table_header::LOW_BYTES.get(header).into();
        self.bin_count = table_header::BIN_COUNT.get(header).into();
        self.class_count = table_header::CLASS_COUNT.get(header).into();
        let (mapping, options) = Options::split(table_header::MAPPING.get(header));
        let fields = [
            ("bin_count", (2..=BINS).contains(&self.bin_count)),
            ("class_count", (1..=CLASSES).contains(&self.class_count)),
            ("mapping", Mapping::is_known(mapping) && Options::are_known(options)),
        ];
        if let Some((wrong, _)) = fields.into_iter().find(|(_, is_valid)| !is_valid) {
            return Err(malformed_tables(&format!("{wrong} is out of range")));
        }
        let (bins, mut rest) = rest.split_at_checked(self.bin_count).ok_or_else(cut)?;
        for class in 0..self.class_count {
            rest = self.set_class(class, rest)?;
        }
        let mut rest = Fields::new(rest);
        self.mapping.set(mapping, width, &mut rest)?;
        self.options = Options::parse(options, width, &mut rest)?;
        if rest.remaining() > 0 {
            return Err(cut());
        }
        let width = self.mapping.widths(width).number;
        if self.low_bytes > width.bytes().saturating_sub(2) {
            return Err(malformed_tables("low_bytes is out of range"));
        }
        check_bins(bins, 8 * width.bytes().min(2))?;
        self.options.check_numbers(width, self.low_bytes, self.transform)?;
        self.model.set_bins(bins);
        Ok(())
    }

    /// Sets the frequencies of a class. Returns the bytes after them.
    fn set_class<'a>(&mut self, class: usize, rest: &'a [u8]) -> Result<&'a [u8]> {
        let ([first, count], rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (first, count) = (usize::from(*first), usize::from(*count));
        let (frequencies, rest) = rest.split_at_checked(count).ok_or_else(cut)?;
        let sum: u32 = frequencies.iter().map(|&frequency| u32::from(frequency)).sum();
        if first + count > self.bin_count {
            return Err(malformed_tables(&format!("class {class} has frequencies of bins beyond bin_count")));
        }
        if sum != 256 {
            return Err(malformed_tables(&format!("the frequencies of class {class} add up to {sum}, not to 256")));
        }
        self.model.set_class(class, first, frequencies);
        Ok(rest)
    }

    /// Returns whether bins code all elements directly, without a mapping or options.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.mapping, Mapping::None) && self.options.is_empty()
    }

    pub(super) fn class_codes(&self) -> ClassCodes {
        ClassCodes::new(self.class_count)
    }
}

/// Checks for the bins of windows of `window_bits` bits.
fn check_bins(bins: &[u8], window_bits: usize) -> Result<()> {
    let mut start = 0_u32;
    for &bits in bins {
        if bits > MAX_BIN_BITS || !start.is_multiple_of(1 << bits) {
            return Err(malformed_tables(&format!(
                "a bin of 2^{bits} values begins at {start}; bins have at most 2^{MAX_BIN_BITS} values, and begin at a \
                 multiple of their length"
            )));
        }
        start += 1 << bits; // no overflow: at most 64 times 2^15
    }
    if start != 1 << window_bits {
        return Err(malformed_tables(&format!("the bins end at {start}, not at 2^{window_bits}")));
    }
    Ok(())
}

/// The tables that were parsed last, and the bytes that they were parsed from.
#[derive(Default)]
pub(crate) struct BinTableCache(Option<CachedBinTables>);

struct CachedBinTables {
    element_bytes: usize,
    bytes: Vec<u8>,
    tables: Arc<BinTables>,
}

impl BinTableCache {
    /// Returns the tables parsed from these bytes. Reuses the memory of the cached tables if they
    /// are not shared.
    pub(crate) fn get(&mut self, spec: PartSpec<'_>, bytes: &[u8]) -> Result<Arc<BinTables>> {
        match &mut self.0 {
            Some(cached) if cached.element_bytes == spec.element_bytes && cached.bytes == bytes => {}
            Some(cached) => {
                cached.element_bytes = 0; // invalid, until parsing has succeeded
                cached.bytes.clear();
                match Arc::get_mut(&mut cached.tables) {
                    Some(tables) => tables.set(spec, bytes)?,
                    None => cached.tables = Arc::new(BinTables::parse(spec, bytes)?),
                }
                memory::extend(&mut cached.bytes, bytes)?;
                cached.element_bytes = spec.element_bytes;
            }
            None => {
                let tables = Arc::new(BinTables::parse(spec, bytes)?);
                let bytes = memory::copied(bytes)?;
                self.0 = Some(CachedBinTables { element_bytes: spec.element_bytes, bytes, tables });
            }
        }
        self.0.as_ref().map(|cached| Arc::clone(&cached.tables)).ok_or_else(cut)
    }
}

// ---- frequencies of a class

/// The number of times that each bin occurs.
pub(super) type Counts = [u32; BINS];

/// The frequencies of all bins in a class.
#[derive(Clone, Debug)]
pub(super) struct Frequencies {
    of: [u8; BINS],
}

/// The sum of the frequencies of a class.
const FREQUENCY_SUM: u32 = 256;

impl Frequencies {
    /// Returns frequencies that code `counts` in about the fewest bits. All bins that occur, but at
    /// least two bins, have a frequency other than 0.
    pub(super) fn of(counts: &Counts) -> Self {
        let total: u64 = counts.iter().copied().map(u64::from).sum();
        let mut of = counts.map(|count| {
            // at most 256
            let share = (u64::from(count) * u64::from(FREQUENCY_SUM)).checked_div(total).unwrap_or(0) as u32;
            if count == 0 { 0 } else { share.max(1) }
        });
        normalize(&mut of, counts);
        Self::with_two_bins(of)
    }

    /// Makes sure that two bins have a frequency. If one bin has the whole sum, it passes 1 on to
    /// another bin. If no bin has a frequency, the first two bins share the sum.
    fn with_two_bins(mut of: [u32; BINS]) -> Self {
        if let Some(all) = of.iter().position(|&frequency| frequency == FREQUENCY_SUM) {
            of = [0; BINS];
            of[all] = FREQUENCY_SUM - 1; // in bounds: a bin
            of[if all == 0 { 1 } else { all - 1 }] = 1; // in bounds: there are 64
        }
        if of == [0; BINS] {
            (of[0], of[1]) = (FREQUENCY_SUM - 1, 1);
        }
        Self { of: of.map(|frequency| frequency as u8) } // exact: below 256
    }

    pub(super) fn bits(&self, counts: &Counts) -> f32 {
        let bits = |(&count, &frequency): (&u32, &u8)| match count {
            0 => 0.0,
            _ => count as f32 * (8.0 - f32::from(frequency).log2()),
        };
        counts.iter().zip(&self.of).map(bits).sum()
    }

    /// Returns the first bin that has a frequency, and the frequencies from this bin to the last
    /// bin that has one.
    pub(super) fn range(&self) -> (usize, &[u8]) {
        let has_one = |&frequency: &u8| frequency > 0;
        let first = self.of.iter().position(has_one).unwrap_or(0);
        let end = self.of.iter().rposition(has_one).map_or(0, |last| last + 1);
        (first, self.of.get(first..end).unwrap_or(&[]))
    }
}

/// Raises or lowers frequencies by one until they add up to [`FREQUENCY_SUM`].
fn normalize(of: &mut [u32; BINS], counts: &Counts) {
    let mut sum: u32 = of.iter().sum();
    // about proportional to the number of bits saved by raising the frequency by one
    let gain = |count: u32, frequency: u32| count as f32 / (frequency as f32 + 0.5);
    let mut gains = map_bins(counts, of, gain);
    while sum < FREQUENCY_SUM {
        let highest = best_bin(&gains, |gain, highest| gain >= highest);
        // in bounds: bins
        if counts[highest] == 0 {
            break; // no bin occurs
        }
        of[highest] += 1;
        gains[highest] = gain(counts[highest], of[highest]);
        sum += 1;
    }
    let loss = |count: u32, frequency: u32| match frequency {
        0..=1 => f32::INFINITY,
        _ => count as f32 / (frequency as f32 - 0.5),
    };
    let mut losses = map_bins(counts, of, loss);
    while sum > FREQUENCY_SUM {
        let lowest = best_bin(&losses, |loss, lowest| loss < lowest);
        // in bounds: bins
        of[lowest] -= 1; // more than 1: the sum exceeds the number of bins
        losses[lowest] = loss(counts[lowest], of[lowest]);
        sum -= 1;
    }
}

fn map_bins(counts: &Counts, of: &[u32; BINS], value: impl Fn(u32, u32) -> f32) -> [f32; BINS] {
    std::array::from_fn(|bin| value(counts[bin], of[bin])) // in bounds: a bin
}

/// Returns the index of the best value, scanning from the first to the last.
fn best_bin(values: &[f32; BINS], is_better: impl Fn(f32, f32) -> bool) -> usize {
    let mut best = (0, values[0]);
    for (bin, &value) in values.iter().enumerate() {
        if is_better(value, best.1) {
            best = (bin, value);
        }
    }
    best.0
}

// ---- the layout for devices

/// The offsets of the layout for devices. `kernels/bin_tables.h` of `tensilo-cuda` repeats them.
mod at {
    use super::BINS;

    pub(super) const LOW_BYTES: usize = 16;
    pub(super) const CLASS_COUNT: usize = 17;
    pub(super) const MAPPING: usize = 18;
    pub(super) const NUMBER_BYTES: usize = 19;
    pub(super) const FLOAT_TYPE: usize = 20;
    pub(super) const DETAIL_BITS: usize = 21;
    pub(super) const GAP_RICE: usize = 22;
    pub(super) const UPPER_BITS: usize = 24;
    pub(super) const OUTLIER_RICE: usize = 25;
    pub(super) const TAPS: usize = 27;
    pub(super) const FILTER_COUNT: usize = 28;
    pub(super) const DICTIONARY_COUNT: usize = 29;
    pub(super) const FILTER_ZERO: usize = 30;
    pub(super) const RESTART_SEGMENTS: usize = 32;
    pub(super) const EXPONENT: usize = 34;
    pub(super) const DIVISOR: usize = 36;
    pub(super) const FILLER: usize = 40;
    pub(super) const FACTOR: usize = 48;
    pub(super) const BITS: usize = 56;
    pub(super) const FREQUENCIES: usize = BITS + BINS;
    pub(super) const COEFFICIENTS: usize = FREQUENCIES + 4 * BINS;
    /// The ends of dictionaries, followed by their values at the next multiple of 8.
    pub(super) const DICTIONARIES: usize = COEFFICIENTS + 2 * 16 * 16;
}

/// Checks tables, and appends them in the layout for devices.
pub(super) fn write_device_tables(spec: PartSpec<'_>, tables: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let parsed = BinTables::parse(spec, tables)?;
    let start = out.len();
    memory::resize(out, start + at::DICTIONARIES, 0)?;
    let fixed = out.get_mut(start..).unwrap_or(&mut []);
    // the tables are complete: they were parsed
    let (header, rest) = tables.split_at_checked(TABLE_HEADER_BYTES).ok_or_else(cut)?;
    put_at(fixed, 0, header.get(4..20).unwrap_or(&[]));
    put_at(fixed, at::LOW_BYTES, &[parsed.low_bytes as u8]); // exact, like the next: small counts
    put_at(fixed, at::CLASS_COUNT, &[parsed.class_count as u8]);
    put_at(fixed, at::MAPPING, header.get(23..24).unwrap_or(&[]));
    let (bits, mut rest) = rest.split_at_checked(parsed.bin_count).ok_or_else(cut)?;
    put_at(fixed, at::BITS, bits);
    for class in 0..parsed.class_count {
        let ([first, count], after) = rest.split_first_chunk().ok_or_else(cut)?;
        let (frequencies, after) = after.split_at_checked(usize::from(*count)).ok_or_else(cut)?;
        put_at(fixed, at::FREQUENCIES + class * BINS + usize::from(*first), frequencies);
        rest = after;
    }
    if let Some(gaps) = parsed.options.gaps {
        put_at(fixed, at::FILLER, &gaps.filler);
        put_at(fixed, at::GAP_RICE, &gaps.parameters.to_bytes());
    }
    if let Some(outliers) = parsed.options.outliers {
        put_at(fixed, at::UPPER_BITS, &[outliers.upper_bits]);
        put_at(fixed, at::OUTLIER_RICE, &outliers.parameters.to_bytes());
    }
    if let Some(filters) = parsed.options.filters {
        let bank = filters.bank;
        put_at(fixed, at::TAPS, &[bank.taps as u8]); // exact, and so is the next: at most 16
        put_at(fixed, at::FILTER_COUNT, &[filters.filter_count as u8]);
        put_at(fixed, at::FILTER_ZERO, &bank.zero.to_le_bytes());
        put_at(fixed, at::RESTART_SEGMENTS, &bank.restart.to_le_bytes());
        let coefficients = bank.coefficients.iter().flatten();
        for (i, coefficient) in coefficients.enumerate() {
            put_at(fixed, at::COEFFICIENTS + 2 * i, &coefficient.to_le_bytes());
        }
    }
    let number_bytes = parsed.mapping.widths(spec.width_and_count()?.0).number.bytes();
    put_at(fixed, at::NUMBER_BYTES, &[number_bytes as u8]); // exact: at most 8
    match &parsed.mapping {
        Mapping::None => {}
        Mapping::FloatMultiple(float_multiple) => {
            put_at(fixed, at::FLOAT_TYPE, &[float_multiple.float_type.code()]);
            put_at(fixed, at::DETAIL_BITS, &[float_multiple.detail_bits]);
            put_at(fixed, at::EXPONENT, &float_multiple.exponent.to_le_bytes());
            put_at(fixed, at::DIVISOR, &float_multiple.divisor.to_le_bytes());
        }
        Mapping::IntMultiple(int_multiple) => put_at(fixed, at::FACTOR, &int_multiple.factor.to_le_bytes()),
        Mapping::Dictionary(dictionaries) => {
            // exact: a byte in the file
            put_at(fixed, at::DICTIONARY_COUNT, &[dictionaries.ends.len() as u8]);
            for &end in &dictionaries.ends {
                out.extend_from_slice(&u32::try_from(end).map_err(|_| cut())?.to_le_bytes());
            }
            let aligned = start + (out.len() - start).next_multiple_of(8);
            memory::resize(out, aligned, 0)?;
            memory::extend(out, &dictionaries.values)?;
        }
    }
    Ok(())
}

/// Overwrites the bytes from `at` on, which must exist.
fn put_at(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(to) = out.get_mut(at..at + bytes.len()) {
        to.copy_from_slice(bytes); // equal lengths
    }
}

// ---- blocks

/// Memory for the windows and classes of two blocks.
#[derive(Default)]
pub(crate) struct WindowScratch([BlockScratch; 2]);

/// Memory for the windows and classes of a block.
#[derive(Default)]
struct BlockScratch {
    classes: Vec<u8>,
    windows: Vec<[u8; 2]>,
}

/// The stored bytes of a block of numbers. Without a mapping, the numbers are the elements.
pub(crate) struct StoredBins<'a> {
    tables: &'a BinTables,
    width: Width,
    count: usize,
    codes: &'a [u8],
    /// The planes of the bytes below the windows.
    low_bytes: &'a [u8],
    coded: &'a [u8],
}

impl<'a> StoredBins<'a> {
    /// Splits the sections of a block of `count` numbers.
    pub(crate) fn split(tables: &'a BinTables, width: Width, count: usize, stored: &'a [u8]) -> Result<Self> {
        let split = || {
            let (codes, rest) = stored.split_at_checked(tables.class_codes().bytes(count.div_ceil(GROUP))?)?;
            let (low_bytes, coded) = rest.split_at_checked(tables.low_bytes.checked_mul(count)?)?;
            // without elements there are no states, and no kernel checks the bytes
            (count > 0 || coded.is_empty()).then_some(())?;
            Some(Self { tables, width, count, codes, low_bytes, coded })
        };
        split().ok_or_else(|| malformed_block("it ends within class codes or low bytes, or has bytes but no elements"))
    }

    /// Decodes elements from the start until `out` is full. If these are all elements, checks all
    /// of.
    pub(crate) fn decode(&self, out: &mut [u8], scratch: &mut WindowScratch) -> Result<()> {
        let [scratch, _] = &mut scratch.0;
        let is_valid = best().decode(&self.tables.model, self.start(out, scratch)?);
        self.finish(is_valid, out, scratch)
    }

    /// Like [`decode`](Self::decode), for two blocks of the same part.
    pub(crate) fn decode_two(
        [a, b]: [&Self; 2],
        [out_a, out_b]: [&mut [u8]; 2],
        scratch: &mut WindowScratch,
    ) -> Result<()> {
        let [scratch_a, scratch_b] = &mut scratch.0;
        let started = [a.start(out_a, scratch_a)?, b.start(out_b, scratch_b)?];
        let [is_a_valid, is_b_valid] = best().decode_two(&a.tables.model, started);
        a.finish(is_a_valid, out_a, scratch_a)?;
        b.finish(is_b_valid, out_b, scratch_b)
    }

    /// Checks the class codes of the first elements, as many as `out` holds. Returns the input of
    /// the kernel, which decodes windows directly to `out` if they are the elements.
    fn start<'b>(&'b self, out: &'b mut [u8], scratch: &'b mut BlockScratch) -> Result<CodedBlock<'b>> {
        let Self { tables, width, count, codes, .. } = *self;
        let BlockScratch { classes, windows } = scratch;
        let requested = out.len() / width.bytes();
        let groups = requested.min(count).div_ceil(GROUP);
        let class_codes = tables.class_codes();
        let has_zero_padding = requested < count || class_codes.end_in_zeros(codes, groups);
        if !has_zero_padding || !class_codes.are_valid(codes, groups) {
            return Err(malformed_block("a class code is out of range, or padding bits are not zero"));
        }
        classes.clear();
        classes.extend((0..groups).map(|group| class_codes.get(codes, group)));
        let out = if width == Width::W2 {
            out.as_chunks_mut().0
        } else {
            memory::resize(windows, requested, [0; 2])?;
            windows
        };
        Ok(CodedBlock { classes, count, stored: self.coded, out })
    }

    /// Completes the elements in `out`, whose windows have been decoded.
    fn finish(&self, is_valid: bool, out: &mut [u8], scratch: &BlockScratch) -> Result<()> {
        if !is_valid {
            return Err(malformed_block("its states or its stream are malformed"));
        }
        if self.width != Width::W2 {
            self.join(&scratch.windows, out);
        }
        Ok(())
    }

    /// Joins windows with the bytes below them.
    fn join(&self, windows: &[[u8; 2]], out: &mut [u8]) {
        match (self.width, self.tables.low_bytes) {
            // simple loops, which compile to vector instructions
            (Width::W1, 0) => {
                let elements = out.iter_mut().zip(windows);
                // the lower byte
                elements.for_each(|(element, window)| *element = u16::from_le_bytes(*window) as u8);
            }
            (Width::W4, 2) => self.join_all(windows, out),
            (width, _) => with_width!(width, W => self.join_bytes::<W>(windows, out)),
        }
    }

    /// Joins 4-byte elements that have two bytes below the window, as encoders write them.
    fn join_all(&self, windows: &[[u8; 2]], out: &mut [u8]) {
        let (first, second) = self.low_bytes.split_at(self.low_bytes.len() / 2);
        let elements = out.as_chunks_mut().0.iter_mut().zip(windows);
        for (((element, [low, high]), first), second) in elements.zip(first).zip(second) {
            *element = [*first, *second, *low, *high];
        }
    }

    /// Joins elements of `W` bytes, one byte plane after another.
    fn join_bytes<const W: usize>(&self, windows: &[[u8; 2]], out: &mut [u8]) {
        let low_bytes = self.tables.low_bytes;
        let (elements, _) = out.as_chunks_mut::<W>();
        let planes = self.low_bytes.chunks_exact(self.count.max(1));
        planes.enumerate().for_each(|(byte, plane)| set_bytes(elements, byte, plane.iter().copied()));
        set_bytes(elements, low_bytes, windows.iter().map(|[low, _]| *low));
        set_bytes(elements, low_bytes + 1, windows.iter().map(|[_, high]| *high));
        (low_bytes + 2..W).for_each(|byte| set_bytes(elements, byte, windows.iter().map(|_| 0)));
    }

    pub(crate) fn describe(&self, description: &mut Description) {
        let (states, stream) = self.coded.split_at(self.coded.len().min(2 * self.count.min(GROUP)));
        description.add("classes", "the class of each group of 64 numbers", self.codes);
        description.add("low bytes", "the bytes of each element below its window", self.low_bytes);
        description.add("states", "the initial states of rANS", states);
        description.add(
            "stream",
            format!("{} bins, {} classes", self.tables.bin_count, self.tables.class_count),
            stream,
        );
    }
}

/// Sets one byte of each element, if elements have that byte.
fn set_bytes<const W: usize>(elements: &mut [[u8; W]], byte: usize, bytes: impl Iterator<Item = u8>) {
    for (element, from) in elements.iter_mut().zip(bytes) {
        if let Some(to) = element.get_mut(byte) {
            *to = from;
        }
    }
}
