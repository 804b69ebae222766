//! Sources of record batches, for all formats that are read through Arrow. For batches that a
//! program already has, see [`memory`](crate::import::run::memory).
//!
//! [`ArrowSource`] turns the fields of a schema into columns, and record batches into rows, one
//! slice of about 2 MiB at a time. If the inputs have slightly different schemas, it first converts
//! each batch to the unified fields of all inputs. If the statistics of a file state that a column
//! has no nulls, but a pass finds some, the source records the contradiction.

use super::decode::Slices;
use super::fields::with_distinct_names;
use super::fields::{FieldPath, check_columns};
use super::metadata;
use super::paths::ColumnPath;
use super::rows::{ColumnItems, locate, schema_mismatch};
use super::unified::{TypeOrigin, adapted};
use crate::import::plan::input_column::{ColumnKind, ColumnRequest, InputColumn};
use crate::import::rows::{Batch, ColumnRows, Outline, RowError};
use crate::import::source::{Batches, PassRows, RowSource, catch_panic};
use crate::logical::arrow_type::{TimeUnit, null_bytes};
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

/// A source of record batches. It can be read repeatedly.
pub(in crate::import) trait Records {
    /// Returns the path of the file, for errors.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the number of rows, if it is known before reading.
    fn row_count(&self) -> Option<u64>;

    /// Starts a pass that reads only these fields of the schema. `fields` are in ascending order.
    fn record_batches(&self, fields: &[usize], rows: PassRows) -> Result<RecordBatches<'_>>;

    /// Returns the first batch with only these fields, if a later pass can read it again.
    fn first_batch(&self, fields: &[usize]) -> Option<RecordBatch> {
        self.record_batches(fields, PassRows::All).ok()?.next()?.ok() // the passes report errors
    }

    /// Returns whether the struct or the list members at the end of a path can be null. `false`
    /// relies on the statistics of the file, which can be wrong; no rows are read to check them.
    fn may_have_nulls(&self, _path: &ColumnPath) -> bool {
        true
    }

    /// Returns the number of row groups that can be read concurrently.
    fn row_group_count(&self) -> usize {
        1
    }

    /// Returns whether a pass can start at any row.
    fn can_skip_rows(&self) -> bool {
        false
    }

    /// Returns whether the tensilo file stores the schema, so that an export restores it.
    fn preserves_schema(&self) -> bool {
        true
    }

    /// Returns the marks that the reader sets on fields: metadata keys such as `PARQUET:int96`, by
    /// which it passes facts to the importer. Any other mark comes from the file, and is removed.
    fn own_marks(&self) -> &[&str] {
        &[]
    }

    /// Returns how the types of the schema were determined.
    fn type_origin(&self) -> TypeOrigin {
        TypeOrigin::Declared
    }
}

/// A source of rows, which it reads as record batches.
pub(in crate::import) struct ArrowSource<R> {
    records: R,
    /// The schema of the records.
    own: SchemaRef,
    /// The schema of the columns: the schema of the records, or the unified schema of all inputs.
    /// It starts with the fields of the records.
    schema: SchemaRef,
    /// For each field of the schema, whether the records have it with the same type.
    same: Vec<bool>,
    columns: Vec<InputColumn>,
    paths: Vec<ColumnPath>,
    /// The metadata keys that the reader of the file has dropped.
    dropped: Vec<String>,
    /// Computed on demand, because it contains dictionary values, which are read from the first
    /// batch.
    metadata: OnceLock<Metadata>,
    /// Whether a pass found nulls in a column that has none according to the file's statistics.
    contradicts_statistics: AtomicBool,
    /// Whether the file's null statistics are ignored.
    ignores_statistics: AtomicBool,
}

