//! From record batches to the batches of this crate.

use super::column_path::{ColumnPath, samples};
use super::distinct::distinct;
use super::fields::{FieldWay, check_columns};
use super::slices::Slices;
use super::united::{TypeOrigin, adapted, null_bytes};
use super::{metadata, saved};
use crate::import::batch::{InputBatch, SampleValues, Samples};
use crate::import::input_column::{ColumnKind, InputColumn};
use crate::import::problem::Problem;
use crate::import::source::{BatchIter, BatchSource, guard};
use crate::{Error, Metadata, Result};
use arrow_array::{Array, ArrayRef, NullArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use std::collections::BTreeSet;
use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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

    /// Begins a pass as [`BatchSource::batches_from`] does.
    fn record_batches_from(&self, fields: &[usize], first: u64) -> Result<(u64, RecordBatches<'_>)> {
        let _ = first;
        Ok((0, self.record_batches(fields)?))
    }

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

    /// Returns whether the schema is that of the file, which an export restores.
    fn keeps_schema(&self) -> bool {
        true
    }

    /// Returns how the types of the schema are known.
    fn type_origin(&self) -> TypeOrigin {
        TypeOrigin::Declared
    }
}

/// A source that yields record batches.
pub(in crate::import) struct ArrowSource<R> {
    records: R,
    /// The schema of the records.
    own: SchemaRef,
    /// The schema of the columns: that of the records, or the one that all inputs have together.
    /// It begins with the fields of the former.
    schema: SchemaRef,
    /// For each field of the schema, whether the records have it with the same type.
    same: Vec<bool>,
    columns: Vec<InputColumn>,
    paths: Vec<ColumnPath>,
    /// The keys of metadata that the reader of the file has left out.
    dropped: Vec<String>,
    /// Made when it is asked for: dictionaries are read from the first batch.
    metadata: OnceLock<Metadata>,
    /// Whether the file denies nulls that were found.
    is_belied: AtomicBool,
    /// Whether what the file states of its nulls is not to be used.
    is_distrusted: AtomicBool,
}

impl<R: Records> ArrowSource<R> {
    /// Makes a source whose columns are the fields of the schema. Those inside structs get dotted
    /// names. Refuses a schema of too many columns.
    pub(in crate::import) fn new(schema: &Schema, records: R) -> Result<Self> {
        check_columns(schema)?;
        let schema = Arc::new(distinct(schema));
        let (columns, paths) = columns_of(&schema);
        Ok(Self {
            records,
            own: Arc::clone(&schema),
            same: vec![true; schema.fields().len()],
            schema,
            columns,
            paths,
            dropped: Vec::new(),
            metadata: OnceLock::new(),
            is_belied: AtomicBool::new(false),
            is_distrusted: AtomicBool::new(false),
        })
    }

    /// Lists keys of metadata that the schema does not have any more.
    pub(in crate::import) fn with_dropped(self, dropped: Vec<String>) -> Self {
        Self { dropped, ..self }
    }

    /// Returns how a field of the schema is made of the records.
    fn root(&self, field: usize) -> Option<Root<'_>> {
        let target = self.schema.fields().get(field)?.data_type();
        let from = self.own.fields().get(field).map(|own| own.data_type());
        Some(Root { from, target, is_same: *self.same.get(field)? })
    }

    /// Returns whether it is known without reading that a column has no null struct and no null in
    /// lists.
    fn is_without_nulls(&self, path: &ColumnPath) -> bool {
        // all samples of a column that is missing are null
        let is_missing = path.fields.first().is_some_and(|field| *field >= self.own.fields().len());
        let is_plain = path.fields.len() == 1 && path.steps.is_empty() && !path.is_struct;
        is_missing && is_plain || self.is_own(path) && !self.records.may_have_nulls(path)
    }

    /// Returns whether a column is as the file has it, so that what the file states holds for it.
    fn is_own(&self, path: &ColumnPath) -> bool {
        path.fields.first().and_then(|field| self.same.get(*field)).is_some_and(|is_same| *is_same)
    }
}

fn columns_of(schema: &Schema) -> (Vec<InputColumn>, Vec<ColumnPath>) {
    let mut found = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        FieldWay::to(i, field).enter(field, &mut found);
    }
    found.into_iter().unzip()
}

impl<R: Records> BatchSource for ArrowSource<R> {
    fn columns(&self) -> &[InputColumn] {
        &self.columns
    }

