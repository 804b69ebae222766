//! Commits: when and in which order a file is made durable (chapter 7.4).

use super::encode_pool::EncodedColumn;
use super::pending_column::PendingColumn;
use super::sink::{Sink, Stream};
use super::writer::Writer;
use crate::codec::RawChunk;
use crate::format::content_id::ContentHasher;
use crate::format::footer::Footer;
use crate::format::region::RegionKind;
use crate::format::trailer::Trailer;
use crate::format::{ContentId, FileId, Schema};
use crate::open::ColumnFacts;
use crate::{Error, Result, limits};

/// The facts of a file that [`Writer::finish`] has completed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary<K> {
    /// The schema.
    pub schema: Schema,
    /// The facts of each column, in the order of the schema.
    pub columns: Vec<ColumnFacts>,
    /// The number of samples in the file.
    pub sample_count: u64,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// The file's id.
    pub file_id: FileId,
    /// The 16 bytes that identify the content of the file.
    pub content_id: ContentId,
    /// The sink, which has all of the file.
    pub sink: K,
}

impl Writer<Stream<Vec<u8>>> {
    /// Completes a file in memory, and returns its bytes: [`Writer::finish`] without the facts.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        Ok(self.finish()?.sink.0)
    }
}

impl<K: Sink> Writer<K> {
    /// Makes all samples pushed so far durable and readable. The writer can push more afterwards.
    ///
    /// A commit closes the current chunk of each column, however small, so commit seldom: once for
    /// many chunks. A file has at most 65,536 commits, and [`Writer::finish`] makes the last of
    /// them.
    pub fn commit(&mut self) -> Result<()> {
        self.write_commit(false)
    }

    /// Commits for the last time, and marks the file as complete.
    pub fn finish(mut self) -> Result<Summary<K>> {
        self.write_commit(true)?;
        Ok(Summary {
            columns: self.indexes.iter().map(|index| ColumnFacts::from(&index.record)).collect(),
            schema: self.schema,
            sample_count: self.state.sample_count,
            file_bytes: self.output.next(RegionKind::Trailer),
            file_id: self.output.file_id,
            content_id: self.state.content_id,
            sink: self.output.into_sink(),
        })
    }

    fn write_commit(&mut self, finished: bool) -> Result<()> {
        self.check_usable()?;
        // the last that the format allows is kept for `finish`
        let left = limits::RUNS - usize::from(!finished);
        if usize::try_from(self.state.commits).is_ok_and(|commits| commits >= left) {
            let message = format!("more than {} commits; finish this file and begin another", limits::RUNS);
            return Err(Error::over_limit(message));
        }
        let rest: Vec<RawChunk> = self.pending.iter_mut().flat_map(PendingColumn::cut_rest).collect();
        rest.into_iter().try_for_each(|chunk| self.enqueue(chunk))?;
        self.write_queue()?;
        self.columns.iter_mut().for_each(EncodedColumn::forget_choices);
        self.failed = true; // until all is written
        self.write_and_sync(finished)?;
        self.failed = false;
        Ok(())
    }

    /// Writes index and footer, makes them durable, then writes the trailer and makes it durable
    /// (chapter 7.4). Then publishes the file: a new one gets its name.
    fn write_and_sync(&mut self, finished: bool) -> Result<()> {
        let mut content = ContentHasher::after(self.state.content_id);
        for (column, index) in (0..).zip(&mut self.indexes) {
            index.write(column, &mut self.output, &mut content)?;
        }
        let footer_offset = self.output.next(RegionKind::Footer);
        let mut footer = self.footer();
        let (head, body) = footer.seal(self.output.file_id, footer_offset, &self.schema_block, content)?;
        self.output.region(head, &body)?;
        self.output.sync()?;
        let offset = self.output.next(RegionKind::Trailer);
        let trailer = Trailer { finished, footer_offset, previous_trailer: self.state.last_trailer };
        self.output.region(trailer.head(self.output.file_id, offset)?, &[])?;
        self.output.sync()?;
        self.output.publish()?;
        self.state.content_id = footer.content_id;
        self.state.last_trailer = offset;
        self.state.commits += 1;
        Ok(())
    }

    fn footer(&mut self) -> Footer {
        for (index, pending) in self.indexes.iter_mut().zip(&self.pending) {
            index.record.null_count = pending.total_nulls;
            index.record.cast = pending.cast_facts();
        }
        Footer {
            content_id: self.state.content_id, // until the footer is written
            commit: self.state.commits,
            flags: self.state.flags,
            sample_count: self.state.sample_count,
            tables: self.state.tables.clone(),
            columns: self.indexes.iter().map(|index| index.record.clone()).collect(),
        }
    }
}
