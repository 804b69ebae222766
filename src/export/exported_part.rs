//! A part of a table that is being read.

use super::sample_size::SampleSize;
use super::table::TablePart;
use crate::read::RequestScratch;
use crate::{Column, ColumnBuffer, Cursor, Error, Result};
use std::ops::Range;

/// The samples of a part, of which those before `next` have been read.
pub(super) struct ExportedPart {
    columns: Vec<Option<PartColumn>>,
    /// The cursors of the columns that are not null, in order. They may be of several files.
    cursors: Vec<Cursor>,
    /// Scratch memory of the cursors, and the samples that the last one has read.
    request: RequestScratch,
    buffer: ColumnBuffer,
    pub next: u64,
    pub end: u64,
}

/// A column of which not all samples are null.
struct PartColumn {
    column: Column,
    /// The number of its cursor.
    number: usize,
    /// The chunk that was measured last, which its cursor holds.
    chunk: Range<u64>,
}

impl ExportedPart {
    pub(super) fn new(part: TablePart) -> Self {
        let cursors = part.columns.iter().flatten().map(Column::cursor).collect();
        let mut numbers = 0..;
        let mut column = |column| Some(PartColumn { column, number: numbers.next()?, chunk: 0..0 });
        let columns = part.columns.into_iter().map(|found| found.and_then(&mut column));
        let (request, buffer) = (RequestScratch::default(), ColumnBuffer::new());
        Self { columns: columns.collect(), cursors, request, buffer, next: 0, end: part.sample_count }
    }

    /// Cuts samples, which begin at `start`, off where the chunk of a column ends.
    pub(super) fn limit_to_chunk(&mut self, index: usize, samples: &mut Range<u64>) -> Result<()> {
        let Some(Some(PartColumn { column, chunk, .. })) = self.columns.get_mut(index) else { return Ok(()) };
        if !chunk.contains(&samples.start) {
            *chunk = column.chunk_of(samples.start)?.samples;
        }
        samples.end = samples.end.min(chunk.end);
        Ok(())
    }

    /// Returns the bytes that sample `i` of a column takes in a batch.
    pub(super) fn measure(&mut self, index: usize, size: &SampleSize, i: u64) -> Result<u64> {
        let Some(Some(PartColumn { column, number, .. })) = self.columns.get(index) else { return Ok(size.of_null()) };
        let cursor = self.cursors.get_mut(*number);
        let cursor = cursor.ok_or_else(|| Error::internal("a column that is exported has no cursor"))?;
        size.of(cursor, i).map_err(|error| column.in_file(error))
    }

    /// Reads samples of a column; `None` if all of them are null.
    pub(super) fn read(&mut self, index: usize, samples: Range<u64>) -> Result<Option<&ColumnBuffer>> {
        let Some(Some(column)) = self.columns.get(index) else { return Ok(None) };
        let Some(cursor) = self.cursors.get_mut(column.number) else { return Ok(None) };
        cursor.range_into_sharing(&mut self.request, samples, &mut self.buffer)?;
        Ok(Some(&self.buffer))
    }

    /// Adds the path of the file of a column to an error.
    pub(super) fn place(&self, index: usize, error: Error) -> Error {
        match self.columns.get(index) {
            Some(Some(found)) => found.column.in_file(error),
            _ => error,
        }
    }
}
