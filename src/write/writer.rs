//! The writer: collects samples into chunks, encodes them and writes them.

use super::atomic::AtomicFile;
use super::encode_pool::{EncodePool, EncodedColumn};
use super::index_builder::IndexBuilder;
use super::nested_sample::NestedSample;
use super::options::WriterOptions;
use super::pending_column::{CutChunk, PendingColumn};
use super::region_writer::RegionWriter;
use super::single_sample::single_sample;
use super::sink::Sink;
use super::training_texts::DictionaryRule;
use crate::batch::ColumnBatch;
use crate::codec::{Dictionary, EncodedChunk, EncodingDictionary, RawChunk};
use crate::format::column_record::ColumnRecord;
use crate::format::footer::TableEntry;
use crate::format::header::Header;
use crate::format::region::RegionKind;
use crate::format::table::TableHead;
use crate::format::{CastFacts, ContentId, FileId, Flags, Schema, schema_block};
use crate::value::{Value, ValueContent};
use crate::{Error, Result, limits};
use std::path::Path;
use std::sync::Arc;

/// Writes a file from front to back. Nothing is ever changed once it is written, so a pipe will do.
/// [`Writer::append`] continues a file that exists.
///
/// Samples are pushed one at a time or in batches, which give the same bytes. The memory for each
/// column is at most the chunk size or the largest sample, plus 32 bytes for each chunk since the
/// last commit. A column of text or bytes holds its first 2 MiB back, to train a dictionary with
/// them; all columns together at most 64 MiB.
///
/// # Durability
///
/// - When [`Writer::commit`] or [`Writer::finish`] has returned, a loss of power does not lose the
///   samples pushed before. This holds for [`AtomicFile`] and [`AppendedFile`], if the disk keeps
///   what it reports as kept.
/// - If the process is killed, the machine stops or the disk is full, a reader finds the last
///   commit, whole. It may be one that had not returned.
/// - After an error of the sink the writer refuses every call and tries nothing again. An `fsync`
///   that is repeated may report success for bytes that are lost. The file ends with its last
///   commit, or has no valid end. Only if the very last `fsync` of a commit fails can that commit
///   stay readable. It is whole, and a loss of power may remove it.
///
/// [`AppendedFile`]: crate::write::AppendedFile
pub struct Writer<K: Sink> {
    pub(super) schema: Schema,
    pub(super) schema_block: Vec<u8>,
    pub(super) output: RegionWriter<K>,
    pub(super) columns: Vec<EncodedColumn>,
    pub(super) pending: Vec<PendingColumn>,
    pub(super) indexes: Vec<IndexBuilder>,
    queue: Vec<RawChunk>,
    queued_bytes: usize,
    pub(super) pool: EncodePool,
    pub(super) state: CommitState,
    /// Whether an error has left the file in an unknown state.
    pub(super) failed: bool,
}

/// The facts that the next footer and trailer state. The default is that of a new file.
#[derive(Default)]
pub(super) struct CommitState {
    pub flags: Flags,
    pub tables: Vec<TableEntry>,
    /// The number of samples pushed so far.
    pub sample_count: u64,
    /// The number of commits so far.
    pub commits: u32,
    /// The content id of the last commit.
    pub content_id: ContentId,
    /// The offset of the last trailer; 0 before the first commit.
    pub last_trailer: u64,
}

/// The beginning of a writer: only a schema, or the last commit of a file.
pub(super) struct Start {
    pub schema: Schema,
    pub schema_block: Vec<u8>,
    pub columns: Vec<ColumnRecord>,
    /// The last table of each column, prepared, if it has one.
    pub dictionaries: Vec<Option<Arc<EncodingDictionary>>>,
    pub state: CommitState,
}

