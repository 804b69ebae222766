//! The chunk that a cursor is at: opened first, then decoded whole, or only the samples that are asked for.

use super::chunk_location::ChunkLocation;
use super::opened_column::OpenedColumn;
use super::sample::Sample;
use super::stored_parts::{StoredParts, body_in};
use crate::codec::ChunkDecoder;
use crate::format::content::Content;
use crate::format::region::{HEAD, HEAD_BYTES};
use crate::open::source::read;
use crate::pod::AlignedBytes;
use crate::{Error, Result, le};
use std::ops::Range;

/// A chunk is decoded whole rather than sample by sample if more than so many quarters of it are wanted at once.
const WANTED: usize = 3;
/// A chunk is decoded whole when this part of it was taken sample by sample, and there is one more: reading of all its samples, one call for
/// each, then costs little more than decoding it once.
const TAKEN: usize = 8;
/// A sample taken alone counts at least as so many bytes: that is about what finding it costs.
const LEAST: usize = 1024;

/// The current chunk of a cursor.
pub(super) struct CurrentChunk {
    pub column: OpenedColumn,
    located: Option<ChunkLocation>,
    /// The chunk, if it is used where it stands in the file; else the decoder has it, unless it is `unread`.
    in_file: Option<StoredParts>,
    /// Bytes of the values, if nothing but the chunk's head was read, because its samples can be read alone.
    unread: Option<usize>,
    decoder: ChunkDecoder,
    /// Head and body, where the file is not in memory.
    buffer: Vec<u8>,
    /// Decoded bytes that were taken sample by sample.
    taken: usize,
    /// A sample that was taken alone.
    sample: AlignedBytes,
}

impl CurrentChunk {
    pub(super) fn new(column: OpenedColumn) -> Self {
        Self {
            column,
            located: None,
            in_file: None,
            unread: None,
            decoder: ChunkDecoder::new(),
            buffer: Vec::new(),
            taken: 0,
            sample: AlignedBytes::default(),
        }
    }

    /// Makes the chunk of sample `i` the current one, prepared as by [`CurrentChunk::prepare`] for `count` samples from there, or as many as it has.
    /// Returns the sample's place in it.
    ///
    /// A chunk that is entered from the one before it is decoded whole: samples are read in order. But where all of its samples are to be copied to one
    /// place, they are decoded there.
    pub(super) fn go_to(&mut self, i: u64, count: usize, copied: bool) -> Result<usize> {
        let (located, wanted) = match self.located {
            Some(current) if current.entry.samples().contains(&i) => (current, count),
            before => {
                let in_order = before.is_some_and(|before| before.entry.samples().end == i);
                (self.column.locate(self.column.file.bytes(), i)?, if in_order { usize::MAX } else { count })
            }
        };
        let first = located.position_of(i);
        let samples = usize::try_from(located.entry.sample_count).unwrap_or(usize::MAX); // at most 2^24
        if copied && first == 0 && count >= samples {
            self.open_unless_current(&located)?;
        } else {
            self.prepare(&located, wanted.min(samples.saturating_sub(first)))?;
        }
        Ok(first)
    }

    /// Makes a chunk the current one, and prepares to take `count` of its samples: decodes it, unless it is cheaper to take them alone.
    pub(super) fn prepare(&mut self, located: &ChunkLocation, count: usize) -> Result<()> {
        self.open_unless_current(located)?;
        let Some(bytes) = self.encoded_bytes() else { return Ok(()) };
        let samples = usize::try_from(located.entry.sample_count).unwrap_or(1).max(1); // at most 2^24
        let before = self.taken;
        self.taken = before.saturating_add(count.saturating_mul(LEAST.max(bytes / samples)));
        // a chunk of one sample is decoded straight to its place, unless it has several
        let at_once = (samples > 1 || count > 1) && self.taken / WANTED > bytes / 4;
        if before.saturating_mul(TAKEN) > bytes || at_once {
            self.decode(located)?;
        }
        Ok(())
    }

    fn open_unless_current(&mut self, located: &ChunkLocation) -> Result<()> {
        match self.located {
            Some(current) if current.chunk == located.chunk => Ok(()),
            _ => self.open(located),
        }
    }

    /// Makes a chunk the current one: reads it, checks it as the reader's policy asks, and decodes all but the values.
    fn open(&mut self, located: &ChunkLocation) -> Result<()> {
        self.located = None; // until it is open
        self.taken = 0;
        self.unread = None;
        self.in_file = match self.column.file.bytes().memory() {
            Some(file) => self.column.stored_parts(file, located).map_err(|error| placed(error, located))?,
            None => None,
        };
        if self.in_file.is_none() {
            self.unread = self.column.readable_alone(located)?;
            if self.unread.is_none() {
                self.load(located)?;
            }
        }
        self.located = Some(*located);
        Ok(())
    }

    fn load(&mut self, located: &ChunkLocation) -> Result<()> {
        let (head, body) = self.column.load_chunk(located, &mut self.buffer)?;
        self.decoder.open(self.column.layout(), &head, body).map_err(|error| placed(error, located))
    }

    /// Decodes the values of the current chunk.
    fn decode(&mut self, located: &ChunkLocation) -> Result<()> {
        if self.unread.is_some() {
            self.load(located)?;
            self.unread = None;
        }
        let body = body(&self.column, located, &self.buffer);
        self.decoder.decode_values(body).map_err(|error| placed(error, located))
    }

    /// Bytes of the values of the current chunk, if they are not decoded.
    fn encoded_bytes(&self) -> Option<usize> {
        if self.in_file.is_some() {
            return None;
        }
        self.unread.or_else(|| self.decoder.encoded_bytes())
    }

