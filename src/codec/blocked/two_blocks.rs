//! Two whole blocks of bins with a mapping or filters, whose windows are decoded at once.

use super::bin_layers::{copy, split_filters, undo_prediction};
use super::block_codec::Block;
use crate::codec::bins::{BinTables, MappedBlock, Mapping, StoredBins};
use crate::codec::scratch::DecodeScratch;
use crate::{Result, memory};

/// A block whose sections are told apart.
struct SplitBlock<'a> {
    count: usize,
    mapped: MappedBlock<'a>,
    filter_codes: &'a [u8],
}

/// Returns whether blocks with these tables can be decoded together: unless options change which
/// elements are coded, or add bits to them.
pub(super) fn are_decoded_together(tables: &BinTables) -> bool {
    let options = &tables.options;
    options.gaps.is_none() && options.outliers.is_none()
}

/// Decodes two blocks of the same part, all of their elements. The processor does steps of one
/// while those of the other wait.
pub(super) fn decode_together(
    tables: &BinTables,
    blocks: [&Block<'_>; 2],
    outs: [&mut [u8]; 2],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let [a, b] = blocks.map(|block| split(tables, block));
    let ((a, bins_a), (b, bins_b)) = (a?, b?);
    let (mut numbers_a, mut numbers_b) = (std::mem::take(&mut scratch.coded), std::mem::take(&mut scratch.coded_too));
    let decode = || {
        let width = tables.mapping.widths(blocks[0].spec.width_and_count()?.0).number;
        memory::resize(&mut numbers_a, a.count * width.bytes(), 0)?;
        memory::resize(&mut numbers_b, b.count * width.bytes(), 0)?;
        StoredBins::decode_two([bins_a, bins_b], [&mut numbers_a, &mut numbers_b], &mut scratch.windows)?;
        let [out_a, out_b] = outs;
        finish(tables, blocks[0], &a, &mut numbers_a, out_a, scratch)?;
        finish(tables, blocks[1], &b, &mut numbers_b, out_b, scratch)
    };
    let decoded = decode();
    (scratch.coded, scratch.coded_too) = (numbers_a, numbers_b);
    decoded
}

/// Splits the sections of a block before its bins.
fn split<'a>(tables: &'a BinTables, block: &Block<'a>) -> Result<(SplitBlock<'a>, StoredBins<'a>)> {
    let (width, count) = block.spec.width_and_count()?;
    let widths = tables.mapping.widths(width);
    let mapped = MappedBlock::split(&tables.mapping, widths, count, block.stored)?;
    let filtered = split_filters(tables, count, mapped.numbers)?;
    let bins = StoredBins::split(tables, widths.number, count, filtered.bins)?;
    Ok((SplitBlock { count, mapped, filter_codes: filtered.codes }, bins))
}

/// Sets `out` to the elements of a block, whose coded integers `numbers` has.
fn finish(
    tables: &BinTables,
    block: &Block<'_>,
    split: &SplitBlock<'_>,
    numbers: &mut [u8],
    out: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let widths = tables.mapping.widths(block.spec.width_and_count()?.0);
    undo_prediction(tables, widths.number, split.filter_codes, 0, numbers, &mut scratch.filter_codes);
    match tables.mapping {
        Mapping::None => copy(Some(numbers), out),
        _ => split.mapped.elements(widths, numbers, 0, &(0..split.count), out, &mut scratch.mapped),
    }
}
