//! Writes what is left of a damaged file to a new one.

use crate::codec::RawChunk;
use crate::error::go_on;
use crate::format::content::validity_bytes;
use crate::format::schema::Layout;
use crate::read::{ChunkScratch, Column};
use crate::write::ChunkWriter;
use crate::{LostSamples, Result, Salvaged, Sink, Summary, WriterOptions, limits, memory};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};

/// How [`Salvaged::write_to`] writes a file.
#[derive(Default)]
pub struct RewriteOptions<'a> {
    leave_out: bool,
    progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> RewriteOptions<'a> {
    /// The default: lost samples become nulls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves out every sample that any column has lost; those after it get other numbers. By default all samples keep theirs, and those that a
    /// column has lost become nulls in it, also if it had none before.
    pub fn leave_out(mut self, leave_out: bool) -> Self {
        self.leave_out = leave_out;
        self
    }

    /// Calls `progress` with the number of samples done so far, now and then. If it breaks, the
    /// work ends with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl Salvaged {
    /// Writes a file of all that is left: the same columns, metadata and facts of casts. Chunks are copied as they are stored, checked but not
    /// decoded; only where samples of a chunk are left out are the others encoded again, and nulls for what is lost, both as `writer` says. With
    /// options that give no [`WriterOptions::file_id`] and no [`WriterOptions::origin`], the id follows from that of the damaged file.
    ///
    /// A sink that writes to the damaged file itself is refused.
    ///
    /// Cost: reading and writing the file once; memory for the largest chunk and 32 bytes for each.
    pub fn write_to<K: Sink>(
        &self,
        sink: K,
        writer: &WriterOptions,
        options: RewriteOptions<'_>,
    ) -> Result<Summary<K>> {
        self.reader.check_output(sink.identity(), sink.path())?;
        let mut schema = self.reader.schema().clone();
        if !options.leave_out {
            for (column, (_, lost)) in schema.columns.iter_mut().zip(&self.losses.columns) {
                column.nullable |= !lost.is_empty();
            }
        }
        let casts = self.reader.columns().map(|column| column.facts().cast).collect();
        let origin = [b"salvaged from ".as_slice(), &self.reader.file_id().0].concat();
        let output = ChunkWriter::new(sink, schema, &writer.clone().origin_or(origin), casts)?;
        let left_out = if options.leave_out { self.losses.of_all() } else { LostSamples::default() };
        let null_bytes = writer.resolved_chunk_bytes();
        let mut rewrite = Rewrite { output, left_out, null_bytes, scratch: ChunkScratch::new() };
        let mut progress = options.progress;
        let mut pieces = Pieces::new(self);
        while let Some((piece, column)) = pieces.next()? {
            rewrite.piece(&piece, &column)?;
            if let Some(progress) = &mut progress {
                go_on(progress(piece.samples.start))?;
            }
        }
        rewrite.output.finish(self.reader.sample_count() - rewrite.left_out.count()) // those left out are some of all
    }
}

/// Consecutive samples of a column: a chunk, or samples between chunks, which are lost.
struct Piece {
    samples: Range<u64>,
    chunk: Option<u64>,
}

/// The pieces of all columns, in the order in which a writer would have written them: by their first samples.
struct Pieces {
    columns: Vec<ColumnPieces>,
    /// First sample and number of each column that has pieces left.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

struct ColumnPieces {
    column: Column,
    next_chunk: u64,
    next_sample: u64,
}

impl Pieces {
    fn new(salvaged: &Salvaged) -> Self {
        let pieces = |column| ColumnPieces { column, next_chunk: 0, next_sample: 0 };
        let columns: Vec<ColumnPieces> = salvaged.reader.columns().map(pieces).collect();
        let next = match salvaged.reader.sample_count() {
            0 => BinaryHeap::new(),
            _ => (0..columns.len()).map(|column| Reverse((0, column))).collect(),
        };
        Self { columns, next }
    }

