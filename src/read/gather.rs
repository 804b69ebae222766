//! Many samples by one call: grouped by chunk, each chunk decoded once or only the few samples wanted of it, results in the order asked for.

use super::buffer::ColumnBuffer;
use super::chunk_location::ChunkLocation;
use super::current::CurrentChunk;
use super::cursor::Cursor;
use super::opened_column::OpenedColumn;
use super::sample::check_type;
use crate::format::content::Content;
use crate::format::region::HEAD;
use crate::format::schema::Layout;
use crate::pod::{self, AlignedBytes, Element};
use crate::{Error, Result, memory};
use std::ops::Range;

/// Memory that gathering reuses.
#[derive(Default)]
pub(super) struct GatherScratch {
    /// Sample and its position in the request, ascending by sample.
    order: Vec<(u64, usize)>,
    /// Chunks in that order, and the part of `order` that is in each.
    chunks: Vec<(ChunkLocation, Range<usize>)>,
    /// For each position of the request, the range of its values in the file, if they are there as
    /// they are.
    ///
    /// Copying them waits until all are found: copies that follow each other closely overlap their cache misses.
    stored: Vec<Option<Range<usize>>>,
    /// Other values of ragged samples, in that order.
    staging: AlignedBytes,
    /// For each position of the request, where its values are in `staging`.
    staged: Vec<Range<usize>>,
}

impl Cursor {
    /// Copies samples `indices`, in this order and as often as each stands there, to `out`, which has room for exactly
    /// their elements. Only for fixed shapes. Nulls become zeros; returns how many there were.
    ///
    /// Cost: each chunk is read once, and decoded once, or if at most three quarters of it are asked for and its encoding allows it, only those
    /// samples, each straight to its place. (Of raw chunks in a file that is read by position, see [`Cursor::read`], only they are read.) All chunks
    /// that were not read before are announced to the operating system before the first is touched.
    pub fn gather_slice<T: Element>(&mut self, indices: &[u64], out: &mut [T]) -> Result<usize> {
        let result = check_type::<T>(self.opened().schema().dtype)
            .and_then(|()| self.try_gather_fixed(indices, pod::as_bytes_mut(out), &mut |_| ()));
        result.map_err(|error| self.opened().in_column(error))
    }

    /// Copies samples `indices` to `out`, as bytes in memory order.
    ///
    /// It is [`Cursor::gather_slice`] for a type that is known only at run time: `out` has exactly
    /// the bytes of all samples.
    pub fn gather_bytes(&mut self, indices: &[u64], out: &mut [u8]) -> Result<usize> {
        self.try_gather_fixed(indices, out, &mut |_| ()).map_err(|error| self.opened().in_column(error))
    }

