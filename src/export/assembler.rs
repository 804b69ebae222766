//! Record batches, assembled from the parts of a table.

use super::column::ColumnBuilder;
use super::elements::exported_bytes;
use super::exported_part::ExportedPart;
use super::field::Target;
use super::restore::{ExportedColumn, Output, Outputs, TypeChoice};
use super::sample_size::SampleSize;
use crate::arrow_type::{DTYPE, in_arrow};
use crate::format::CastFacts;
use crate::{ColumnBuffer, ColumnSchema, DType, Error, Result, Schema};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Fields, SchemaRef};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Samples of a batch, at most.
const BATCH_SAMPLES: u64 = 65_536;
/// Bytes of the elements, offsets and shapes of a batch, at most, unless one sample has more.
const BATCH_BYTES: u64 = 16 << 20;

/// A batch that is being filled. Parts of a table can end inside one.
pub(super) struct BatchAssembler {
    path: Option<PathBuf>,
    schema: SchemaRef,
    columns: Vec<ColumnSchema>,
    builders: Vec<ColumnBuilder>,
    /// The fields that the columns become.
    outputs: Vec<Output>,
    ragged: Vec<RaggedColumn>,
    /// The bytes of a sample in all columns of a fixed shape.
    fixed_bytes: u64,
    nulls: ColumnBuffer,
    /// The samples in the batches before this one, and in this one.
    samples: Range<u64>,
    budget: Budget,
    batch_samples: u64,
    batch_bytes: u64,
}

/// A column whose samples are measured one by one.
struct RaggedColumn {
    index: usize,
    size: SampleSize,
}

impl BatchAssembler {
    /// Plans the export of columns, which are named by their numbers. `casts` are the facts of
    /// their casts, as far as they are to be told.
    pub(super) fn new(
        table: &Schema,
        path: Option<&Path>,
        columns: &[usize],
        casts: &[Option<CastFacts>],
        choice: TypeChoice,
    ) -> Result<Self> {
        let columns = columns.iter().filter_map(|&number| table.columns.get(number));
        let (columns, pairs): (Vec<ColumnSchema>, Vec<bool>) = columns
            .map(|column| {
                let mut unmarked = column.clone();
                unmarked.metadata.remove(DTYPE); // only the export's own marks are believed
                Ok((in_arrow(&unmarked)?.into_owned(), column.dtype == DType::Complex64))
            })
            .collect::<Result<Vec<_>>>()
            .map_err(|error| in_table(path, error))?
            .into_iter()
            .unzip();
        let cast = |index: usize| casts.get(index).copied().flatten();
        let exported: Vec<ExportedColumn<'_>> =
            columns.iter().enumerate().map(|(index, schema)| ExportedColumn { schema, cast: cast(index) }).collect();
        let plan = Outputs::of(&exported, &table.columns, &table.metadata, choice);
        let path = path.map(Path::to_path_buf);
        let plan = plan.map_err(|error| in_table(path.as_deref(), error))?;
        let fields: Fields = plan.all.iter().map(|output| output.field().clone()).collect();
        let mut this = Self {
            path,
            schema: Arc::new(arrow_schema::Schema::new_with_metadata(fields, plan.metadata)),
            columns: Vec::new(),
            builders: Vec::new(),
            outputs: plan.all,
            ragged: Vec::new(),
            fixed_bytes: 0,
            nulls: ColumnBuffer::new(),
            samples: 0..0,
            budget: Budget::new(BATCH_BYTES),
            batch_samples: BATCH_SAMPLES,
            batch_bytes: BATCH_BYTES,
        };
        let planned = columns.into_iter().zip(plan.targets).zip(pairs);
        planned.for_each(|((column, target), is_pairs)| this.add(column, target, is_pairs));
        Ok(this)
    }

    /// Adds a column. `is_pairs` tells that two of its elements are one in the table.
    fn add(&mut self, schema: ColumnSchema, target: Target, is_pairs: bool) {
        match SampleSize::new(&schema, &target) {
            Some(size) => self.ragged.push(RaggedColumn { index: self.builders.len(), size }),
            None => {
                let elements = target.shape.inner_elements().unwrap_or(u64::MAX);
                let bytes = elements.saturating_mul(exported_bytes(target.dtype, &target.element));
                self.fixed_bytes = self.fixed_bytes.saturating_add(bytes);
            }
        }
        self.builders.push(ColumnBuilder::new(&schema, target, is_pairs));
        self.columns.push(schema);
    }

