//! The samples of a file as Arrow record batches, in memory.

use super::column::ColumnBuilder;
use super::elements::exported_bytes;
use super::field::{Parts, Target};
use super::options::TensorForm;
use super::restore::{ExportedColumn, Output, Outputs, TypeChoice};
use super::sample_size::SampleSize;
use super::{dictionary_order, selected};
use crate::error::Advice;
use crate::{Column, ColumnBuffer, ColumnSchema, Error, Reader, Result, Rows};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, Fields, Schema, SchemaRef};
use std::ops::Range;
use std::sync::Arc;

/// Samples of a batch, at most.
const BATCH_SAMPLES: u64 = 65_536;
/// Bytes of the elements, offsets and shapes of a batch, at most, unless one sample has more.
const BATCH_BYTES: u64 = 16 << 20;

/// The samples of columns (all if `None`) as Arrow record batches, with the types that [the
/// module](super) lists. The name of a struct stands for all its fields. A field of a struct brings
/// the nulls of the struct with it.
///
/// Batches have at most 65,536 samples, and at most 16 MiB unless a single sample has more. Cost:
/// each chunk is decoded once and copied once. Columns that were ordered dictionaries are read once
/// before, to know whether samples have values that are not among them.
pub fn batches(reader: &Reader, columns: Option<&[String]>) -> Result<Batches> {
    let choice =
        TypeChoice { parts: Parts::Required, tensors: TensorForm::AsImported, stored_types: false, ordered: true };
    select(reader, columns, choice)
}

pub(super) fn select(reader: &Reader, columns: Option<&[String]>, choice: TypeChoice) -> Result<Batches> {
    let columns = selected::columns(reader, columns)?;
    let may_be_ordered = choice.ordered && !choice.stored_types && reader.commit_count() <= 1;
    let ordered = may_be_ordered && order_holds(reader, &columns, choice)?;
    Batches::new(reader, &columns, TypeChoice { ordered, ..choice })
}

/// Returns whether there are ordered dictionaries, and they have all values that the samples have:
/// the schema says which are ordered before any sample is exported.
fn order_holds(reader: &Reader, columns: &[Column], choice: TypeChoice) -> Result<bool> {
    let columns = dictionary_order::ordered(reader, columns);
    if columns.is_empty() {
        return Ok(false);
    }
    let mut batches = Batches::new(reader, &columns, TypeChoice { ordered: true, ..choice })?;
    loop {
        match batches.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(true),
            // other errors will occur again
            Err(error) => return Ok(!error.advice().contains(&Advice::StoredTypes)),
        }
    }
}

/// See [`batches`]. Its errors hold the crate's own [`Error`] as [`ArrowError::ExternalError`];
/// after one it ends.
pub struct Batches {
    reader: Reader,
    schema: SchemaRef,
    rows: Rows,
    buffers: Vec<ColumnBuffer>,
    builders: Vec<ColumnBuilder>,
    /// The fields that the columns become.
    outputs: Vec<Output>,
    ragged: Vec<RaggedColumn>,
    /// The bytes of a sample in all columns of a fixed shape.
    fixed_bytes: u64,
    /// The first sample of the next batch.
    next: u64,
    end: u64,
    batch_samples: u64,
    batch_bytes: u64,
}

/// A column whose samples are measured one by one.
struct RaggedColumn {
    index: usize,
    /// The chunk measured last, which its cursor holds.
    chunk: Range<u64>,
    size: SampleSize,
}

impl Batches {
    fn new(reader: &Reader, columns: &[Column], choice: TypeChoice) -> Result<Self> {
        let names: Vec<&str> = columns.iter().map(|column| column.schema().name.as_str()).collect();
        let exported: Vec<ExportedColumn> = columns
            .iter()
            .map(|column| ExportedColumn { schema: column.schema(), cast: column.facts().cast })
            .collect();
        let file = reader.schema();
        let plan = Outputs::of(&exported, &file.columns, &file.metadata, choice);
        let plan = plan.map_err(|error| reader.place(error))?;
        let fields: Fields = plan.all.iter().map(|output| output.field().clone()).collect();
        let mut this = Self {
            reader: reader.clone(),
            schema: Arc::new(Schema::new_with_metadata(fields, plan.metadata)),
            rows: reader.rows(&names)?,
            buffers: Vec::new(),
            builders: Vec::new(),
            outputs: plan.all,
            ragged: Vec::new(),
            fixed_bytes: 0,
            next: 0,
            end: reader.sample_count(),
            batch_samples: BATCH_SAMPLES,
            batch_bytes: BATCH_BYTES,
        };
        columns.iter().zip(plan.targets).for_each(|(column, target)| this.add(column.schema(), target));
        Ok(this)
    }