    /// The range in the file of sample `i` of the current chunk, if the chunk is used as the file
    /// has it.
    pub(super) fn range_in_file(&self, i: usize) -> Result<Option<Range<usize>>> {
        let (Some(parts), Some(located)) = (&self.in_file, &self.located) else { return Ok(None) };
        let values = self.content().values_range(self.column.layout(), &(i..i + 1))?; // i is below a chunk's sample count
        let start = usize::try_from(located.entry.offset.saturating_add(HEAD)).unwrap_or(usize::MAX);
        let start = start.saturating_add(parts.values_start());
        Ok(Some(start.saturating_add(values.start)..start.saturating_add(values.end)))
    }

    /// The parts of the current chunk; without the values, if they are not decoded.
    pub(super) fn content(&self) -> Content<'_> {
        match (&self.in_file, &self.located) {
            (Some(parts), Some(located)) => parts.content(body(&self.column, located, &self.buffer)),
            (None, Some(located)) if self.unread.is_none() => {
                self.decoder.content(body(&self.column, located, &self.buffer))
            }
            (_, located) => {
                let samples = located.as_ref().map_or(0, |located| located.entry.sample_count);
                let sample_count = usize::try_from(samples).unwrap_or(0); // at most 2^24
                Content { sample_count, validity: None, shape: &[], values: &[] }
            }
        }
    }

    /// Where among the values of the current chunk some of its samples lie.
    pub(super) fn values_range(&self, samples: &Range<usize>) -> Result<Range<usize>> {
        let content = self.content();
        let bytes = self.encoded_bytes().unwrap_or(content.values.len());
        content.range_within(self.column.layout(), samples, bytes)
    }

    /// Copies these bytes of the values of the current chunk, which are some samples, to `out`, which is as long.
    pub(super) fn copy(&mut self, bytes: &Range<usize>, out: &mut [u8]) -> Result<()> {
        if self.encoded_bytes().is_some() && self.take(bytes, out)? {
            return Ok(());
        }
        let values = self.content().values;
        let values = values.get(bytes.clone()).filter(|values| values.len() == out.len());
        out.copy_from_slice(values.ok_or_else(|| Error::bad_argument("other samples than there is room for"))?); // never: the caller's range
        Ok(())
    }

    /// Appends the values of some samples of the current chunk to `out`; returns where they are there.
    pub(super) fn append(&mut self, samples: &Range<usize>, out: &mut AlignedBytes) -> Result<Range<usize>> {
        let bytes = self.values_range(samples)?;
        let start = out.as_slice().len();
        let end = start.saturating_add(bytes.len());
        out.resize(end)?;
        self.copy(&bytes, out.as_mut_slice().get_mut(start..).unwrap_or(&mut []))?;
        Ok(start..end)
    }

    /// Takes some bytes of values that are not decoded. `false`: their encoding cannot, and all are decoded now.
    fn take(&mut self, bytes: &Range<usize>, out: &mut [u8]) -> Result<bool> {
        let Some(located) = self.located else { return Ok(false) };
        if self.unread.is_some() {
            let at =
                u64::try_from(bytes.start).ok().and_then(|at| located.entry.offset.checked_add(HEAD)?.checked_add(at));
            read(&*self.column.file.source, at.ok_or_else(|| Error::over_limit("the file is too large"))?, out)?;
            le::swap_to_native(self.column.layout().element_bytes, out);
            return Ok(true);
        }
        let body = body(&self.column, &located, &self.buffer);
        if self.decoder.decode_range(body, bytes, out).map_err(|error| placed(error, &located))? {
            return Ok(true);
        }
        self.decode(&located).map(|()| false)
    }

    /// Takes sample `i` of the current chunk alone, unless the chunk is decoded: returns `i`, and
    /// whether it was taken.
    pub(super) fn take_unless_decoded(&mut self, i: usize) -> Result<(usize, bool)> {
        Ok((i, self.encoded_bytes().is_some() && self.take_sample(i)?))
    }

    /// Sample `i` of the current chunk, which was `taken` alone or is decoded.
    pub(super) fn sample(&self, i: usize, taken: bool) -> Result<Sample<'_>> {
        let content = self.content();
        let values = match taken {
            true => self.sample.as_slice(),
            false => content.values_of(self.column.layout(), &(i..i + 1))?, // i is below a chunk's sample count
        };
        Sample::new(self.column.schema(), self.column.layout(), &content, i, values)
    }

    /// Takes sample `i` of a chunk that is not decoded, see [`CurrentChunk::take`].
    fn take_sample(&mut self, i: usize) -> Result<bool> {
        let bytes = self.values_range(&(i..i + 1))?; // i is below a chunk's sample count
        let mut sample = std::mem::take(&mut self.sample);
        sample.resize(bytes.len())?; // three quarters of a chunk at most, or all of one that has but one sample: `prepare`
        let taken = self.take(&bytes, sample.as_mut_slice());
        self.sample = sample;
        taken
    }
}

/// The body of a chunk that was loaded.
fn body<'a>(column: &'a OpenedColumn, located: &ChunkLocation, buffer: &'a [u8]) -> &'a [u8] {
    match column.file.bytes().memory() {
        Some(file) => body_in(file, located).unwrap_or(&[]), // it was loaded from there
        None => buffer.get(HEAD_BYTES..).unwrap_or(&[]),
    }
}

/// Adds to an error the chunk where it happened.
fn placed(error: Error, located: &ChunkLocation) -> Error {
    error.with_offset(located.entry.offset).with_samples(located.entry.samples())
}
