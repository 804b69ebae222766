//! The destination of converted rows: one file, or several consecutive files.
//!
//! If there are several files, each has at most a given number of raw bytes, or a single larger
//! sample. [`ShardBoundaries`] decides where a file ends, and uses only the raw sizes of rows. The
//! boundaries are therefore the same whether one process writes all files ([`ShardWriter`]), or a
//! plan [divides](divide) the rows among processes that write one file each.

use super::planned::PlannedSource;
use crate::bytes::le::u64_of;
use crate::error::check_cancelled;
use crate::format::CastFacts;
use crate::import::input::OpenInput;
use crate::import::options::Progress;
use crate::import::options::{PlannedInput, PlannedShard, ShardFiles, ShardPlan};
use crate::import::plan::input_column::ColumnRequest;
use crate::import::rows::fixed_row_bytes;
use crate::import::source::{PassRows, RowSource, check_unchanged, total_rows, with_source_path};
use crate::write::Sink;
use crate::{ColumnBatch, ColumnSchema, Error, Result, Schema, Writer, WriterOptions};
use std::iter::repeat_n;
use std::ops::{ControlFlow, Range};

/// A destination of samples.
pub(super) trait SampleTarget {
    /// Whether [`SampleTarget::take`] needs the sizes of rows.
    const NEEDS_ROW_BYTES: bool;

    fn schema(&self) -> &Schema;

    /// Returns the number of samples pushed so far, in all files.
    fn sample_count(&self) -> u64;

    /// Returns how many of the next `rows` rows go into the same file: at least one. `bytes` has
    /// the raw sizes of these rows, or is empty if the target does not need them.
    fn take(&mut self, rows: usize, bytes: &[usize]) -> Result<usize>;

    /// Pushes samples. `casts` has the cast facts of the columns whose values were cast before this
    /// call.
    fn push_batch(&mut self, columns: &[ColumnBatch<'_>], casts: &[Option<CastFacts>]) -> Result<()>;
}

impl<K: Sink> SampleTarget for Writer<K> {
    const NEEDS_ROW_BYTES: bool = false;

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
        self.merge_cast_facts(casts);
        Ok(())
    }
}

/// Decides where files end: each has at most a given number of raw bytes, or a single larger
/// sample.
struct ShardBoundaries {
    file_bytes: u64,
    /// The number of raw bytes that still fit in the current file; `None` before the first file.
    left: Option<u64>,
}

impl ShardBoundaries {
    fn new(file_bytes: u64) -> Self {
        Self { file_bytes, left: None }
    }

    /// Returns whether the next row starts a new file, and how many of the next `rows` rows go into
    /// the same file: at least one. `bytes` has the raw sizes of these rows.
    fn take(&mut self, rows: usize, bytes: &[usize]) -> (bool, usize) {
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

/// Writes consecutive files. Each has at most a given number of raw bytes, or a single larger
/// sample.
pub(super) struct ShardWriter<'a, F: ShardFiles> {
    files: &'a mut F,
    /// Refuses an output that is an input.
    check: &'a dyn Fn(&F::Sink) -> Result<()>,
    boundaries: ShardBoundaries,
    schema: Schema,
    options: WriterOptions,
    /// The writer of the current file.
    writer: Option<Writer<F::Sink>>,
    /// The number of samples in the files before the current one.
    finished_samples: u64,
    /// The number of files started so far.
    file_count: u64,
    /// The error that `files` returned, which ended the conversion.
    failed: Option<F::Error>,
}

impl<'a, F: ShardFiles> ShardWriter<'a, F> {
    pub(super) fn new(
        files: &'a mut F,
        check: &'a dyn Fn(&F::Sink) -> Result<()>,
        shard_bytes: u64,
        schema: Schema,
        options: WriterOptions,
    ) -> Self {
        let boundaries = ShardBoundaries::new(shard_bytes);
        Self {
            files,
            check,
            boundaries,
            schema,
            options,
            writer: None,
            finished_samples: 0,
            file_count: 0,
            failed: None,
        }
    }

    /// Finishes the last file.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.finished_samples = self.finished_samples.saturating_add(writer.sample_count());
        let finished = self.files.finished(writer.finish()?);
        self.store_error(finished)
    }

    /// Returns the error that `files` returned and that ended the conversion, if any.
    pub(super) fn failed(self) -> Option<F::Error> {
        self.failed
    }

    /// Stores an error that `files` returned. Returns a cancellation instead, which ends the
    /// conversion.
    fn store_error<T>(&mut self, result: std::result::Result<T, F::Error>) -> Result<T> {
        result.map_err(|error| {
            self.failed = Some(error);
            Error::cancelled()
        })
    }

    /// Starts a file. The file id depends on the number of the file.
    fn begin(&mut self) -> Result<()> {
        let options = self.options.clone().shard(self.file_count);
        self.file_count = self.file_count.saturating_add(1);
        let sink = self.files.begin();
        let sink = self.store_error(sink)?;
        (self.check)(&sink)?;
        self.writer = Some(Writer::new(sink, self.schema.clone(), &options)?);
        Ok(())
    }
}

impl<F: ShardFiles> SampleTarget for ShardWriter<'_, F> {
    const NEEDS_ROW_BYTES: bool = true;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn sample_count(&self) -> u64 {
        let current = self.writer.as_ref().map_or(0, Writer::sample_count);
        self.finished_samples.saturating_add(current)
    }