    fn metadata(&self) -> &Metadata {
        let first_batch = |fields: &[usize]| {
            let (own, roots) = self.roots(fields);
            let adapted = guard(|| {
                let batch = self.records.first_batch(&own);
                // without rows, it still has its dictionaries
                batch.map(|batch| AdaptedBatch::of(&batch.slice(0, 0), &roots)).transpose()
            });
            Some(adapted.ok().flatten()?.batch)
        };
        self.metadata.get_or_init(|| {
            let saved = self.records.keeps_schema().then(|| saved::of(&self.schema, first_batch)).flatten();
            metadata::of_file(&self.schema, saved, &self.dropped)
        })
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

    fn batches_from(&self, columns: &[usize], first: u64) -> Result<(u64, BatchIter<'_>)> {
        let mut begin = 0;
        let batches = self.pass(columns, |fields| {
            let (row, batches) = self.records.record_batches_from(fields, first)?;
            begin = row;
            Ok(batches)
        })?;
        Ok((begin, batches))
    }

    fn may_have_nulls(&self, column: usize) -> bool {
        let is_distrusted = self.is_distrusted.load(Ordering::Relaxed);
        is_distrusted || !self.paths.get(column).is_some_and(|path| self.is_without_nulls(path))
    }

    fn is_belied(&self) -> bool {
        self.is_belied.load(Ordering::Relaxed)
    }

    fn distrust(&self) {
        self.is_distrusted.store(true, Ordering::Relaxed);
    }

    fn part_count(&self) -> usize {
        self.records.part_count()
    }

    fn part(&self, part: usize, columns: &[usize]) -> Result<BatchIter<'_>> {
        self.pass(columns, |fields| self.records.part(part, fields))
    }

    fn own_schema(&self) -> Option<(&SchemaRef, TypeOrigin)> {
        Some((&self.own, self.records.type_origin()))
    }

    fn adopt(&mut self, fields: Fields) -> Result<()> {
        if *self.schema.fields() == fields {
            return Ok(());
        }
        let schema = Schema::new_with_metadata(fields, self.own.metadata().clone());
        check_columns(&schema)?;
        (self.columns, self.paths) = columns_of(&schema);
        let own = self.own.fields();
        let is_same =
            |(i, field): (usize, &Arc<Field>)| own.get(i).map(|own| own.data_type()) == Some(field.data_type());
        self.same = schema.fields().iter().enumerate().map(is_same).collect();
        self.schema = Arc::new(schema);
        self.metadata = OnceLock::new();
        Ok(())
    }
}

impl<R: Records> ArrowSource<R> {
    fn pass<'a>(
        &'a self,
        columns: &[usize],
        records: impl FnOnce(&[usize]) -> Result<RecordBatches<'a>>,
    ) -> Result<BatchIter<'a>> {
        let unknown = || Error::bad_argument("a pass over a column that the input does not have");
        let wanted = columns.iter().map(|&i| self.wanted(i)).collect::<Option<Vec<_>>>().ok_or_else(unknown)?;
        let fields: BTreeSet<usize> = wanted.iter().filter_map(|wanted| wanted.path.fields.first().copied()).collect();
        let denied = self.denied_structs(columns, &wanted);
        let fields: Vec<usize> = fields.into_iter().collect();
        let (own, roots) = self.roots(&fields);
        let records = guard(|| records(&own))?; // opening a file reads its dictionaries
        let is_belied = &self.is_belied;
        Ok(Box::new(RecordPass { records, fields, roots, wanted, denied, is_belied, slices: None }))
    }

    /// Returns those of some fields that the records have, and how each of all is made of them.
    fn roots(&self, fields: &[usize]) -> (Vec<usize>, Vec<Root<'_>>) {
        let own = fields.iter().copied().filter(|&field| field < self.own.fields().len()).collect();
        (own, fields.iter().filter_map(|&field| self.root(field)).collect())
    }

    fn wanted(&self, column: usize) -> Option<Wanted<'_>> {
        let kind = self.columns.get(column)?.kind.as_ref().ok()?;
        let path = self.paths.get(column)?;
        Some(Wanted { path, kind, is_denied: self.is_own(path) && !self.may_have_nulls(column) })
    }

    /// Returns the structs around the wanted columns that may be null by their type, and are not by
    /// what the file states.
    fn denied_structs(&self, columns: &[usize], wanted: &[Wanted]) -> Vec<Wanted<'_>> {
        let columns: BTreeSet<usize> = columns.iter().copied().collect();
        let has_nulls = |column: &InputColumn| column.struct_nulls.is_some_and(|nulls| nulls.may_be_null);
        let others = self.columns.iter().enumerate().filter(|(i, column)| has_nulls(column) && !columns.contains(i));
        let others = others.filter_map(|(i, _)| self.wanted(i)).filter(|other| other.is_denied);
        others.filter(|other| wanted.iter().any(|wanted| wanted.path.is_in(other.path))).collect()
    }
}

/// A column of a pass.
struct Wanted<'a> {
    path: &'a ColumnPath,
    kind: &'a ColumnKind,
    /// Whether the file denies that it has nulls.
    is_denied: bool,
}

