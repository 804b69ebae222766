//! From a block of bins to its elements: gaps, mapping, outliers, filters and transform.

use super::block_codec::Block;
use crate::codec::anatomy::Anatomy;
use crate::codec::bins::{BinTables, FilterBlock, Gaps, MappedBlock, Mapping, Marks, StoredBins};
use crate::codec::scratch::DecodeScratch;
use crate::kernel::Width;
use crate::{Error, Result, memory};
use std::ops::Range;

/// The elements of a block, or those that are no gaps.
struct Elements<'a> {
    width: Width,
    count: usize,
    stored: &'a [u8],
}

/// Decodes the elements of a range of a block with a mapping or options to `out`, which has their
/// length.
pub(super) fn decode_layers(
    tables: &BinTables,
    block: &Block<'_>,
    range: &Range<usize>,
    out: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let (width, count) = block.spec.width_and_count()?;
    let elements = Elements { width, count, stored: block.stored };
    match tables.options.gaps {
        Some(gaps) => decode_between_gaps(tables, gaps, &elements, range, out, scratch),
        None => decode_present(tables, &elements, range, out, scratch),
    }
}

/// Decodes the elements of a range of a block with gaps.
fn decode_between_gaps(
    tables: &BinTables,
    gaps: Gaps,
    elements: &Elements<'_>,
    range: &Range<usize>,
    out: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let (mut marks, mut present) = (std::mem::take(&mut scratch.gaps), std::mem::take(&mut scratch.present));
    let mut decode = || {
        let stored = gaps.read(elements.count, elements.stored, &mut marks)?;
        let wanted = marks.others_before(range.start)..marks.others_before(range.end);
        // at most the range
        memory::resize(&mut present, wanted.len() * elements.width.bytes(), 0)?;
        let others = Elements { width: elements.width, count: marks.others, stored };
        decode_present(tables, &others, &wanted, &mut present, scratch)?;
        gaps.spread(elements.width, &marks, range, &present, out);
        Ok(())
    };
    let decoded = decode();
    (scratch.gaps, scratch.present) = (marks, present);
    decoded
}

/// Decodes a range of elements, none of which are gaps.
fn decode_present(
    tables: &BinTables,
    elements: &Elements<'_>,
    range: &Range<usize>,
    out: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let Elements { width, count, stored } = *elements;
    let widths = tables.mapping.widths(width);
    let block = MappedBlock::split(&tables.mapping, widths, count, stored)?;
    let start = match tables.options.filters {
        Some(filters) => filters.start_of(range.start),
        None => tables.transform.start_of(range.start),
    };
    let wanted = block.numbers_for(range, start);
    let mut numbers = std::mem::take(&mut scratch.coded);
    let numbers_block = Elements { width: widths.number, count, stored: block.numbers };
    let decoded = decode_numbers(tables, &numbers_block, &wanted, &mut numbers, scratch).and_then(|()| {
        let v = widths.number.bytes();
        let numbers = numbers.get(wanted.start * v..wanted.end * v).unwrap_or(&[]);
        match tables.mapping {
            Mapping::None => copy(numbers.get((range.start - wanted.start) * v..), out),
            _ => block.elements(widths, numbers, wanted.start, range, out, &mut scratch.mapped),
        }
    });
    scratch.coded = numbers;
    decoded
}

/// Decodes the numbers of a block, at least the `wanted` ones. Prediction begins anew with the
/// first of these.
fn decode_numbers(
    tables: &BinTables,
    elements: &Elements<'_>,
    wanted: &Range<usize>,
    numbers: &mut Vec<u8>,
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let Elements { width, count, stored } = *elements;
    let mut marks = std::mem::take(&mut scratch.outliers);
    let outliers = tables.options.outliers;
    let outliers = outliers.map(|outliers| outliers.split(count, stored, &mut marks)).transpose()?;
    let stored = outliers.as_ref().map_or(stored, |outliers| outliers.bins);
    let filtered = split_filters(tables, count, stored)?;
    let bins = StoredBins::split(tables, width, count, filtered.bins)?;
    memory::resize(numbers, wanted.end * width.bytes(), 0)?; // at most the block
    bins.decode(numbers, &mut scratch.windows)?;
    if let Some(outliers) = outliers {
        outliers.add(width, tables.low_bytes, numbers);
    }
    let v = width.bytes();
    let wanted_numbers = numbers.get_mut(wanted.start * v..wanted.end * v).unwrap_or(&mut []);
    undo_prediction(tables, width, filtered.codes, wanted.start, wanted_numbers, &mut scratch.filter_codes);
    scratch.outliers = marks;
    Ok(())
}

/// Splits the filter codes of a block from its bins, if it has any.
pub(super) fn split_filters<'a>(tables: &BinTables, count: usize, stored: &'a [u8]) -> Result<FilterBlock<'a>> {
    match &tables.options.filters {
        Some(filters) => filters.split(count, stored),
        None => Ok(FilterBlock { codes: &[], bins: stored }),
    }
}

/// Replaces the coded integers of a block, from number `first` on, by numbers. Prediction begins
/// anew with that one.
pub(super) fn undo_prediction(
    tables: &BinTables,
    width: Width,
    filter_codes: &[u8],
    first: usize,
    numbers: &mut [u8],
    scratch: &mut Vec<u8>,
) {
    match &tables.options.filters {
        Some(filters) => filters.undo(filter_codes, first, numbers, scratch),
        None => tables.transform.undo(width, numbers),
    }
}

/// Copies the first elements, as many as `out` has.
pub(super) fn copy(elements: Option<&[u8]>, out: &mut [u8]) -> Result<()> {
    let found = elements.and_then(|elements| elements.get(..out.len()));
    // equal lengths
    out.copy_from_slice(found.ok_or_else(|| Error::internal("a range lies outside its block"))?);
    Ok(())
}

/// Adds the sections of a block to a description.
pub(super) fn describe_layers(tables: &BinTables, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
    let (width, count) = block.spec.width_and_count()?;
    let (mut elements, mut marks) = (Elements { width, count, stored: block.stored }, Marks::default());
    if let Some(gaps) = tables.options.gaps {
        let rest = gaps.read(count, block.stored, &mut marks)?;
        anatomy.add("gaps", "which elements are gaps", before(block.stored, rest));
        elements = Elements { count: marks.others, stored: rest, ..elements };
    }
    let widths = tables.mapping.widths(width);
    let mapped = MappedBlock::split(&tables.mapping, widths, elements.count, elements.stored)?;
    mapped.describe(anatomy);
    let mut bins = mapped.numbers;
    if let Some(outliers) = tables.options.outliers {
        bins = outliers.split(elements.count, bins, &mut marks)?.bins;
        anatomy.add("outliers", "the bits above windows, and where they are", before(mapped.numbers, bins));
    }
    if let Some(filters) = tables.options.filters {
        let block = filters.split(elements.count, bins)?;
        anatomy.add("filters", "the filter of each segment of 128", block.codes);
        bins = block.bins;
    }
    StoredBins::split(tables, widths.number, elements.count, bins)?.describe(anatomy);
    Ok(())
}

/// Returns the bytes before `rest`, with which `all` ends.
fn before<'a>(all: &'a [u8], rest: &[u8]) -> &'a [u8] {
    all.get(..all.len().saturating_sub(rest.len())).unwrap_or(&[])
}
