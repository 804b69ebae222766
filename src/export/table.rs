//! The samples that an export reads, and their sizes.
//!
//! A [`Table`] is a file, or several files one after another. A [`GroupReader`] reads the columns
//! of one group of a table, and tracks the position in it.
//!
//! A batch must end before it becomes too large, so samples that differ in size are measured before
//! they are read ([`SampleSize`]). Their size in the file is not enough, because null items of a
//! fixed-size type take no bytes in the file, but the full width in Arrow.

use super::elements::{exported_bytes, source_bytes};
use super::field::{Form, Target};
use super::retype::MAX_NULL_BYTES;
use crate::bytes::le::u64_of;
use crate::format::CastFacts;
use crate::open::FileIdentity;
use crate::read::{List, RequestScratch};
use crate::{Column, ColumnBuffer, ColumnSchema, Cursor, Error, Extent, Reader, Result, Sample, Schema, Shape};
use std::iter;
use std::ops::Range;
use std::path::Path;

/// Samples that are exported together: the samples of a file, or of several files one after
/// another.
pub trait Table {
    /// The error of the table.
    type Error: From<Error>;

    /// Returns the columns and the metadata.
    fn schema(&self) -> &Schema;

    /// Returns the path to name in errors.
    fn path(&self) -> Option<&Path>;

    /// Opens the groups of the table one after another, with the given columns. `columns` has
    /// their indices in the schema.
    fn groups(&self, columns: Vec<usize>) -> impl Iterator<Item = std::result::Result<TableGroup, Self::Error>>;

    /// Returns the cast facts of these columns, combined over all groups.
    fn cast_facts(&self, columns: &[usize]) -> std::result::Result<Vec<Option<CastFacts>>, Self::Error>;

    /// Returns whether a single conversion wrote all samples. If so, the metadata describes the
    /// order of dictionary values for all of them.
    fn is_from_one_conversion(&self) -> std::result::Result<bool, Self::Error>;

    /// Fails if the output file, which has this identity and path, is a file of the table.
    fn check_output(&self, identity: Option<FileIdentity>, path: Option<&Path>)
    -> std::result::Result<(), Self::Error>;
}

/// Consecutive samples of a table.
pub struct TableGroup {
    columns: Vec<Option<Column>>,
    sample_count: u64,
}

impl TableGroup {
    /// Returns a group with the given columns. Each column must have exactly `sample_count`
    /// samples. `None` stands for a column whose samples are all null.
    ///
    /// The columns must have the types, shapes and levels of lists that the table's columns have,
    /// but their names and metadata can differ.
    pub fn new(columns: Vec<Option<Column>>, sample_count: u64) -> Result<Self> {
        match columns.iter().flatten().find(|column| column.sample_count() != sample_count) {
            None => Ok(Self { columns, sample_count }),
            Some(column) => {
                let message =
                    format!("the column has {} samples, but the group has {sample_count}", column.sample_count());
                Err(column.in_file(Error::bad_argument(message).with_column(&column.schema().name)))
            }
        }
    }

    /// Returns the columns; `None` stands for a column whose samples are all null.
    pub fn columns(&self) -> &[Option<Column>] {
        &self.columns
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }
}

impl Table for Reader {
    type Error = Error;

    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn path(&self) -> Option<&Path> {
        self.path()
    }

    fn groups(&self, columns: Vec<usize>) -> impl Iterator<Item = Result<TableGroup>> {
        let columns = columns.iter().map(|&number| self.column_at(number)).collect();
        iter::once(TableGroup::new(columns, self.sample_count()))
    }

    fn cast_facts(&self, columns: &[usize]) -> Result<Vec<Option<CastFacts>>> {
        Ok(columns.iter().map(|&number| self.column_at(number).and_then(|column| column.facts().cast)).collect())
    }

    fn is_from_one_conversion(&self) -> Result<bool> {
        Ok(self.commit_count() <= 1)
    }

    fn check_output(&self, identity: Option<FileIdentity>, path: Option<&Path>) -> Result<()> {
        self.check_output(identity, path)
    }
}

