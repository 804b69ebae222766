//! The third stage: from the bytes of a batch to its columns.
//!
//! The samples of a fixed column are decoded directly to their positions in the batch: each segment
//! scatters its samples into one tensor, in the loader's or the caller's memory. The lengths of
//! ragged samples are not known in advance, so each segment is decoded into a separate buffer, and
//! [`join`] concatenates the buffers in batch order. If one segment contains the whole batch in
//! order, its buffer is used without a copy. Each column is cast and padded right after it is
//! decoded, while its values are still in the processor's cache.
//!
//! A [`ReadFailure`] distinguishes errors that do not depend on the samples, such as a lack of
//! memory or an interrupt, from failures in a file that was found and opened. Only damaged samples
//! of such a file can be substituted.

use super::deliver::batch::{BatchColumn, Values};
use super::deliver::memory::{AlignedBuffer, BatchAllocator, BatchMemory, too_large};
use super::plan::columns::ColumnSpec;
use super::plan::segments::Segments;
use super::setup::Setup;
use crate::error::{DataError, Result};
use tensilo::stages::Decoder;
use tensilo::{ColumnBuffer, ErrorKind};

/// The reason why samples were not read.
pub(super) enum ReadFailure {
    /// The error would also occur with other samples.
    Fatal(DataError),
    /// Reading failed in a file that was found and opened.
    Failed(DataError),
}

impl ReadFailure {
    /// Returns whether the bytes of a sample are damaged.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Failed(DataError::File(error)) if error.kind() == ErrorKind::Corrupt)
    }

    pub(super) fn into_error(self) -> DataError {
        match self {
            Self::Fatal(error) | Self::Failed(error) => error,
        }
    }
}

/// Decodes batches in reused memory.
pub(super) struct BatchDecoder {
    /// One decoder for each column. It caches the last chunk that it decoded.
    pub(super) decoders: Vec<Decoder>,
    /// The positions of null samples, for each column.
    nulls: Vec<Vec<usize>>,
    /// Decoded elements that have yet to be converted or padded.
    staging: AlignedBuffer,
    /// The size of the previous batch on the GPU, in bytes.
    #[cfg(feature = "cuda")]
    pub(super) device_bytes: usize,
}

impl BatchDecoder {
    pub(super) fn new(column_count: usize) -> Self {
        Self {
            decoders: (0..column_count).map(|_| Decoder::new()).collect(),
            nulls: vec![Vec::new(); column_count],
            staging: AlignedBuffer::default(),
            #[cfg(feature = "cuda")]
            device_bytes: usize::MAX,
        }
    }

    /// Decodes the segments of a batch of `count` samples.
    pub(super) fn decode(
        &mut self,
        setup: &Setup,
        segments: &mut Segments,
        count: usize,
        columns: &mut [BatchColumn],
    ) -> std::result::Result<(), ReadFailure> {
        for (slot, (column, spec)) in columns.iter_mut().zip(&setup.columns.columns).enumerate() {
            column.begin(&spec.delivered, count);
            self.decode_column(setup, segments, slot, column)?;
        }
        Ok(())
    }

    /// Decodes a column after [`BatchColumn::begin`].
    pub(super) fn decode_column(
        &mut self,
        setup: &Setup,
        segments: &mut Segments,
        slot: usize,
        column: &mut BatchColumn,
    ) -> std::result::Result<(), ReadFailure> {
        match setup.columns.columns.get(slot).and_then(|spec| spec.fixed_bytes) {
            Some(sample_bytes) => self.fixed(setup, segments, slot, sample_bytes, column),
            None => self.ragged(setup, segments, slot, column),
        }
    }

