//! Writes regions to a sink, and indexes the chunks among them.
//!
//! [`RegionWriter`] tracks the length of the file, writes the padding before each region (R-2.7 and
//! ), and repeats the checksum of the previous header in each header.
//!
//! [`IndexBuilder`] collects the entries of a column's chunks since the last commit. The next
//! commit writes them as one run of pages. They cannot be written earlier, because the pages of a
//! commit come after all of its chunks.

use super::sink::Sink;
use crate::bytes::le::u64_of;
use crate::codec::EncodedChunk;
use crate::format::chunk::ChunkEntry;
use crate::format::column_record::ColumnRecord;
use crate::format::footer::ContentHasher;
use crate::format::index::{self, ChunkRun, PAGE_ENTRIES};
use crate::format::region::{FileId, RegionHeader, RegionKind, next_offset};
use crate::{Error, Result};

const ZEROS: [u8; 4096] = [0; 4096];

/// A sink, and the length of the file so far.
pub(super) struct RegionWriter<K> {
    sink: K,
    pub(super) file_id: FileId,
    alignment: u64,
    /// The `header_crc` of the last region.
    previous: u32,
    /// The length of the file so far.
    end: u64,
}

impl<K: Sink> RegionWriter<K> {
    /// Creates the writer for a new file.
    pub(super) fn new(sink: K, file_id: FileId, alignment: u64) -> Self {
        Self { sink, file_id, alignment, previous: 0, end: 0 }
    }

    /// Creates the writer for a sink that already has the first `end` bytes of the file. `previous`
    /// is the `header_crc` of the region that ends there.
    pub(super) fn after(sink: K, file_id: FileId, alignment: u64, previous: u32, end: u64) -> Self {
        Self { sink, file_id, alignment, previous, end }
    }

    pub(super) fn into_sink(self) -> K {
        self.sink
    }

    /// Returns the offset at which the next region begins if it has this kind.
    pub(super) fn next(&self, kind: RegionKind) -> u64 {
        match self.end {
            0 => 0,
            end => next_offset(kind, end, self.alignment),
        }
    }

    /// Writes the padding, the header and the body of a region, which begins at
    /// [`RegionWriter::next`]. Sets `previous` in the header.
    pub(super) fn region(&mut self, header: RegionHeader, body: &[u8]) -> Result<()> {
        let header = header.after(self.previous);
        // fits: less than twice the alignment
        let padding = usize::try_from(self.next(header.kind) - self.end).unwrap_or(0);
        let (first, second) = (padding.min(ZEROS.len()), padding.saturating_sub(ZEROS.len()));
        for zeros in [first, second] {
            self.write(ZEROS.get(..zeros).unwrap_or(&[]))?;
        }
        self.write(&header.to_bytes())?;
        self.write(body)?;
        self.previous = header.header_crc();
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let accepted = match self.sink.write(bytes) {
                Ok(0) => return Err(self.failed("writing", std::io::ErrorKind::WriteZero.into())),
                Ok(accepted) if accepted > bytes.len() => {
                    let message = "the sink reports more bytes written than it was given; its `write` is faulty";
                    return Err(self.failed("writing", std::io::Error::other(message)));
                }
                Ok(accepted) => accepted,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed("writing", error)),
            };
            bytes = bytes.get(accepted..).unwrap_or(&[]);
            self.end = self.end.saturating_add(u64_of(accepted));
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<()> {
        let flushed = self.sink.flush().and_then(|()| self.sink.sync());
        flushed.map_err(|error| self.failed("making the file durable", error))
    }

    pub(super) fn publish(&mut self) -> Result<()> {
        self.sink.publish().map_err(|error| self.failed("giving the file its name", error))
    }

    fn failed(&self, operation: &str, error: std::io::Error) -> Error {
        let error = Error::io(operation, error).with_offset(self.end);
        match self.sink.path() {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}

/// The chunks of one column since the last commit, and the column's facts so far.
pub(super) struct IndexBuilder {
    entries: Vec<ChunkEntry>,
    pub(super) record: ColumnRecord,
}

impl IndexBuilder {
    /// Starts the index of a column. `record` has the facts of its earlier commits.
    pub(super) fn new(record: ColumnRecord) -> Self {
        Self { entries: Vec::new(), record }
    }

    /// Adds a chunk that has been written.
    pub(super) fn add(&mut self, chunk: &EncodedChunk) -> Result<()> {
        let entry = chunk.header.entry;
        let record = &mut self.record;
        let sum = |sum: u64, more: u32| {
            sum.checked_add(more.into()).ok_or_else(|| Error::over_limit("the column has more than 2^64 bytes"))
        };
        record.raw_bytes = sum(record.raw_bytes, chunk.header.raw_bytes)?;
        record.stored_bytes = sum(record.stored_bytes, entry.stored_bytes)?;
        record.chunk_count = sum(record.chunk_count, 1)?;
        for id in chunk.side_encodings.into_iter().flatten() {
            record.count_encoding(id, 0);
        }
        record.count_encoding(entry.encoding, 1);
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the index of the chunks since the last commit as one run of pages, and adds the pages
    /// to `content`.
    pub(super) fn write<K: Sink>(
        &mut self,
        column: u32,
        output: &mut RegionWriter<K>,
        content: &mut ContentHasher,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return Ok(());
        };
        let chunk_count = u64_of(self.entries.len());
        // no underflow: `add` has counted all entries
        let mut first_chunk = self.record.chunk_count - chunk_count;
        let run = ChunkRun {
            offset: output.next(RegionKind::IndexPage),
            first_sample: first.first_sample,
            sample_count: last.samples().end - first.first_sample, // chunks are added in order
            chunk_count,
            samples_per_chunk: index::samples_per_chunk(self.entries.iter().map(|entry| entry.sample_count)),
        };
        for entries in self.entries.chunks(PAGE_ENTRIES as usize) {
            let offset = output.next(RegionKind::IndexPage);
            let (header, body) = index::page(output.file_id, offset, column, first_chunk, entries)?;
            output.region(header, &body)?;
            content.add_page(&body);
            first_chunk += PAGE_ENTRIES;
        }
        self.record.runs.push(run);
        self.entries.clear();
        Ok(())
    }
}