impl Wanted<'_> {
    /// Returns whether samples have nulls that the file denies.
    fn is_belied_by(&self, samples: &Samples) -> bool {
        let has_nulls = match samples.values {
            SampleValues::Structs { first_null } => first_null.is_some(),
            _ => samples.has_nulls_inside(self.kind.lists.len()),
        };
        self.is_denied && has_nulls
    }
}

/// A field of the schema.
#[derive(Clone, Copy)]
struct Root<'a> {
    /// Its type in the records; `None` if they lack it.
    from: Option<&'a DataType>,
    target: &'a DataType,
    is_same: bool,
}

impl Root<'_> {
    /// Returns about the bytes that a row takes beyond those in the records.
    fn added_bytes(&self) -> usize {
        if self.is_same { 0 } else { null_bytes(self.target) }
    }
}

/// A batch with the fields of the schema.
struct AdaptedBatch {
    batch: RecordBatch,
    /// The positions of fields that have no values in the batch, and why.
    problems: Vec<(usize, Problem)>,
}

impl AdaptedBatch {
    /// Makes the fields of `roots` from a batch of those that the records have.
    fn of(batch: &RecordBatch, roots: &[Root<'_>]) -> Result<Self> {
        if roots.iter().all(|root| root.is_same) {
            return Ok(Self { batch: batch.clone(), problems: Vec::new() });
        }
        let rows = batch.num_rows();
        let mut own = batch.columns().iter();
        let mut problems = Vec::new();
        let arrays = roots.iter().enumerate().map(|(position, root)| -> ArrayRef {
            let Some(from) = root.from else { return new_null_array(root.target, rows) };
            let missing = || Problem::from("a batch has other columns than its schema".to_owned());
            let array = own.next().ok_or_else(missing).and_then(|array| adapted(array, from, root.target));
            array.unwrap_or_else(|problem| {
                problems.push((position, problem));
                Arc::new(NullArray::new(rows))
            })
        });
        let arrays: Vec<ArrayRef> = arrays.collect();
        let fields: Vec<Field> = arrays.iter().map(|array| Field::new("", array.data_type().clone(), true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        Ok(Self { batch: batch.map_err(malformed)?, problems })
    }
}

/// One pass over some columns.
struct RecordPass<'a> {
    records: RecordBatches<'a>,
    /// The fields of the schema that the columns are in.
    fields: Vec<usize>,
    /// How these are made of the records.
    roots: Vec<Root<'a>>,
    wanted: Vec<Wanted<'a>>,
    /// Structs that the file says are not null. Their nulls would be lost.
    denied: Vec<Wanted<'a>>,
    /// Set if the samples have nulls that the file denies.
    is_belied: &'a AtomicBool,
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
                Ok(batch) => {
                    let added = self.roots.iter().map(Root::added_bytes).fold(0, usize::saturating_add);
                    self.slices = Some(Slices::of(batch, added));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn batch(&self, slice: &RecordBatch) -> Result<InputBatch> {
        let slice = AdaptedBatch::of(slice, &self.roots)?;
        let columns = self.wanted.iter().map(|wanted| self.column(&slice, wanted)).collect::<Result<_>>()?;
        for denied in &self.denied {
            let samples = self.column(&slice, denied)?;
            if samples.is_ok_and(|samples| denied.is_belied_by(&samples)) {
                return Err(Error::bad_input("the file is malformed: its statistics deny a null struct that it has"));
            }
        }
        Ok(InputBatch { sample_count: slice.batch.num_rows(), columns })
    }

    fn column(&self, slice: &AdaptedBatch, wanted: &Wanted) -> Result<std::result::Result<Samples, Problem>> {
        let root = wanted.path.fields.first().and_then(|field| self.fields.binary_search(field).ok());
        if let Some((_, problem)) = slice.problems.iter().find(|(position, _)| Some(*position) == root) {
            return Ok(Err(problem.clone()));
        }
        let samples = guard(|| Ok(samples(&slice.batch, &self.fields, wanted.path, wanted.kind)))?;
        if samples.as_ref().is_ok_and(|samples| wanted.is_belied_by(samples)) {
            self.is_belied.store(true, Ordering::Relaxed);
        }
        Ok(samples)
    }
}

impl Iterator for RecordPass<'_> {
    type Item = Result<InputBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = guard(|| self.next_batch().transpose()).transpose();
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
        let next = guard(|| inner.next().transpose().map_err(malformed)).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.inner = None;
        }
        next
    }
}

/// Returns the error of an Arrow decoder.
pub(in crate::import) fn malformed(error: ArrowError) -> Error {
    let message = match &error {
        ArrowError::IoError(message, source) => {
            format!("the file cannot be read or is cut off: {message} ({source})")
        }
        error => format!("the file is malformed or damaged: {error}"),
    };
    Error::bad_input(message).with_source(error)
}
