//! The files that samples are written to: one, or several one after the other.

use crate::format::CastFacts;
use crate::import::shard_files::ShardFiles;
use crate::write::Sink;
use crate::{ColumnBatch, Error, Result, Schema, Writer, WriterOptions};

/// A destination of samples.
pub(super) trait SampleTarget {
    /// Whether [`SampleTarget::take`] needs the bytes of rows.
    const COUNTS_BYTES: bool;

    fn schema(&self) -> &Schema;

    /// Returns the number of samples so far, in all files.
    fn sample_count(&self) -> u64;

    /// Returns how many of the next `rows` rows go into the same file, at least one. `bytes` has
    /// their raw bytes, or nothing if the target does not count them.
    fn take(&mut self, rows: usize, bytes: &[usize]) -> Result<usize>;

    /// Pushes samples. `casts` has the errors of columns that were cast before.
    fn push_batch(&mut self, columns: &[ColumnBatch<'_>], casts: &[Option<CastFacts>]) -> Result<()>;
}

impl<K: Sink> SampleTarget for Writer<K> {
    const COUNTS_BYTES: bool = false;

    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn sample_count(&self) -> u64 {
        self.sample_count()
    }

    fn take(&mut self, rows: usize, _: &[usize]) -> Result<usize> {
        Ok(rows)
    }

    fn push_batch(&mut self, columns: &[ColumnBatch<'_>], casts: &[Option<CastFacts>]) -> Result<()> {
        self.push_batch(columns)?;
        self.join_cast_facts(casts);
        Ok(())
    }
}

/// The ends of files with at most so many raw bytes each, or one sample.
pub(super) struct FileEnds {
    file_bytes: u64,
    /// The raw bytes that the current file can take; `None` before the first one.
    left: Option<u64>,
}

impl FileEnds {
    pub(super) fn new(file_bytes: u64) -> Self {
        Self { file_bytes, left: None }
    }

    /// Returns whether the next row begins a file, and how many of the next `rows` rows, at least
    /// one, go into the same file. `bytes` has their raw bytes.
    pub(super) fn take(&mut self, rows: usize, bytes: &[usize]) -> (bool, usize) {
        let of_row = |row: usize| bytes.get(row).and_then(|&bytes| u64::try_from(bytes).ok()).unwrap_or(0);
        let is_full = self.left.is_none_or(|left| of_row(0) > left);
        let mut left = self.left.filter(|_| !is_full).unwrap_or(self.file_bytes);
        let mut taken = 0;
        while taken < rows && (taken == 0 || of_row(taken) <= left) {
            left = left.saturating_sub(of_row(taken));
            taken += 1;
        }
        self.left = Some(left);
        (is_full, taken)
    }
}

/// Files with at most so many raw bytes each, or one sample.
pub(super) struct ShardWriter<'a, F: ShardFiles> {
    files: &'a mut F,
    ends: FileEnds,
    schema: Schema,
    options: WriterOptions,
    /// The file that is written.
    writer: Option<Writer<F::Sink>>,
    /// The samples of the files before it.
    finished_samples: u64,
    /// The number of files so far.
    begun: u64,
    /// The error of `files`, which ended the conversion.
    failed: Option<F::Error>,
}

impl<'a, F: ShardFiles> ShardWriter<'a, F> {
    pub(super) fn new(files: &'a mut F, shard_bytes: u64, schema: Schema, options: WriterOptions) -> Self {
        let ends = FileEnds::new(shard_bytes);
        Self { files, ends, schema, options, writer: None, finished_samples: 0, begun: 0, failed: None }
    }

    /// Finishes the last file.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.finished_samples = self.finished_samples.saturating_add(writer.sample_count());
        let finished = self.files.finished(writer.finish()?);
        self.own(finished)
    }

    /// Returns the error of `files` that ended the conversion, if one did.
    pub(super) fn failed(self) -> Option<F::Error> {
        self.failed
    }

    /// Keeps an error of `files`. Any other one ends the conversion in its place.
    fn own<T>(&mut self, result: std::result::Result<T, F::Error>) -> Result<T> {
        result.map_err(|error| {
            self.failed = Some(error);
            Error::cancelled()
        })
    }

    /// Begins a file, whose id depends on its number.
    fn begin(&mut self) -> Result<()> {
        let options = self.options.clone().shard(self.begun);
        self.begun = self.begun.saturating_add(1);
        let sink = self.files.begin();
        self.writer = Some(Writer::new(self.own(sink)?, self.schema.clone(), &options)?);
        Ok(())
    }
}

impl<F: ShardFiles> SampleTarget for ShardWriter<'_, F> {
    const COUNTS_BYTES: bool = true;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn sample_count(&self) -> u64 {
        let current = self.writer.as_ref().map_or(0, Writer::sample_count);
        self.finished_samples.saturating_add(current)
    }

    fn take(&mut self, rows: usize, bytes: &[usize]) -> Result<usize> {
        let (is_full, taken) = self.ends.take(rows, bytes);
        if is_full {
            self.finish()?;
            self.begin()?;
        }
        Ok(taken)
    }

    fn push_batch(&mut self, columns: &[ColumnBatch<'_>], casts: &[Option<CastFacts>]) -> Result<()> {
        match &mut self.writer {
            Some(writer) => SampleTarget::push_batch(writer, columns, casts),
            None => Ok(()), // `take` has begun one
        }
    }
}