    /// Sets the number of samples that a batch has at most, at least 1.
    pub(super) fn set_batch_samples(&mut self, samples: u64) {
        self.batch_samples = samples.max(1);
    }

    /// Sets the bytes that a batch has at most, unless a single sample has more.
    pub(super) fn set_batch_bytes(&mut self, bytes: u64) {
        self.batch_bytes = bytes;
        self.budget = Budget::new(bytes);
    }

    /// Returns the number of samples in the batches that were taken.
    pub(super) fn position(&self) -> u64 {
        self.samples.start
    }

    pub(super) fn arrow_schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the next batch that is full; `None` if the part ends before.
    pub(super) fn next_full(&mut self, part: &mut ExportedPart) -> Result<Option<RecordBatch>> {
        while !self.is_full() {
            if part.next >= part.end {
                return Ok(None);
            }
            let run = part.next..self.run_end(part)?;
            self.append(part, run.clone())?;
            part.next = run.end;
            self.samples.end = self.samples.end.saturating_add(run.end.saturating_sub(run.start));
        }
        self.take().map(Some)
    }

    /// Returns the batch that is not full, after the last part; `None` if it has no samples.
    pub(super) fn rest(&mut self) -> Result<Option<RecordBatch>> {
        (self.count() > 0).then(|| self.take()).transpose()
    }

    fn count(&self) -> u64 {
        self.samples.end.saturating_sub(self.samples.start)
    }

    fn is_full(&self) -> bool {
        self.budget.is_full || self.count() >= self.batch_samples
    }

    /// Returns the end of the next samples that fit the budget and are in one chunk of each ragged
    /// column. At least one sample unless the batch is full.
    fn run_end(&mut self, part: &mut ExportedPart) -> Result<u64> {
        let room = self.batch_samples.saturating_sub(self.count());
        let mut run = part.next..part.end.min(part.next.saturating_add(room));
        for ragged in &self.ragged {
            part.limit_to_chunk(ragged.index, &mut run)?;
        }
        for i in run.clone() {
            let mut bytes = self.fixed_bytes;
            for ragged in &self.ragged {
                bytes = bytes.saturating_add(part.measure(ragged.index, &ragged.size, i)?);
            }
            if !self.budget.take(bytes) {
                return Ok(i);
            }
        }
        Ok(run.end)
    }

    /// Reads samples into all builders, one column after the other.
    fn append(&mut self, part: &mut ExportedPart, samples: Range<u64>) -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let count = usize::try_from(samples.end.saturating_sub(samples.start)).unwrap_or(usize::MAX);
        for (index, (builder, column)) in self.builders.iter_mut().zip(&self.columns).enumerate() {
            let appended = match part.read(index, samples.clone())? {
                Some(buffer) => builder.append(buffer),
                None => self.nulls.fill_with_nulls(column, count).and_then(|()| builder.append(&self.nulls)),
            };
            if let Err(error) = appended {
                return Err(part.place(index, error.with_column(builder.name()).with_samples(samples)));
            }
        }
        Ok(())
    }

    /// Takes the batch out of the builders.
    fn take(&mut self) -> Result<RecordBatch> {
        let samples = self.samples.clone();
        let place = |error: Error| in_table(self.path.as_deref(), error.with_samples(samples.clone()));
        let columns = self.builders.iter_mut().map(|builder| {
            let array = builder.take();
            array.map_err(|error| place(error.with_column(builder.name())))
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let arrays = self.outputs.iter_mut().map(|output| {
            let name = output.node.name().to_owned();
            output.array(&columns).map_err(|error| place(error.with_column(&name)))
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX); // they are in memory
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let batch =
            batch.map_err(|error| place(Error::bad_argument(format!("Arrow cannot hold the samples: {error}"))));
        self.samples.start = self.samples.end;
        self.budget = Budget::new(self.batch_bytes);
        batch
    }
}

/// Adds the path of the table to an error.
fn in_table(path: Option<&Path>, error: Error) -> Error {
    match path {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// The bytes that may still go into a batch.
struct Budget {
    bytes: u64,
    is_empty: bool,
    is_full: bool,
}

impl Budget {
    fn new(bytes: u64) -> Self {
        Self { bytes, is_empty: true, is_full: false }
    }

    /// Takes the bytes of a sample, and returns whether it fits. The first always does.
    fn take(&mut self, bytes: u64) -> bool {
        self.is_full = bytes > self.bytes && !self.is_empty;
        if !self.is_full {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.is_empty = false;
        }
        !self.is_full
    }
}
