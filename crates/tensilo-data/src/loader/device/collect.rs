//! The third stage with a GPU: from the bytes of a batch to the blocks that the GPU decodes.
//!
//! Blocks are checked and collected here as they are stored; the GPU decodes them to their places
//! in the batch. What it cannot do is done here and sent decoded, by the same list: other
//! encodings, casts to other types, paddings of several dimensions, samples of different lengths.
//! Texts and lists stay in the memory of the host, unless they are padded.
//!
//! The columns of a batch have one piece of memory on the GPU, each from an offset on. Lists are in
//! pinned memory, and used again when their batch was decoded.

use super::blocks::{BatchBlocks, Device};
use crate::loader::decode::{BatchDecoder, Unread, join};
use crate::loader::deliver::batch::{BatchColumn, Values};
use crate::loader::deliver::memory::too_large;
use crate::loader::plan::columns::ChosenColumn;
use crate::loader::plan::parts::{Part, Parts};
use crate::loader::setup::Setup;
use std::ops::Range;
use tensilo::{DType, Extent};
use tensilo_cuda::{BlockList, Conversion, Destination, PlacedSamples};

/// Columns begin at multiples of this, as tensors of their own would.
const ALIGNMENT: usize = 256;

/// How a column reaches the GPU.
pub(super) enum Route {
    /// In blocks, one sample to a row.
    Rows(Conversion),
    /// Decoded.
    Decoded,
    /// Not at all.
    Host,
}

impl Route {
    pub(super) fn of(chosen: &ChosenColumn) -> Self {
        let stored = &chosen.stored;
        if chosen.padding.is_none() && (stored.dtype.is_string() || !stored.levels.is_empty()) {
            return Self::Host;
        }
        let conversion = match (stored.dtype, chosen.conversion.map(|conversion| conversion.to)) {
            (_, None) => Conversion::None,
            (DType::Bf16, Some(DType::F32)) => Conversion::Bf16ToF32,
            (DType::F16, Some(DType::F32)) => Conversion::F16ToF32,
            _ => return Self::Decoded,
        };
        // of the other extents, only the first may vary: a padded sample is then one row
        let extents = stored.shape.extents();
        let is_row = stored.levels.is_empty()
            && stored.shape.varying_count() == 1
            && matches!(extents.first(), Some(Extent::Varying));
        match chosen.fixed_bytes.is_some() || (is_row && chosen.padding.is_some()) {
            true => Self::Rows(conversion),
            false => Self::Decoded,
        }
    }
}

/// Collects the blocks of the parts of a batch, which has `count` samples, in place of decoding
/// them.
pub(in crate::loader) fn collect(
    decoder: &mut BatchDecoder,
    setup: &Setup,
    device: &Device,
    parts: &mut Parts,
    count: usize,
    columns: &mut [BatchColumn],
) -> std::result::Result<BatchBlocks, Unread> {
    let mut list = device.take_list();
    parts.iter().for_each(|part| list.expect(&part.bytes));
    let (mut end, is_small) = (0, decoder.device_bytes < device.min_bytes);
    for (place, (column, chosen)) in columns.iter_mut().zip(&setup.columns.columns).enumerate() {
        column.begin(&chosen.delivered, count);
        let start = end;
        match Route::of(chosen) {
            Route::Rows(conversion) if !is_small => {
                end = collect_rows(decoder, setup, parts, place, conversion, start, column, &mut list)?;
                column.values = Values::Device(start..end);
            }
            Route::Rows(_) | Route::Decoded => {
                decoder.decode_column(setup, parts, place, column)?;
                list.push_bytes(start, column.bytes()).map_err(failed)?;
                end = start.saturating_add(column.bytes().len());
                column.values = Values::Device(start..end);
            }
            Route::Host => decoder.decode_column(setup, parts, place, column)?,
        }
        end = end.checked_next_multiple_of(ALIGNMENT).ok_or_else(|| Unread::Fatal(too_large(end)))?;
    }
    // blocks are checked, and nothing reads the bytes here any more
    parts.all_mut().iter_mut().for_each(|part| list.adopt(&mut part.bytes));
    decoder.device_bytes = end;
    Ok(BatchBlocks { list, bytes: end, device: device.clone() })
}

