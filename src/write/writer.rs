//! The writer: collects samples into chunks, encodes and writes the chunks, and commits.
//!
//! # From samples to bytes
//!
//! Pushed samples accumulate in one pending chunk per column. Full chunks wait in a queue until
//! there is enough work for all threads. Then they are encoded together and written in the order in
//! which they became full. This order depends only on the samples, so neither the number of threads
//! nor the size of batches changes a byte of the file.
//!
//! # How a commit becomes durable
//!
//! A file only grows; nothing is changed in place. Its last valid trailer determines its state. A
//! trailer has 64 bytes and points to a footer, which describes everything before it. Between two
//! calls of `fsync`, a disk can write in any order, and a write can be torn if the power fails. So
//! the trailer must not reach the disk before the bytes that it refers to. A commit (chapter 7.4 of
//! the specification) therefore has a barrier in the middle:
//!
//! 1. Write the remaining chunks, the index pages and the footer.
//! 2. `fsync`. Everything except the trailer is now durable.
//! 3. Write the trailer.
//! 4. `fsync`. The commit is now durable.
//! 5. Publish. At its first commit, a new file gets its name. The file and its folder are synced to
//!    make the name durable (`sink.rs`). Then [`Writer::commit`] returns.
//!
//! A crash or a loss of power leaves:
//!
//! | moment | existing file | new file, at its first commit |
//! |---|---|---|
//! | before step 3 | the last commit, then bytes that readers ignore | not at its path |
//! | steps 3 and 4 | the last commit or the new one | not at its path |
//! | step 5 | the new commit | at its path, complete, or not at its path |
//! | later | the new commit | at its path, complete |
//!
//! If a new file is not at its path, nothing has changed there: the path is free, or has the file
//! that was to be replaced.
//!
//! During steps 3 and 4, the trailer can be on disk, missing or torn. A torn trailer fails its
//! checksum and counts as missing. An intact trailer proves that step 2 was completed, so the
//! commit is complete even if `commit` never returned. With a single `fsync` at the end, an intact
//! trailer would prove nothing.
//!
//! An append starts with one more barrier. Before its first write, it cuts off the bytes after the
//! last commit and syncs the file, even if the length does not change. Otherwise, after a loss of
//! power, bytes of an earlier, killed writer could reappear between the new ones.
//!
//! # Errors
//!
//! When an `fsync` fails, the system may drop the unwritten pages, and the next `fsync` then
//! reports success for bytes that are lost. So nothing is ever retried. `failed` is set before
//! anything is written, and is cleared when everything has been written. While it is set, every
//! call fails. When the sink is dropped, it tries to cut off the bytes after the last commit. If it
//! cannot, readers ignore these bytes.
//!
//! `src/write/tests/crash.rs` simulates a loss of power after every operation: any subset of the
//! unsynced writes is then on disk, whole or torn. `src/write/tests/faults.rs` makes every call
//! fail in turn.
//!
//! # Copies
//!
//! [`ChunkWriter`] copies chunks from another file, and decodes only a few of them.

use super::encode_pool::{ColumnEncoderState, EncodePool};
use super::options::WriterOptions;
use super::pending_column::{PendingColumn, ReadyChunk, ZstdDictionaryRule};
use super::region_writer::{IndexBuilder, RegionWriter};
use super::sample::{NestedSample, single_sample};
use super::sink::{AppendFile, AppendSink, AtomicFile, Sink, Stream};
use super::start::{CommitState, InitialState, open_to_append};
use super::storage::{Disk, Storage};
use crate::batch::ColumnBatch;
use crate::codec::{EncodedChunk, RawChunk, ZstdDictionary, ZstdEncoderDictionary};
use crate::format::column_record::ColumnRecord;
use crate::format::file_header::Header;
use crate::format::footer::{ContentHasher, Footer, TableHeader, Trailer};
use crate::format::region::RegionKind;
use crate::format::{CastFacts, ContentId, FileId, Flags, Schema, schema_block};
use crate::open::ColumnFacts;
use crate::value::{Value, ValueContent};
use crate::{Error, Result, limits};
use std::path::Path;
use std::slice;
use std::sync::Arc;