    /// Fills `out` with samples `indices`, in this order and as often as each stands there.
    ///
    /// Cost: as [`Cursor::gather_slice`]; values of encoded ragged samples are copied once more.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        let result = if self.opened().layout().is_ragged() {
            self.try_gather_ragged(indices, out)
        } else {
            self.gather_fixed_into(indices, out)
        };
        result.map_err(|error| self.opened().in_column(error))
    }

    /// Fills `out` with the samples of a range. Cost: each chunk is decoded once, straight to its place if it is asked for whole; of the first only what is
    /// asked for, as in [`Cursor::gather_slice`], and all of the last, where the next range mostly begins.
    pub fn range_into(&mut self, range: Range<u64>, out: &mut ColumnBuffer) -> Result<()> {
        self.try_range(range, out).map_err(|error| self.opened().in_column(error))
    }

    fn gather_fixed_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        out.begin(self.opened().schema(), indices.len())?;
        let mut values = std::mem::take(&mut out.values);
        let result = self
            .chunk
            .column
            .make_room(indices, &mut values)
            .and_then(|()| self.try_gather_fixed(indices, values.as_mut_slice(), &mut |null| out.set_null(null)));
        out.values = values;
        result.map(|_| ())
    }

    /// `on_null` is told the position of each null; returns their number.
    fn try_gather_fixed(&mut self, indices: &[u64], out: &mut [u8], on_null: &mut dyn FnMut(usize)) -> Result<usize> {
        let sample_bytes = self.chunk.column.check_room(indices.len(), out.len())?;
        let mut nulls = 0;
        let mut stored = self.take_stored(indices.len())?;
        let result = self.for_each(indices, |chunk, i, position| {
            if chunk.content().is_null(i) {
                nulls += 1;
                on_null(position);
            }
            let start = position * sample_bytes; // inside `out`: its length was checked
            match (chunk.range_in_file(i)?, stored.get_mut(position), out.get_mut(start..start + sample_bytes)) {
                (Some(range), Some(from), _) => {
                    *from = Some(range);
                    Ok(())
                }
                (None, _, Some(to)) => chunk.copy(&chunk.values_range(&(i..i + 1))?, to),
                _ => Ok(()), // never: there is a place for each
            }
        });
        if result.is_ok() {
            let file = self.opened().file.bytes().memory().unwrap_or(&[]);
            for (to, from) in out.chunks_exact_mut(sample_bytes.max(1)).zip(&stored) {
                let from = from.as_ref().and_then(|from| file.get(from.clone()));
                from.iter().for_each(|from| to.copy_from_slice(from)); // equal lengths
            }
        }
        self.gather.stored = stored;
        result.map(|()| nulls)
    }

    /// [`GatherScratch::stored`] for a request of `count` samples, none of them found yet.
    fn take_stored(&mut self, count: usize) -> Result<Vec<Option<Range<usize>>>> {
        let mut stored = std::mem::take(&mut self.gather.stored);
        stored.clear();
        memory::resize(&mut stored, count, None).map(|()| stored)
    }

    fn try_gather_ragged(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        let layout = *self.opened().layout();
        out.begin(self.opened().schema(), indices.len())?;
        memory::resize(&mut out.extents, indices.len().saturating_mul(layout.varying), 0)?;
        let mut stored = self.take_stored(indices.len())?;
        let mut staging = std::mem::take(&mut self.gather.staging);
        let mut staged = std::mem::take(&mut self.gather.staged);
        staging.clear();
        staged.clear();
        memory::resize(&mut staged, indices.len(), 0..0)?;
        let mut result = self.for_each(indices, |chunk, i, position| {
            if chunk.content().is_null(i) {
                out.set_null(position);
            }
            let extents = out.extents.get_mut(position * layout.varying..).unwrap_or(&mut []);
            copy_extents(&layout, &chunk.content(), i, extents)?;
            if let (Some(range), Some(from)) = (chunk.range_in_file(i)?, stored.get_mut(position)) {
                *from = Some(range);
            } else if let Some(range) = staged.get_mut(position) {
                *range = chunk.append(&(i..i + 1), &mut staging)?;
            }
            Ok(())
        });
        if result.is_ok() {
            let staged = staged.iter().map(|range| staging.as_slice().get(range.clone()).unwrap_or(&[]));
            let file = self.opened().file.bytes().memory().unwrap_or(&[]);
            let in_file = |range: &Range<usize>| file.get(range.clone());
            let values = stored.iter().zip(staged);
            let values = values.map(|(stored, staged)| stored.as_ref().and_then(in_file).unwrap_or(staged));
            result = place_in_order(values, layout.element_bytes, out);
        }
        (self.gather.staging, self.gather.staged, self.gather.stored) = (staging, staged, stored);
        result
    }

    /// Calls `visit` for each of the samples, chunk by chunk, with the chunk, the sample's place in it and its position in the request.
    fn for_each(
        &mut self,
        indices: &[u64],
        mut visit: impl FnMut(&mut CurrentChunk, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let Self { chunk, gather: GatherScratch { order, chunks, .. } } = self;
        order.clear();
        memory::reserve(order, indices.len())?;
        order.extend(indices.iter().copied().zip(0..));
        order.sort_unstable();
        chunk.column.locate_sorted(order.iter().map(|(sample, _)| *sample), chunks)?;
        for (located, range) in chunks {
            let samples = order.get(range.clone()).unwrap_or(&[]);
            chunk.prepare(located, samples.len())?;
            for &(sample, position) in samples {
                visit(chunk, located.position_of(sample), position)
                    .map_err(|error| error.with_samples(sample..sample.saturating_add(1)))?;
            }
        }
        Ok(())
    }

    fn try_range(&mut self, range: Range<u64>, out: &mut ColumnBuffer) -> Result<()> {
        let column = self.opened();
        if let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) {
            column.check_sample(last)?; // before memory is taken for as many samples
        }
        let count = range.end.saturating_sub(range.start);
        let count = usize::try_from(count).map_err(|_| Error::over_limit("the samples do not fit in memory"))?;
        out.begin(column.schema(), count)?;
        if column.layout().is_ragged() {
            out.offsets.push(0);
        }
        let mut position = 0;
        while position < count {
            let next = range.start.saturating_add(position as u64); // exact: usize has at most 64 bits
            let first = self.chunk.go_to(next, count - position, true)?;
            let samples = first..self.chunk.content().sample_count.min(first.saturating_add(count - position));
            append(&mut self.chunk, &samples, position, out)?;
            position += samples.len();
        }
        Ok(())
    }
}

