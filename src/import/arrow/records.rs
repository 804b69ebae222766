//! From record batches to the batches of this crate.

use super::column_path::{ColumnPath, samples};
use super::distinct::distinct;
use super::fields::FieldWay;
use super::slices::Slices;
use super::{metadata, saved};
use crate::import::batch::InputBatch;
use crate::import::input_column::{ColumnKind, InputColumn};
use crate::import::source::{BatchIter, BatchSource, guard};
use crate::{Error, Metadata, Result};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use std::collections::BTreeSet;
use std::iter;
use std::path::Path;

/// Record batches, in order.
pub(in crate::import) type RecordBatches<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>;

/// A source of record batches, which can be read as often as needed.
pub(in crate::import) trait Records {
    /// Returns the path of the file, for errors.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the number of rows, if it is known before reading.
    fn row_count(&self) -> Option<u64>;

    /// Begins a pass over only these fields of the schema, in ascending order.
    fn record_batches(&self, fields: &[usize]) -> Result<RecordBatches<'_>>;

    /// Returns the first batch of only these fields, if reading it leaves it to be read again.
    fn first_batch(&self, fields: &[usize]) -> Option<RecordBatch> {
        self.record_batches(fields).ok()?.next()?.ok() // the passes report errors
    }

    /// Returns whether a struct that a path leads to may be null, or a member of the lists that it
    /// leads to. `false` is known without reading.
    fn may_have_nulls(&self, _path: &ColumnPath) -> bool {
        true
    }

    /// Returns the number of parts that can be read at the same time. They follow one another.
    fn part_count(&self) -> usize {
        1
    }

    /// Begins a pass over one part.
    fn part(&self, _part: usize, fields: &[usize]) -> Result<RecordBatches<'_>> {
        self.record_batches(fields)
    }
}

/// A source that yields record batches.
pub(in crate::import) struct ArrowSource<R> {
    records: R,
    columns: Vec<InputColumn>,
    paths: Vec<ColumnPath>,
    metadata: Metadata,
}

impl<R: Records> ArrowSource<R> {
    /// Makes a source whose columns are the fields of the schema. Those inside structs get dotted
    /// names.
    pub(in crate::import) fn new(schema: &Schema, records: R) -> Self {
        let schema = &distinct(schema);
        let metadata = metadata::of_file(schema, saved::of(schema, |fields| records.first_batch(fields)));
        let mut found = Vec::new();
        for (i, field) in schema.fields().iter().enumerate() {
            FieldWay::to(i, field).enter(field, &mut found);
        }
        for (column, path) in &mut found {
            if let Ok(kind) = &mut column.kind {
                kind.inner_nulls = kind.inner_nulls && records.may_have_nulls(path);
            }
        }
        let (columns, paths) = found.into_iter().unzip();
        Self { records, columns, paths, metadata }
    }
}

impl<R: Records> BatchSource for ArrowSource<R> {
    fn columns(&self) -> &[InputColumn] {
        &self.columns
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn path(&self) -> Option<&Path> {
        self.records.path()
    }

    fn row_count(&self) -> Option<u64> {
        self.records.row_count()
    }

    fn batches(&self, columns: &[usize]) -> Result<BatchIter<'_>> {
        self.pass(columns, |fields| self.records.record_batches(fields))
    }

    fn may_have_null_structs(&self, column: usize) -> bool {
        self.paths.get(column).is_none_or(|path| self.records.may_have_nulls(path))
    }

    fn part_count(&self) -> usize {
        self.records.part_count()
    }

    fn part(&self, part: usize, columns: &[usize]) -> Result<BatchIter<'_>> {
        self.pass(columns, |fields| self.records.part(part, fields))
    }
}

impl<R: Records> ArrowSource<R> {
    fn pass<'a>(
        &'a self,
        columns: &[usize],
        records: impl FnOnce(&[usize]) -> Result<RecordBatches<'a>>,
    ) -> Result<BatchIter<'a>> {
        let unknown = || Error::bad_argument("a pass over a column that the input does not have");
        let column = |&i: &usize| {
            let kind = self.columns.get(i)?.kind.as_ref().ok()?;
            Some((self.paths.get(i)?, kind))
        };
        let wanted: Vec<(&ColumnPath, &ColumnKind)> =
            columns.iter().map(column).collect::<Option<_>>().ok_or_else(unknown)?;
        let fields: BTreeSet<usize> = wanted.iter().filter_map(|(path, _)| path.fields.first().copied()).collect();
        let fields: Vec<usize> = fields.into_iter().collect();
        let records = records(&fields)?;
        Ok(Box::new(RecordPass { records, fields, wanted, slices: None }))
    }
}

/// One pass over some columns.
struct RecordPass<'a> {
    records: RecordBatches<'a>,
    /// The fields of the schema that the record batches have.
    fields: Vec<usize>,
    wanted: Vec<(&'a ColumnPath, &'a ColumnKind)>,
    /// The rest of the current record batch.
    slices: Option<Slices>,
}

impl RecordPass<'_> {
    fn next_batch(&mut self) -> Option<Result<InputBatch>> {
        loop {
            if let Some(slice) = self.slices.as_mut().and_then(Slices::next) {
                return Some(self.batch(&slice));
            }
            match self.records.next()? {
                Ok(batch) => self.slices = Some(Slices::of(batch)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn batch(&self, slice: &RecordBatch) -> Result<InputBatch> {
        let column = |(path, kind): &(&ColumnPath, &ColumnKind)| guard(|| Ok(samples(slice, &self.fields, path, kind)));
        let columns = self.wanted.iter().map(column).collect::<Result<_>>()?;
        Ok(InputBatch { sample_count: slice.num_rows(), columns })
    }
}

impl Iterator for RecordPass<'_> {
    type Item = Result<InputBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if !matches!(next, Some(Ok(_))) {
            (self.records, self.slices) = (Box::new(iter::empty()), None);
        }
        next
    }
}

/// An iterator over what a decoder yields, of which an error, or a panic that became one, is the
/// end.
pub(in crate::import) struct Guarded<I> {
    inner: Option<I>,
}

impl<I> Guarded<I> {
    pub(in crate::import) fn new(inner: I) -> Self {
        Self { inner: Some(inner) }
    }
}

impl<I: Iterator<Item = std::result::Result<RecordBatch, ArrowError>>> Iterator for Guarded<I> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let inner = self.inner.as_mut()?;
        let next = guard(|| inner.next().transpose().map_err(|error| malformed(&error))).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.inner = None;
        }
        next
    }
}

/// Returns the error of an Arrow decoder.
pub(in crate::import) fn malformed(error: &ArrowError) -> Error {
    match error {
        ArrowError::IoError(message, source) => {
            Error::bad_input(format!("the file cannot be read or is cut off: {message} ({source})"))
        }
        error => Error::bad_input(format!("the file is malformed or damaged: {error}")),
    }
}
