//! Writing a file: samples are collected into chunks, chunks are encoded and placed, commits write the index.

mod append;
mod buffered;
mod chunks;
mod encode;
mod index;
mod options;
mod output;
mod pending;
mod sink;
mod storage;
#[cfg(test)]
mod tests;
mod unnamed;

pub use append::AppendedFile;
pub(crate) use chunks::ChunkWriter;
pub use options::WriterOptions;
pub use sink::{AtomicFile, Sink, Stream};

use crate::batch::{ColumnBatch, Value, pushed_inner_bytes};
use crate::codec::{EncodedChunk, RawChunk};
use crate::format::content_id::ContentHasher;
use crate::format::footer::{self, Footer, TableEntry, Trailer};
use crate::format::header::Header;
use crate::format::region::RegionKind;
use crate::format::schema::Layout;
use crate::format::{ColumnSchema, ContentId, Extent, FileId, Flags, Schema, schema_block};
use crate::open::ColumnFacts;
use crate::{Error, Result, limits};
use encode::EncodePool;
use index::ColumnIndex;
use output::Output;
use pending::PendingColumn;
use std::path::Path;

/// Decoded bytes that wait for the encoders at most, for each of them.
const QUEUE_BYTES_PER_THREAD: usize = 1 << 20;

/// Writes a file, front to back; nothing is ever patched, so a pipe will do. [`Writer::append`] goes on with a file that exists.
///
/// Samples are pushed one at a time or in batches; both give the same bytes. Memory is bounded by the chunk size and the
/// largest sample, times the number of columns, plus 32 bytes for each chunk since the last commit.
///
/// When [`Writer::commit`] or [`Writer::finish`] has returned, all samples pushed before are durable: a loss of power does not lose them
/// ([`AtomicFile`] and [`AppendedFile`], if the disk keeps what it says it has kept). Whenever the process is killed, the machine stops
/// or the disk is full, a reader finds the last commit that was done, whole, or one that was about to be.
///
/// After an error from the sink the writer refuses everything, and nothing is tried again, least of all `fsync`: what the system
/// could not write may be gone from its memory, too. The file has no valid end, or that of its last commit. Only if the very last `fsync` of
/// a commit fails can that commit stay readable; it is whole, and may be gone after a loss of power.
pub struct Writer<K: Sink> {
    schema: Schema,
    schema_block: Vec<u8>,
    output: Output<K>,
    layouts: Vec<Layout>,
    pending: Vec<PendingColumn>,
    index: Vec<ColumnIndex>,
    queue: Vec<RawChunk>,
    queued_bytes: usize,
    pool: EncodePool,
    flags: Flags,
    tables: Vec<TableEntry>,
    sample_count: u64,
    commits: u32,
    /// Of the last commit.
    content_id: ContentId,
    last_trailer: u64,
    failed: bool,
}

/// What a writer begins with: a schema and nothing else, or what the last commit of a file says.
struct Start {
    schema: Schema,
    schema_block: Vec<u8>,
    flags: Flags,
    sample_count: u64,
    tables: Vec<TableEntry>,
    columns: Vec<footer::ColumnFacts>,
    commits: u32,
    content_id: ContentId,
    last_trailer: u64,
}

impl Writer<AtomicFile> {
    /// Begins a file that appears at `path` when it is finished (or first committed). Nothing may stand there; use
    /// [`AtomicFile::create`] and [`Writer::new`] to overwrite.
    pub fn create(path: impl AsRef<Path>, schema: Schema, options: &WriterOptions) -> Result<Self> {
        Self::new(AtomicFile::create(path, false)?, schema, options)
    }
}

