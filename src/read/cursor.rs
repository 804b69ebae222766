//! Cursors: read samples of any encoding, from one column or from several.
//!
//! A cursor reads one sample at a time and keeps the chunk of that sample open, so that the next
//! sample of the same chunk needs no lookup. Each read has two options: decode only the sample, or
//! decode the whole chunk and cache it for the samples that follow. Decoding the whole chunk is
//! worthwhile if samples are read in order, or once enough of it has been decoded sample by sample
//! ([`should_decode_whole`]).
//!
//! Single samples are read without a plan, because making one would take 50 ns more
//! (docs/src/benchmarks.md, "Reads without a plan"). Gathers and ranges use a plan: they look up
//! all their chunks, fetch the bytes together, and fill slices or buffers. [`Rows`] is a set of
//! cursors whose columns are fetched together.
//!
//! [`should_decode_whole`]: crate::read::chunk::open_chunk::should_decode_whole

use super::buffer::ColumnBuffer;
use super::sample::{List, Sample, check_type, nested_error, not_nested_error};
use crate::bytes::le;
use crate::bytes::le::u64_of;
use crate::bytes::pod::{self, AlignedBytes, Element};
use crate::codec::Body;
use crate::format::content::{Content, check_unused_bits};
use crate::format::region::HEADER_LEN;
use crate::open::source::read;
use crate::read::batch::gather::{Gatherer, RequestScratch, gather};
use crate::read::chunk::chunk_bytes::{block_index_of, guessed_block, load_chunk, seekable_value_bytes};
use crate::read::chunk::open_chunk::body_of;
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::{ChunkBlockIndex, ChunkLocation, in_chunk};
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// Reads samples of one column. Owns the memory for decoding and the chunk that was decoded last.
/// Consecutive reads from one chunk decode it once, and a warmed-up cursor allocates nothing.
///
/// Samples contain the stored elements, not their logical values: 150 for a decimal of 1.50.
/// [`LogicalType::of`](crate::LogicalType::of) returns the logical type.
///
/// The suffix of a method indicates its destination: `*_slice` is a slice of the column's type;
/// `*_bytes` is a slice of bytes, for types that are known only at run time; `*_into` is a
/// [`ColumnBuffer`], which can also contain ragged and nested samples, and marks nulls.
///
/// Each thread needs its own cursor, from [`Column::cursor`](crate::Column::cursor).
pub struct Cursor {
    pub(in crate::read) gatherer: Gatherer,
    request: RequestScratch,
    /// A sample that was read or decoded individually.
    sample: AlignedBytes,
}

impl Cursor {
    pub(in crate::read) fn new(column: ColumnInner) -> Self {
        Self { gatherer: Gatherer::new(column), request: RequestScratch::default(), sample: AlignedBytes::default() }
    }

    pub(in crate::read) fn inner(&self) -> &ColumnInner {
        &self.gatherer.column
    }