impl<R: Records> ArrowSource<R> {
    /// Creates a source whose columns are the fields of the schema. The fields of structs get
    /// dotted names. Refuses a schema with too many columns.
    pub(in crate::import) fn new(schema: &Schema, records: R) -> Result<Self> {
        check_columns(schema)?;
        let schema = Arc::new(with_distinct_names(schema, records.own_marks()));
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
            contradicts_statistics: AtomicBool::new(false),
            ignores_statistics: AtomicBool::new(false),
        })
    }

    /// Records the metadata keys that the reader has removed from the schema.
    pub(in crate::import) fn with_dropped(self, dropped: Vec<String>) -> Self {
        Self { dropped, ..self }
    }

    /// Returns how a field of the schema is derived from the records.
    fn root(&self, field: usize) -> Option<RootField<'_>> {
        let target = self.schema.fields().get(field)?.data_type();
        let from = self.own.fields().get(field).map(|own| own.data_type());
        Some(RootField { from, target, is_same: *self.same.get(field)? })
    }

    /// Returns whether a column is known, without reading rows, to have no null structs and no
    /// nulls in lists.
    fn is_without_nulls(&self, path: &ColumnPath) -> bool {
        // all samples of a missing column are null
        let is_missing = path.fields.first().is_some_and(|field| *field >= self.own.fields().len());
        let is_plain = path.fields.len() == 1 && path.steps.is_empty() && !path.is_struct;
        is_missing && is_plain || self.is_own(path) && !self.records.may_have_nulls(path)
    }

    /// Returns whether a column has the type of the file, so that the file's statistics apply to
    /// it.
    fn is_own(&self, path: &ColumnPath) -> bool {
        path.fields.first().and_then(|field| self.same.get(*field)).is_some_and(|is_same| *is_same)
    }
}

fn columns_of(schema: &Schema) -> (Vec<InputColumn>, Vec<ColumnPath>) {
    let mut found = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        FieldPath::to(i, field).enter(field, &mut found);
    }
    found.into_iter().unzip()
}

impl<R: Records> RowSource for ArrowSource<R> {
    fn columns(&self) -> &[InputColumn] {
        &self.columns
    }

    fn metadata(&self) -> &Metadata {
        let first_batch = |fields: &[usize]| {
            let (own, roots) = self.roots(fields);
            let adapted = catch_panic(|| {
                let batch = self.records.first_batch(&own);
                // a batch without rows still has its dictionaries
                batch.map(|batch| AdaptedBatch::of(&batch.slice(0, 0), &roots)).transpose()
            });
            Some(adapted.ok().flatten()?.batch)
        };
        self.metadata.get_or_init(|| {
            let saved =
                self.records.preserves_schema().then(|| metadata::saved_schema_of(&self.schema, first_batch)).flatten();
            metadata::of_file(&self.schema, saved, &self.dropped)
        })
    }

    fn path(&self) -> Option<&Path> {
        self.records.path()
    }

    fn row_count(&self) -> Option<u64> {
        self.records.row_count()
    }

