//! The samples of a group, read in their order.

use super::changes::Changes;
use super::listed_reader::{self, Listing};
use crate::error::{DataError, Result};
use crate::manifest::{Group, join};
use std::path::{Path, PathBuf};
use tensilo::facts::CastFacts;
use tensilo::{Column, ColumnBatch, ColumnBuffer, ColumnSchema, Cursor};

/// The most bytes of a batch, about: so few that it stays in the processor's cache.
const BATCH_BYTES: u64 = 2 << 20;

/// All columns of a group that the dataset has, and the batch that was read last.
pub(super) struct GroupSamples {
    samples: u64,
    /// The bytes of a batch, about.
    batch_bytes: u64,
    /// By their numbers in the dataset.
    columns: Vec<GroupColumn>,
    numbers: Vec<usize>,
    casts: Vec<Option<CastFacts>>,
    /// The batch.
    start: u64,
    end: u64,
}

struct GroupColumn {
    path: PathBuf,
    column: Column,
    cursor: Cursor,
    buffer: ColumnBuffer,
}

impl Changes {
    /// Opens the files of a group, whose first sample is `first` in the dataset. Batches have about
    /// `batch_bytes`, or less.
    pub(super) fn samples_of(&self, group: &Group, first: u64, batch_bytes: u64) -> Result<GroupSamples> {
        let mut found = Vec::new();
        for file in &group.files {
            let Some(layout) = self.version.layouts.get(file.layout) else { continue };
            let path = join(&self.folder, &file.path);
            let listing = Listing { file, samples: group.samples, layout, columns: &self.version.columns };
            let reader = listed_reader::open(&self.opener(), &path, &listing, None)?;
            for (name, id) in layout {
                // else it was dropped
                let Some(number) = self.version.columns.iter().position(|column| column.id == *id) else { continue };
                found.push((number, path.clone(), reader.column(name)?));
            }
        }
        if found.is_empty() {
            let end = first.saturating_add(group.samples);
            let message = format!("samples {first}..{end}: no column with values is left; add one, or keep one, first");
            return Err(DataError::BadArgument(message));
        }
        found.sort_unstable_by_key(|(number, ..)| *number);
        Ok(GroupSamples {
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

impl GroupSamples {
    /// Returns the numbers of the columns in the dataset, in ascending order.
    pub(super) fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// Returns the facts of the casts of all columns.
    pub(super) fn casts(&self) -> &[Option<CastFacts>] {
        &self.casts
    }

    /// Reads the samples after those of the batch, and returns how many; 0 after the last.
    pub(super) fn read_next(&mut self) -> Result<u64> {
        self.start = self.end;
        if self.start < self.samples {
            self.end = self.batch_end()?;
            self.read()?;
        }
        Ok(self.batch_samples())
    }

    /// Leaves only the first samples of the batch, which are read once more: a file ends there.
    pub(super) fn shorten(&mut self, count: usize) -> Result<()> {
        let end = u64::try_from(count).map_or(self.end, |count| self.start.saturating_add(count).min(self.end));
        if end < self.end {
            self.end = end;
            self.read()?;
        }
        Ok(())
    }

    /// Returns the number of samples of the batch.
    pub(super) fn batch_samples(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns how many samples of the batch have at most so many raw bytes.
    pub(super) fn fitting(&self, most: u64) -> usize {
        let (mut fit, mut too_many) = (0, self.count().saturating_add(1));
        while too_many - fit > 1 {
            let middle = fit + (too_many - fit) / 2;
            *(if self.raw_bytes_of(middle) <= most { &mut fit } else { &mut too_many }) = middle;
        }
        fit
    }

    /// Returns the raw bytes of the batch.
    pub(super) fn raw_bytes(&self) -> u64 {
        self.raw_bytes_of(self.count())
    }

    /// Returns the batch as it is pushed into a writer.
    pub(super) fn batches(&self) -> Vec<ColumnBatch<'_>> {
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

    /// Returns the end of a batch: as many samples of fixed shapes and as many chunks of others as
    /// fit, at least one.
    fn batch_end(&self) -> Result<u64> {
        let (fixed, varying): (Vec<_>, Vec<_>) =
            self.columns.iter().partition(|column| fixed_bytes(column.column.schema()).is_some());
        let sample_bytes = fixed.iter().filter_map(|column| fixed_bytes(column.column.schema()));
        let sample_bytes = sample_bytes.fold(0, u64::saturating_add);
        let mut end = self.samples.min(self.start.saturating_add((self.batch_bytes / sample_bytes.max(1)).max(1)));
        let column_bytes = self.batch_bytes / u64::try_from(varying.len().max(1)).unwrap_or(u64::MAX);
        let column_bytes = column_bytes.max(1); // a chunk of each
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

/// Returns the bytes of a sample of a fixed shape that is no list.
fn fixed_bytes(schema: &ColumnSchema) -> Option<u64> {
    let is_fixed = schema.levels.is_empty() && !schema.shape.is_ragged();
    is_fixed.then(|| item_bytes(schema.shape.inner_elements(), schema.dtype))
}

fn item_bytes(elements: Option<u64>, dtype: tensilo::DType) -> u64 {
    let width = u64::try_from(dtype.element_bytes()).unwrap_or(u64::MAX);
    elements.unwrap_or(u64::MAX).saturating_mul(width)
}

/// Returns the raw bytes of the first `count` samples of a buffer: those of their elements.
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