    /// Returns sample `i`, borrowed from the file if it is stored raw in memory, otherwise from
    /// this cursor. Fails if the column is nested; use [`Cursor::read_list`] instead.
    ///
    /// Cost: a bounds check if the sample is in the chunk decoded last. Otherwise its chunk is
    /// read, and verified on first touch. The sample is decoded on its own if the encoding allows
    /// it, otherwise with its chunk. The whole chunk is decoded and cached if
    ///
    /// * the sample is more than three quarters of it, but not all of it,
    /// * an eighth of it has been decoded sample by sample, or
    /// * the chunk read before ends where this one starts, so that reading in order costs little
    ///   more than decoding each chunk once.
    ///
    /// If the file is read with positional reads (`pread`), the same rule decides whether to read
    /// only the sample from a raw chunk. This requires that the chunk was verified before and is
    /// neither nullable nor ragged.
    pub fn read(&mut self, i: u64) -> Result<Sample<'_>> {
        if self.inner().layout().is_nested() {
            return Err(self.inner().at_sample(nested_error(), i));
        }
        let (in_chunk, is_decoded) = self.find(i)?;
        self.sample(in_chunk, is_decoded).map_err(|error| self.inner().at_sample(error, i))
    }

    /// Opens the chunk of sample `i`, and reads or decodes the sample individually unless its
    /// values are available. Returns its position in the chunk, and whether it was decoded
    /// individually.
    fn find(&mut self, i: u64) -> Result<(usize, bool)> {
        let found = self.go_to(i, false).and_then(|in_chunk| Ok((in_chunk, self.decode_sample(in_chunk)?)));
        found.map_err(|error| self.failed(error, i))
    }

    /// Adds the sample to an error. Closes a damaged chunk, because the source can return different
    /// bytes next time.
    fn failed(&mut self, error: Error, i: u64) -> Error {
        if error.kind() == ErrorKind::Corrupt {
            self.gatherer.decoder.chunk.close();
        }
        self.inner().at_sample(error, i)
    }

    /// Returns sample `i` of a nested column as a list, borrowed like the result of
    /// [`Cursor::read`]. Fails if the column is not nested.
    ///
    /// Cost: same as [`Cursor::read`], plus a few steps for each level of lists. Opening a chunk
    /// decodes the lists of all its samples.
    pub fn read_list(&mut self, i: u64) -> Result<List<'_>> {
        if !self.inner().layout().is_nested() {
            return Err(self.inner().at_sample(not_nested_error(), i));
        }
        let (in_chunk, is_decoded) = self.find(i)?;
        self.list(in_chunk, is_decoded).map_err(|error| self.inner().at_sample(error, i))
    }

    /// Copies the elements of sample `i` to the start of `out`. Returns their number, or `None` if
    /// the sample is null. For a null sample, `out` is filled with zeros if the shape is fixed, and
    /// is unchanged if it is ragged. Fails if `T` is not the column's type (bools, bytes and text
    /// are `u8`), if `out` is too short, or if the column is nested. On failure, the content of
    /// `out` is unspecified.
    ///
    /// Cost: same as [`Cursor::read`]. A sample that is read or decoded individually goes straight
    /// to `out`; any other sample is copied.
    pub fn read_slice<T: Element>(&mut self, i: u64, out: &mut [T]) -> Result<Option<usize>> {
        let result = check_type::<T>(self.inner().schema().dtype)
            .and_then(|()| self.try_read_into(i, pod::as_bytes_mut(out)))
            .map(|bytes| bytes.map(|bytes| bytes / size_of::<T>()));
        result.map_err(|error| self.failed(error, i))
    }

    /// Copies the elements of sample `i`, as bytes in memory order, to the start of `out`. Returns
    /// the number of bytes, or `None` if the sample is null. Fails if `out` is too short, or if the
    /// column is nested.
    ///
    /// The equivalent of [`Cursor::read_slice`] for types that are known only at run time.
    pub fn read_bytes(&mut self, i: u64, out: &mut [u8]) -> Result<Option<usize>> {
        self.try_read_into(i, out).map_err(|error| self.failed(error, i))
    }

    fn try_read_into(&mut self, i: u64, out: &mut [u8]) -> Result<Option<usize>> {
        if self.inner().layout().is_nested() {
            return Err(nested_error());
        }
        let (is_null, length) = self.copy_sample(i, out)?;
        // `length` is at most the length of `out`
        check_unused_bits(self.inner().layout().dtype, out.get(..length).unwrap_or(&[]))?;
        Ok((!is_null).then_some(length))
    }

    /// Copies the values of sample `i`. Returns whether it is null, and the number of its bytes.
    fn copy_sample(&mut self, i: u64, out: &mut [u8]) -> Result<(bool, usize)> {
        let number = self.go_to(i, true)?;
        let Gatherer { column, decoder, .. } = &mut self.gatherer;
        let location = decoder.chunk.location().copied();
        let location = location.ok_or_else(|| Error::internal("no chunk is open after its sample was found"))?;
        let body = body_of(column, &location, &decoder.cached);
        let content = decoder.chunk.content(body);
        content.check_extents(column.layout(), number)?;
        let is_null = content.is_null(number);
        // the position is below the chunk's sample count
        let bytes = decoder.chunk.values_range(column, body, &(number..number + 1))?;
        let have = out.len();
        let Some(out) = out.get_mut(..bytes.len()) else {
            return Err(too_short(bytes.len(), have, column.layout().dtype.element_bytes()));
        };
        if decoder.chunk.is_unread() {
            read_values(column, &location, &bytes, out)?;
            return Ok((is_null, bytes.len()));
        }
        if decoder.chunk.is_indexed() {
            self.read_blocks(&location, &bytes).map_err(|error| in_chunk(error, &location))?;
        }
        let Gatherer { column, decoder, .. } = &mut self.gatherer;
        decoder.chunk.copy(column, body_of(column, &location, &decoder.cached), &bytes, out)?;
        Ok((is_null, bytes.len()))
    }

    /// Copies samples `indices`, in this order, to `out`, whose length must be exactly the number
    /// of their elements. Indices may repeat. Only for columns of fixed shape that are not nested.
    /// Nulls become zeros. Returns the number of nulls. On failure, the content of `out` is
    /// unspecified.
    ///
    /// Cost: reads each chunk once. Decodes it once, or, if at most three quarters of it are
    /// requested and the encoding allows it, decodes only the requested samples, straight to their
    /// destinations. With positional reads (`pread`), reads only the samples from raw chunks; see
    /// [`Cursor::read`]. Starts by prefetching all chunks that have not been read before.
    pub fn gather_slice<T: Element>(&mut self, indices: &[u64], out: &mut [T]) -> Result<usize> {
        check_type::<T>(self.inner().schema().dtype).map_err(|error| self.inner().in_column(error))?;
        self.gather_bytes(indices, pod::as_bytes_mut(out))
    }

    /// Copies samples `indices` to `out`, as bytes in memory order.
    ///
    /// The equivalent of [`Cursor::gather_slice`] for types that are known only at run time: the
    /// length of `out` must be exactly the size of the samples in bytes. The column must have a
    /// fixed shape and must not be nested. Returns the number of nulls.
    pub fn gather_bytes(&mut self, indices: &[u64], out: &mut [u8]) -> Result<usize> {
        self.request.tasks.selection.set_samples(indices).map_err(|error| self.inner().in_column(error))?;
        gather(std::slice::from_mut(&mut self.gatherer), &mut self.request, out)
    }

    /// Copies the samples of a range to `out`, whose length must be exactly the number of their
    /// elements, like [`Cursor::gather_slice`]. Cost: same as [`Cursor::range_into`].
    pub fn range_slice<T: Element>(&mut self, range: Range<u64>, out: &mut [T]) -> Result<usize> {
        check_type::<T>(self.inner().schema().dtype).map_err(|error| self.inner().in_column(error))?;
        self.range_bytes(range, pod::as_bytes_mut(out))
    }

    /// Copies the samples of a range to `out`, as bytes in memory order.
    ///
    /// The equivalent of [`Cursor::range_slice`] for types that are known only at run time.
    pub fn range_bytes(&mut self, range: Range<u64>, out: &mut [u8]) -> Result<usize> {
        self.request.tasks.selection.set_range(range).map_err(|error| self.inner().in_column(error))?;
        gather(std::slice::from_mut(&mut self.gatherer), &mut self.request, out)
    }

    /// Fills `out` with samples `indices`, in this order. Indices may repeat. On failure, `out` is
    /// empty.
    ///
    /// Cost: same as [`Cursor::gather_slice`]; values of encoded ragged samples are copied one more
    /// time. In a nested column, all values are copied one more time, and each list and item takes
    /// a few steps: lengths, nulls and extents are collected by sample, and then laid out level by
    /// level.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        let selected = self.request.tasks.selection.set_samples(indices);
        self.gather(selected, out)
    }

    /// Fills `out` with the samples of a range. Fails if the range ends before it starts. On
    /// failure, `out` is empty.
    ///
    /// Cost: decodes each chunk once, straight to `out` if it lies completely in the range. From
    /// the first chunk, only the requested samples are decoded, as in [`Cursor::gather_slice`]. The
    /// last chunk is decoded whole, because the next range usually starts there. A nested column
    /// costs more, as in [`Cursor::gather_into`].
    pub fn range_into(&mut self, range: Range<u64>, out: &mut ColumnBuffer) -> Result<()> {
        let selected = self.request.tasks.selection.set_range(range);
        self.gather(selected, out)
    }

    /// Fills `out` like [`Cursor::range_into`], with request memory that several cursors share.
    /// That memory holds fetched bytes, 64 KiB or more. With thousands of columns, one such buffer
    /// for each would take too much memory.
    #[cfg(feature = "arrow")]
    pub(crate) fn range_into_sharing(
        &mut self,
        request: &mut RequestScratch,
        range: Range<u64>,
        out: &mut ColumnBuffer,
    ) -> Result<()> {
        std::mem::swap(&mut self.request, request);
        let read = self.range_into(range, out);
        std::mem::swap(&mut self.request, request);
        read
    }

    /// Fills `out` with the selected samples, or empties it on failure.
    fn gather(&mut self, selected: Result<()>, out: &mut ColumnBuffer) -> Result<()> {
        let gathered = selected.map_err(|error| self.inner().in_column(error)).and_then(|()| {
            gather(std::slice::from_mut(&mut self.gatherer), &mut self.request, std::slice::from_mut(out))
        });
        gathered.map(|_| ()).inspect_err(|_| out.clear())
    }

    /// Opens the chunk of sample `i`, and decodes it whole if that is worthwhile. Returns the
    /// sample's position in it.
    ///
    /// If the previous read was in the preceding chunk, the chunk is decoded whole, because samples
    /// are being read in order. If `copied` is set, a chunk of one sample is decoded straight to
    /// its destination.
    fn go_to(&mut self, i: u64, copied: bool) -> Result<usize> {
        let Gatherer { column, decoder, .. } = &mut self.gatherer;
        column.schema().check_known()?;
        let mut block_index = None;
        let (location, requested) = match decoder.chunk.location() {
            Some(current) if current.entry.samples().contains(&i) => {
                column.check_not_lost(&(i..i.saturating_add(1)))?;
                (*current, 1)
            }
            before => {
                let in_order = before.is_some_and(|before| before.entry.samples().end == i);
                block_index = column.cached_block_index(i);
                let location = match &block_index {
                    Some(block_index) => block_index.location,
                    None => column.locate(column.file.bytes(), i)?,
                };
                (location, if in_order { usize::MAX } else { 1 })
            }
        };
        let position = location.position_of(i);
        let samples = location.sample_count();
        if !decoder.chunk.is_at(&location) {
            let is_whole = requested > 1 && samples > 1; // a whole chunk includes its block index
            self.open(&location, i, block_index, is_whole).map_err(|error| in_chunk(error, &location))?;
        }
        let decoder = &mut self.gatherer.decoder;
        let is_whole_chunk = copied && samples == 1;
        if !is_whole_chunk && decoder.chunk.count_touched(requested.min(samples.saturating_sub(position))) {
            self.decode(&location)?;
        }
        Ok(position)
    }

    /// Opens the chunk of sample `i`: reads and verifies it, unless its samples are read
    /// individually. `block_index` is its cached block index, if there is one. If `is_whole` is
    /// set, all blocks are read.
    fn open(
        &mut self,
        location: &ChunkLocation,
        i: u64,
        block_index: Option<Arc<ChunkBlockIndex>>,
        is_whole: bool,
    ) -> Result<()> {
        let Gatherer { column, decoder, .. } = &mut self.gatherer;
        decoder.enter_column(column);
        decoder.chunk.close();
        if let Some(file) = column.file.bytes().memory() {
            return decoder.chunk.open_in_memory(column, location, file);
        }
        if let Some(value_bytes) = seekable_value_bytes(column, location)? {
            decoder.chunk.open_unread(location, value_bytes, 0);
            return Ok(());
        }
        let block_index = match block_index {
            _ if is_whole => None,
            Some(block_index) => Some(block_index),
            None => {
                column.prefetch(guessed_block(column, location, i)?.as_slice());
                block_index_of(column, location)?
            }
        };
        if let Some(block_index) = block_index {
            decoder.chunk.open_indexed(column, &block_index, 0)?;
            (decoder.cached.block_index, decoder.cached.blocks) = (Some(block_index), 0..0);
            return Ok(());
        }
        self.load(location)
    }

    /// Reads the blocks of the open chunk that contain these bytes of the values.
    fn read_blocks(&mut self, location: &ChunkLocation, bytes: &Range<usize>) -> Result<()> {
        let Gatherer { column, decoder, .. } = &mut self.gatherer;
        let Some(needed) = decoder.chunk.blocks_of(decoder.cached.body(), bytes)? else { return Ok(()) };
        let cached = &mut decoder.cached;
        if cached.blocks.start <= needed.start && needed.end <= cached.blocks.end {
            return Ok(());
        }
        cached.blocks = 0..0;
        let at = location.entry.offset.saturating_add(HEADER_LEN).saturating_add(u64_of(needed.start));
        column.file.bytes().get(at, needed.len(), &mut cached.bytes)?;
        cached.blocks = needed;
        Ok(())
    }

    /// Reads a chunk of a file that is not in memory.
    fn load(&mut self, location: &ChunkLocation) -> Result<()> {
        let Gatherer { column, decoder, .. } = &mut self.gatherer;
        decoder.chunk.close();
        let (header, body) = load_chunk(column, location, decoder.cached.begin_whole())?;
        decoder.chunk.open(column, location, &header, Body::whole(body))
    }

    /// Decodes all values of the open chunk.
    fn decode(&mut self, location: &ChunkLocation) -> Result<()> {
        if self.gatherer.decoder.chunk.is_unread() || self.gatherer.decoder.chunk.is_indexed() {
            self.load(location).map_err(|error| in_chunk(error, location))?;
        }
        let Gatherer { column, decoder, .. } = &mut self.gatherer;
        decoder.chunk.decode(column, body_of(column, location, &decoder.cached))
    }

    /// Reads or decodes only sample `i` of the open chunk, unless its values are available. Returns
    /// whether it was read or decoded.
    fn decode_sample(&mut self, i: usize) -> Result<bool> {
        let Self { gatherer: Gatherer { column, decoder, .. }, sample, .. } = self;
        if decoder.chunk.encoded_bytes().is_none() {
            return Ok(false);
        }
        let Some(location) = decoder.chunk.location().copied() else { return Ok(false) };
        let body = body_of(column, &location, &decoder.cached);
        // `i` is below the chunk's sample count
        let bytes = decoder.chunk.values_range(column, body, &(i..i + 1))?;
        if decoder.chunk.is_unread() {
            sample.resize(bytes.len())?;
            return read_values(column, &location, &bytes, sample.as_mut_slice()).map(|()| true);
        }
        if decoder.chunk.is_indexed() {
            self.read_blocks(&location, &bytes).map_err(|error| in_chunk(error, &location))?;
        }
        let Self { gatherer: Gatherer { column, decoder, .. }, sample, .. } = self;
        let body = body_of(column, &location, &decoder.cached);
        // `go_to` limits the range to three quarters of a chunk, or to a chunk of one sample
        decoder.chunk.check_length(body, &bytes)?;
        sample.resize(bytes.len())?;
        decoder.chunk.decode_range(column, body, &bytes, sample.as_mut_slice())
    }

    /// Returns sample `i` of the open chunk as a list. `is_decoded` is set if it was decoded
    /// individually.
    fn list(&self, i: usize, is_decoded: bool) -> Result<List<'_>> {
        let (content, values) = self.cached_sample(i)?;
        List::of_sample(self.inner(), content, i, values, is_decoded.then(|| self.sample.as_slice()))
    }

    /// Returns sample `i` of the open chunk. `is_decoded` is set if it was decoded individually.
    fn sample(&self, i: usize, is_decoded: bool) -> Result<Sample<'_>> {
        let inner = self.inner();
        if is_decoded {
            let content = self.gatherer.decoder.chunk.content(self.body());
            return Sample::new(inner.schema(), inner.layout(), &content, i, self.sample.as_slice());
        }
        let (content, values) = self.cached_sample(i)?;
        let values = content.values.get(values).ok_or_else(|| Error::internal("a sample lies outside its chunk"))?;
        Sample::new(inner.schema(), inner.layout(), &content, i, values)
    }

    /// Returns the content of the open chunk, and the verified range of sample `i` among its
    /// values.
    #[inline]
    fn cached_sample(&self, i: usize) -> Result<(Content<'_>, Range<usize>)> {
        let (chunk, body) = (&self.gatherer.decoder.chunk, self.body());
        // the position is below the chunk's sample count
        let values = chunk.values_range(self.inner(), body, &(i..i + 1))?;
        Ok((chunk.content(body), values))
    }

    /// Returns the body of the open chunk.
    #[inline]
    fn body(&self) -> Body<'_> {
        let Gatherer { column, decoder, .. } = &self.gatherer;
        decoder.chunk.location().map_or(Body::default(), |location| body_of(column, location, &decoder.cached))
    }
}

