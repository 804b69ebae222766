//! Repacking writes the same samples to new data files (chapter 9 of `MANIFEST.md`).
//!
//! The samples of each group are read in batches that fit in the processor's cache
//! ([`GroupReader`]), and each batch is written to the open file ([`Repacker`]). A file ends when
//! it is full, or before a group with different columns. If a file is full in the middle of a
//! batch, the samples that still fit are read again and written. So the new files depend only on
//! the samples, not on the files that held them before.

use super::Changes;
use crate::dataset::listed_file::{self, FileFacts, Listing};
use crate::dataset::store::DataFile;
use crate::error::{DataError, Result};
use crate::manifest::{Group, Layout, join};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::facts::CastFacts;
use tensilo::{Column, ColumnBatch, ColumnBuffer, ColumnSchema, Cursor, Error, Schema, Writer, WriterOptions};

/// The approximate maximum size of a batch in bytes. A batch of this size fits in the processor's
/// cache.
const BATCH_BYTES: u64 = 2 << 20;

impl Changes {
    /// Writes all samples to new data files. Each file has at most `shard_bytes` raw bytes, but at
    /// least one sample. Samples keep their indices, so a training job continues with the same
    /// batches.
    ///
    /// Raw bytes are counted before encoding. The files have the current columns of the dataset,
    /// under their current names; dropped columns are not copied. A file also ends where the set of
    /// columns with values changes, so no nulls are written for a column that was added without
    /// values.
    ///
    /// No value is rounded again. The cast facts of a new file combine the facts of all files that
    /// its samples come from: the largest errors, and the sums of the counts. They are upper bounds
    /// for its own samples.
    ///
    /// The same dataset and options produce the same files, whatever the number of threads. The id
    /// of a file is derived from the dataset id, the version and the number of the file; the origin
    /// in `options` is ignored. `progress` is called with the number of samples written so far.
    ///
    /// Fails if some samples have no values in any remaining column. After an error, drop the
    /// changes: this removes the files that were written.
    ///
    /// Cost: reads and writes all samples once. Needs a few MiB of memory for each column, or the
    /// size of its largest chunk if that is larger.
    pub fn repack(
        &mut self,
        shard_bytes: u64,
        options: &WriterOptions,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut files = Repacker { changes: self, shard_bytes, options, open: None, done: Vec::new(), copied: 0 };
        check_cancelled(progress(0))?;
        for page in 0..files.changes.page_count() {
            for group in files.changes.groups_of_page(page)? {
                files.copy(&group, progress)?;
            }
        }
        files.finish()?;
        let files = files.done;
        self.replace_groups(files);
        Ok(())
    }

    /// Opens the files of a group, whose first sample is sample `first` of the dataset. A batch has
    /// at most about `batch_bytes` bytes.
    fn samples_of(&self, group: &Group, first: u64, batch_bytes: u64) -> Result<GroupReader> {
        let mut found = Vec::new();
        for file in &group.files {
            let Some(layout) = self.version.layouts.get(file.layout) else { continue };
            let path = join(&self.folder, &file.path);
            let listing = Listing { file, samples: group.samples, layout, columns: &self.version.columns };
            let reader = listed_file::open(&self.opener(), &path, &listing, None)?;
            for (name, id) in layout {
                // `None` if the column was dropped
                let Some(number) = self.version.columns.iter().position(|column| column.id == *id) else { continue };
                found.push((number, path.clone(), reader.column(name)?));
            }
        }
        if found.is_empty() {
            let end = first.saturating_add(group.samples);
            let message =
                format!("samples {first}..{end} have no values in any remaining column; add or keep one with values");
            return Err(DataError::BadArgument(message));
        }
        found.sort_unstable_by_key(|(number, ..)| *number);
        Ok(GroupReader {
            samples: group.samples,
            batch_bytes: batch_bytes.min(BATCH_BYTES),
            numbers: found.iter().map(|(number, ..)| *number).collect(),
            casts: found.iter().map(|(.., column)| column.facts().cast).collect(),
            columns: found.into_iter().map(|(_, path, column)| GroupColumn::new(path, column)).collect(),
            start: 0,
            end: 0,
        })
    }
}

/// Writes data files, one after another.
struct Repacker<'a> {
    changes: &'a mut Changes,
    shard_bytes: u64,
    options: &'a WriterOptions,
    /// The file that is being written. It has at least one sample, or gets its first one next.
    open: Option<ShardWriter>,
    /// The complete files.
    done: Vec<(FileFacts, Layout)>,
    /// The number of samples written so far.
    copied: u64,
}