    fn batches(&self, columns: &[ColumnRequest], rows: PassRows) -> Result<Batches<'_, ColumnRows>> {
        let positions: Vec<usize> = columns.iter().map(|requested| requested.position).collect();
        let mut requested = self.requested(&positions)?;
        requested.iter_mut().zip(columns).for_each(|(column, requested)| column.unfolded = Some(requested.unfolded));
        let units: Vec<Option<TimeUnit>> = columns.iter().map(|requested| requested.unit).collect();
        let non_null = self.non_null_structs(&positions, &requested);
        self.pass(requested, non_null, rows, move |number, items| items.rows(units.get(number).copied().flatten()))
    }

    fn outlines(&self, columns: &[usize], rows: PassRows) -> Result<Batches<'_, Outline>> {
        let requested = self.requested(columns)?;
        let level_counts: Vec<usize> = requested.iter().map(|requested| requested.kind.lists.len()).collect();
        let non_null = self.non_null_structs(columns, &requested);
        self.pass(requested, non_null, rows, move |number, items| {
            items.outline(level_counts.get(number).copied().unwrap_or(0))
        })
    }

    fn can_skip_rows(&self) -> bool {
        self.records.can_skip_rows()
    }

    fn may_have_nulls(&self, column: usize) -> bool {
        let ignores_statistics = self.ignores_statistics.load(Ordering::Relaxed);
        ignores_statistics || !self.paths.get(column).is_some_and(|path| self.is_without_nulls(path))
    }

    fn contradicts_statistics(&self) -> bool {
        self.contradicts_statistics.load(Ordering::Relaxed)
    }

    fn ignore_statistics(&self) {
        self.ignores_statistics.store(true, Ordering::Relaxed);
    }

    fn row_group_count(&self) -> usize {
        self.records.row_group_count()
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
    /// Starts a pass over some rows. `convert` receives the number of a column and its items.
    fn pass<'a, T: 'a>(
        &'a self,
        requested: Vec<PassColumn<'a>>,
        non_null: Vec<PassColumn<'a>>,
        rows: PassRows,
        convert: impl Fn(usize, ColumnItems) -> std::result::Result<T, RowError> + 'a,
    ) -> Result<Batches<'a, T>> {
        let fields: BTreeSet<usize> =
            requested.iter().filter_map(|requested| requested.path.fields.first().copied()).collect();
        let fields: Vec<usize> = fields.into_iter().collect();
        let (own, roots) = self.roots(&fields);
        // opening a file reads its dictionaries, which can panic
        let records = catch_panic(|| self.records.record_batches(&own, rows))?;
        let (contradicts_statistics, convert) = (&self.contradicts_statistics, Box::new(convert));
        Ok(Box::new(RecordPass {
            records,
            fields,
            roots,
            requested,
            non_null,
            contradicts_statistics,
            convert,
            slices: None,
        }))
    }

    /// Returns which of the fields the records have, and how each of the fields is derived from the
    /// records.
    fn roots(&self, fields: &[usize]) -> (Vec<usize>, Vec<RootField<'_>>) {
        let own = fields.iter().copied().filter(|&field| field < self.own.fields().len()).collect();
        (own, fields.iter().filter_map(|&field| self.root(field)).collect())
    }

    fn requested(&self, columns: &[usize]) -> Result<Vec<PassColumn<'_>>> {
        let unknown = || Error::bad_argument("a pass requests a column that the input does not have");
        columns.iter().map(|&column| self.pass_column(column).ok_or_else(unknown)).collect()
    }

    fn pass_column(&self, column: usize) -> Option<PassColumn<'_>> {
        let kind = self.columns.get(column)?.kind.as_ref().ok()?;
        let path = self.paths.get(column)?;
        Some(PassColumn { path, kind, is_non_null: self.is_own(path) && !self.may_have_nulls(column), unfolded: None })
    }

    /// Returns the structs around the requested columns that are nullable by type, but have no
    /// nulls according to the file's statistics.
    fn non_null_structs(&self, columns: &[usize], requested: &[PassColumn]) -> Vec<PassColumn<'_>> {
        let columns: BTreeSet<usize> = columns.iter().copied().collect();
        let has_nulls = |column: &InputColumn| column.struct_nulls.is_some_and(|nulls| nulls.may_be_null);
        let others = self.columns.iter().enumerate().filter(|(i, column)| has_nulls(column) && !columns.contains(i));
        let others = others.filter_map(|(i, _)| self.pass_column(i)).filter(|other| other.is_non_null);
        others.filter(|other| requested.iter().any(|requested| requested.path.is_in(other.path))).collect()
    }
}

/// A column of a pass.
struct PassColumn<'a> {
    path: &'a ColumnPath,
    kind: &'a ColumnKind,
    /// Whether the column has no nulls according to the file's statistics.
    is_non_null: bool,
    /// The number of outer dimensions that are lists, if already known.
    unfolded: Option<usize>,
}

/// A field of the schema, and its type in the records.
#[derive(Clone, Copy)]
struct RootField<'a> {
    /// The type in the records, or `None` if the records do not have the field.
    from: Option<&'a DataType>,
    target: &'a DataType,
    is_same: bool,
}

impl RootField<'_> {
    /// Returns approximately how many bytes per row the converted field takes, or 0 if the field is
    /// not converted.
    fn added_bytes(&self) -> usize {
        if self.is_same { 0 } else { null_bytes(self.target) }
    }
}

/// A batch with the fields of the schema.
struct AdaptedBatch {
    batch: RecordBatch,
    /// The positions of fields that could not be converted, and why.
    problems: Vec<(usize, RowError)>,
}

