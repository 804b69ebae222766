//! Compares the kernels for bins: all that this CPU can run must return the same.
//!
//! The library uses one kernel per family, so a reader cannot compare them. This module walks the
//! stored bytes of a part by the specification (chapters 5.12 to 5.15), without the decoder of the
//! library, and hands each section to every kernel. All must return the same windows, or all must
//! refuse. Predictions, filters and extra bits are also compared on arbitrary bytes.
//!
//! Kernels trust tables that the decoder has checked. They may differ for tables that violate
//! and for classes out of range, so they see neither.

use super::kernel::bins::{self, BinModel, CodedBlock};
use super::kernel::predict::{self, FilterBank, MAX_FILTERS, MAX_TAPS, Prediction, Predictor, Weights};
use super::kernel::{Width, extra_bits};
use super::options::{Filters, Options, UNKNOWN, code, code_bits};
use super::regions::{BLOCK_ENTRY_BYTES, BLOCKS, BlockIndex, block_align, block_index, number};

/// The maximum number of elements in a block.
const MAX_BLOCK_ELEMENTS: usize = 65_535;
/// The id of the encoding `bins`.
const BINS: u16 = 6;

/// Compares kernels on the stored bytes of a part of bins. Panics if they differ, or if the part is
/// sound but this module does not find all its blocks valid.
pub fn check_bins(stored: &[u8], encoding: u16, elements: usize, element_bytes: usize, is_sound: bool) {
    // `None`: the bytes end too early, or no kernel may see them
    let are_right = Part::new(stored, encoding, elements).and_then(|part| check(&part, element_bytes)).unwrap_or(false);
    assert!(are_right || !is_sound, "the blocks of a part that decodes are not found, or their bins are refused");
}

/// Returns whether bins of these sizes are aligned, and end where a window ends.
fn are_valid(bits: &[u8]) -> bool {
    let end = bits.iter().try_fold(0_u32, |start, &bits| {
        let is_valid = bits <= 15 && start.is_multiple_of(1 << bits);
        is_valid.then(|| start + (1 << bits))
    });
    (2..=64).contains(&bits.len()) && [Some(1 << 8), Some(1 << 16)].contains(&end)
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    Some(taken)
}

/// Takes a number of at most 8 bytes.
fn take_number(rest: &mut &[u8], bytes: usize) -> Option<usize> {
    take(rest, bytes).map(|taken| number(taken, 0, bytes) as usize)
}

/// The stored bytes of a part, in one block or in several.
struct Part<'a> {
    stored: &'a [u8],
    /// `None` if the part is one block.
    block_index: Option<BlockIndex>,
    /// The tables, after the field `table_bytes`.
    tables: &'a [u8],
    elements: usize,
}

impl<'a> Part<'a> {
    fn new(stored: &'a [u8], encoding: u16, elements: usize) -> Option<Self> {
        let block_index = if encoding & BLOCKS == 0 { None } else { Some(block_index(stored, encoding)?) };
        let tables = match &block_index {
            Some(block_index) => stored.get(12..block_index.entries_start)?,
            None => stored.get(4..number(stored.get(..4)?, 0, 4) as usize)?,
        };
        Some(Self { stored, block_index, tables, elements })
    }

    fn block_count(&self) -> usize {
        self.block_index.as_ref().map_or(1, |block_index| block_index.block_count)
    }

    /// Returns the end of a block, in elements and in stored bytes.
    fn end(&self, block: usize) -> (usize, usize) {
        let Some(block_index) = &self.block_index else { return (self.elements, self.stored.len()) };
        let entry = block_index.entries_start + BLOCK_ENTRY_BYTES * block;
        let field = |at| number(self.stored, entry + at, 4) as usize;
        (field(0), block_index.bytes + field(4))
    }

    /// Returns the number of elements and the stored bytes of a block, if the number is valid.
    fn block(&self, block: usize) -> Option<(usize, &'a [u8])> {
        let first = (0, self.block_index.as_ref().map_or(4 + self.tables.len(), |block_index| block_index.bytes));
        let before = block.checked_sub(1).map_or(first, |before| self.end(before));
        let end = self.end(block);
        let count = end.0.checked_sub(before.0).filter(|count| (1..=MAX_BLOCK_ELEMENTS).contains(count))?;
        // the length of a block index is a multiple of the alignment
        let start = before.1.next_multiple_of(block_align(BINS));
        Some((count, self.stored.get(start..end.1)?))
    }
}

/// Returns whether all blocks are valid, for at least one way to parse the options in the tables.
fn check(part: &Part<'_>, element_bytes: usize) -> Option<bool> {
    let (_, option_bits) = Options::split(*part.tables.get(19)?);
    (option_bits & UNKNOWN == 0).then_some(())?;
    let all = Options::all(option_bits, element_bytes, part.tables.get(20..)?);
    let check = |options: &Options| check_with(options, part, element_bytes).unwrap_or(false);
    Some(all.iter().any(check))
}

