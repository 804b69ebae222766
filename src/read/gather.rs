//! Many samples by one call: grouped by chunk, each chunk decoded once, results in the order asked for.

use super::buffer::ColumnBuffer;
use super::column::in_chunk;
use super::cursor::Cursor;
use super::lookup::Located;
use super::sample::check_type;
use super::source::Source;
use crate::format::content::Content;
use crate::format::region::HEAD;
use crate::format::schema::Layout;
use crate::pod::{self, AlignedBytes, Element};
use crate::{Error, Result};
use std::ops::Range;

/// Memory that gathering reuses.
#[derive(Default)]
pub(super) struct GatherScratch<'r> {
    /// Sample and its position in the request, ascending by sample.
    order: Vec<(u64, usize)>,
    /// Chunks in that order, and the part of `order` that is in each.
    chunks: Vec<(Located, Range<usize>)>,
    /// For each position of the request, its values, if they are in the file as they are.
    ///
    /// Copying them waits until all are found: copies that follow each other closely overlap their cache misses.
    stored: Vec<Option<&'r [u8]>>,
    /// Other values of ragged samples, in that order.
    staging: AlignedBytes,
    /// For each position of the request, where its values are in `staging`.
    staged: Vec<Range<usize>>,
}

impl<'r, S: Source> Cursor<'r, S> {
    /// Copies samples `indices`, in this order and as often as each stands there, to `out`, which has room for exactly
    /// their elements. Only for fixed shapes. Nulls become zeros; returns how many there were.
    ///
    /// Cost: each chunk is read and decoded once, however many of its samples are asked for. All chunks are announced to
    /// the operating system before the first is touched.
    pub fn gather_slice<T: Element>(&mut self, indices: &[u64], out: &mut [T]) -> Result<usize> {
        let result = check_type::<T>(self.column.schema.dtype)
            .and_then(|()| self.try_gather_fixed(indices, pod::as_bytes_mut(out), &mut |_| ()));
        result.map_err(|error| self.column.place(error))
    }

