//! The fronts of chunks in blocks: found, read alone and checked.

use super::chunk_bytes::{chunk_bytes, cut_off, is_in_blocks, split_head};
use super::chunk_front::ChunkFront;
use super::open_chunk::in_chunk;
use crate::codec::{
    FRONT_HEAD_BYTES, LEAST_IN_BLOCKS, check_front, encoding, first_block_elements, front_bytes, parts,
};
use crate::format::chunk::{ChunkEntry, ChunkHead};
use crate::format::region::HEAD_BYTES;
use crate::le::u64_of;
use crate::open::source::{check_inside, read};
use crate::read::file::opened_column::OpenedColumn;
use crate::read::file::options::Verification;
use crate::read::locate::chunk_location::ChunkLocation;
use crate::{Result, memory};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See [`first_read_bytes`].
const FIRST_READ: usize = 1024;
/// Bytes that are prefetched before and after the place where a block is guessed.
const GUESSED_BYTES: u64 = 1 << 10;

impl OpenedColumn {
    /// Returns the front of the chunk that holds sample `i`, if it is cached and can be found
    /// without the index.
    pub(in crate::read) fn cached_front(&self, i: u64) -> Option<Arc<ChunkFront>> {
        let index = self.index();
        let (number, run) = index.run_of(i)?;
        let entry = i.checked_sub(run.first_sample)?.checked_div(run.samples_per_chunk.into())?;
        let chunk = index.before.get(number)?.1.checked_add(entry)?;
        index.fronts.get(chunk).filter(|front| front.location.entry.samples().contains(&i))
    }

    /// Returns the front of a chunk whose blocks are to be read alone: the file is not in memory,
    /// and the chunk is long enough.
    pub(in crate::read) fn front(&self, location: &ChunkLocation) -> Result<Option<Arc<ChunkFront>>> {
        if !self.has_front(&location.entry)? {
            return Ok(None);
        }
        if let Some(front) = self.index().fronts.get(location.chunk) {
            return Ok(Some(front));
        }
        let front = self.read_front(location).map_err(|error| in_chunk(error, location))?;
        let front = Arc::new(front);
        if front.is_cacheable() {
            self.index().fronts.insert(location.chunk, &front);
        }
        Ok(Some(front))
    }

    /// Returns whether the blocks of a chunk are read alone: the file is not in memory, and the
    /// chunk is long enough.
    fn has_front(&self, entry: &ChunkEntry) -> Result<bool> {
        Ok(self.reads_blocks(entry) && is_in_blocks(entry)? && self.file.bytes().memory().is_none())
    }

    /// Tells the source that ranges will be read soon.
    pub(in crate::read) fn prefetch(&self, ranges: &[Range<u64>]) {
        if !ranges.is_empty() {
            self.file.source.prefetch(ranges);
        }
    }

    /// Adds the ranges of front and block of a sample, if blocks of its chunk are read alone.
    pub(in crate::read) fn front_ranges(
        &self,
        location: &ChunkLocation,
        sample: u64,
        out: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        let entry = &location.entry;
        if !self.has_front(entry)? {
            return Ok(());
        }
        memory::reserve(out, 2)?;
        out.push(entry.offset..entry.offset.saturating_add(u64_of(first_read_bytes(entry))));
        out.extend(self.guessed_block(location, sample)?);
        Ok(())
    }

    /// Returns the range in which the block of a sample probably is, as if blocks had as many
    /// samples as in the chunk before, and all were equally long: it is read at the same time as
    /// the front, which would tell. `None` if blocks of the chunk are not read alone.
    pub(in crate::read) fn guessed_block(&self, location: &ChunkLocation, sample: u64) -> Result<Option<Range<u64>>> {
        let entry = &location.entry;
        if !self.has_front(entry)? {
            return Ok(None);
        }
        let block_samples = self.index().block_samples.load(Ordering::Relaxed);
        let Some(block) = u64_of(location.position_of(sample)).checked_div(block_samples) else { return Ok(None) };
        let (samples, bytes) = (u64::from(entry.sample_count).max(1), u64::from(entry.stored_bytes));
        // fewer than 2^24 samples, and 2^32 bytes
        let at = |block: u64| block.saturating_mul(block_samples).saturating_mul(bytes) / samples;
        let in_file = |byte: u64| entry.offset.saturating_add(byte.min(bytes));
        let start = in_file(at(block).saturating_sub(GUESSED_BYTES));
        let end = in_file(at(block.saturating_add(1)).saturating_add(GUESSED_BYTES));
        Ok(Some(start..end))
    }