impl OpenedColumn {
    /// Room for the values of these samples, which have a fixed shape.
    pub(super) fn make_room(&self, indices: &[u64], values: &mut AlignedBytes) -> Result<()> {
        indices.iter().try_for_each(|&i| self.check_sample(i))?; // before memory is taken
        self.file.check_decoded_bytes(self.layout().inner_bytes as u64)?; // exact: usize has at most 64 bits
        let bytes = indices.len().checked_mul(self.layout().inner_bytes);
        values.resize(bytes.ok_or_else(|| Error::over_limit("the samples do not fit in memory"))?)
    }

    /// The bytes of one sample of a fixed shape, if `room` is exactly enough for `count` of them.
    pub(super) fn check_room(&self, count: usize, room: usize) -> Result<usize> {
        let sample_bytes = self.layout().inner_bytes;
        if self.layout().is_ragged() {
            return Err(Error::bad_argument("the column is ragged; gather it into a ColumnBuffer"));
        }
        if count.checked_mul(sample_bytes) == Some(room) {
            return Ok(sample_bytes);
        }
        let message = format!("{count} samples take {sample_bytes} bytes each; there is room for {room} bytes");
        Err(Error::bad_argument(message))
    }

    /// The chunks of some samples, which ascend, and the part of them that is in each. Announces those that were not read before.
    pub(super) fn locate_sorted(
        &self,
        samples: impl Iterator<Item = u64>,
        chunks: &mut Vec<(ChunkLocation, Range<usize>)>,
    ) -> Result<()> {
        chunks.clear();
        let bytes = self.file.bytes();
        for (at, sample) in samples.enumerate() {
            if let Some((last, range)) = chunks.last_mut()
                && last.entry.samples().contains(&sample)
            {
                range.end = at + 1;
                continue;
            }
            let located = self.locate(bytes, sample);
            let located = located.map_err(|error| error.with_samples(sample..sample.saturating_add(1)))?;
            chunks.push((located, at..at + 1));
        }
        for (ChunkLocation { entry, chunk }, _) in chunks {
            if !self.is_checked(*chunk) {
                let end = entry.offset.saturating_add(HEAD).saturating_add(entry.stored_bytes.into());
                self.file.source.will_need(entry.offset..end);
            }
        }
        Ok(())
    }
}

/// Appends consecutive samples of the current chunk; `position` is that of the first in the buffer.
fn append(chunk: &mut CurrentChunk, samples: &Range<usize>, position: usize, out: &mut ColumnBuffer) -> Result<()> {
    chunk.append(samples, &mut out.values)?;
    let layout = chunk.column.layout();
    let content = chunk.content();
    for (position, i) in (position..).zip(samples.clone()) {
        if content.is_null(i) {
            out.set_null(position);
        }
        if !layout.is_ragged() {
            continue;
        }
        let start = out.extents.len();
        memory::resize(&mut out.extents, start.saturating_add(layout.varying), 0)?;
        copy_extents(layout, &content, i, out.extents.get_mut(start..).unwrap_or(&mut []))?;
        let elements = chunk.values_range(&(i..i + 1))?.len() / layout.element_bytes;
        let start = out.offsets.last().copied().unwrap_or(0);
        memory::reserve(&mut out.offsets, 1)?;
        out.offsets.push(start.saturating_add(elements as u64)); // exact: usize has at most 64 bits
    }
    Ok(())
}

/// Checks the varying extents of sample `i` of a chunk, and copies them to the start of `out`.
pub(super) fn copy_extents(layout: &Layout, content: &Content<'_>, i: usize, out: &mut [u32]) -> Result<()> {
    content.check_extents(layout, i)?;
    for (dimension, to) in (0..layout.varying).zip(out) {
        *to = content.extent(layout, i, dimension)?;
    }
    Ok(())
}

/// Copies the values of ragged samples to `out`, in the order of the request, and fills its offsets.
pub(super) fn place_in_order<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    element_bytes: usize,
    out: &mut ColumnBuffer,
) -> Result<()> {
    memory::reserve(&mut out.offsets, out.sample_count.saturating_add(1))?;
    out.offsets.push(0);
    for sample in values {
        out.values.extend(sample)?;
        let end = out.values.as_slice().len() / element_bytes;
        out.offsets.push(end as u64); // exact: usize has at most 64 bits
    }
    Ok(())
}