/// Writes a file from front to back. Bytes never change once they are written, so the sink can be a
/// pipe. [`Writer::append`] continues an existing file.
///
/// Samples can be pushed one at a time or in batches; the resulting file is the same. Each column
/// needs memory for at most one chunk or its largest sample, plus 32 bytes for each chunk since the
/// last commit. A column of text or bytes also holds back its first 2 MiB, to train a dictionary;
/// all columns together hold back at most 64 MiB.
///
/// # Durability
///
/// - Once [`Writer::commit`] or [`Writer::finish`] has returned, a loss of power does not lose the
///   samples pushed before. This holds for [`AtomicFile`] and [`AppendFile`], on disks that keep
///   what they report as written.
/// - If the process is killed, the machine stops or the disk is full, a reader finds the last
///   commit in full. This can be a commit whose call had not returned yet.
/// - After an error of the sink, the writer refuses every call and retries nothing, because a
///   repeated `fsync` can report success for bytes that are lost. The file ends with its last
///   commit, or has no valid end. There is one exception: if the last `fsync` of a commit fails,
///   this commit can stay readable. It is complete, but a loss of power can remove it.
pub struct Writer<K: Sink> {
    schema: Schema,
    schema_block: Vec<u8>,
    output: RegionWriter<K>,
    columns: Vec<ColumnEncoderState>,
    pending: Vec<PendingColumn>,
    indexes: Vec<IndexBuilder>,
    queue: Vec<RawChunk>,
    queued_bytes: usize,
    pool: EncodePool,
    state: CommitState,
    /// Whether an error has left the file in an unknown state.
    failed: bool,
}

impl Writer<AtomicFile> {
    /// Creates a file that appears at `path` with its first commit, which is usually its only one.
    /// Fails if the path exists; use [`AtomicFile::create`] and [`Writer::new`] to overwrite.
    pub fn create(path: impl AsRef<Path>, schema: Schema, options: &WriterOptions) -> Result<Self> {
        Self::new(AtomicFile::create(path, false)?, schema, options)
    }
}

impl Writer<AppendFile> {
    /// Continues a file after its last commit, whether it is finished or not. Schema, file id and
    /// alignment come from the file; profile, chunk size, threads and checks come from `options`.
    ///
    /// Until [`Writer::commit`] or [`Writer::finish`] writes a trailer, a reader that opens the
    /// file sees its old state. A reader that opened the file earlier continues to see the state at
    /// that time. Without a commit, no byte up to the end of the last commit changes.
    ///
    /// Bytes after the last commit are cut off before anything is written. If they contain an
    /// intact region of this file, the call fails unless [`WriterOptions::discard_tail`] is set.
    /// Either a killed writer left this region, or it belongs to a commit whose end is damaged.
    /// `tensilo salvage` can recover such a commit.
    ///
    /// Also fails if another writer has locked the file, if a newer release has written it in a way
    /// that this one cannot continue, or if the file cannot be opened.
    ///
    /// Cost: opening the file, and reading the bytes after the last commit.
    ///
    /// ```
    /// # use tensilo::{ColumnSchema, DType, Reader, Result, Schema, Shape, Value, Writer};
    /// # use tensilo::WriterOptions;
    /// # fn main() -> Result<()> {
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let path = folder.path().join("numbers.tsl");
    /// # let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::scalar())]);
    /// # Writer::create(&path, schema, &WriterOptions::new())?.finish()?;
    /// let mut writer = Writer::append(&path, &WriterOptions::new())?;
    /// writer.push(&[Value::tensor(&[7_i32])])?;
    /// writer.commit()?;
    /// assert_eq!(Reader::open(&path)?.sample_count(), 1);
    /// writer.push(&[Value::tensor(&[8_i32])])?;
    /// writer.finish()?;
    /// assert_eq!(Reader::open(&path)?.sample_count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn append(path: impl AsRef<Path>, options: &WriterOptions) -> Result<Self> {
        Self::continued(Disk, path.as_ref(), options, AppendFile::new)
    }
}