    /// Fills `out` with samples `indices`, in this order and as often as each stands there.
    ///
    /// Cost: as [`Cursor::gather_slice`]; values of encoded ragged samples are copied twice.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        out.begin(self.column.schema, indices.len());
        let result = if self.column.index.layout.is_ragged() {
            self.try_gather_ragged(indices, out)
        } else {
            self.gather_fixed_into(indices, out)
        };
        result.map_err(|error| self.column.place(error))
    }

    /// Fills `out` with the samples of a range. Cost: each chunk is decoded once and copied in one piece.
    pub fn range_into(&mut self, range: Range<u64>, out: &mut ColumnBuffer) -> Result<()> {
        self.try_range(range, out).map_err(|error| self.column.place(error))
    }

    fn gather_fixed_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        indices.iter().try_for_each(|&i| self.column.check_sample(i))?; // before memory is taken
        let bytes = indices.len().checked_mul(self.column.index.layout.inner_bytes);
        let mut values = std::mem::take(&mut out.values);
        values.resize(bytes.ok_or_else(|| Error::over_limit("the samples do not fit in memory"))?);
        let result = self.try_gather_fixed(indices, values.as_mut_slice(), &mut |null| out.set_null(null));
        out.values = values;
        result.map(|_| ())
    }

    /// `on_null` is told the position of each null; returns their number.
    fn try_gather_fixed(&mut self, indices: &[u64], out: &mut [u8], on_null: &mut dyn FnMut(usize)) -> Result<usize> {
        let sample_bytes = self.column.index.layout.inner_bytes;
        if self.column.index.layout.is_ragged() {
            return Err(Error::bad_argument("the column is ragged; gather it into a ColumnBuffer"));
        }
        if indices.len().checked_mul(sample_bytes) != Some(out.len()) {
            let message = format!(
                "{} samples take {sample_bytes} bytes each; there is room for {} bytes",
                indices.len(),
                out.len()
            );
            return Err(Error::bad_argument(message));
        }
        let mut nulls = 0;
        let mut stored = self.take_stored(indices.len());
        let result = self.for_each(indices, |layout, content, in_file, i, position| {
            if content.is_null(i) {
                nulls += 1;
                on_null(position);
            }
            if let (Some(content), Some(from)) = (in_file, stored.get_mut(position)) {
                *from = Some(content.values_of(layout, &(i..i + 1))?);
                return Ok(());
            }
            let start = position * sample_bytes; // inside `out`: its length was checked
            if let Some(to) = out.get_mut(start..start + sample_bytes) {
                to.copy_from_slice(content.values_of(layout, &(i..i + 1))?); // equal lengths
            }
            Ok(())
        });
        if result.is_ok() {
            for (to, from) in out.chunks_exact_mut(sample_bytes.max(1)).zip(&stored) {
                from.iter().for_each(|from| to.copy_from_slice(from)); // equal lengths
            }
        }
        self.gather.stored = stored;
        result.map(|()| nulls)
    }

    /// [`GatherScratch::stored`] for a request of `count` samples, none of them found yet.
    fn take_stored(&mut self, count: usize) -> Vec<Option<&'r [u8]>> {
        let mut stored = std::mem::take(&mut self.gather.stored);
        stored.clear();
        stored.resize(count, None);
        stored
    }

    fn try_gather_ragged(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        let mut staging = std::mem::take(&mut self.gather.staging);
        let mut staged = std::mem::take(&mut self.gather.staged);
        let mut stored = self.take_stored(indices.len());
        staging.resize(0);
        staged.clear();
        staged.resize(indices.len(), 0..0);
        let varying = self.column.index.layout.varying;
        out.extents.resize(indices.len().saturating_mul(varying), 0);
        let result = self.for_each(indices, |layout, content, in_file, i, position| {
            if content.is_null(i) {
                out.set_null(position);
            }
            content.check_extents(layout, i)?;
            for dimension in 0..varying {
                if let Some(extent) = out.extents.get_mut(position * varying + dimension) {
                    *extent = content.extent(layout, i, dimension)?;
                }
            }
            if let (Some(content), Some(from)) = (in_file, stored.get_mut(position)) {
                *from = Some(content.values_of(layout, &(i..i + 1))?);
                return Ok(());
            }
            let start = staging.as_slice().len();
            staging.extend(content.values_of(layout, &(i..i + 1))?);
            if let Some(range) = staged.get_mut(position) {
                *range = start..staging.as_slice().len();
            }
            Ok(())
        });
        if result.is_ok() {
            let staged = staged.iter().map(|range| staging.as_slice().get(range.clone()).unwrap_or(&[]));
            let values = stored.iter().zip(staged).map(|(stored, staged)| stored.unwrap_or(staged));
            place_in_order(values, self.column.index.layout.element_bytes, out);
        }
        (self.gather.staging, self.gather.staged, self.gather.stored) = (staging, staged, stored);
        result
    }

    /// Calls `visit` for each of the samples, chunk by chunk, with the chunk's content (and again, if it is in the file as
    /// it is), the sample's place in its chunk and its position in the request.
    fn for_each(
        &mut self,
        indices: &[u64],
        mut visit: impl FnMut(&Layout, &Content<'_>, Option<&Content<'r>>, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.gather);
        let result = self.plan(indices, &mut scratch).and_then(|()| {
            for (located, range) in &scratch.chunks {
                self.load_unless_current(*located)?;
                let (content, in_file) = (self.content(), self.stored.as_ref());
                for &(sample, position) in scratch.order.get(range.clone()).unwrap_or(&[]) {
                    visit(&self.column.index.layout, &content, in_file, in_chunk(located, sample), position)
                        .map_err(|error| error.with_samples(sample..sample.saturating_add(1)))?;
                }
            }
            Ok(())
        });
        self.gather = scratch;
        result
    }

    /// Sorts the request, finds the chunks, and announces those that were not read before.
    fn plan(&self, indices: &[u64], scratch: &mut GatherScratch<'r>) -> Result<()> {
        scratch.order.clear();
        scratch.order.extend(indices.iter().copied().zip(0..));
        scratch.order.sort_unstable();
        scratch.chunks.clear();
        for (at, &(sample, _)) in scratch.order.iter().enumerate() {
            if let Some((last, range)) = scratch.chunks.last_mut()
                && last.entry.samples().contains(&sample)
            {
                range.end = at + 1;
                continue;
            }
            let located = self.column.locate(sample);
            let located = located.map_err(|error| error.with_samples(sample..sample.saturating_add(1)))?;
            scratch.chunks.push((located, at..at + 1));
        }
        self.announce(scratch.chunks.iter().map(|(located, _)| located));
        Ok(())
    }

    fn announce<'a>(&self, chunks: impl Iterator<Item = &'a Located>) {
        let (reader, index) = (self.column.reader, self.column.index);
        for located in chunks.filter(|located| reader.must_check(index, located.chunk)) {
            let entry = &located.entry;
            let end = entry.offset.saturating_add(HEAD).saturating_add(entry.stored_bytes.into());
            reader.source.will_need(entry.offset..end);
        }
    }

    fn try_range(&mut self, range: Range<u64>, out: &mut ColumnBuffer) -> Result<()> {
        if let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) {
            self.column.check_sample(last)?; // before memory is taken for as many samples
        }
        let count = range.end.saturating_sub(range.start);
        let count = usize::try_from(count).map_err(|_| Error::over_limit("the samples do not fit in memory"))?;
        out.begin(self.column.schema, count);
        let layout = self.column.index.layout;
        if layout.is_ragged() {
            out.offsets.push(0);
        }
        let mut next = range.start;
        let mut position = 0;
        while next < range.end {
            let first = self.seek(next)?;
            let content = self.content();
            let left = usize::try_from(range.end - next).unwrap_or(usize::MAX);
            let samples = first..content.sample_count.min(first.saturating_add(left));
            append(&layout, &content, &samples, position, out)?;
            position += samples.len();
            next = next.saturating_add(samples.len() as u64); // exact: usize has at most 64 bits
        }
        Ok(())
    }
}

