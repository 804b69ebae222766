//! Writes files of whole chunks of other files: no value is cast, and most chunks are not decoded.

use super::commit::Summary;
use super::options::WriterOptions;
use super::sink::Sink;
use super::writer::Writer;
use crate::Result;
use crate::codec::{EncodedChunk, RawChunk};
use crate::format::column_record::ColumnRecord;
use crate::format::{CastFacts, Schema};
use std::slice;

/// Writes a file chunk by chunk. The chunks of a column are in the order of their samples, without
/// gaps.
pub(crate) struct ChunkWriter<K: Sink>(Writer<K>);

impl<K: Sink> ChunkWriter<K> {
    /// Begins a file. `casts` has the facts of each column's cast from when its values were
    /// rounded.
    pub(crate) fn new(sink: K, schema: Schema, options: &WriterOptions, casts: Vec<Option<CastFacts>>) -> Result<Self> {
        let mut writer = Writer::new(sink, schema, options)?;
        let pending = std::mem::take(&mut writer.pending).into_iter().zip(casts);
        writer.pending = pending
            .map(|(pending, cast)| pending.after(0, &ColumnRecord { cast, ..ColumnRecord::default() }))
            .collect();
        Ok(Self(writer))
    }

    /// Writes the tables of a column, which has none yet.
    pub(crate) fn tables(&mut self, column: usize, bodies: &[Vec<u8>]) -> Result<()> {
        bodies.iter().try_for_each(|body| self.0.write_table(column, body).map(|_| ()))
    }

    /// Writes a chunk that is encoded, and has this number of nulls.
    pub(crate) fn encoded(&mut self, chunk: EncodedChunk, null_count: u64) -> Result<()> {
        let column = usize::try_from(chunk.head.column).ok();
        if let Some(pending) = column.and_then(|column| self.0.pending.get_mut(column)) {
            // at most as many as samples
            pending.total_nulls = pending.total_nulls.saturating_add(null_count);
        }
        self.0.write_chunk(chunk)
    }

    /// Encodes a chunk and writes it.
    pub(crate) fn raw(&mut self, chunk: &RawChunk) -> Result<()> {
        let null_count = chunk.null_count;
        for encoded in self.0.pool.encode(&mut self.0.columns, slice::from_ref(chunk))? {
            self.encoded(encoded, null_count)?;
        }
        Ok(())
    }

    /// Commits the file. Every column has `sample_count` samples.
    pub(crate) fn finish(mut self, sample_count: u64) -> Result<Summary<K>> {
        self.0.state.sample_count = sample_count;
        self.0.finish()
    }
}