impl<K: Sink> Writer<K> {
    /// Starts a file in `sink`, and writes its file header.
    pub fn new(sink: K, schema: Schema, options: &WriterOptions) -> Result<Self> {
        options.check()?;
        let schema_block = schema_block::to_bytes(&schema)?;
        let file_id = options.derive_file_id(&schema_block);
        let file_header = Header { file_id, flags: Flags::of(&schema), alignment: options.alignment };
        let header = file_header.header(&schema_block)?;
        let columns = vec![ColumnRecord::default(); schema.columns.len()];
        let start = InitialState {
            zstd_dictionaries: vec![None; columns.len()],
            schema,
            schema_block,
            columns,
            state: CommitState { flags: file_header.flags, ..CommitState::default() },
        };
        let mut writer = Self::start(RegionWriter::new(sink, file_id, options.alignment.into()), start, options)?;
        writer.output.region(header, &writer.schema_block)?;
        Ok(writer)
    }

    /// Starts a file in `sink` for values that are already rounded, such as values from other
    /// files.
    ///
    /// For each column, `rounded` has the cast facts that were recorded when its values were
    /// rounded. A column with cast facts accepts values of its own type instead of the cast's
    /// source type, and stores them bit for bit. A column whose entry is `None`, or that has no
    /// cast, works as with [`Writer::new`].
    pub fn from_rounded(
        sink: K,
        schema: Schema,
        options: &WriterOptions,
        rounded: &[Option<CastFacts>],
    ) -> Result<Self> {
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

    /// Merges cast facts into the facts that were passed to [`Writer::from_rounded`], and into the
    /// facts of casts from [decimals](crate::CastSource::Decimal). The result has the larger errors
    /// and the sums of the counts. Columns without such facts stay unchanged.
    pub fn merge_cast_facts(&mut self, rounded: &[Option<CastFacts>]) {
        for (pending, facts) in self.pending.iter_mut().zip(rounded) {
            facts.iter().for_each(|facts| pending.merge_cast_facts(facts));
        }
    }

    /// Continues a file like [`Writer::append`], on any storage. `wrap` converts the [`AppendSink`]
    /// to the sink of the writer.
    pub(super) fn continued<S: Storage>(
        storage: S,
        path: &Path,
        options: &WriterOptions,
        wrap: impl FnOnce(AppendSink<S>) -> K,
    ) -> Result<Self> {
        options.check()?;
        let begin = || {
            let (output, start) = open_to_append(storage, path, options, wrap)?;
            Self::start(output, start, options)
        };
        begin().map_err(|error| error.with_path(path))
    }

    /// Creates a writer that continues from `start`.
    fn start(output: RegionWriter<K>, start: InitialState, options: &WriterOptions) -> Result<Self> {
        let InitialState { schema, schema_block, columns, zstd_dictionaries, state } = start;
        options.check_columns(&schema)?;
        let numbered = schema.columns.iter().enumerate().zip(&columns).zip(&zstd_dictionaries);
        let texts = schema.columns.iter().filter(|column| column.dtype.is_string()).count();
        let pending: Vec<PendingColumn> = numbered
            .map(|(((i, column), record), zstd_dictionary)| {
                let options = options.of_column(&column.name);
                let rule = ZstdDictionaryRule::new(&options, texts);
                let chunk_bytes = match column.dtype.is_string() {
                    true => options.resolved_text_chunk_bytes(),
                    false => options.resolved_chunk_bytes(),
                };
                let pending = PendingColumn::new(i, column, chunk_bytes)?;
                let pending = pending.after(state.sample_count, record);
                Ok(match rule.filter(|_| column.dtype.is_string()) {
                    Some(rule) if zstd_dictionary.is_some() => pending.with_zstd_dictionary(rule),
                    Some(rule) => pending.with_training_texts(rule),
                    None => pending,
                })
            })
            .collect::<Result<_>>()?;
        let encoded = schema.columns.iter().zip(&pending).zip(zstd_dictionaries);
        let encoded: Vec<ColumnEncoderState> = encoded
            .map(|((column, pending), zstd_dictionary)| {
                ColumnEncoderState::new(column, pending.layout, zstd_dictionary, options)
            })
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

    /// Returns the number of samples pushed so far, including the samples of earlier commits.
    pub fn sample_count(&self) -> u64 {
        self.state.sample_count
    }

    /// Pushes one sample: a value for each column, in order. If a value does not fit its column,
    /// returns an error and pushes nothing.
    pub fn push(&mut self, sample: &[Value<'_>]) -> Result<()> {
        if sample.len() != self.schema.columns.len() {
            return Err(self.wrong_column_count(sample.len()));
        }
        if sample.is_empty() {
            return Err(Error::bad_argument("the schema has no columns, so no sample can be pushed"));
        }
        let mut extents = vec![[0; limits::DIMENSIONS]; sample.len()];
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

    /// Returns the samples of nested columns; `None` for other columns.
    fn nested_samples(&self, sample: &[Value<'_>]) -> Result<Vec<Option<NestedSample>>> {
        let columns = self.schema.columns.iter().zip(sample);
        let nested = columns.map(|(column, value)| match column.levels.as_slice() {
            [] => Ok(None),
            _ => NestedSample::new(column, value).map(Some).map_err(|error| error.with_column(&column.name)),
        });
        nested.collect()
    }

    /// Returns enough zeros for the largest null of a fixed shape in a sample.
    fn zeros_for_nulls(&self, sample: &[Value<'_>]) -> Vec<u8> {
        let nulls = self.pending.iter().zip(sample).filter(|(_, value)| matches!(value.0, ValueContent::Null));
        let largest = nulls.map(|(pending, _)| pending.null_bytes()).max();
        vec![0; largest.unwrap_or(0)]
    }

    /// Pushes consecutive samples: one batch per column, in order, all with the same number of
    /// samples. If a batch does not fit its column, returns an error and pushes nothing.
    pub fn push_batch(&mut self, batches: &[ColumnBatch<'_>]) -> Result<()> {
        let sample_count = self.check_batches(batches)?;
        let mut cut = Vec::new();
        for (pending, batch) in self.pending.iter_mut().zip(batches) {
            pending.push(batch, &mut cut);
        }
        self.state.sample_count = sample_count;
        // the order in which they would be written if samples were pushed one at a time
        cut.sort_by_key(|cut: &ReadyChunk| (cut.end_sample, cut.chunk.column));
        for ReadyChunk { chunk, table, .. } in cut {
            if let Some(body) = table {
                self.write_zstd_dictionary(chunk.column, body)?;
            }
            self.enqueue(chunk)?;
        }
        Ok(())
    }

    /// Checks the batches. Returns the number of samples in the file, including these.
    fn check_batches(&self, batches: &[ColumnBatch<'_>]) -> Result<u64> {
        self.check_usable()?;
        if batches.len() != self.schema.columns.len() {
            return Err(self.wrong_column_count(batches.len()));
        }
        let count = batches.first().map_or(0, |batch| batch.sample_count());
        for ((column, pending), batch) in self.schema.columns.iter().zip(&self.pending).zip(batches) {
            if batch.sample_count() != count {
                let message = format!("the batch has {} samples; the first batch has {count}", batch.sample_count());
                return Err(Error::bad_argument(message).with_column(&column.name));
            }
            batch.check(pending.pushed_schema(column))?;
            pending.check_sizes(batch).map_err(|error| error.with_column(&column.name))?;
        }
        let total = u64::try_from(count).ok().and_then(|count| self.state.sample_count.checked_add(count));
        let total = total.filter(|&total| total <= limits::SAMPLES);
        total.ok_or_else(|| Error::over_limit(format!("a file holds at most {} samples", limits::SAMPLES)))
    }

    fn wrong_column_count(&self, found: usize) -> Error {
        let expected = self.schema.columns.len();
        Error::bad_argument(format!("expected values for {expected} columns, found {found}"))
    }

    fn check_usable(&self) -> Result<()> {
        if self.failed {
            return Err(Error::bad_argument(
                "the writer is unusable after an earlier error (the file ends with its last commit); use a new writer",
            ));
        }
        Ok(())
    }

    fn enqueue(&mut self, chunk: RawChunk) -> Result<()> {
        self.queued_bytes = self.queued_bytes.saturating_add(chunk.raw_bytes());
        self.queue.push(chunk);
        if self.queued_bytes >= self.pool.busy_bytes() {
            self.write_queue()?;
        }
        Ok(())
    }

    /// Writes a dictionary, which later chunks of the column use.
    fn write_zstd_dictionary(&mut self, column: usize, body: Vec<u8>) -> Result<()> {
        self.write_queue()?;
        if self.state.tables.len() == limits::TABLES {
            return Ok(());
        }
        self.failed = true; // until the table is written
        let table = self.write_table(column, &body)?;
        let zstd_dictionary = ZstdEncoderDictionary::new(table, Arc::new(ZstdDictionary::new(body)?))?;
        if let Some(column) = self.columns.get_mut(column) {
            column.zstd_dictionary = Some(Arc::new(zstd_dictionary));
        }
        self.failed = false;
        Ok(())
    }

    /// Writes a table. Returns its number.
    fn write_table(&mut self, column: usize, body: &[u8]) -> Result<u32> {
        let column = u32::try_from(column).map_err(|_| Error::internal("a table belongs to an unknown column"))?;
        if self.state.tables.len() >= limits::TABLES {
            return Err(Error::over_limit(format!("a file holds at most {} tables", limits::TABLES)));
        }
        let at = self.state.tables.partition_point(|other| other.column <= column);
        let last = at.checked_sub(1).and_then(|last| self.state.tables.get(last)).filter(|last| last.column == column);
        let table = last.map_or(0, |last| last.table.saturating_add(1));
        let offset = self.output.next(RegionKind::Table);
        let (header, entry) = TableHeader { column, table }.seal(self.output.file_id, offset, body)?;
        self.output.region(header, body)?;
        self.state.tables.insert(at, entry); // R-7.4: tables ascend
        Ok(table)
    }

    /// Encodes and writes the chunks in the queue.
    fn write_queue(&mut self) -> Result<()> {
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

    fn write_chunk(&mut self, mut chunk: EncodedChunk) -> Result<()> {
        let offset = self.output.next(RegionKind::Chunk);
        let header = chunk.header.seal(self.output.file_id, offset, &chunk.body)?;
        self.output.region(header, &chunk.body)?;
        let column = usize::try_from(chunk.header.column).ok();
        if let Some(index) = column.and_then(|column| self.indexes.get_mut(column)) {
            index.add(&chunk)?;
        }
        Ok(())
    }
}

/// A summary of a file that [`Writer::finish`] has completed.
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
    /// The sink, which has received the whole file.
    pub sink: K,
}

impl Writer<Stream<Vec<u8>>> {
    /// Completes a file in memory and returns its bytes, but not the summary that
    /// [`Writer::finish`] returns.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        Ok(self.finish()?.sink.0)
    }
}

impl<K: Sink> Writer<K> {
    /// Makes all samples pushed so far durable and readable. More samples can be pushed afterwards.
    ///
    /// A commit ends the current chunk of each column, even if it is small. So commit rarely, with
    /// many chunks per commit. A file has at most 65,536 commits, including the commit that
    /// [`Writer::finish`] makes.
    pub fn commit(&mut self) -> Result<()> {
        self.write_commit(false)
    }

    /// Commits for the last time and marks the file as finished.
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
        // the last commit that the format allows is reserved for `finish`
        let left = limits::CHUNK_RUNS - usize::from(!finished);
        if usize::try_from(self.state.commits).is_ok_and(|commits| commits >= left) {
            let message =
                format!("a file holds at most {} commits; finish this file and start another", limits::CHUNK_RUNS);
            return Err(Error::over_limit(message));
        }
        let rest: Vec<RawChunk> = self.pending.iter_mut().flat_map(PendingColumn::cut_rest).collect();
        rest.into_iter().try_for_each(|chunk| self.enqueue(chunk))?;
        self.write_queue()?;
        self.columns.iter_mut().for_each(ColumnEncoderState::reset_choices);
        self.failed = true; // until all is written
        self.write_and_sync(finished)?;
        self.failed = false;
        Ok(())
    }

    /// Writes the index and the footer, syncs, writes the trailer, syncs again, and publishes the
    /// file. See the module documentation.
    fn write_and_sync(&mut self, finished: bool) -> Result<()> {
        let mut content = ContentHasher::after(self.state.content_id);
        for (column, index) in (0..).zip(&mut self.indexes) {
            index.write(column, &mut self.output, &mut content)?;
        }
        let footer_offset = self.output.next(RegionKind::Footer);
        let mut footer = self.footer();
        let (header, body) = footer.seal(self.output.file_id, footer_offset, &self.schema_block, content)?;
        self.output.region(header, &body)?;
        self.output.sync()?;
        let offset = self.output.next(RegionKind::Trailer);
        let trailer = Trailer { finished, footer_offset, previous_trailer: self.state.last_trailer };
        self.output.region(trailer.header(self.output.file_id, offset)?, &[])?;
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
            content_id: self.state.content_id, // replaced when the footer is sealed
            commit: self.state.commits,
            flags: self.state.flags,
            sample_count: self.state.sample_count,
            tables: self.state.tables.clone(),
            columns: self.indexes.iter().map(|index| index.record.clone()).collect(),
        }
    }
}

/// Writes a file chunk by chunk. The chunks of a column must be in the order of their samples,
/// without gaps.
pub(crate) struct ChunkWriter<K: Sink>(Writer<K>);

impl<K: Sink> ChunkWriter<K> {
    /// Starts a file. `casts` has the cast facts of each column, recorded when its values were
    /// rounded.
    pub(crate) fn new(sink: K, schema: Schema, options: &WriterOptions, casts: Vec<Option<CastFacts>>) -> Result<Self> {
        let mut writer = Writer::new(sink, schema, options)?;
        let pending = std::mem::take(&mut writer.pending).into_iter().zip(casts);
        writer.pending = pending
            .map(|(pending, cast)| pending.after(0, &ColumnRecord { cast, ..ColumnRecord::default() }))
            .collect();
        Ok(Self(writer))
    }

    /// Writes the tables of a column that has none yet.
    pub(crate) fn tables(&mut self, column: usize, bodies: &[Vec<u8>]) -> Result<()> {
        bodies.iter().try_for_each(|body| self.0.write_table(column, body).map(|_| ()))
    }

    /// Writes an encoded chunk with this number of nulls.
    pub(crate) fn encoded(&mut self, chunk: EncodedChunk, null_count: u64) -> Result<()> {
        let column = usize::try_from(chunk.header.column).ok();
        if let Some(pending) = column.and_then(|column| self.0.pending.get_mut(column)) {
            // no more nulls than samples
            pending.total_nulls = pending.total_nulls.saturating_add(null_count);
        }
        self.0.write_chunk(chunk)
    }

    /// Encodes and writes a chunk.
    pub(crate) fn raw(&mut self, chunk: &RawChunk) -> Result<()> {
        let null_count = chunk.null_count;
        for encoded in self.0.pool.encode(&mut self.0.columns, slice::from_ref(chunk))? {
            self.encoded(encoded, null_count)?;
        }
        Ok(())
    }

    /// Commits the file. Every column must have `sample_count` samples.
    pub(crate) fn finish(mut self, sample_count: u64) -> Result<Summary<K>> {
        self.0.state.sample_count = sample_count;
        self.0.finish()
    }
}