/// Collects the blocks of a column whose samples are rows of one length. Returns where they end
/// in the memory of the batch.
#[expect(clippy::too_many_arguments, reason = "the facts of one column, which nothing else has together")]
fn collect_rows(
    decoder: &mut BatchDecoder,
    setup: &Setup,
    parts: &mut Parts,
    place: usize,
    conversion: Conversion,
    start: usize,
    column: &mut BatchColumn,
    list: &mut BlockList,
) -> std::result::Result<usize, Unread> {
    let (Some(decoder), Some(chosen)) = (decoder.decoders.get_mut(place), setup.columns.columns.get(place)) else {
        return Ok(start);
    };
    for (number, (part, in_part)) in with_column(parts.all_mut(), place).enumerate() {
        setup.check_interrupt().map_err(Unread::Fatal)?;
        let mut shapes = part.take_buffer(in_part);
        let mut push = |samples: tensilo::stages::BlockSamples<'_>| list.push(number, &samples);
        let visited = decoder.visit_blocks(&part.plan, &part.bytes, in_part, &mut shapes, &mut push);
        part.put_buffer(in_part, shapes);
        visited.map_err(|error| Unread::Failed(error.into()))?;
    }
    let extents = extents_of(chosen, parts, place, column.sample_count);
    let row_bytes = chosen.row_bytes(&extents).ok_or_else(|| Unread::Fatal(too_large(usize::MAX)))?;
    let bytes = row_bytes.checked_mul(column.sample_count);
    let end = bytes.and_then(|bytes| bytes.checked_add(start)).ok_or_else(|| Unread::Fatal(too_large(usize::MAX)))?;
    let destination = Destination { dtype: chosen.stored.dtype, conversion, offset: start, row_bytes: Some(row_bytes) };
    let placed: Vec<PlacedSamples<'_>> = with_column_of(parts, place)
        .filter_map(|(part, in_part)| {
            Some(PlacedSamples { shapes: part.buffers.get(in_part)?, rows: Some(&part.positions) })
        })
        .collect();
    list.place(&destination, &placed).map_err(failed)?;
    fill_rows(chosen, parts, place, start..end, row_bytes, list).map_err(failed)?;
    match chosen.fixed_bytes {
        Some(_) => column.set_nulls(&nulls_of(parts, place)),
        None => join(parts, place, chosen, column).map_err(Unread::Fatal)?,
    }
    column.tensor = Some(extents);
    Ok(end)
}

/// Makes an error of one of a list: its blocks are those of files.
fn failed(error: tensilo::Error) -> Unread {
    Unread::Failed(error.into())
}

/// Returns the parts that have a column, and its number there.
pub(super) fn with_column(parts: &mut [Part], place: usize) -> impl Iterator<Item = (&mut Part, usize)> {
    parts.iter_mut().filter_map(move |part| {
        let number = part.places.iter().position(|found| *found == place)?;
        Some((part, number))
    })
}

fn with_column_of(parts: &Parts, place: usize) -> impl Iterator<Item = (&Part, usize)> {
    parts.iter().filter_map(move |part| Some((part, part.places.iter().position(|found| *found == place)?)))
}

/// Returns the extents of the tensor that the samples become, samples first.
pub(super) fn extents_of(chosen: &ChosenColumn, parts: &Parts, place: usize, count: usize) -> Vec<u64> {
    let Some(padding) = &chosen.padding else {
        let fixed = chosen.stored.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => u64::from(*extent),
            Extent::Varying => 0, // none of a fixed shape
        });
        return std::iter::once(count as u64).chain(fixed).collect(); // exact
    };
    let of_parts = with_column_of(parts, place).filter_map(|(part, number)| part.buffers.get(number));
    let mut extents = padding.extents(&tensilo::ColumnBuffer::new());
    extents.resize(1 + chosen.stored.shape.extents().len(), 0);
    for of_part in of_parts.map(|buffer| padding.extents(buffer)) {
        extents.iter_mut().zip(of_part).for_each(|(extent, of_part)| *extent = (*extent).max(of_part));
    }
    if let Some(samples) = extents.first_mut() {
        *samples = count as u64; // exact
    }
    extents
}

/// Fills the rest of each row, and the rows of samples that no file has.
fn fill_rows(
    chosen: &ChosenColumn,
    parts: &Parts,
    place: usize,
    bytes: Range<usize>,
    row_bytes: usize,
    list: &mut BlockList,
) -> tensilo::Result<()> {
    let (element, delivered) = chosen.filler();
    let stored = chosen.stored.dtype.element_bytes();
    let mut fill = |row: usize, from: usize| {
        // inside the memory of the batch, as the end of its rows is
        let start = bytes.start.saturating_add(row.saturating_mul(row_bytes)).saturating_add(from);
        list.fill(start, &element, row_bytes.saturating_sub(from) / element.len().max(1))
    };
    for (part, number) in with_column_of(parts, place).filter(|_| chosen.fixed_bytes.is_none()) {
        let Some(shapes) = part.buffers.get(number) else { continue };
        for (position, &row) in part.positions.iter().enumerate() {
            let ends = shapes.value_start(position).zip(shapes.value_start(position.saturating_add(1)));
            let elements = ends.map_or(0, |(start, end)| end.saturating_sub(start) / stored);
            fill(row, elements.saturating_mul(delivered))?;
        }
    }
    let absent = parts.absent.iter().filter(|(absent, _)| *absent == place);
    absent.flat_map(|(_, positions)| positions).try_for_each(|&row| fill(row, 0))
}

/// Returns the positions of null samples of a fixed shape.
fn nulls_of(parts: &Parts, place: usize) -> Vec<usize> {
    let in_parts = with_column_of(parts, place).flat_map(|(part, number)| {
        let shapes = part.buffers.get(number);
        let is_null = move |position: usize| shapes.is_some_and(|shapes| shapes.is_null(position));
        let nulls = part.positions.iter().enumerate().filter(move |(position, _)| is_null(*position));
        nulls.map(|(_, &row)| row)
    });
    let absent = parts.absent.iter().filter(|(absent, _)| *absent == place);
    in_parts.chain(absent.flat_map(|(_, positions)| positions.iter().copied())).collect()
}