    /// Decodes a column of fixed shape.
    fn fixed(
        &mut self,
        setup: &Setup,
        segments: &Segments,
        slot: usize,
        sample_bytes: usize,
        column: &mut BatchColumn,
    ) -> std::result::Result<(), ReadFailure> {
        let Self { decoders, nulls, staging, .. } = self;
        let (Some(decoder), Some(nulls)) = (decoders.get_mut(slot), nulls.get_mut(slot)) else { return Ok(()) };
        let Some(spec) = setup.columns.columns.get(slot) else { return Ok(()) };
        nulls.clear();
        let count = column.sample_count;
        let stored_bytes = count.checked_mul(sample_bytes).ok_or_else(|| ReadFailure::Fatal(too_large(usize::MAX)))?;
        let elements = stored_bytes / spec.stored.dtype.element_bytes(); // at least 1
        let delivered = elements.saturating_mul(spec.delivered.dtype.element_bytes());
        let room = column.room(delivered, setup.allocator.as_deref()).map_err(ReadFailure::Fatal)?;
        let out = match spec.conversion {
            Some(_) => {
                staging.resize(stored_bytes).map_err(ReadFailure::Fatal)?;
                staging.bytes_mut()
            }
            None => room,
        };
        for segment in segments.iter() {
            let Some(number) = segment.slots.iter().position(|found| *found == slot) else { continue };
            setup.check_interrupt().map_err(ReadFailure::Fatal)?;
            let decoded = decoder.scatter(&segment.plan, &segment.bytes, number, &segment.positions, out, nulls);
            decoded.map_err(|error| ReadFailure::Failed(error.into()))?;
        }
        for (_, positions) in segments.absent.iter().filter(|(absent, _)| *absent == slot) {
            for &position in positions {
                let start = position.saturating_mul(sample_bytes);
                let sample = out.get_mut(start..).and_then(|rest| rest.get_mut(..sample_bytes));
                sample.into_iter().for_each(|sample| sample.fill(0));
                nulls.push(position);
            }
        }
        if let Some(conversion) = &spec.conversion {
            conversion.run(staging.bytes(), column.current_room()).map_err(ReadFailure::Fatal)?;
        }
        column.set_nulls(nulls);
        let extents = spec.stored.shape.extents().iter().map(|extent| match extent {
            tensilo::Extent::Fixed(extent) => u64::from(*extent),
            _ => 0, // unreachable: the shape is fixed
        });
        let tensor = column.tensor.get_or_insert_default();
        tensor.clear();
        tensor.push(count as u64); // exact
        tensor.extend(extents);
        Ok(())
    }

    /// Decodes a ragged or nested column.
    fn ragged(
        &mut self,
        setup: &Setup,
        segments: &mut Segments,
        slot: usize,
        column: &mut BatchColumn,
    ) -> std::result::Result<(), ReadFailure> {
        let Self { decoders, staging, .. } = self;
        let (Some(decoder), Some(spec)) = (decoders.get_mut(slot), setup.columns.columns.get(slot)) else {
            return Ok(());
        };
        for segment in segments.all_mut().iter_mut() {
            let Some(number) = segment.slots.iter().position(|found| *found == slot) else { continue };
            let Some(buffer) = segment.buffers.get_mut(number) else { continue };
            setup.check_interrupt().map_err(ReadFailure::Fatal)?;
            let decoded = decoder.decode_column(&segment.plan, &segment.bytes, number, buffer);
            decoded.map_err(|error| ReadFailure::Failed(error.into()))?;
        }
        join(segments, slot, spec, column).map_err(ReadFailure::Fatal)?;
        deliver(spec, column, staging, setup.allocator.as_deref()).map_err(ReadFailure::Fatal)
    }
}

/// Concatenates the samples of a ragged or nested column in the order of the batch.
pub(super) fn join(segments: &mut Segments, slot: usize, spec: &ColumnSpec, column: &mut BatchColumn) -> Result<()> {
    let count = column.sample_count;
    if let Some(buffer) = segments.all_mut().iter_mut().find_map(|segment| {
        let is_whole = segment.positions.len() == count && segment.positions.iter().copied().eq(0..count);
        let number = segment.slots.iter().position(|found| *found == slot).filter(|_| is_whole)?;
        segment.buffers.get_mut(number)
    }) {
        std::mem::swap(buffer, &mut column.buffer);
        return Ok(());
    }
    let mut samples: Vec<Option<(&ColumnBuffer, usize)>> = vec![None; count];
    for segment in segments.iter() {
        let Some(number) = segment.slots.iter().position(|found| *found == slot) else { continue };
        let Some(buffer) = segment.buffers.get(number) else { continue };
        for (i, &position) in segment.positions.iter().enumerate() {
            if let Some(sample) = samples.get_mut(position) {
                *sample = Some((buffer, i));
            }
        }
    }
    Ok(column.buffer.join(&spec.stored, samples)?)
}

/// Converts, pads and copies the samples of a ragged or nested column, as its options require.
fn deliver(
    spec: &ColumnSpec,
    column: &mut BatchColumn,
    staging: &mut AlignedBuffer,
    allocator: Option<&dyn BatchAllocator>,
) -> Result<()> {
    column.tensor = None;
    let buffer = std::mem::take(&mut column.buffer);
    let values = match &spec.conversion {
        Some(conversion) => {
            let elements = buffer.bytes().len() / spec.stored.dtype.element_bytes(); // at least 1
            staging.resize(elements.saturating_mul(conversion.to.element_bytes()))?;
            conversion.run(buffer.bytes(), staging.bytes_mut())?;
            staging.bytes()
        }
        None => buffer.bytes(),
    };
    match &spec.padding {
        Some(padding) => {
            let extents = padding.extents(&buffer);
            let room = column.room(padding.byte_count(&extents)?, allocator)?;
            padding.run(&buffer, values, &extents, room)?;
            column.tensor = Some(extents);
        }
        None if spec.conversion.is_some() || allocator.is_some() => {
            column.room(values.len(), allocator)?.copy_from_slice(values); // equal lengths
        }
        None => column.values = Values::Buffer,
    }
    column.buffer = buffer;
    Ok(())
}