/// Appends consecutive samples of a chunk; `position` is that of the first in the buffer.
fn append(
    layout: &Layout,
    content: &Content<'_>,
    samples: &Range<usize>,
    position: usize,
    out: &mut ColumnBuffer,
) -> Result<()> {
    out.values.extend(content.values_of(layout, samples)?);
    for (position, i) in (position..).zip(samples.clone()) {
        if content.is_null(i) {
            out.set_null(position);
        }
        if !layout.is_ragged() {
            continue;
        }
        content.check_extents(layout, i)?;
        for dimension in 0..layout.varying {
            out.extents.push(content.extent(layout, i, dimension)?);
        }
        let elements = content.values_of(layout, &(i..i + 1))?.len() / layout.element_bytes;
        let start = out.offsets.last().copied().unwrap_or(0);
        out.offsets.push(start.saturating_add(elements as u64)); // exact: usize has at most 64 bits
    }
    Ok(())
}

/// Copies the values of ragged samples to `out`, in the order of the request, and fills its offsets.
fn place_in_order<'a>(values: impl Iterator<Item = &'a [u8]>, element_bytes: usize, out: &mut ColumnBuffer) {
    out.offsets.push(0);
    for sample in values {
        out.values.extend(sample);
        let end = out.values.as_slice().len() / element_bytes;
        out.offsets.push(end as u64); // exact: usize has at most 64 bits
    }
}

/// Several columns of an open file, read for the same samples by one call. Belongs to one thread.
pub struct Rows<'r, S> {
    cursors: Vec<Cursor<'r, S>>,
}

impl<'r, S: Source> Rows<'r, S> {
    pub(super) fn new(cursors: Vec<Cursor<'r, S>>) -> Self {
        Self { cursors }
    }

    /// The cursors of the columns, in the order they were asked for.
    pub fn cursors(&mut self) -> &mut [Cursor<'r, S>] {
        &mut self.cursors
    }

    /// Fills one buffer for each column with samples `indices`, see [`Cursor::gather_into`]. `out` gets as many buffers as
    /// there are columns.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut Vec<ColumnBuffer>) -> Result<()> {
        out.resize_with(self.cursors.len(), ColumnBuffer::new);
        let mut pairs = self.cursors.iter_mut().zip(out);
        pairs.try_for_each(|(cursor, buffer)| cursor.gather_into(indices, buffer))
    }

    /// Fills one buffer for each column with the samples of a range, see [`Cursor::range_into`].
    pub fn range_into(&mut self, range: Range<u64>, out: &mut Vec<ColumnBuffer>) -> Result<()> {
        out.resize_with(self.cursors.len(), ColumnBuffer::new);
        let mut pairs = self.cursors.iter_mut().zip(out);
        pairs.try_for_each(|(cursor, buffer)| cursor.range_into(range.clone(), buffer))
    }
}