/// Reads the samples of a group. All samples before `next` have been read.
pub(super) struct GroupReader {
    columns: Vec<Option<PartColumn>>,
    /// Scratch memory that the cursors share.
    request: RequestScratch,
    /// The samples that were read last.
    buffer: ColumnBuffer,
    pub next: u64,
    pub end: u64,
}

/// A column of a group. The columns of a group can be in different files.
struct PartColumn {
    column: Column,
    cursor: Cursor,
    /// The chunk that was measured last, which the cursor caches.
    chunk: Range<u64>,
}

impl GroupReader {
    pub(super) fn new(group: TableGroup) -> Self {
        let open = |column: Column| PartColumn { cursor: column.cursor(), column, chunk: 0..0 };
        let columns = group.columns.into_iter().map(|column| column.map(open)).collect();
        let (request, buffer) = (RequestScratch::default(), ColumnBuffer::new());
        Self { columns, request, buffer, next: 0, end: group.sample_count }
    }

    /// Limits a range of samples to the chunk that contains its start.
    pub(super) fn limit_to_chunk(&mut self, index: usize, samples: &mut Range<u64>) -> Result<()> {
        let Some(Some(PartColumn { column, chunk, .. })) = self.columns.get_mut(index) else { return Ok(()) };
        if !chunk.contains(&samples.start) {
            *chunk = column.chunk_of(samples.start)?.samples;
        }
        samples.end = samples.end.min(chunk.end);
        Ok(())
    }

    /// Returns the size, in bytes, that sample `i` of a column has in a batch.
    pub(super) fn measure(&mut self, index: usize, size: &SampleSize, i: u64) -> Result<u64> {
        match self.columns.get_mut(index) {
            Some(Some(PartColumn { column, cursor, .. })) => size.of(cursor, i).map_err(|error| column.in_file(error)),
            _ => Ok(size.of_null()),
        }
    }

    /// Reads samples of a column; `None` if all of them are null.
    pub(super) fn read(&mut self, index: usize, samples: Range<u64>) -> Result<Option<&ColumnBuffer>> {
        let Some(Some(PartColumn { cursor, .. })) = self.columns.get_mut(index) else { return Ok(None) };
        cursor.range_into_sharing(&mut self.request, samples, &mut self.buffer)?;
        Ok(Some(&self.buffer))
    }

    /// Adds the path of a column's file to an error.
    pub(super) fn with_context(&self, index: usize, error: Error) -> Error {
        match self.columns.get(index) {
            Some(Some(found)) => found.column.in_file(error),
            _ => error,
        }
    }
}

/// The size of an offset or extent in bytes.
const OFFSET_BYTES: u64 = 4;

/// Measures samples of a column that differ in size.
pub(super) struct SampleSize {
    element_bytes: u64,
    exported_bytes: u64,
    /// The size, in bytes, of the offset and the shape of an item.
    item_bytes: u64,
    /// The size of each item in bytes, including null items, if the type has a fixed size.
    string_bytes: Option<u64>,
    /// Whether each dimension becomes a level of lists.
    is_lists: bool,
    /// The size of a null sample in bytes.
    null_bytes: u64,
}

impl SampleSize {
    /// Returns the sizes for a column; `None` if all its samples have the same size.
    pub(super) fn new(column: &ColumnSchema, target: &Target) -> Option<Self> {
        if !column.shape.is_ragged() && column.levels.is_empty() {
            return None;
        }
        let ndim = u64_of(target.shape.ndim());
        let parts = match target.form {
            Form::Scalar | Form::Null | Form::FixedString(_) | Form::FixedTensor(_) => 0,
            Form::String | Form::List | Form::Tensor { .. } => 1 + ndim,
            Form::Lists => ndim,
        };
        let string_bytes = match target.form {
            Form::FixedString(bytes) => u64::try_from(bytes).ok(), // not negative
            _ => None,
        };
        let mut this = Self {
            element_bytes: u64_of(source_bytes(column.dtype, &target.element)),
            exported_bytes: exported_bytes(target.dtype, &target.element),
            item_bytes: parts * OFFSET_BYTES, // `parts` is at most 17
            string_bytes,
            is_lists: target.form == Form::Lists,
            null_bytes: OFFSET_BYTES,
        };
        if column.levels.is_empty() {
            let lists = this.tensor_lists(&null_extents(&target.shape));
            this.null_bytes = this.elements(0, 1).saturating_add(this.item_bytes).saturating_add(lists);
        }
        Some(this)
    }

