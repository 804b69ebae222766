//! Reads the samples of a table as Arrow record batches.
//!
//! [`select`] chooses the columns: the named columns, the fields of named structs, and the nulls of
//! structs. A [`BatchAssembler`] then reads ranges of samples until a batch is full. A range ends
//! where a chunk or a group of the table ends, or where the batch would become too large. Batches
//! continue across ranges, so they do not show where groups begin.
//!
//! Before the first sample is exported, the schema must state which dictionaries are ordered. A
//! dictionary does not count as ordered if any sample has a value that was not in the initial
//! dictionary of the source. Therefore, columns whose dictionary was ordered in the source are read
//! once in advance.

use super::column::ColumnBuilder;
use super::elements::exported_bytes;
use super::field::{Target, TypeChoice};
use super::restore::{OutputField, OutputFields, with_paths};
use super::table::{GroupReader, SampleSize, Table, TableGroup};
use crate::error::Advice;
use crate::format::{CastFacts, FieldNode, field_paths, path};
use crate::logical::arrow_type::{DTYPE, in_arrow, members};
use crate::logical::saved_schema;
use crate::{ColumnBuffer, ColumnSchema, DType, Error, Reader, Result, Schema};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Fields, SchemaRef};
use std::collections::{HashMap, HashSet};
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the samples of the named columns (of all columns if `None`) as Arrow record batches,
/// with the types that [the module](super) lists. The name of a struct selects all its fields.
/// Selecting a field of a struct also selects the nulls of the struct.
///
/// Batches have at most 65,536 samples, and at most 16 MiB unless a single sample is larger.
///
/// Cost: each chunk is decoded once and copied once. Columns that had an ordered dictionary in the
/// source are read once in advance, to find values outside the dictionary.
pub fn batches(reader: &Reader, columns: Option<&[String]>) -> Result<Batches> {
    let (assembler, columns) = plan(reader, columns, TypeChoice::AS_IMPORTED)?;
    let columns = columns.iter().map(|&number| reader.column_at(number)).collect();
    let group = TableGroup::new(columns, reader.sample_count());
    Ok(Batches { assembler, groups: iter::once(group), group: None, is_done: false })
}

/// Like [`batches`], for all groups of a table. Groups are opened one after another, and batches
/// continue from group to group.
pub fn table_batches<'t, T: Table>(
    table: &'t T,
    columns: Option<&[String]>,
) -> std::result::Result<Batches<impl Iterator<Item = std::result::Result<TableGroup, T::Error>> + 't>, T::Error> {
    select(table, columns, TypeChoice::AS_IMPORTED)
}

/// Like [`table_batches`], with this choice of types.
pub(super) fn select<'t, T: Table>(
    table: &'t T,
    columns: Option<&[String]>,
    choice: TypeChoice,
) -> std::result::Result<Batches<impl Iterator<Item = std::result::Result<TableGroup, T::Error>> + 't>, T::Error> {
    let (assembler, columns) = plan(table, columns, choice)?;
    Ok(Batches { assembler, groups: table.groups(columns), group: None, is_done: false })
}

/// Returns an assembler of batches for the named columns (for all columns if `None`), and the
/// numbers of these columns.
fn plan<T: Table>(
    table: &T,
    columns: Option<&[String]>,
    choice: TypeChoice,
) -> std::result::Result<(BatchAssembler, Vec<usize>), T::Error> {
    let columns = selected_columns(table.schema(), columns).map_err(|error| in_table(table.path(), error))?;
    let ordered = choice.ordered && !choice.stored_types && order_holds(table, &columns, choice)?;
    let casts = table.cast_facts(&columns)?;
    let choice = TypeChoice { ordered, ..choice };
    Ok((BatchAssembler::new(table.schema(), table.path(), &columns, &casts, choice)?, columns))
}

/// Returns `true` if there are ordered dictionaries and no sample has a value outside its
/// dictionary. The schema must state this before any sample is exported.
fn order_holds<T: Table>(table: &T, columns: &[usize], choice: TypeChoice) -> std::result::Result<bool, T::Error> {
    let columns = ordered_columns(table.schema(), columns);
    if columns.is_empty() || !table.is_from_one_conversion()? {
        return Ok(false);
    }
    let choice = TypeChoice { ordered: true, ..choice };
    let mut assembler = BatchAssembler::new(table.schema(), table.path(), &columns, &[], choice)?;
    let read_all = || -> Result<()> {
        for group in table.groups(columns) {
            let Ok(group) = group else { return Ok(()) };
            let mut group = GroupReader::new(group);
            while assembler.next_full(&mut group)?.is_some() {}
        }
        assembler.rest().map(|_| ())
    };
    // other errors will occur again in the export
    Ok(!read_all().is_err_and(|error| error.advice().contains(&Advice::StoredTypes)))
}