/// Lets [`Rows`] gather several columns with their cursors.
impl AsRef<Gatherer> for Cursor {
    fn as_ref(&self) -> &Gatherer {
        &self.gatherer
    }
}

impl AsMut<Gatherer> for Cursor {
    fn as_mut(&mut self) -> &mut Gatherer {
        &mut self.gatherer
    }
}

/// Reads a range of the values of a chunk whose samples are read individually.
fn read_values(column: &ColumnInner, location: &ChunkLocation, bytes: &Range<usize>, out: &mut [u8]) -> Result<()> {
    let all = u64_of(column.layout().inner_bytes).saturating_mul(location.entry.sample_count.into());
    let at = location.values_end().saturating_sub(all).checked_add(u64_of(bytes.start));
    read(&*column.file.source, at.ok_or_else(|| Error::over_limit("the file is too large"))?, out)?;
    le::swap_to_native(column.layout().element_bytes, out);
    Ok(())
}

#[cold]
fn too_short(need: usize, have: usize, element_bytes: usize) -> Error {
    let (need, have) = (need / element_bytes.max(1), have / element_bytes.max(1));
    Error::bad_argument(format!("the sample has {need} elements, but the output has room for only {have}"))
}

/// Reads the same samples from several columns of a file with one call. Each thread needs its own
/// `Rows`.
///
/// Each call plans the samples of all columns, and then fetches their bytes together.
pub struct Rows {
    cursors: Vec<Cursor>,
    request: RequestScratch,
}