    fn take(&mut self, rows: usize, bytes: &[usize]) -> Result<usize> {
        let (is_full, taken) = self.boundaries.take(rows, bytes);
        if is_full {
            self.finish()?;
            self.begin()?;
        }
        Ok(taken)
    }

    fn push_batch(&mut self, columns: &[ColumnBatch<'_>], casts: &[Option<CastFacts>]) -> Result<()> {
        match &mut self.writer {
            Some(writer) => SampleTarget::push_batch(writer, columns, casts),
            None => Ok(()), // unreachable: `take` has started a file
        }
    }
}

/// The number of rows of equal size that are divided at a time.
const EQUAL_ROWS: u64 = 65_536;

/// Divides the rows of inputs among files that each have at most `shard_bytes` raw bytes, or a
/// single larger sample. `options` must contain the origin of all inputs.
pub(super) fn divide(
    inputs: &[&OpenInput],
    planned: &[PlannedSource<'_>],
    (schema, shard_bytes): (Schema, u64),
    options: &WriterOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ShardPlan> {
    let sources: Vec<&dyn RowSource> = planned.iter().map(|planned| planned.source).collect();
    let mut division = Division {
        boundaries: ShardBoundaries::new(shard_bytes),
        files: Vec::new(),
        rows: 0,
        total: total_rows(&sources),
        progress,
    };
    let mut divided = Vec::new();
    for (input, planned) in inputs.iter().zip(planned) {
        let before = division.rows;
        division.source(planned, &schema).map_err(|error| with_source_path(error, planned.source))?;
        let rows = division.rows.saturating_sub(before);
        divided.push(PlannedInput { path: input.name().to_path_buf(), rows, digest: input.digest() });
    }
    check_unchanged(&sources)?;
    let files = (0..).zip(division.files);
    let shards = files.map(|(number, rows)| {
        let file_id = options.clone().shard(number).file_id_of(&schema)?;
        Ok(PlannedShard { rows, file_id })
    });
    let shards = shards.collect::<Result<_>>()?;
    Ok(ShardPlan { inputs: divided, schema, shards })
}

/// A division in progress.
struct Division<'a> {
    boundaries: ShardBoundaries,
    /// The range of rows of each file so far.
    files: Vec<Range<u64>>,
    /// The number of rows divided so far.
    rows: u64,
    total: Option<u64>,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Division<'_> {
    /// Divides the rows of a source. Columns whose samples all have the same size are not read. If
    /// there are no other columns and the source does not state its number of rows, one column is
    /// read to count the rows.
    fn source(&mut self, planned: &PlannedSource<'_>, schema: &Schema) -> Result<()> {
        let fixed: Vec<Option<usize>> = schema.columns.iter().map(fixed_row_bytes).collect();
        let equal = fixed.iter().flatten().fold(0, |sum, bytes| bytes.saturating_add(sum));
        let are_equal = !fixed.contains(&None);
        if let Some(rows) = planned.source.row_count().filter(|_| are_equal) {
            return self.equal_rows(rows, equal);
        }
        let is_read = |(number, bytes): (usize, &Option<usize>)| {
            (if are_equal { number == 0 } else { bytes.is_none() }).then_some(number)
        };
        let read: Vec<usize> = fixed.iter().enumerate().filter_map(is_read).collect();
        let columns = || read.iter().filter_map(|&number| planned.columns.get(number));
        let positions = read.iter().filter_map(|&number| planned.positions.get(number));
        let request: Vec<ColumnRequest> =
            columns().zip(positions).map(|(column, &position)| column.request(position)).collect();
        let schemas: Vec<ColumnSchema> =
            read.iter().filter_map(|&number| schema.columns.get(number).cloned()).collect();
        for batch in planned.source.batches(&request, PassRows::All)? {
            let batch = batch?;
            let mut bytes = if are_equal { vec![0; batch.row_count] } else { batch.row_bytes(&schemas, columns()) };
            bytes.iter_mut().for_each(|bytes| *bytes = bytes.saturating_add(equal));
            self.rows(&bytes)?;
        }
        Ok(())
    }

    fn equal_rows(&mut self, mut rows: u64, bytes: usize) -> Result<()> {
        while rows > 0 {
            let count = rows.min(EQUAL_ROWS);
            let bytes: Vec<usize> = repeat_n(bytes, usize::try_from(count).unwrap_or(0)).collect();
            self.rows(&bytes)?;
            rows = rows.saturating_sub(count);
        }
        Ok(())
    }

    /// Divides rows that have these raw sizes.
    fn rows(&mut self, mut bytes: &[usize]) -> Result<()> {
        while !bytes.is_empty() {
            let (begins, count) = self.boundaries.take(bytes.len(), bytes);
            if begins {
                self.files.push(self.rows..self.rows);
            }
            self.rows = self.rows.saturating_add(u64_of(count));
            if let Some(file) = self.files.last_mut() {
                file.end = self.rows;
            }
            bytes = bytes.get(count..).unwrap_or(&[]);
        }
        check_cancelled((self.progress)(Progress::Scanning { done: self.rows, total: self.total }))
    }
}