/// An iterator over record batches; see [`batches`] and [`table_batches`]. Errors are returned as
/// [`ArrowError::ExternalError`], which contains the error of the table. For a file, this is the
/// crate's [`Error`]. The iterator ends after an error.
pub struct Batches<P = iter::Once<Result<TableGroup>>> {
    assembler: BatchAssembler,
    groups: P,
    group: Option<GroupReader>,
    is_done: bool,
}

impl<P> Batches<P> {
    /// Sets the maximum number of samples in a batch. 0 counts as 1.
    pub fn with_batch_samples(mut self, samples: u64) -> Self {
        self.assembler.batch_samples = samples.max(1);
        self
    }

    /// Sets the maximum size of a batch in bytes. Only a single sample can exceed it.
    pub fn with_batch_bytes(mut self, bytes: u64) -> Self {
        self.assembler.batch_bytes = bytes;
        self.assembler.budget = Budget::new(bytes);
        self
    }

    pub(super) fn arrow_schema(&self) -> &SchemaRef {
        &self.assembler.schema
    }

    /// Returns the number of samples returned so far.
    pub fn position(&self) -> u64 {
        self.assembler.samples.start
    }
}

impl<E: From<Error>, P: Iterator<Item = std::result::Result<TableGroup, E>>> Batches<P> {
    /// Returns the next batch; `None` after the last.
    pub(super) fn next_batch(&mut self) -> std::result::Result<Option<RecordBatch>, E> {
        loop {
            if let Some(group) = &mut self.group
                && let Some(batch) = self.assembler.next_full(group)?
            {
                return Ok(Some(batch));
            }
            match self.groups.next() {
                Some(group) => self.group = Some(GroupReader::new(group?)),
                None => return Ok(self.assembler.rest()?),
            }
        }
    }
}