    fn next(&mut self) -> Result<Option<(Piece, Column)>> {
        let Some(Reverse((_, number))) = self.next.pop() else { return Ok(None) };
        let Some(pieces) = self.columns.get_mut(number) else { return Ok(None) }; // never: numbers are those of columns
        let piece = pieces.next()?;
        if piece.samples.end < pieces.column.sample_count() {
            self.next.push(Reverse((piece.samples.end, number)));
        }
        Ok(Some((piece, pieces.column.clone())))
    }
}

impl ColumnPieces {
    /// The next piece; there is one.
    fn next(&mut self) -> Result<Piece> {
        let chunk = self.column.chunk(self.next_chunk)?.map(|chunk| chunk.samples);
        let lost_until = chunk.as_ref().map_or(self.column.sample_count(), |samples| samples.start);
        let piece = match chunk {
            Some(samples) if samples.start == self.next_sample => {
                self.next_chunk += 1;
                Piece { samples, chunk: Some(self.next_chunk - 1) }
            }
            _ => Piece { samples: self.next_sample..lost_until, chunk: None },
        };
        self.next_sample = piece.samples.end;
        Ok(piece)
    }
}

struct Rewrite<K: Sink> {
    output: ChunkWriter<K>,
    /// Empty if lost samples become nulls; if they are left out, it holds those of every piece that is not a chunk.
    left_out: LostSamples,
    /// Decoded bytes of a chunk of nulls, at most.
    null_bytes: usize,
    scratch: ChunkScratch,
}

impl<K: Sink> Rewrite<K> {
    fn piece(&mut self, piece: &Piece, column: &Column) -> Result<()> {
        match piece.chunk {
            Some(chunk) => self.chunk(chunk, &piece.samples, column),
            None if self.left_out.is_empty() => self.nulls(piece.samples.clone(), column),
            None => Ok(()),
        }
    }

    fn chunk(&mut self, chunk: u64, samples: &Range<u64>, column: &Column) -> Result<()> {
        let first_sample = self.left_out.intact_before(samples.start);
        let is_left = |&(_, sample): &(usize, u64)| !self.left_out.contains(sample);
        if self.left_out.touches(samples) {
            let left: Vec<usize> = (0..).zip(samples.clone()).filter(is_left).map(|(i, _)| i).collect();
            if left.is_empty() {
                return Ok(());
            }
            let raw = column.some_of_chunk(chunk, &left, first_sample, &mut self.scratch)?;
            return self.output.raw(&raw);
        }
        let (mut stored, null_count) = column.stored_chunk(chunk, &mut self.scratch)?;
        stored.head.entry.first_sample = first_sample;
        self.output.encoded(stored, null_count)
    }

    /// Chunks of nulls.
    fn nulls(&mut self, samples: Range<u64>, column: &Column) -> Result<()> {
        let layout = column.schema().layout()?;
        let sample_bytes = layout.shape_bytes().saturating_add(null_value_bytes(&layout)).max(1);
        let most = (self.null_bytes / sample_bytes).max(1) as u64; // exact: usize has at most 64 bits
        let most = most.min(limits::CHUNK_SAMPLES.into());
        let mut first_sample = samples.start;
        while first_sample < samples.end {
            let count = (samples.end - first_sample).min(most);
            let n = usize::try_from(count).unwrap_or(0); // at most 2^24
            self.output.raw(&RawChunk {
                column: column.number(),
                first_sample,
                sample_count: u32::try_from(count).unwrap_or(0), // as above
                validity: Some(zeros(validity_bytes(n))?),
                shape: zeros(n.saturating_mul(layout.shape_bytes()))?, // a sample or `null_bytes`
                values: zeros(n.saturating_mul(null_value_bytes(&layout)))?,
            })?;
            first_sample += count;
        }
        Ok(())
    }
}

/// A null of a large fixed shape takes much memory, and there may not be as much.
fn zeros(count: usize) -> Result<Vec<u8>> {
    let mut zeros = Vec::new();
    memory::resize(&mut zeros, count, 0)?;
    Ok(zeros)
}

/// a null of a fixed shape has zeros, one of a ragged shape nothing.
fn null_value_bytes(layout: &Layout) -> usize {
    if layout.is_ragged() { 0 } else { layout.inner_bytes }
}
