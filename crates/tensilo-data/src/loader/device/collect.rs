//! The third stage with a GPU: from the bytes of a batch to the blocks that the GPU decodes.
//!
//! Stored blocks are checked and collected here, and the GPU decodes them to their positions in the
//! batch. Samples that the GPU cannot decode are decoded on the host and sent in the same list.
//! These are samples with an encoding or a cast that the GPU does not support, samples that are
//! padded in several dimensions, and samples of different lengths that are not padded. Text and
//! lists stay in host memory unless they are padded.
//!
//! A batch has one allocation on the GPU, in which each column starts at an aligned offset. Lists
//! are in pinned memory, and are reused once their batch is decoded.

use super::blocks::{BatchBlocks, Device};
use crate::loader::decode::{BatchDecoder, ReadFailure, join};
use crate::loader::deliver::batch::{BatchColumn, Values};
use crate::loader::deliver::memory::too_large;
use crate::loader::plan::columns::ColumnSpec;
use crate::loader::plan::segments::{Segment, Segments};
use crate::loader::setup::Setup;
use std::ops::Range;
use tensilo::{DType, Extent};
use tensilo_cuda::{BlockList, Conversion, Destination, SampleRows};

/// The alignment of columns in bytes, the same as for tensors with separate allocations.
const ALIGNMENT: usize = 256;

/// How a column reaches the GPU.
pub(super) enum Route {
    /// As stored blocks, one sample per row.
    Rows(Conversion),
    /// Decoded on the host.
    Decoded,
    /// Not at all: the column stays on the host.
    Host,
}

impl Route {
    pub(super) fn of(spec: &ColumnSpec) -> Self {
        let stored = &spec.stored;
        if spec.padding.is_none() && (stored.dtype.is_string() || !stored.levels.is_empty()) {
            return Self::Host;
        }
        let conversion = match (stored.dtype, spec.conversion.map(|conversion| conversion.to)) {
            (_, None) => Conversion::None,
            (DType::Bf16, Some(DType::F32)) => Conversion::Bf16ToF32,
            (DType::F16, Some(DType::F32)) => Conversion::F16ToF32,
            _ => return Self::Decoded,
        };
        // only the first extent may vary: the elements of a sample are then the start of its row,
        // and padding only fills the rest
        let extents = stored.shape.extents();
        let is_row = stored.levels.is_empty()
            && stored.shape.varying_count() == 1
            && matches!(extents.first(), Some(Extent::Varying));
        match spec.fixed_bytes.is_some() || (is_row && spec.padding.is_some()) {
            true => Self::Rows(conversion),
            false => Self::Decoded,
        }
    }
}

/// Collects the blocks of a batch of `count` samples instead of decoding them.
pub(in crate::loader) fn collect(
    decoder: &mut BatchDecoder,
    setup: &Setup,
    device: &Device,
    segments: &mut Segments,
    count: usize,
    columns: &mut [BatchColumn],
) -> std::result::Result<BatchBlocks, ReadFailure> {
    let mut list = device.take_list();
    segments.iter().for_each(|segment| list.add_segment(&segment.bytes));
    let (mut end, is_small) = (0, decoder.device_bytes < device.min_bytes);
    for (slot, (column, spec)) in columns.iter_mut().zip(&setup.columns.columns).enumerate() {
        column.begin(&spec.delivered, count);
        let start = end;
        match Route::of(spec) {
            Route::Rows(conversion) if !is_small => {
                end = collect_rows(decoder, setup, segments, slot, conversion, start, column, &mut list)?;
                column.values = Values::Device(start..end);
            }
            Route::Rows(_) | Route::Decoded => {
                decoder.decode_column(setup, segments, slot, column)?;
                list.push_bytes(start, column.bytes()).map_err(failed)?;
                end = start.saturating_add(column.bytes().len());
                column.values = Values::Device(start..end);
            }
            Route::Host => decoder.decode_column(setup, segments, slot, column)?,
        }
        end = end.checked_next_multiple_of(ALIGNMENT).ok_or_else(|| ReadFailure::Fatal(too_large(end)))?;
    }
    // all blocks are checked, so the host does not read these bytes again
    segments.all_mut().iter_mut().for_each(|segment| list.adopt(&mut segment.bytes));
    decoder.device_bytes = end;
    Ok(BatchBlocks { list, bytes: end, device: device.clone() })
}