    /// Returns the size of a null sample in bytes.
    pub(super) fn of_null(&self) -> u64 {
        self.null_bytes
    }

    /// Returns the size of sample `i` in bytes.
    pub(super) fn of(&self, cursor: &mut Cursor, i: u64) -> Result<u64> {
        if cursor.column().schema().levels.is_empty() {
            let sample = cursor.read(i)?;
            let elements = self.elements(u64_of(sample.bytes().len()), 1);
            return Ok(elements.saturating_add(self.item_bytes).saturating_add(self.tensor_lists(sample.extents())));
        }
        let list = cursor.read_list(i)?;
        let (lists, items) = list.entry_counts()?;
        let stored = u64_of(list.sample_bytes().len());
        let elements = self.elements(stored, items);
        let mut tensor_lists = 0_u64;
        if self.is_lists {
            for_each_item(&list, &mut |item| {
                tensor_lists = tensor_lists.saturating_add(self.tensor_lists(item.extents()))
            })?;
        }
        if self.string_bytes.is_some() && elements > stored.saturating_mul(2).saturating_add(MAX_NULL_BYTES) {
            return Err(too_many_nulls(cursor, i, elements - stored));
        }
        let parts = [
            elements,
            lists.saturating_mul(OFFSET_BYTES),
            items.saturating_mul(self.item_bytes),
            items.div_ceil(8), // the size of the validity bitmap of the items
            tensor_lists,
        ];
        Ok(parts.into_iter().fold(0, u64::saturating_add))
    }

    /// Returns the size, in bytes, of the elements of `items` items. `stored` is their size in the
    /// file.
    fn elements(&self, stored: u64, items: u64) -> u64 {
        match self.string_bytes {
            Some(bytes) => items.saturating_mul(bytes).max(stored),
            None => (stored / self.element_bytes).saturating_mul(self.exported_bytes), // the divisor is not 0
        }
    }

    /// Returns the size, in bytes, of the offsets of the lists that a tensor becomes.
    fn tensor_lists(&self, shape: &[u32]) -> u64 {
        if !self.is_lists {
            return 0;
        }
        let mut lists = 1_u64;
        let levels = shape.iter().map(|extent| {
            let own = lists;
            lists = lists.saturating_mul(u64::from(*extent));
            own
        });
        levels.fold(0_u64, u64::saturating_add).saturating_mul(OFFSET_BYTES)
    }
}

/// Returns the extents of a null tensor.
fn null_extents(shape: &Shape) -> Vec<u32> {
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => *extent,
        Extent::Varying => 0,
    };
    shape.extents().iter().map(extent).collect()
}

/// Calls a function with each item of a list, including its inner lists.
fn for_each_item(list: &List<'_>, action: &mut dyn FnMut(&Sample<'_>)) -> Result<()> {
    if list.has_lists() {
        return (0..list.len()).try_for_each(|k| for_each_item(&list.list(k)?, action));
    }
    list.items().try_for_each(|item| item.map(|item| action(&item)))
}

#[cold]
fn too_many_nulls(cursor: &Cursor, i: u64, bytes: u64) -> Error {
    let column = cursor.column();
    let column = column.schema();
    let data_type = column.metadata.get(crate::logical::arrow_type::KEY).map_or("", String::as_str);
    let message = format!(
        "the null items of a list would take {bytes} bytes as {data_type}, which exceeds the size of the other items \
         by more than {MAX_NULL_BYTES} bytes; skip the column"
    );
    Error::over_limit(message).with_column(&column.name).with_samples(i..i.saturating_add(1))
}