impl<K: Sink> Writer<K> {
    /// Begins a file in `sink`, and writes its header.
    pub fn new(sink: K, schema: Schema, options: &WriterOptions) -> Result<Self> {
        options.check()?;
        let schema_block = schema_block::to_bytes(&schema)?;
        let file_id = options.derive_file_id(&schema_block);
        let header = Header { file_id, flags: Flags::default(), alignment: options.alignment };
        let head = header.head(&schema_block)?;
        let columns = vec![footer::ColumnFacts::default(); schema.columns.len()];
        let start = Start {
            schema,
            schema_block,
            flags: header.flags,
            sample_count: 0,
            tables: Vec::new(),
            columns,
            commits: 0,
            content_id: ContentId::default(),
            last_trailer: 0,
        };
        let mut writer = Self::start(Output::new(sink, file_id, options.alignment.into(), 0), start, options)?;
        writer.output.region(RegionKind::Header, &head.to_bytes(), &writer.schema_block)?;
        Ok(writer)
    }

    /// A writer that goes on from `start`.
    fn start(output: Output<K>, start: Start, options: &WriterOptions) -> Result<Self> {
        let Start { schema, schema_block, flags, sample_count, tables, columns, commits, content_id, last_trailer } =
            start;
        let numbered = schema.columns.iter().enumerate().zip(&columns);
        let pending: Vec<PendingColumn> = numbered
            .map(|((i, column), facts)| {
                let pending = PendingColumn::new(i, column, options.resolved_chunk_bytes())?;
                Ok(pending.after(sample_count, facts))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            layouts: pending.iter().map(|column| column.layout).collect(),
            index: columns.into_iter().map(ColumnIndex::new).collect(),
            pending,
            schema,
            schema_block,
            output,
            queue: Vec::new(),
            queued_bytes: 0,
            pool: EncodePool::new(options),
            flags,
            tables,
            sample_count,
            commits,
            content_id,
            last_trailer,
            failed: false,
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The file's id.
    pub fn file_id(&self) -> FileId {
        self.output.file_id
    }

    /// Samples pushed so far.
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }

    /// Pushes one sample: a value for each column, in order. On an error about the values nothing has been pushed.
    pub fn push(&mut self, sample: &[Value<'_>]) -> Result<()> {
        if sample.len() != self.schema.columns.len() {
            return Err(self.wrong_column_count(sample.len()));
        }
        let mut extents = vec![[0; limits::RANK]; sample.len()];
        let zeros = self.zeros_for_nulls(sample);
        let mut batches = Vec::with_capacity(sample.len());
        for ((column, value), extents) in self.schema.columns.iter().zip(sample).zip(&mut extents) {
            let batch = one_sample(column, value, extents, &zeros);
            batches.push(batch.map_err(|error| error.with_column(&column.name))?);
        }
        self.push_batch(&batches)
    }

    /// As many zeros as the largest null of a fixed shape takes.
    fn zeros_for_nulls(&self, sample: &[Value<'_>]) -> Vec<u8> {
        let nulls = self.pending.iter().zip(sample).filter(|(_, value)| value.0.is_none());
        let largest = nulls.map(|(pending, _)| pending.null_bytes()).max();
        vec![0; largest.unwrap_or(0)]
    }

    /// Pushes consecutive samples: a batch for each column, in order, all of the same number of samples. On an error
    /// about the batches nothing has been pushed.
    pub fn push_batch(&mut self, batches: &[ColumnBatch<'_>]) -> Result<()> {
        let sample_count = self.check_batches(batches)?;
        let mut cut = Vec::new();
        for (pending, batch) in self.pending.iter_mut().zip(batches) {
            pending.push(batch, &mut cut);
        }
        self.sample_count = sample_count;
        // the order in which pushing one sample at a time would have cut them
        cut.sort_by_key(|chunk| (chunk.first_sample + u64::from(chunk.sample_count), chunk.column));
        self.enqueue(cut)
    }

    /// Checks everything about the batches; the number of samples after them.
    fn check_batches(&self, batches: &[ColumnBatch<'_>]) -> Result<u64> {
        self.check_usable()?;
        if batches.len() != self.schema.columns.len() {
            return Err(self.wrong_column_count(batches.len()));
        }
        let count = batches.first().map_or(0, |batch| batch.sample_count);
        for ((column, pending), batch) in self.schema.columns.iter().zip(&self.pending).zip(batches) {
            if batch.sample_count != count {
                let message = format!("{} samples, where the first column has {count}", batch.sample_count);
                return Err(Error::bad_argument(message).with_column(&column.name));
            }
            batch.check(column)?;
            pending.check_sizes(batch).map_err(|error| error.with_column(&column.name))?;
        }
        let total = u64::try_from(count).ok().and_then(|count| self.sample_count.checked_add(count));
        let total = total.filter(|&total| total <= limits::SAMPLES);
        total.ok_or_else(|| Error::over_limit(format!("more than {} samples", limits::SAMPLES)))
    }

    fn wrong_column_count(&self, found: usize) -> Error {
        let due = self.schema.columns.len();
        Error::bad_argument(format!("values for {found} columns; the schema has {due}"))
    }

    fn check_usable(&self) -> Result<()> {
        if self.failed {
            return Err(Error::bad_argument(
                "the writer has failed before and does no more; the file is as its last commit has left it",
            ));
        }
        Ok(())
    }

    fn enqueue(&mut self, chunks: Vec<RawChunk>) -> Result<()> {
        for chunk in chunks {
            self.queued_bytes = self.queued_bytes.saturating_add(chunk.raw_bytes());
            self.queue.push(chunk);
            if self.queued_bytes >= QUEUE_BYTES_PER_THREAD * self.pool.threads() {
                self.write_queue()?;
            }
        }
        Ok(())
    }

    fn write_queue(&mut self) -> Result<()> {
        self.queued_bytes = 0;
        let queue = std::mem::take(&mut self.queue);
        self.failed = true; // until all of it is written
        let encoded = self.pool.encode(&self.layouts, &queue)?;
        for chunk in encoded {
            self.write_chunk(chunk)?;
        }
        self.failed = false;
        Ok(())
    }

    fn write_chunk(&mut self, mut chunk: EncodedChunk) -> Result<()> {
        let offset = self.output.next(RegionKind::Chunk);
        let head = chunk.head.seal(self.output.file_id, offset, &chunk.body)?;
        self.output.region(RegionKind::Chunk, &head, &chunk.body)?;
        let column = usize::try_from(chunk.head.column).ok();
        if let Some(index) = column.and_then(|column| self.index.get_mut(column)) {
            index.add(&chunk)?;
        }
        Ok(())
    }

    /// Makes all samples pushed so far durable and readable, and goes on. Each column's current chunk is closed, however
    /// small, so commit seldom: once for many chunks. A file has at most 65,536 commits, the last of which is that of
    /// [`Writer::finish`].
    pub fn commit(&mut self) -> Result<()> {
        self.write_commit(false)
    }

    /// Commits for the last time, and says in the file that it is complete.
    pub fn finish(mut self) -> Result<Summary<K>> {
        self.write_commit(true)?;
        Ok(Summary {
            columns: self.index.iter().map(|index| ColumnFacts::from(&index.facts)).collect(),
            schema: self.schema,
            sample_count: self.sample_count,
            file_bytes: self.output.next(RegionKind::Trailer),
            file_id: self.output.file_id,
            content_id: self.content_id,
            sink: self.output.into_sink(),
        })
    }

    fn write_commit(&mut self, finished: bool) -> Result<()> {
        self.check_usable()?;
        // the last one that the format allows is kept for `finish`
        let left = limits::RUNS - usize::from(!finished);
        if usize::try_from(self.commits).is_ok_and(|commits| commits >= left) {
            let message = format!("more than {} commits; finish this file and begin another", limits::RUNS);
            return Err(Error::over_limit(message));
        }
        let rest: Vec<RawChunk> = self.pending.iter_mut().filter_map(PendingColumn::cut).collect();
        self.enqueue(rest)?;
        self.write_queue()?;
        self.failed = true; // until all of it is written
        self.write_index_and_footer(finished)?;
        self.failed = false;
        Ok(())
    }

    fn write_index_and_footer(&mut self, finished: bool) -> Result<()> {
        let mut content = ContentHasher::after(self.content_id);
        for (column, index) in (0..).zip(&mut self.index) {
            index.write(column, &mut self.output, &mut content)?;
        }
        let footer_offset = self.output.next(RegionKind::Footer);
        let mut footer = self.footer();
        let (head, body) = footer.seal(self.output.file_id, footer_offset, &self.schema_block, content)?;
        self.output.region(RegionKind::Footer, &head, &body)?;
        self.output.sync()?;
        let offset = self.output.next(RegionKind::Trailer);
        let trailer = Trailer { finished, footer_offset, previous_trailer: self.last_trailer };
        let head = trailer.to_bytes(self.output.file_id, offset)?;
        self.output.region(RegionKind::Trailer, &head, &[])?;
        self.output.sync()?;
        self.output.publish()?;
        self.content_id = footer.content_id;
        self.last_trailer = offset;
        self.commits += 1;
        Ok(())
    }

    fn footer(&mut self) -> Footer {
        for (index, pending) in self.index.iter_mut().zip(&self.pending) {
            index.facts.null_count = pending.total_nulls;
            index.facts.cast = pending.cast_facts();
        }
        Footer {
            content_id: self.content_id, // until the footer is written
            commit: self.commits,
            flags: self.flags,
            sample_count: self.sample_count,
            tables: self.tables.clone(),
            columns: self.index.iter().map(|index| index.facts.clone()).collect(),
        }
    }
}

/// What [`Writer::finish`] has written.
#[derive(Debug)]
pub struct Summary<K> {
    /// The schema.
    pub schema: Schema,
    /// What the file says of each column, in the order of the schema.
    pub columns: Vec<ColumnFacts>,
    /// Samples in the file.
    pub sample_count: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// The file's id.
    pub file_id: FileId,
    /// The 16 bytes that identify the content of the file.
    pub content_id: ContentId,
    /// The sink, all of the file in it.
    pub sink: K,
}

/// A batch of one sample; `extents` is room for its extents.
fn one_sample<'a>(
    column: &ColumnSchema,
    value: &Value<'a>,
    extents: &'a mut [u32; limits::RANK],
    zeros: &'a [u8],
) -> Result<ColumnBatch<'a>> {
    const NULL: &[u8] = &[0];
    let Some(sample) = value.0 else {
        let varying = column.shape.varying_count();
        let extents = extents.get(..varying).unwrap_or(&[]); // all 0
        let bytes = if varying == 0 { pushed_inner_bytes(column)? } else { 0 };
        let zeros = zeros.get(..bytes).unwrap_or(&[]);
        return Ok(ColumnBatch::from_bytes(column.pushed_dtype(), 1, extents, zeros).with_validity(NULL));
    };
    let extents = match sample.extents {
        Some(extents) => extents,
        None => infer_extents(column, sample.bytes.len(), extents)?,
    };
    Ok(ColumnBatch::from_bytes(sample.dtype, 1, extents, sample.bytes))
}

/// The varying extents of a sample of this many bytes, where they follow from it.
fn infer_extents<'a>(column: &ColumnSchema, bytes: usize, room: &'a mut [u32; limits::RANK]) -> Result<&'a [u32]> {
    match column.shape.varying_count() {
        0 => Ok(&[]),
        1 => {
            let inner = pushed_inner_bytes(column)?;
            let extent = bytes.checked_div(inner).unwrap_or(0);
            let [first, ..] = room;
            *first = u32::try_from(extent).map_err(|_| Error::over_limit("a sample is too large"))?;
            Ok(std::slice::from_ref(first))
        }
        varying => {
            let fixed = column.shape.extents().iter().filter(|extent| matches!(extent, Extent::Fixed(_)));
            let message =
                format!("{varying} extents vary ({} are fixed); push the sample with its extents", fixed.count());
            Err(Error::bad_argument(message))
        }
    }
}