    fn add(&mut self, schema: &ColumnSchema, target: Target) {
        match SampleSize::new(schema, &target) {
            Some(size) => self.ragged.push(RaggedColumn { index: self.builders.len(), chunk: 0..0, size }),
            None => {
                let elements = target.shape.inner_elements().unwrap_or(u64::MAX);
                let bytes = elements.saturating_mul(exported_bytes(target.dtype, &target.element));
                self.fixed_bytes = self.fixed_bytes.saturating_add(bytes);
            }
        }
        self.builders.push(ColumnBuilder::new(schema, target));
    }

    /// Sets the number of samples that a batch has at most, at least 1.
    pub fn with_batch_samples(mut self, samples: u64) -> Self {
        self.batch_samples = samples.max(1);
        self
    }

    /// Sets the bytes that a batch has at most, unless a single sample has more.
    pub fn with_batch_bytes(mut self, bytes: u64) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// Returns the number of samples that were returned so far.
    pub fn position(&self) -> u64 {
        self.next
    }

    pub(super) fn arrow_schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let batch = self.read_batch();
        if batch.is_err() {
            self.next = self.end;
        }
        batch.map(Some)
    }

    fn read_batch(&mut self) -> Result<RecordBatch> {
        let start = self.next;
        let end = self.end.min(start.saturating_add(self.batch_samples));
        let mut budget = Budget { bytes: self.batch_bytes, is_empty: true, is_full: false };
        while self.next < end && !budget.is_full {
            let run = self.next..self.run_end(self.next, end, &mut budget)?;
            self.append(run.clone())?;
            self.next = run.end;
        }
        let samples = start..self.next;
        let columns: Vec<ArrayRef> = self.each_builder(&samples, ColumnBuilder::take)?;
        let (outputs, reader) = (&mut self.outputs, &self.reader);
        let array = |output: &mut Output| {
            let name = output.node.name().to_owned();
            output.array(&columns).map_err(|error| reader.place(error.with_column(&name).with_samples(samples.clone())))
        };
        let arrays: Result<Vec<ArrayRef>> = outputs.iter_mut().map(array).collect();
        // they are in memory
        let count = usize::try_from(samples.end - samples.start).unwrap_or(usize::MAX);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays?, &options).map_err(|error| {
            let error = Error::bad_argument(format!("Arrow cannot hold the samples: {error}"));
            self.reader.place(error.with_samples(samples))
        })
    }

    /// Returns the end of the samples from `start` that fit the budget and are in one chunk of each
    /// ragged column. At least one sample unless the batch is full.
    fn run_end(&mut self, start: u64, mut end: u64, budget: &mut Budget) -> Result<u64> {
        let cursors = self.rows.cursors();
        for ragged in &mut self.ragged {
            let Some(cursor) = cursors.get(ragged.index) else { continue };
            if !ragged.chunk.contains(&start) {
                ragged.chunk = cursor.column().chunk_of(start)?.samples;
            }
            end = end.min(ragged.chunk.end);
        }
        for i in start..end {
            let mut bytes = self.fixed_bytes;
            for ragged in &self.ragged {
                let Some(cursor) = cursors.get_mut(ragged.index) else { continue };
                let own = ragged.size.of(cursor, i).map_err(|error| self.reader.place(error))?;
                bytes = bytes.saturating_add(own);
            }
            if !budget.take(bytes) {
                return Ok(i);
            }
        }
        Ok(end)
    }

    /// Reads samples into all builders.
    fn append(&mut self, samples: Range<u64>) -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        self.rows.range_into(samples.clone(), &mut self.buffers)?;
        let buffers = std::mem::take(&mut self.buffers);
        let mut each = buffers.iter();
        let result = self.each_builder(&samples, |builder| each.next().map_or(Ok(()), |buffer| builder.append(buffer)));
        self.buffers = buffers;
        result
    }

    /// Does something with all builders, in order.
    fn each_builder<T, C: FromIterator<T>>(
        &mut self,
        samples: &Range<u64>,
        mut action: impl FnMut(&mut ColumnBuilder) -> Result<T>,
    ) -> Result<C> {
        let reader = &self.reader;
        let results = self.builders.iter_mut().map(|builder| {
            action(builder)
                .map_err(|error| reader.place(error.with_column(builder.name()).with_samples(samples.clone())))
        });
        results.collect()
    }
}

/// The bytes that may still go into a batch.
struct Budget {
    bytes: u64,
    is_empty: bool,
    is_full: bool,
}

impl Budget {
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

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