impl Writer<AtomicFile> {
    /// Begins a file that appears at `path` with its first commit, which usually is its last. Fails
    /// if something has this path; [`AtomicFile::create`] and [`Writer::new`] can overwrite.
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
        let header = Header { file_id, flags: Flags::of(&schema), alignment: options.alignment };
        let head = header.head(&schema_block)?;
        let columns = vec![ColumnRecord::default(); schema.columns.len()];
        let start = Start {
            dictionaries: vec![None; columns.len()],
            schema,
            schema_block,
            columns,
            state: CommitState { flags: header.flags, ..CommitState::default() },
        };
        let mut writer = Self::start(RegionWriter::new(sink, file_id, options.alignment.into()), start, options)?;
        writer.output.region(head, &writer.schema_block)?;
        Ok(writer)
    }

    /// Begins a file in `sink` from values that were rounded before, such as those of other files.
    ///
    /// `rounded` has, for each column, the facts of its cast from when its values were rounded.
    /// Such a column takes values of its own type, not of the cast's source, and stores them bit
    /// for bit. With `None`, or if a column has no cast, the column is as with [`Writer::new`].
    pub fn of_rounded(sink: K, schema: Schema, options: &WriterOptions, rounded: &[Option<CastFacts>]) -> Result<Self> {
        let mut writer = Self::new(sink, schema, options)?;
        let columns = writer.schema.columns.iter().zip(&mut writer.pending).zip(rounded).enumerate();
        for (i, ((column, pending), rounded)) in columns {
            if let Some(facts) = rounded.as_ref().filter(|_| column.cast.is_some()) {
                *pending =
                    PendingColumn::rounded(i, column, options.of_column(&column.name).resolved_chunk_bytes(), *facts)?;
            }
        }
        Ok(writer)
    }

    /// Adds facts of casts to those that [`Writer::of_rounded`] was given, and to those of casts of
    /// [decimals](crate::CastSource::Decimal): the larger errors, and the sums of the counts.
    /// Columns without facts stay as they are.
    pub fn join_cast_facts(&mut self, rounded: &[Option<CastFacts>]) {
        for (pending, facts) in self.pending.iter_mut().zip(rounded) {
            facts.iter().for_each(|facts| pending.join_cast_facts(facts));
        }
    }

    /// Makes a writer that continues from `start`.
    pub(super) fn start(output: RegionWriter<K>, start: Start, options: &WriterOptions) -> Result<Self> {
        let Start { schema, schema_block, columns, dictionaries, state } = start;
        options.check_columns(&schema)?;
        let numbered = schema.columns.iter().enumerate().zip(&columns).zip(&dictionaries);
        let texts = schema.columns.iter().filter(|column| column.dtype.is_string()).count();
        let pending: Vec<PendingColumn> = numbered
            .map(|(((i, column), record), dictionary)| {
                let options = options.of_column(&column.name);
                let rule = DictionaryRule::new(&options, texts);
                let chunk_bytes = match column.dtype.is_string() {
                    true => options.resolved_text_chunk_bytes(),
                    false => options.resolved_chunk_bytes(),
                };
                let pending = PendingColumn::new(i, column, chunk_bytes)?;
                let pending = pending.after(state.sample_count, record);
                Ok(match rule.filter(|_| column.dtype.is_string()) {
                    Some(rule) if dictionary.is_some() => pending.with_dictionary(rule),
                    Some(rule) => pending.with_training_texts(rule),
                    None => pending,
                })
            })
            .collect::<Result<_>>()?;
        let encoded = schema.columns.iter().zip(&pending).zip(dictionaries);
        let encoded: Vec<EncodedColumn> = encoded
            .map(|((column, pending), dictionary)| EncodedColumn::new(column, pending.layout, dictionary, options))
            .collect();
        Ok(Self {
            pool: EncodePool::new(options, &encoded),
            columns: encoded,
            indexes: columns.into_iter().map(IndexBuilder::new).collect(),
            pending,
            schema,
            schema_block,
            output,
            queue: Vec::new(),
            queued_bytes: 0,
            state,
            failed: false,
        })
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the file's id.
    pub fn file_id(&self) -> FileId {
        self.output.file_id
    }

    /// Returns the number of samples pushed so far, those of earlier commits included.
    pub fn sample_count(&self) -> u64 {
        self.state.sample_count
    }

    /// Pushes one sample: a value for each column, in order. If a value does not fit, returns an
    /// error and pushes nothing.
    pub fn push(&mut self, sample: &[Value<'_>]) -> Result<()> {
        if sample.len() != self.schema.columns.len() {
            return Err(self.wrong_column_count(sample.len()));
        }
        if sample.is_empty() {
            return Err(Error::bad_argument("the schema has no columns, so no sample can be pushed"));
        }
        let mut extents = vec![[0; limits::RANK]; sample.len()];
        let zeros = self.zeros_for_nulls(sample);
        let nested = self.nested_samples(sample)?;
        let mut batches = Vec::with_capacity(sample.len());
        for (((column, value), extents), nested) in
            self.schema.columns.iter().zip(sample).zip(&mut extents).zip(&nested)
        {
            let batch = match nested {
                Some(nested) => Ok(nested.as_batch(column)),
                None => single_sample(column, value, extents, &zeros),
            };
            batches.push(batch.map_err(|error| error.with_column(&column.name))?);
        }
        self.push_batch(&batches)
    }

    /// Returns the samples of nested columns, and `None` for others.
    fn nested_samples(&self, sample: &[Value<'_>]) -> Result<Vec<Option<NestedSample>>> {
        let columns = self.schema.columns.iter().zip(sample);
        let nested = columns.map(|(column, value)| match column.levels.as_slice() {
            [] => Ok(None),
            _ => NestedSample::new(column, value).map(Some).map_err(|error| error.with_column(&column.name)),
        });
        nested.collect()
    }

    /// Returns the zeros that the largest null of a fixed shape takes.
    fn zeros_for_nulls(&self, sample: &[Value<'_>]) -> Vec<u8> {
        let nulls = self.pending.iter().zip(sample).filter(|(_, value)| matches!(value.0, ValueContent::Null));
        let largest = nulls.map(|(pending, _)| pending.null_bytes()).max();
        vec![0; largest.unwrap_or(0)]
    }

    /// Pushes consecutive samples: a batch for each column, in order, all of the same number of
    /// samples. If a batch does not fit, returns an error and pushes nothing.
    pub fn push_batch(&mut self, batches: &[ColumnBatch<'_>]) -> Result<()> {
        let sample_count = self.check_batches(batches)?;
        let mut cut = Vec::new();
        for (pending, batch) in self.pending.iter_mut().zip(batches) {
            pending.push(batch, &mut cut);
        }
        self.state.sample_count = sample_count;
        // the order that pushing one sample at a time would give
        cut.sort_by_key(|cut: &CutChunk| (cut.end_sample, cut.chunk.column));
        for CutChunk { chunk, table, .. } in cut {
            if let Some(body) = table {
                self.write_dictionary(chunk.column, body)?;
            }
            self.enqueue(chunk)?;
        }
        Ok(())
    }

    /// Checks the batches, and returns the number of samples with them.
    fn check_batches(&self, batches: &[ColumnBatch<'_>]) -> Result<u64> {
        self.check_usable()?;
        if batches.len() != self.schema.columns.len() {
            return Err(self.wrong_column_count(batches.len()));
        }
        let count = batches.first().map_or(0, |batch| batch.sample_count());
        for ((column, pending), batch) in self.schema.columns.iter().zip(&self.pending).zip(batches) {
            if batch.sample_count() != count {
                let message = format!("{} samples, where the first column has {count}", batch.sample_count());
                return Err(Error::bad_argument(message).with_column(&column.name));
            }
            batch.check(pending.pushed_schema(column))?;
            pending.check_sizes(batch).map_err(|error| error.with_column(&column.name))?;
        }
        let total = u64::try_from(count).ok().and_then(|count| self.state.sample_count.checked_add(count));
        let total = total.filter(|&total| total <= limits::SAMPLES);
        total.ok_or_else(|| Error::over_limit(format!("more than {} samples", limits::SAMPLES)))
    }

    fn wrong_column_count(&self, found: usize) -> Error {
        let due = self.schema.columns.len();
        Error::bad_argument(format!("values for {found} columns; the schema has {due}"))
    }

    pub(super) fn check_usable(&self) -> Result<()> {
        if self.failed {
            return Err(Error::bad_argument(
                "the writer has failed before and does no more; the file ends with its last commit",
            ));
        }
        Ok(())
    }

    pub(super) fn enqueue(&mut self, chunk: RawChunk) -> Result<()> {
        self.queued_bytes = self.queued_bytes.saturating_add(chunk.raw_bytes());
        self.queue.push(chunk);
        if self.queued_bytes >= self.pool.busy_bytes() {
            self.write_queue()?;
        }
        Ok(())
    }

    /// Writes a dictionary, with which the chunks of the column are encoded from now on.
    fn write_dictionary(&mut self, column: usize, body: Vec<u8>) -> Result<()> {
        self.write_queue()?;
        if self.state.tables.len() == limits::TABLES {
            return Ok(());
        }
        self.failed = true; // until it is written
        let table = self.write_table(column, &body)?;
        let dictionary = EncodingDictionary::new(table, Arc::new(Dictionary::new(body)?))?;
        if let Some(column) = self.columns.get_mut(column) {
            column.dictionary = Some(Arc::new(dictionary));
        }
        self.failed = false;
        Ok(())
    }

    /// Writes a table. Returns its number.
    pub(super) fn write_table(&mut self, column: usize, body: &[u8]) -> Result<u32> {
        let column = u32::try_from(column).map_err(|_| Error::internal("a table belongs to an unknown column"))?;
        if self.state.tables.len() >= limits::TABLES {
            return Err(Error::over_limit(format!("more than {} tables", limits::TABLES)));
        }
        let at = self.state.tables.partition_point(|other| other.column <= column);
        let last = at.checked_sub(1).and_then(|last| self.state.tables.get(last)).filter(|last| last.column == column);
        let table = last.map_or(0, |last| last.table.saturating_add(1));
        let offset = self.output.next(RegionKind::Table);
        let (head, entry) = TableHead { column, table }.seal(self.output.file_id, offset, body)?;
        self.output.region(head, body)?;
        self.state.tables.insert(at, entry); // they ascend
        Ok(table)
    }

    /// Encodes and writes the chunks of the queue.
    pub(super) fn write_queue(&mut self) -> Result<()> {
        self.queued_bytes = 0;
        let queue = std::mem::take(&mut self.queue);
        self.failed = true; // until all is written
        let encoded = self.pool.encode(&mut self.columns, &queue)?;
        for chunk in encoded {
            self.write_chunk(chunk)?;
        }
        self.failed = false;
        Ok(())
    }

    pub(super) fn write_chunk(&mut self, mut chunk: EncodedChunk) -> Result<()> {
        let offset = self.output.next(RegionKind::Chunk);
        let head = chunk.head.seal(self.output.file_id, offset, &chunk.body)?;
        self.output.region(head, &chunk.body)?;
        let column = usize::try_from(chunk.head.column).ok();
        if let Some(index) = column.and_then(|column| self.indexes.get_mut(column)) {
            index.add(&chunk)?;
        }
        Ok(())
    }
}