/// A data file that is being written.
struct ShardWriter {
    writer: Writer<DataFile>,
    /// The indices of its columns in the dataset.
    columns: Vec<usize>,
    /// The number of raw bytes that still fit into the file.
    left: u64,
    /// Whether the file has the cast facts of the current group.
    has_facts: bool,
}

impl Repacker<'_> {
    fn copy(&mut self, group: &Group, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        // a batch is limited to the size of a file, because it is read again where a file ends
        let mut source = self.changes.samples_of(group, self.copied, self.shard_bytes)?;
        self.begin_group(&source)?;
        while source.read_next()? > 0 {
            let count = self.make_room(&source)?;
            source.truncate(count)?;
            self.push(&source)?;
            self.copied = self.copied.saturating_add(source.batch_samples());
            check_cancelled(progress(self.copied))?;
        }
        Ok(())
    }

    /// Completes the open file if the group has different columns.
    fn begin_group(&mut self, source: &GroupReader) -> Result<()> {
        match &mut self.open {
            Some(open) if open.columns == source.numbers() => open.has_facts = false,
            _ => self.finish()?,
        }
        Ok(())
    }

    /// Returns how many samples of the batch go into the open file, at least one. If none fits,
    /// starts a new file.
    fn make_room(&mut self, source: &GroupReader) -> Result<usize> {
        let fitting_samples = self.open.as_ref().map_or(0, |open| source.fitting_samples(open.left));
        if fitting_samples > 0 {
            return Ok(fitting_samples);
        }
        self.finish()?;
        self.begin(source)?;
        Ok(source.fitting_samples(self.shard_bytes).max(1))
    }

    fn begin(&mut self, source: &GroupReader) -> Result<()> {
        let all = self.changes.schema();
        let columns = source.numbers().iter().filter_map(|&number| all.columns.get(number).cloned());
        let schema = Schema { columns: columns.collect(), metadata: all.metadata };
        let options = self.options.clone().origin(self.changes.origin(self.done.len()));
        let sink = self.changes.next_file()?;
        let writer = Writer::from_rounded(sink, schema, &options, source.casts())?;
        let columns = source.numbers().to_vec();
        self.open = Some(ShardWriter { writer, columns, left: self.shard_bytes, has_facts: true });
        Ok(())
    }

    /// Writes the batch.
    fn push(&mut self, source: &GroupReader) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) }; // `make_room` has started one
        if !std::mem::replace(&mut open.has_facts, true) {
            open.writer.merge_cast_facts(source.casts());
        }
        open.left = open.left.saturating_sub(source.raw_bytes());
        Ok(open.writer.push_batch(&source.batches())?)
    }

    /// Completes the open file.
    fn finish(&mut self) -> Result<()> {
        let Some(ShardWriter { writer, columns, .. }) = self.open.take() else { return Ok(()) };
        let file = writer.finish()?;
        let facts = self.changes.facts(file.sink.path())?;
        self.done.push((facts, self.changes.layout_of(&columns)));
        Ok(())
    }
}

fn check_cancelled(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(DataError::File(Error::cancelled())),
    }
}

/// Reads the columns of a group that the dataset still has, batch by batch.
struct GroupReader {
    samples: u64,
    /// The approximate size of a batch.
    batch_bytes: u64,
    /// In the order of the dataset.
    columns: Vec<GroupColumn>,
    numbers: Vec<usize>,
    casts: Vec<Option<CastFacts>>,
    /// The range of the samples in the batch, counted from the start of the group.
    start: u64,
    end: u64,
}

struct GroupColumn {
    path: PathBuf,
    column: Column,
    cursor: Cursor,
    buffer: ColumnBuffer,
}

impl GroupReader {
    /// Returns the indices of the columns in the dataset, in ascending order.
    fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// Returns the cast facts of all columns.
    fn casts(&self) -> &[Option<CastFacts>] {
        &self.casts
    }

    /// Reads the next batch, and returns its number of samples, or 0 after the last batch.
    fn read_next(&mut self) -> Result<u64> {
        self.start = self.end;
        if self.start < self.samples {
            self.end = self.batch_end()?;
            self.read()?;
        }
        Ok(self.batch_samples())
    }

    /// Cuts the batch to its first `count` samples, because a file ends there. Reads these samples
    /// again.
    fn truncate(&mut self, count: usize) -> Result<()> {
        let end = u64::try_from(count).map_or(self.end, |count| self.start.saturating_add(count).min(self.end));
        if end < self.end {
            self.end = end;
            self.read()?;
        }
        Ok(())
    }

