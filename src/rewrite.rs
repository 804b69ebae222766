//! Writes the intact samples of a damaged file to a new file.
//!
//! Intact chunks and tables are copied in stored form, without decoding. A chunk is decoded and
//! encoded again only if some of its samples are lost or left out, or if its column has lost a
//! table. By default, samples keep their indices, and a sample that a column has lost becomes null
//! in that column. With [`RewriteOptions::drop_lost`], each sample that any column has lost is left
//! out, and the samples after it move up.
//!
//! The chunks of all columns are merged in the order of their first samples, which is the order in
//! which a writer would have written them.
//!
//! Salvage can find intact chunks without any evidence that they belong to the damaged file. The
//! metadata of the new file lists the samples of these chunks under [`UNCONFIRMED`], as far as the
//! maximum size of a schema allows.

use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::RawChunk;
use crate::error::check_cancelled;
use crate::format::content::validity_bytes;
use crate::read::{ChunkScratch, Column};
use crate::read::{Losses, LostSamples, Salvaged};
use crate::write::ChunkWriter;
use crate::write::Sink;
use crate::{Error, Result, Schema, Summary, WriterOptions, limits};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::{ControlFlow, Range};

/// The metadata key under which [`Salvaged::write_to`] lists the unconfirmed samples of a column,
/// such as `0..100, 200..300`. See [`Salvaged::unconfirmed`].
pub const UNCONFIRMED: &str = "tensilo.unconfirmed";

/// The options of [`Salvaged::write_to`].
#[derive(Default)]
#[non_exhaustive]
pub struct RewriteOptions<'a> {
    drop_lost: bool,
    progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> RewriteOptions<'a> {
    /// Returns the defaults: lost samples become nulls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to leave out every sample that any column has lost (default: no). The samples
    /// after it then get smaller indices. By default, all samples keep their indices, and a lost
    /// sample becomes null in the columns that have lost it. These columns become nullable.
    pub fn drop_lost(mut self, drop_lost: bool) -> Self {
        self.drop_lost = drop_lost;
        self
    }

    /// Sets a function that is called from time to time with the number of samples processed so
    /// far. If it returns [`ControlFlow::Break`], the call fails with an error of kind
    /// [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl Salvaged {
    /// Writes the intact samples to a file with the same columns, metadata and cast facts.
    ///
    /// Chunks and tables are copied in stored form, checked but not decoded. Only the following are
    /// encoded, with the options in `writer`: chunks with samples that are lost or left out, chunks
    /// of a column that has lost a table, and nulls for lost samples. If these options set neither
    /// [`WriterOptions::file_id`] nor [`WriterOptions::origin`], the id of the new file is derived
    /// from the id of the damaged file.
    ///
    /// If a column has unconfirmed samples, its metadata lists them under [`UNCONFIRMED`], by their
    /// indices in the new file. If there are too many ranges, the last one also covers samples that
    /// are confirmed. Ranges that the metadata of the damaged file already lists are kept. If the
    /// schema does not have room for even one range per column, the new file has no such metadata,
    /// and only [`Salvaged::unconfirmed`] reports these samples.
    ///
    /// Fails if `sink` writes to the damaged file itself.
    ///
    /// Cost: the file is read and written once. Memory: the largest chunk, the tables of one
    /// column, and 32 bytes for each chunk.
    pub fn write_to<K: Sink>(
        &self,
        sink: K,
        writer: &WriterOptions,
        options: RewriteOptions<'_>,
    ) -> Result<Summary<K>> {
        self.reader.check_output(sink.identity(), sink.path())?;
        let mut schema = self.reader.schema().clone();
        if !options.drop_lost {
            for (column, (_, lost)) in schema.columns.iter_mut().zip(&self.losses.columns) {
                column.nullable |= !lost.is_empty();
            }
        }
        let left_out = if options.drop_lost { self.losses.of_all() } else { LostSamples::default() };
        let schema = self.with_notes(schema, &left_out);
        let casts = self.reader.columns().map(|column| column.facts().cast).collect();
        let origin = [b"salvaged from ".as_slice(), &self.reader.file_id().0].concat();
        let output = ChunkWriter::new(sink, schema, &writer.clone().default_origin(origin), casts)?;
        let null_bytes = writer.resolved_chunk_bytes();
        let (without_tables, scratch) = (BTreeSet::new(), ChunkScratch::new());
        let mut rewrite = Rewrite { output, losses: &self.losses, left_out, null_bytes, without_tables, scratch };
        self.reader.columns().try_for_each(|column| rewrite.tables(&column))?;
        let mut progress = options.progress;
        let mut runs = SampleRuns::new(self);
        while let Some((run, column)) = runs.next()? {
            rewrite.run(&run, &column)?;
            if let Some(progress) = &mut progress {
                check_cancelled(progress(run.samples.start))?;
            }
        }
        // no underflow: at most all samples are left out
        rewrite.output.finish(self.reader.sample_count() - rewrite.left_out.count())
    }

    /// Returns the schema with metadata that lists the unconfirmed samples, as far as the maximum
    /// size of a schema allows.
    fn with_notes(&self, schema: Schema, left_out: &LostSamples) -> Schema {
        let max_ranges = (RANGES_BYTES / RANGE_BYTES).checked_div(schema.columns.len()).unwrap_or(0).max(1);
        let noted = |max_ranges| {
            let mut schema = schema.clone();
            for (column, (_, unconfirmed)) in schema.columns.iter_mut().zip(&self.unconfirmed.columns) {
                let before = column.metadata.remove(UNCONFIRMED);
                let before = before.iter().flat_map(|text| parse_ranges(text));
                let ranges = before.chain(unconfirmed.ranges().iter().cloned());
                let ranges = ranges.map(|range| left_out.intact_before(range.start)..left_out.intact_before(range.end));
                let text = ranges_text(ranges.filter(|range| !range.is_empty()).collect(), max_ranges);
                column.metadata.extend(text.map(|text| (UNCONFIRMED.to_owned(), text)));
            }
            schema
        };
        let has_room = |schema: &Schema| schema.check().is_ok();
        [max_ranges, 1].into_iter().map(noted).find(has_room).unwrap_or_else(|| noted(0))
    }
}