    /// Notes how many samples a block has: of ragged ones about. `values` begins with the front.
    fn note_block(&self, head: &ChunkHead, values: &[u8]) -> Result<()> {
        let encoding = encoding(head.entry.encoding)?;
        let first = first_block_elements(values, |front| encoding.table_bytes(front));
        let elements = u64::from(first.filter(|_| encoding.is_in_blocks()).unwrap_or(0));
        let bytes = elements.saturating_mul(u64_of(self.layout().element_bytes)); // fewer than 2^20
        let sample_bytes = head.raw_bytes.checked_div(head.entry.sample_count).unwrap_or(0).max(1);
        self.index().block_samples.store((bytes / u64::from(sample_bytes)).max(1), Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether blocks of a chunk are read alone, by position: it is long enough.
    pub(in crate::read) fn reads_blocks(&self, entry: &ChunkEntry) -> bool {
        let least = u64_of(LEAST_IN_BLOCKS).max(self.file.source.coalesce().gap_bytes.saturating_mul(2));
        u64::from(entry.stored_bytes) >= least
    }

    /// Reads the front of a chunk in blocks, and checks it as the reader's policy asks.
    pub(in crate::read) fn read_front(&self, location: &ChunkLocation) -> Result<ChunkFront> {
        let entry = &location.entry;
        let most = chunk_bytes(entry)?;
        check_inside(&*self.file.source, entry.offset, most)?;
        let mut bytes = Vec::new();
        self.read_up_to(location, first_read_bytes(entry), &mut bytes)?;
        let head = self.checked_head(entry, split_head(&bytes)?.0)?;
        let before = self.bytes_before_values(&head, &bytes)?;
        self.check_raw_bytes(&head, bytes.get(HEAD_BYTES..).unwrap_or(&[]))?;
        // the bytes that state its length: outside the body is refused with the front
        self.read_up_to(location, before.saturating_add(FRONT_HEAD_BYTES).min(most), &mut bytes)?;
        let values = bytes.get(before..).unwrap_or(&[]);
        let stated = front_bytes(values).ok_or_else(cut_off)?;
        self.note_block(&head, values)?;
        let end = before.checked_add(stated).filter(|&end| end <= most).ok_or_else(cut_off)?;
        self.read_up_to(location, end, &mut bytes)?;
        bytes.truncate(end);
        bytes.drain(..HEAD_BYTES.min(bytes.len()));
        match self.file.verification {
            Verification::Never => self.index().checked_chunks.set(location.chunk),
            _ => check_front(&bytes)?,
        }
        Ok(ChunkFront::new(location, head, bytes))
    }

    /// Returns the length of head, part table, validity and shape.
    pub(in crate::read) fn bytes_before_values(&self, head: &ChunkHead, bytes: &[u8]) -> Result<usize> {
        let parts = parts(self.layout(), head, bytes.get(HEAD_BYTES..).unwrap_or(&[]))?;
        if !head.entry.has_parts() {
            return Ok(HEAD_BYTES);
        }
        let [.., values] = parts.ranges().ok_or_else(cut_off)?;
        Ok(values.start.saturating_add(HEAD_BYTES))
    }

    /// Reads the bytes of a chunk that `bytes`, its start, lacks of a length.
    fn read_up_to(&self, location: &ChunkLocation, length: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let have = bytes.len();
        if have >= length {
            return Ok(());
        }
        memory::resize(bytes, length, 0)?;
        let at = location.entry.offset.saturating_add(have as u64); // exact: no usize is greater
        read(&*self.file.source, at, bytes.get_mut(have..).unwrap_or(&mut []))
    }
}

/// Returns the bytes of a chunk that are read first: most fronts are shorter.
pub(in crate::read) fn first_read_bytes(entry: &ChunkEntry) -> usize {
    chunk_bytes(entry).map_or(FIRST_READ, |bytes| bytes.min(FIRST_READ))
}