/// Collects the blocks of a column whose samples are rows of equal length. Returns the offset of
/// their end in the GPU memory of the batch.
#[expect(clippy::too_many_arguments, reason = "these are facts about one column that nothing else needs together")]
fn collect_rows(
    decoder: &mut BatchDecoder,
    setup: &Setup,
    segments: &mut Segments,
    slot: usize,
    conversion: Conversion,
    start: usize,
    column: &mut BatchColumn,
    list: &mut BlockList,
) -> std::result::Result<usize, ReadFailure> {
    let (Some(decoder), Some(spec)) = (decoder.decoders.get_mut(slot), setup.columns.columns.get(slot)) else {
        return Ok(start);
    };
    for (number, (segment, in_segment)) in with_column(segments.all_mut(), slot).enumerate() {
        setup.check_interrupt().map_err(ReadFailure::Fatal)?;
        let mut shapes = segment.take_buffer(in_segment);
        let mut push = |samples: tensilo::stages::BlockSamples<'_>| list.push(number, &samples);
        let visited = decoder.visit_blocks(&segment.plan, &segment.bytes, in_segment, &mut shapes, &mut push);
        segment.put_buffer(in_segment, shapes);
        visited.map_err(|error| ReadFailure::Failed(error.into()))?;
    }
    let extents = extents_of(spec, segments, slot, column.sample_count);
    let row_bytes = spec.row_bytes(&extents).ok_or_else(|| ReadFailure::Fatal(too_large(usize::MAX)))?;
    let bytes = row_bytes.checked_mul(column.sample_count);
    let end =
        bytes.and_then(|bytes| bytes.checked_add(start)).ok_or_else(|| ReadFailure::Fatal(too_large(usize::MAX)))?;
    let destination = Destination { dtype: spec.stored.dtype, conversion, offset: start, row_bytes: Some(row_bytes) };
    let placed: Vec<SampleRows<'_>> = with_column_of(segments, slot)
        .filter_map(|(segment, in_segment)| {
            Some(SampleRows { shapes: segment.buffers.get(in_segment)?, rows: Some(&segment.positions) })
        })
        .collect();
    list.place(&destination, &placed).map_err(failed)?;
    fill_rows(spec, segments, slot, start..end, row_bytes, list).map_err(failed)?;
    match spec.fixed_bytes {
        Some(_) => column.set_nulls(&nulls_of(segments, slot)),
        None => join(segments, slot, spec, column).map_err(ReadFailure::Fatal)?,
    }
    column.tensor = Some(extents);
    Ok(end)
}

/// Converts an error of a block list. Its blocks come from files, so this is a failure in a file.
fn failed(error: tensilo::Error) -> ReadFailure {
    ReadFailure::Failed(error.into())
}

/// Returns the segments that contain a column, each with the number of the column in the segment.
pub(super) fn with_column(segments: &mut [Segment], slot: usize) -> impl Iterator<Item = (&mut Segment, usize)> {
    segments.iter_mut().filter_map(move |segment| {
        let number = segment.slots.iter().position(|found| *found == slot)?;
        Some((segment, number))
    })
}

fn with_column_of(segments: &Segments, slot: usize) -> impl Iterator<Item = (&Segment, usize)> {
    segments.iter().filter_map(move |segment| Some((segment, segment.slots.iter().position(|found| *found == slot)?)))
}

/// Returns the extents of the samples as a tensor; the first is the number of samples.
pub(super) fn extents_of(spec: &ColumnSpec, segments: &Segments, slot: usize, count: usize) -> Vec<u64> {
    let Some(padding) = &spec.padding else {
        let fixed = spec.stored.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => u64::from(*extent),
            Extent::Varying => 0, // unreachable: the shape is fixed
        });
        return std::iter::once(count as u64).chain(fixed).collect(); // exact
    };
    let of_segments = with_column_of(segments, slot).filter_map(|(segment, number)| segment.buffers.get(number));
    let mut extents = padding.extents(&tensilo::ColumnBuffer::new());
    extents.resize(1 + spec.stored.shape.extents().len(), 0);
    for of_segment in of_segments.map(|buffer| padding.extents(buffer)) {
        extents.iter_mut().zip(of_segment).for_each(|(extent, of_segment)| *extent = (*extent).max(of_segment));
    }
    if let Some(samples) = extents.first_mut() {
        *samples = count as u64; // exact
    }
    extents
}

/// Fills the rest of each row after its sample, and the rows of samples whose files do not have the
/// column.
fn fill_rows(
    spec: &ColumnSpec,
    segments: &Segments,
    slot: usize,
    bytes: Range<usize>,
    row_bytes: usize,
    list: &mut BlockList,
) -> tensilo::Result<()> {
    let (element, delivered) = spec.filler();
    let stored = spec.stored.dtype.element_bytes();
    let mut fill = |row: usize, from: usize| {
        // no overflow: the end of the rows is inside the memory of the batch
        let start = bytes.start.saturating_add(row.saturating_mul(row_bytes)).saturating_add(from);
        list.fill(start, &element, row_bytes.saturating_sub(from) / element.len().max(1))
    };
    for (segment, number) in with_column_of(segments, slot).filter(|_| spec.fixed_bytes.is_none()) {
        let Some(shapes) = segment.buffers.get(number) else { continue };
        for (position, &row) in segment.positions.iter().enumerate() {
            let ends = shapes.value_start(position).zip(shapes.value_start(position.saturating_add(1)));
            let elements = ends.map_or(0, |(start, end)| end.saturating_sub(start) / stored);
            fill(row, elements.saturating_mul(delivered))?;
        }
    }
    let absent = segments.absent.iter().filter(|(absent, _)| *absent == slot);
    absent.flat_map(|(_, positions)| positions).try_for_each(|&row| fill(row, 0))
}

/// Returns the positions of null samples of a column of fixed shape.
fn nulls_of(segments: &Segments, slot: usize) -> Vec<usize> {
    let in_segments = with_column_of(segments, slot).flat_map(|(segment, number)| {
        let shapes = segment.buffers.get(number);
        let is_null = move |position: usize| shapes.is_some_and(|shapes| shapes.is_null(position));
        let nulls = segment.positions.iter().enumerate().filter(move |(position, _)| is_null(*position));
        nulls.map(|(_, &row)| row)
    });
    let absent = segments.absent.iter().filter(|(absent, _)| *absent == slot);
    in_segments.chain(absent.flat_map(|(_, positions)| positions.iter().copied())).collect()
}