/// The maximum size, in bytes, of the metadata about unconfirmed samples in all columns together. A
/// column can always list one range.
const RANGES_BYTES: usize = 1 << 20;
/// The maximum size, in bytes, of the text of one range and its separator.
const RANGE_BYTES: usize = 44;

/// Returns ranges as text; `None` if there are none. If there are more than `max_count`, the last
/// one in the text extends to the end of the last range.
fn ranges_text(ranges: Vec<Range<u64>>, max_count: usize) -> Option<String> {
    let samples = LostSamples::of_ranges(u64::MAX, ranges);
    let (first, rest) = samples.ranges().split_at_checked(max_count).unwrap_or((samples.ranges(), &[]));
    let end = |range: &Range<u64>, is_last: bool| match rest.last() {
        Some(rest) if is_last => rest.end,
        _ => range.end,
    };
    let texts = (1..).zip(first).map(|(number, range)| format!("{}..{}", range.start, end(range, number == max_count)));
    let text = texts.collect::<Vec<String>>().join(", ");
    (!text.is_empty()).then_some(text)
}

/// Parses a text that [`ranges_text`] has returned. Ignores anything that is not a range.
fn parse_ranges(text: &str) -> impl Iterator<Item = Range<u64>> {
    let parse = |range: &str| {
        let (start, end) = range.trim().split_once("..")?;
        Some(start.parse().ok()?..end.parse().ok()?)
    };
    text.split(',').filter_map(parse)
}

/// Consecutive samples of a column: a chunk, or the gap between chunks.
struct SampleRun {
    samples: Range<u64>,
    chunk: Option<u64>,
}

/// The runs of all columns in the order of their first samples, which is the order in which a
/// writer writes them.
struct SampleRuns {
    columns: Vec<ColumnRuns>,
    /// For each column that has runs left: the first sample of its next run, and its number.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

struct ColumnRuns {
    column: Column,
    next_chunk: u64,
    next_sample: u64,
}

impl SampleRuns {
    fn new(salvaged: &Salvaged) -> Self {
        let runs = |column| ColumnRuns { column, next_chunk: 0, next_sample: 0 };
        let columns: Vec<ColumnRuns> = salvaged.reader.columns().map(runs).collect();
        let next = match salvaged.reader.sample_count() {
            0 => BinaryHeap::new(),
            _ => (0..columns.len()).map(|column| Reverse((0, column))).collect(),
        };
        Self { columns, next }
    }