impl Rows {
    pub(in crate::read) fn new(cursors: Vec<Cursor>) -> Self {
        Self { cursors, request: RequestScratch::default() }
    }

    /// Returns the cursors of the columns, in the order in which they were requested.
    pub fn cursors(&mut self) -> &mut [Cursor] {
        &mut self.cursors
    }

    /// Fills one buffer for each column with samples `indices`; see [`Cursor::gather_into`].
    /// Resizes `out` to the number of columns. On failure, all buffers are empty.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut Vec<ColumnBuffer>) -> Result<()> {
        let selected = self.request.tasks.selection.set_samples(indices);
        self.gather(selected, out)
    }

    /// Fills one buffer for each column with the samples of a range; see [`Cursor::range_into`]. On
    /// failure, all buffers are empty.
    pub fn range_into(&mut self, range: Range<u64>, out: &mut Vec<ColumnBuffer>) -> Result<()> {
        let selected = self.request.tasks.selection.set_range(range);
        self.gather(selected, out)
    }

    fn gather(&mut self, selected: Result<()>, out: &mut Vec<ColumnBuffer>) -> Result<()> {
        out.resize_with(self.cursors.len(), ColumnBuffer::new);
        let gathered =
            selected.and_then(|()| gather(self.cursors.as_mut_slice(), &mut self.request, out.as_mut_slice()));
        gathered.map(|_| ()).inspect_err(|_| out.iter_mut().for_each(ColumnBuffer::clear))
    }
}