    /// Returns the number of samples of the batch.
    fn batch_samples(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns how many samples of the batch fit into `max_bytes` raw bytes.
    fn fitting_samples(&self, max_bytes: u64) -> usize {
        let (mut fit, mut too_many) = (0, self.count().saturating_add(1));
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            *(if self.raw_bytes_of(middle) <= max_bytes { &mut fit } else { &mut too_many }) = middle;
        }
        fit
    }

    /// Returns the raw size of the batch in bytes.
    fn raw_bytes(&self) -> u64 {
        self.raw_bytes_of(self.count())
    }

    /// Returns the batch in the form that a writer expects.
    fn batches(&self) -> Vec<ColumnBatch<'_>> {
        self.columns.iter().map(|column| column.buffer.as_batch()).collect()
    }

    fn count(&self) -> usize {
        self.columns.first().map_or(0, |column| column.buffer.sample_count())
    }

    fn raw_bytes_of(&self, count: usize) -> u64 {
        self.columns.iter().map(|column| raw_bytes(&column.buffer, count)).fold(0, u64::saturating_add)
    }

    fn read(&mut self) -> Result<()> {
        let range = self.start..self.end;
        self.columns.iter_mut().try_for_each(|column| {
            let read = column.cursor.range_into(range.clone(), &mut column.buffer);
            read.map_err(|error| located(error, &column.path))
        })
    }

    /// Returns the end of the batch that begins at `start`. The batch has at least one sample, and
    /// at most as many as fit in `batch_bytes` if only fixed columns are counted. The other columns
    /// have equal shares of `batch_bytes`: if one of them fills its share earlier, the batch ends
    /// with the chunk that fills it.
    fn batch_end(&self) -> Result<u64> {
        let (fixed, varying): (Vec<_>, Vec<_>) =
            self.columns.iter().partition(|column| fixed_bytes(column.column.schema()).is_some());
        let sample_bytes = fixed.iter().filter_map(|column| fixed_bytes(column.column.schema()));
        let sample_bytes = sample_bytes.fold(0, u64::saturating_add);
        let mut end = self.samples.min(self.start.saturating_add((self.batch_bytes / sample_bytes.max(1)).max(1)));
        let column_bytes = self.batch_bytes / u64::try_from(varying.len().max(1)).unwrap_or(u64::MAX);
        let column_bytes = column_bytes.max(1); // at least one chunk of each column
        for GroupColumn { path, column, .. } in varying {
            let (mut next, mut bytes) = (self.start, 0_u64);
            while next < end && bytes < column_bytes {
                let chunk = column.chunk_of(next).map_err(|error| located(error, path))?;
                next = chunk.samples.end;
                bytes = bytes.saturating_add(chunk.raw_bytes);
            }
            end = end.min(next);
        }
        Ok(end)
    }
}

impl GroupColumn {
    fn new(path: PathBuf, column: Column) -> Self {
        Self { path, cursor: column.cursor(), column, buffer: ColumnBuffer::new() }
    }
}

/// Returns the size in bytes of a sample of a fixed column, or `None` for other columns.
fn fixed_bytes(schema: &ColumnSchema) -> Option<u64> {
    let is_fixed = schema.levels.is_empty() && !schema.shape.is_ragged();
    is_fixed.then(|| item_bytes(schema.shape.inner_elements(), schema.dtype))
}

fn item_bytes(elements: Option<u64>, dtype: tensilo::DType) -> u64 {
    let width = u64::try_from(dtype.element_bytes()).unwrap_or(u64::MAX);
    elements.unwrap_or(u64::MAX).saturating_mul(width)
}

/// Returns the raw size in bytes of the elements of the first `count` samples of a buffer.
fn raw_bytes(buffer: &ColumnBuffer, count: usize) -> u64 {
    let offset = |offsets: &[u64], at: u64| usize::try_from(at).ok().and_then(|at| offsets.get(at)).copied();
    let samples = u64::try_from(count).unwrap_or(u64::MAX);
    let items = buffer.lists().iter().fold(samples, |at, lists| offset(lists.offsets(), at).unwrap_or(at));
    if buffer.shape().is_ragged() {
        return item_bytes(offset(buffer.offsets(), items), buffer.dtype());
    }
    items.saturating_mul(item_bytes(buffer.shape().inner_elements(), buffer.dtype()))
}

fn located(error: tensilo::Error, path: &Path) -> DataError {
    DataError::File(error.with_path(path))
}