impl AdaptedBatch {
    /// Converts a batch of the records to the fields of `roots`.
    fn of(batch: &RecordBatch, roots: &[RootField<'_>]) -> Result<Self> {
        if roots.iter().all(|root| root.is_same) {
            return Ok(Self { batch: batch.clone(), problems: Vec::new() });
        }
        let rows = batch.num_rows();
        let mut own = batch.columns().iter();
        let mut problems = Vec::new();
        let arrays = roots.iter().enumerate().map(|(position, root)| -> ArrayRef {
            let Some(from) = root.from else { return new_null_array(root.target, rows) };
            let array = own.next().ok_or_else(schema_mismatch).and_then(|array| adapted(array, from, root.target));
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
struct RecordPass<'a, T> {
    records: RecordBatches<'a>,
    /// The fields of the schema that contain the columns.
    fields: Vec<usize>,
    /// How these fields are derived from the records.
    roots: Vec<RootField<'a>>,
    requested: Vec<PassColumn<'a>>,
    /// Structs that have no nulls according to the file's statistics. The pass checks this, because
    /// any nulls would be lost.
    non_null: Vec<PassColumn<'a>>,
    /// Set if the rows of a column have nulls that contradict the file's statistics.
    contradicts_statistics: &'a AtomicBool,
    convert: Box<dyn Fn(usize, ColumnItems) -> std::result::Result<T, RowError> + 'a>,
    /// The remaining slices of the current record batch.
    slices: Option<Slices>,
}

impl<T> RecordPass<'_, T> {
    fn next_batch(&mut self) -> Option<Result<Batch<T>>> {
        loop {
            if let Some(slice) = self.slices.as_mut().and_then(Slices::next) {
                return Some(self.batch(&slice));
            }
            self.slices = None; // frees its memory before the next batch is decoded
            match self.records.next()? {
                Ok(batch) => {
                    let added = self.roots.iter().map(RootField::added_bytes).fold(0, usize::saturating_add);
                    self.slices = Some(Slices::of(batch, added));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn batch(&self, slice: &RecordBatch) -> Result<Batch<T>> {
        let slice = AdaptedBatch::of(slice, &self.roots)?;
        let column = |(number, requested): (usize, &PassColumn)| {
            let items = self.items(&slice, requested)?;
            catch_panic(|| Ok(items.and_then(|items| (self.convert)(number, items))))
        };
        let columns = self.requested.iter().enumerate().map(column).collect::<Result<_>>()?;
        for non_null in &self.non_null {
            if self.items(&slice, non_null)?.is_ok_and(|items| items.has_nulls(non_null.kind.lists.len())) {
                let message = "the file is malformed: it has a null struct, but its statistics say that it has none";
                return Err(Error::bad_input(message));
            }
        }
        Ok(Batch { row_count: slice.batch.num_rows(), columns })
    }

    fn items(
        &self,
        slice: &AdaptedBatch,
        requested: &PassColumn,
    ) -> Result<std::result::Result<ColumnItems, RowError>> {
        let root = requested.path.fields.first().and_then(|field| self.fields.binary_search(field).ok());
        if let Some((_, problem)) = slice.problems.iter().find(|(position, _)| Some(*position) == root) {
            return Ok(Err(problem.clone()));
        }
        let items =
            catch_panic(|| Ok(locate(&slice.batch, &self.fields, requested.path, requested.kind, requested.unfolded)))?;
        let has_nulls = |items: &ColumnItems| items.has_nulls(requested.kind.lists.len());
        if requested.is_non_null && items.as_ref().is_ok_and(has_nulls) {
            self.contradicts_statistics.store(true, Ordering::Relaxed);
        }
        Ok(items)
    }
}

impl<T> Iterator for RecordPass<'_, T> {
    type Item = Result<Batch<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = catch_panic(|| self.next_batch().transpose()).transpose();
        if !matches!(next, Some(Ok(_))) {
            (self.records, self.slices) = (Box::new(iter::empty()), None);
        }
        next
    }
}

/// An iterator over the batches of a decoder. It turns panics into errors, and ends after the first
/// error.
pub(in crate::import) struct CatchPanic<I> {
    inner: Option<I>,
}

impl<I> CatchPanic<I> {
    pub(in crate::import) fn new(inner: I) -> Self {
        Self { inner: Some(inner) }
    }
}

impl<I: Iterator<Item = std::result::Result<RecordBatch, ArrowError>>> Iterator for CatchPanic<I> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let inner = self.inner.as_mut()?;
        let next = catch_panic(|| inner.next().transpose().map_err(malformed)).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.inner = None;
        }
        next
    }
}

/// Converts an error of an Arrow decoder.
pub(in crate::import) fn malformed(error: ArrowError) -> Error {
    let message = match &error {
        ArrowError::IoError(message, source) => {
            format!("the file cannot be read or is truncated: {message} ({source})")
        }
        error => format!("the file is malformed or damaged: {error}"),
    };
    Error::bad_input(message).with_source(error)
}