impl<E, P> Iterator for Batches<P>
where
    E: From<Error> + std::error::Error + Send + Sync + 'static,
    P: Iterator<Item = std::result::Result<TableGroup, E>>,
{
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let batch = self.next_batch();
        self.is_done = !matches!(batch, Ok(Some(_)));
        batch.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl<E, P> RecordBatchReader for Batches<P>
where
    E: From<Error> + std::error::Error + Send + Sync + 'static,
    P: Iterator<Item = std::result::Result<TableGroup, E>>,
{
    fn schema(&self) -> SchemaRef {
        self.arrow_schema().clone()
    }
}

/// The maximum number of samples in a batch.
const MAX_BATCH_SAMPLES: u64 = 65_536;
/// The maximum size of elements, offsets and shapes in a batch, in bytes. Only a single sample can
/// exceed it.
const MAX_BATCH_BYTES: u64 = 16 << 20;

/// A batch that is being filled. A group of the table can end inside it.
struct BatchAssembler {
    path: Option<PathBuf>,
    schema: SchemaRef,
    columns: Vec<ColumnSchema>,
    builders: Vec<ColumnBuilder>,
    /// The fields to which the columns are exported.
    outputs: Vec<OutputField>,
    /// The numbers of the columns whose samples must be measured individually.
    ragged: Vec<(usize, SampleSize)>,
    /// The total size, in bytes, of a sample in all columns with a fixed shape.
    fixed_bytes: u64,
    nulls: ColumnBuffer,
    /// The range of samples in this batch, counted from the start of the export.
    samples: Range<u64>,
    budget: Budget,
    batch_samples: u64,
    batch_bytes: u64,
}

impl BatchAssembler {
    /// Plans the export of the columns with these numbers. `casts` has the cast facts to export.
    fn new(
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
                unmarked.metadata.remove(DTYPE); // `in_arrow` sets it again where it applies
                Ok((in_arrow(&unmarked)?.into_owned(), column.dtype == DType::Complex64))
            })
            .collect::<Result<Vec<_>>>()
            .map_err(|error| in_table(path, error))?
            .into_iter()
            .unzip();
        let casts = casts.iter().copied().chain(iter::repeat(None));
        let columns: Vec<(ColumnSchema, Option<CastFacts>)> = columns.into_iter().zip(casts).collect();
        let plan = OutputFields::of(&columns, &table.columns, &table.metadata, choice);
        let plan = plan.map_err(|error| in_table(path, error))?;
        let fields: Fields = plan.all.iter().map(|output| output.field().clone()).collect();
        let mut this = Self {
            path: path.map(Path::to_path_buf),
            schema: Arc::new(arrow_schema::Schema::new_with_metadata(fields, plan.metadata)),
            columns: Vec::new(),
            builders: Vec::new(),
            outputs: plan.all,
            ragged: Vec::new(),
            fixed_bytes: 0,
            nulls: ColumnBuffer::new(),
            samples: 0..0,
            budget: Budget::new(MAX_BATCH_BYTES),
            batch_samples: MAX_BATCH_SAMPLES,
            batch_bytes: MAX_BATCH_BYTES,
        };
        let planned = columns.into_iter().zip(plan.targets).zip(pairs);
        planned.for_each(|(((column, _), target), is_pairs)| this.add(column, target, is_pairs));
        Ok(this)
    }

    /// Adds a column. If `is_pairs`, each stored element, a complex number, becomes two elements of
    /// the Arrow array.
    fn add(&mut self, schema: ColumnSchema, target: Target, is_pairs: bool) {
        match SampleSize::new(&schema, &target) {
            Some(size) => self.ragged.push((self.builders.len(), size)),
            None => {
                let elements = target.shape.inner_elements().unwrap_or(u64::MAX);
                let bytes = elements.saturating_mul(exported_bytes(target.dtype, &target.element));
                self.fixed_bytes = self.fixed_bytes.saturating_add(bytes);
            }
        }
        self.builders.push(ColumnBuilder::new(&schema, target, is_pairs));
        self.columns.push(schema);
    }

    /// Returns the next full batch; `None` if the group ends before the batch is full.
    fn next_full(&mut self, group: &mut GroupReader) -> Result<Option<RecordBatch>> {
        while !self.is_full() {
            if group.next >= group.end {
                return Ok(None);
            }
            let range = group.next..self.range_end(group)?;
            self.append(group, range.clone())?;
            group.next = range.end;
            self.samples.end = self.samples.end.saturating_add(range.end.saturating_sub(range.start));
        }
        self.take().map(Some)
    }

    /// Returns the last batch, even if it is not full; `None` if it has no samples.
    fn rest(&mut self) -> Result<Option<RecordBatch>> {
        (self.count() > 0).then(|| self.take()).transpose()
    }

    fn count(&self) -> u64 {
        self.samples.end.saturating_sub(self.samples.start)
    }

    fn is_full(&self) -> bool {
        self.budget.is_full || self.count() >= self.batch_samples
    }

    /// Returns the end of the next range of samples that fit the budget and are in a single chunk
    /// of each ragged column. Unless the batch is full, the range has at least one sample.
    fn range_end(&mut self, group: &mut GroupReader) -> Result<u64> {
        let room = self.batch_samples.saturating_sub(self.count());
        let mut range = group.next..group.end.min(group.next.saturating_add(room));
        for (index, _) in &self.ragged {
            group.limit_to_chunk(*index, &mut range)?;
        }
        for i in range.clone() {
            let mut bytes = self.fixed_bytes;
            for (index, size) in &self.ragged {
                bytes = bytes.saturating_add(group.measure(*index, size, i)?);
            }
            if !self.budget.take(bytes) {
                return Ok(i);
            }
        }
        Ok(range.end)
    }

    /// Reads samples into all builders, one column after another.
    fn append(&mut self, group: &mut GroupReader, samples: Range<u64>) -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let count = usize::try_from(samples.end.saturating_sub(samples.start)).unwrap_or(usize::MAX);
        for (index, (builder, column)) in self.builders.iter_mut().zip(&self.columns).enumerate() {
            let appended = match group.read(index, samples.clone())? {
                Some(buffer) => builder.append(buffer),
                None => self.nulls.fill_with_nulls(column, count).and_then(|()| builder.append(&self.nulls)),
            };
            if let Err(error) = appended {
                return Err(group.with_context(index, error.with_column(builder.name()).with_samples(samples)));
            }
        }
        Ok(())
    }

    /// Takes the batch from the builders.
    fn take(&mut self) -> Result<RecordBatch> {
        let samples = self.samples.clone();
        let with_context = |error: Error| in_table(self.path.as_deref(), error.with_samples(samples.clone()));
        let columns = self.builders.iter_mut().map(|builder| {
            let array = builder.take();
            array.map_err(|error| with_context(error.with_column(builder.name())))
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let arrays = self.outputs.iter_mut().map(|output| {
            let name = output.node.name().to_owned();
            output.array(&columns).map_err(|error| with_context(error.with_column(&name)))
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX); // exact: the samples are in memory
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let batch =
            batch.map_err(|error| with_context(Error::bad_argument(format!("Arrow cannot hold the samples: {error}"))));
        self.samples.start = self.samples.end;
        self.budget = Budget::new(self.batch_bytes);
        batch
    }
}

/// Adds the path of the table to an error.
pub(super) fn in_table(path: Option<&Path>, error: Error) -> Error {
    match path {
        Some(path) => error.with_path(path),
        None => error,
    }
}

/// The number of bytes that still fit in a batch.
struct Budget {
    bytes: u64,
    is_empty: bool,
    is_full: bool,
}

impl Budget {
    fn new(bytes: u64) -> Self {
        Self { bytes, is_empty: true, is_full: false }
    }

    /// Deducts the size of a sample if it fits, and returns whether it does. The first sample
    /// always fits.
    fn take(&mut self, bytes: u64) -> bool {
        self.is_full = bytes > self.bytes && !self.is_empty;
        if !self.is_full {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.is_empty = false;
        }
        !self.is_full
    }
}

/// Returns the numbers of the named columns, in the order of the names, or of all columns if
/// `None`. The name of a struct selects all its fields. Selecting a field of a struct also selects
/// the nulls of the struct.
fn selected_columns(schema: &Schema, names: Option<&[String]>) -> Result<Vec<usize>> {
    let Some(names) = names else { return Ok((0..schema.columns.len()).collect()) };
    let mut named = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !named.insert(name.as_str())) {
        return Err(Error::bad_argument(format!("column {twice:?} is named twice")));
    }
    let all = with_paths(schema.columns.iter(), &saved_schema::fields(&schema.metadata));
    let all = all.iter().map(|column| &**column);
    let nodes = FieldNode::of_columns(all.clone());
    let paths = field_paths(all);
    let path_of = |number: usize| paths.get(number).and_then(Option::as_ref);
    let of_structs = (0..paths.len()).filter_map(|number| Some((path_of(number)?, number)));
    let nulls: HashMap<&str, usize> =
        of_structs.filter(|(path, _)| path.is_struct).map(|(path, number)| (path.text, number)).collect();
    let (mut seen, mut numbers) = (HashSet::new(), Vec::new());
    let mut add = |number: usize| {
        if seen.insert(number) {
            numbers.push(number);
        }
    };
    for name in names {
        for number in columns_of(schema, &nodes, name)? {
            let enclosing = path_of(number).into_iter().flat_map(|path| path::enclosing(path.text));
            enclosing.filter_map(|path| nulls.get(path)).for_each(|nulls| add(*nulls));
            add(number);
        }
    }
    Ok(numbers)
}

/// Returns the numbers of the columns that a name selects.
fn columns_of(schema: &Schema, nodes: &[FieldNode], name: &str) -> Result<Vec<usize>> {
    let column = schema.columns.iter().position(|column| column.name == name && !column.is_struct_nulls());
    match (column, FieldNode::named(nodes, name)) {
        (Some(number), _) => Ok(vec![number]),
        (None, Some((found, _))) => Ok(found.columns()),
        // finds at most a column that has the nulls of a struct, and whose path is ignored
        (None, None) => schema.find_column(name).map(|(number, _)| vec![number]),
    }
}

/// Returns the numbers of the columns whose fields had an ordered dictionary in the source.
fn ordered_columns(schema: &Schema, columns: &[usize]) -> Vec<usize> {
    let saved = saved_schema::fields(&schema.metadata);
    let fields = saved.iter().filter(|field| has_ordered_dictionary(field));
    let names: HashSet<&str> = fields.map(|field| field.name().as_str()).collect();
    let schemas = with_paths(columns.iter().filter_map(|&number| schema.columns.get(number)), &saved);
    let nodes = FieldNode::of_columns(schemas.iter().map(|column| &**column));
    let numbers = nodes.iter().filter(|node| names.contains(node.name())).flat_map(FieldNode::columns);
    numbers.filter_map(|number| columns.get(number).copied()).collect()
}

fn has_ordered_dictionary(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(..) => field.dict_is_ordered() == Some(true),
        DataType::Struct(fields) => fields.iter().any(|field| has_ordered_dictionary(field)),
        other => members(other).is_some_and(|item| has_ordered_dictionary(item)),
    }
}