fn check_with(options: &Options, part: &Part<'_>, element_bytes: usize) -> Option<bool> {
    let mut tables = part.tables;
    let transform = take(&mut tables, 16)?;
    let [low_bytes, bin_count, class_count, mapping] = *take(&mut tables, 4)? else { return None };
    let (mapping, _) = Options::split(mapping);
    let mut model = BinModel::default();
    let bits = take(&mut tables, bin_count.into()).filter(|bits| are_valid(bits))?;
    model.set_bins(bits);
    for class in 0..usize::from(class_count) {
        let first = take_number(&mut tables, 1)?;
        let count = take_number(&mut tables, 1)?;
        let frequencies = take(&mut tables, count)?;
        let sum: u32 = frequencies.iter().map(|&frequency| u32::from(frequency)).sum();
        let is_valid = class < 4 && first + count <= bits.len() && sum == 256;
        model.set_class(class, first, is_valid.then_some(frequencies)?);
    }
    let code_bits = code_bits(class_count.into());
    let number_bytes = if mapping == 0 { element_bytes } else { usize::from(*tables.first()?) };
    let has_details = mapping == 2 && *tables.get(2)? > 0;
    let mut are_right = true;
    for block in 0..part.block_count() {
        let (count, block) = part.block(block)?;
        if let Some(width) = Width::from_bytes(number_bytes) {
            undo_alike(transform, width, block);
        }
        let mut rest = block;
        let count = options.skip_gaps(count, &mut rest)?;
        if mapping > 0 {
            let patch_count = take_number(&mut rest, 2)?;
            take(&mut rest, if mapping > 1 { 8 } else { 0 })?;
            let detail_bytes = if has_details { take_number(&mut rest, 4)? } else { 0 };
            take(&mut rest, (2 + element_bytes) * patch_count)?;
            deposit_alike(take(&mut rest, detail_bytes)?, block);
        }
        options.skip_outliers(count, &mut rest)?;
        let filter_codes = options.skip_filters(count, &mut rest)?;
        if let Some(filters) = &options.filters {
            undo_filters_alike(filters, &filter_codes, block);
        }
        if count == 0 {
            are_right &= rest.is_empty(); // only gaps: no kernel decodes the block
            continue;
        }
        let groups = count.div_ceil(64);
        let codes = take(&mut rest, (code_bits * groups).div_ceil(8))?;
        let classes: Vec<u8> = (0..groups).map(|group| code(codes, code_bits, group)).collect();
        take(&mut rest, usize::from(low_bytes) * count)?;
        if classes.iter().any(|class| *class >= class_count) {
            are_right = false;
            continue;
        }
        are_right &= decode_alike(&model, &classes, count, rest);
    }
    Some(are_right)
}

/// Decodes half of the windows of a block, then all, each also as two blocks at once. Returns
/// whether the block is valid.
fn decode_alike(model: &BinModel, classes: &[u8], count: usize, stored: &[u8]) -> bool {
    let mut is_block_right = false;
    for window_count in [count.div_ceil(2), count] {
        let mut expected = None;
        for kernel in bins::available() {
            let [mut single, mut first, mut second] = [(); 3].map(|()| vec![[0; 2]; window_count]);
            let is_right = kernel.decode(model, CodedBlock { classes, count, stored, out: &mut single });
            let a = CodedBlock { classes, count, stored, out: &mut first };
            let b = CodedBlock { classes, count, stored, out: &mut second };
            let are_right = kernel.decode_two(model, [a, b]);
            let results = [(is_right, single), (are_right[0], first), (are_right[1], second)];
            for (is_right, windows) in results {
                is_block_right = is_right;
                let found = is_right.then_some(windows);
                let expected = expected.get_or_insert_with(|| found.clone());
                assert!(found == *expected, "{} decodes {window_count} of {count} differently", kernel.name());
            }
        }
    }
    is_block_right
}

/// Undoes the transform with every kernel, if it is a prediction. The bytes are arbitrary.
fn undo_alike(transform: &[u8], width: Width, bytes: &[u8]) {
    let weights = Weights { left: transform[2] % 9, above: transform[3] % 9 };
    let predictor = match transform[0] {
        2 => Predictor::Delta,
        3 => Predictor::Lorenzo,
        4 => Predictor::Separable(weights),
        _ => return,
    };
    let field = |at| (number(transform, at, 4) as u32).max(1);
    let prediction = Prediction { predictor, restart: field(4), stride: field(8) };
    let undone = |kernel: &predict::Predict| {
        let mut data = bytes.to_vec();
        kernel.undo(&prediction, width, &mut data);
        data
    };
    let expected = undone(&predict::available()[0]);
    assert!(predict::available().iter().all(|kernel| undone(kernel) == expected), "{prediction:?}");
}

/// Undoes the filters with every kernel, and filters the result again. The bytes are arbitrary.
fn undo_filters_alike(filters: &Filters, codes: &[u8], bytes: &[u8]) {
    let &Filters { taps, restart, zero, .. } = filters;
    let mut coefficients = [[0; MAX_TAPS]; MAX_FILTERS];
    for (to, from) in coefficients.iter_mut().zip(filters.coefficients.chunks_exact(taps)) {
        to[..taps].copy_from_slice(from);
    }
    let bank = FilterBank { coefficients, taps, restart, zero };
    let bytes = &bytes[..bytes.len() - bytes.len() % 2];
    let undone = |kernel: &predict::Predict| {
        let mut data = bytes.to_vec();
        kernel.undo_filter(&bank, codes, &mut data);
        let mut residuals = vec![0; data.len()];
        kernel.filter(&bank, codes, &data, &mut residuals);
        assert!(residuals == bytes, "{}, {bank:?}", kernel.name());
        data
    };
    let expected = undone(&predict::available()[0]);
    assert!(predict::available().iter().all(|kernel| undone(kernel) == expected), "{bank:?}");
}

/// Deposits details with every kernel. Arbitrary bytes serve as bit lengths.
fn deposit_alike(details: &[u8], any: &[u8]) {
    let lengths: Vec<u8> = any.iter().map(|byte| 1 + byte % 16).collect();
    let deposited = |kernel: &extra_bits::ExtraBits| {
        let mut out = vec![0; 2 * lengths.len()];
        (kernel.deposit(Width::W2, &lengths, details, 0, &mut out), out)
    };
    let expected = deposited(&extra_bits::available()[0]);
    assert!(extra_bits::available().iter().all(|kernel| deposited(kernel) == expected), "details differ");
}