    fn next(&mut self) -> Result<Option<(SampleRun, Column)>> {
        let Some(Reverse((_, number))) = self.next.pop() else { return Ok(None) };
        let Some(runs) = self.columns.get_mut(number) else {
            return Err(Error::internal("a column to copy does not exist"));
        };
        let run = runs.next()?;
        if run.samples.end < runs.column.sample_count() {
            self.next.push(Reverse((run.samples.end, number)));
        }
        Ok(Some((run, runs.column.clone())))
    }
}

impl ColumnRuns {
    /// Returns the next run. The column must have samples left.
    fn next(&mut self) -> Result<SampleRun> {
        let chunk = self.column.chunk(self.next_chunk)?.map(|chunk| chunk.samples);
        let lost_until = chunk.as_ref().map_or(self.column.sample_count(), |samples| samples.start);
        let run = match chunk {
            Some(samples) if samples.start == self.next_sample => {
                self.next_chunk += 1;
                SampleRun { samples, chunk: Some(self.next_chunk - 1) }
            }
            _ => SampleRun { samples: self.next_sample..lost_until, chunk: None },
        };
        self.next_sample = run.samples.end;
        Ok(run)
    }
}

struct Rewrite<'a, K: Sink> {
    output: ChunkWriter<K>,
    /// The lost samples of each column.
    losses: &'a Losses,
    /// The samples to leave out: all samples that any column has lost, or none if lost samples
    /// become nulls.
    left_out: LostSamples,
    /// The maximum decoded size of a chunk of nulls, in bytes.
    null_bytes: usize,
    /// The columns that have lost a table, so their chunks must be encoded again.
    without_tables: BTreeSet<usize>,
    scratch: ChunkScratch,
}

impl<K: Sink> Rewrite<'_, K> {
    fn run(&mut self, run: &SampleRun, column: &Column) -> Result<()> {
        match run.chunk {
            Some(chunk) => self.chunk(chunk, &run.samples, column),
            None if self.left_out.is_empty() => self.nulls(run.samples.clone(), column),
            None => Ok(()),
        }
    }

    /// Copies the tables of a column.
    fn tables(&mut self, column: &Column) -> Result<()> {
        match column.table_bodies()? {
            Some(bodies) => self.output.tables(column.number(), &bodies)?,
            None => {
                self.without_tables.insert(column.number());
            }
        }
        Ok(())
    }

    /// Copies a chunk, or encodes its remaining samples again.
    fn chunk(&mut self, chunk: u64, samples: &Range<u64>, column: &Column) -> Result<()> {
        let first_sample = self.left_out.intact_before(samples.start);
        let lost = self.losses.columns.get(column.number()).map(|(_, lost)| lost);
        let has_lost = lost.is_some_and(|lost| lost.touches(samples));
        if has_lost || self.left_out.touches(samples) || self.without_tables.contains(&column.number()) {
            let is_left = |&(_, sample): &(usize, u64)| !self.left_out.contains(sample);
            // a lost sample that is not left out becomes null
            let or_null = |(i, sample)| (!lost.is_some_and(|lost| lost.contains(sample))).then_some(i);
            let left: Vec<_> = (0..).zip(samples.clone()).filter(is_left).map(or_null).collect();
            if left.is_empty() {
                return Ok(());
            }
            let raw = column.select_from_chunk(chunk, &left, first_sample, &mut self.scratch)?;
            return self.output.raw(&raw);
        }
        let (mut stored, null_count) = column.stored_chunk(chunk, &mut self.scratch)?;
        stored.header.entry.first_sample = first_sample;
        self.output.encoded(stored, null_count)
    }

    /// Writes chunks of nulls.
    fn nulls(&mut self, samples: Range<u64>, column: &Column) -> Result<()> {
        let layout = column.schema().layout()?;
        let sample_bytes = layout.null_shape_bytes().saturating_add(layout.null_value_bytes()).max(1);
        let max_count = u64_of((self.null_bytes / sample_bytes).max(1));
        let max_count = max_count.min(limits::CHUNK_SAMPLES.into());
        let mut first_sample = samples.start;
        while first_sample < samples.end {
            let count = (samples.end - first_sample).min(max_count);
            let n = usize::try_from(count).unwrap_or(0); // at most 2^24
            self.output.raw(&RawChunk {
                column: column.number(),
                first_sample,
                sample_count: u32::try_from(count).unwrap_or(0), // at most 2^24
                null_count: count,
                validity: Some(zeros(validity_bytes(n))?),
                // one sample, or at most `null_bytes`
                shape: zeros(n.saturating_mul(layout.null_shape_bytes()))?,
                values: zeros(n.saturating_mul(layout.null_value_bytes()))?,
            })?;
            first_sample += count;
        }
        Ok(())
    }
}

/// Returns `count` zeros. Fails if memory runs out, because a null of a large fixed shape can be
/// huge.
fn zeros(count: usize) -> Result<Vec<u8>> {
    let mut zeros = Vec::new();
    memory::resize(&mut zeros, count, 0)?;
    Ok(zeros)
}
