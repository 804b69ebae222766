//! The rows of a column, between an input and the writer.
//!
//! Every importer produces [`ColumnRows`], an owned [`ColumnBatch`]: the elements in one buffer,
//! the extents and validity of items, and the enclosing lists. If the elements of consecutive rows
//! are contiguous in Arrow's buffers, as they nearly always are, the buffers are shared rather than
//! copied.
//!
//! An importer produces rows without regard to the column of the file. So the rows still have all
//! extents that the type leaves open, and null elements inside tensors. [`ColumnRows::fit`] gives
//! them the form of the file's column: it turns outer dimensions into lists where the file has
//! lists, refuses nulls and shapes that the column does not allow, casts values, and replaces null
//! elements. Before that, a batch is cut into [slices](Batch::slices), because fitting adds
//! elements to nulls: in a column of fixed shape, a null takes as much memory as any other item.

use super::plan::input_column::{ColumnKind, Level, UNKNOWN, open_count};
use super::plan::{Column, ValueCaster};
use crate::batch::ListBuffer;
use crate::error::Advice;
use crate::format::CastFacts;
use crate::format::content::{all_present, bit, validity_bytes};
use crate::{ColumnBatch, ColumnSchema, DType, Error, ErrorKind, Extent, Shape, limits};
use half::{bf16, f16};
use std::fmt;
use std::ops::{Deref, Range};
use std::result::Result;
use std::sync::Arc;

/// The approximate size in bytes of the rows that are written at once. A slice has at least one
/// row.
const SLICE_BYTES: usize = 16 << 20;
/// The maximum number of items without elements in a batch. Nothing else bounds their number.
const MAX_EMPTY_ITEMS: usize = 1 << 24;

/// The reason why a row of a batch cannot be stored.
#[derive(Clone, Debug)]
pub(super) struct RowError {
    /// The row, counted from the start of the batch, or `None` if the error is not about one row.
    pub row: Option<usize>,
    pub message: String,
    pub kind: ErrorKind,
    /// What the caller can do about it.
    pub advice: Vec<Advice>,
}

impl RowError {
    pub(super) fn at(row: usize, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self { row: Some(row), ..message.into() }
    }

    pub(super) fn with_advice(mut self, advice: impl IntoIterator<Item = Advice>) -> Self {
        self.advice.extend(advice);
        self
    }

    /// Turns an error about an entry of the innermost lists into an error about the entry's row.
    pub(super) fn in_lists(self, lists: &[ListBuffer]) -> Self {
        Self { row: self.row.and_then(|entry| row_of(entry, lists)), ..self }
    }
}

impl From<String> for RowError {
    fn from(message: String) -> Self {
        Self { row: None, message, kind: ErrorKind::BadInput, advice: Vec::new() }
    }
}

impl From<Error> for RowError {
    fn from(error: Error) -> Self {
        let (message, advice) = (error.message().to_owned(), error.advice().to_vec());
        Self { row: None, message, kind: error.kind(), advice }
    }
}

/// Returns the row that contains an entry of the innermost lists.
pub(super) fn row_of(entry: usize, lists: &[ListBuffer]) -> Option<usize> {
    lists.iter().rev().try_fold(entry, |entry, lists| list_of(lists, entry))
}

fn list_of(lists: &ListBuffer, member: usize) -> Option<usize> {
    let end = lists.offsets().last().copied().and_then(|end| usize::try_from(end).ok())?;
    let starts = |offset: &u64| usize::try_from(*offset).is_ok_and(|offset| offset <= member);
    lists.offsets().partition_point(starts).checked_sub(1).filter(|_| member < end)
}

/// Consecutive rows of the columns that a pass reads, or the outlines of these rows.
#[derive(Debug)]
pub(super) struct Batch<T> {
    pub row_count: usize,
    /// The columns, in the order of the pass, with `Err` for a column with rows that cannot be
    /// stored.
    pub columns: Vec<Result<T, RowError>>,
}

/// A value whose memory counts against a budget: a batch, or a column in a batch.
pub(super) trait MemorySize {
    /// Returns the approximate memory in bytes.
    fn byte_count(&self) -> usize;
}

impl<T: MemorySize> MemorySize for Batch<T> {
    fn byte_count(&self) -> usize {
        let columns = self.columns.iter().flatten().map(MemorySize::byte_count);
        columns.fold(size_of_val(self.columns.as_slice()), usize::saturating_add)
    }
}

/// The facts about some rows of a column that the first pass needs. Except for timestamps, they
/// follow from offsets and validity.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// The extents that the type leaves open, or [`UNKNOWN`], item by item.
    pub extents: Vec<u32>,
    /// The number of outer dimensions that must become lists, because some rows are not tensors.
    pub unfolded: usize,
    /// Whether there are null elements inside tensors.
    pub has_null_elements: bool,
    /// Timestamps in nanoseconds since 1970, each with its row, if the unit of the column depends
    /// on all timestamps.
    pub instants: Vec<(i128, usize)>,
    /// Whether there is a null struct that is not inside another null struct.
    pub has_null_struct: bool,
}

impl MemorySize for Outline {
    fn byte_count(&self) -> usize {
        // no overflow: both are in memory
        size_of_val(self.extents.as_slice()) + size_of_val(self.instants.as_slice())
    }
}

impl Batch<ColumnRows> {
    /// Returns row ranges that can be written in bounded memory as samples of `columns`.
    pub(super) fn slices(&self, columns: &[ColumnSchema]) -> impl Iterator<Item = Range<usize>> + use<> {
        let stored =
            || self.columns.iter().zip(columns).filter_map(|(rows, column)| Some((rows.as_ref().ok()?, column)));
        let all = stored().map(|(rows, column)| {
            rows.values.len().max(rows.item_count.saturating_mul(inner_bytes(column, column.pushed_dtype())))
        });
        let mut ends = Vec::new();
        if all.fold(0, usize::saturating_add) > SLICE_BYTES {
            let mut bytes = vec![0; self.row_count];
            stored().for_each(|(rows, column)| {
                rows.add_bytes(&mut bytes, inner_bytes(column, column.pushed_dtype()), |bytes| bytes);
            });
            let mut slice = 0_usize;
            for (row, bytes) in bytes.into_iter().enumerate() {
                if slice > 0 && slice.saturating_add(bytes) > SLICE_BYTES {
                    ends.push(row);
                    slice = 0;
                }
                slice = slice.saturating_add(bytes);
            }
        }
        ends.extend((self.row_count > 0).then_some(self.row_count));
        let mut start = 0;
        ends.into_iter().map(move |end| std::mem::replace(&mut start, end)..end)
    }

    /// Returns the raw size of each row in bytes, as stored in `columns`. `planned` has the same
    /// columns, as the plan describes them.
    pub(super) fn row_bytes<'a>(
        &self,
        columns: &[ColumnSchema],
        planned: impl IntoIterator<Item = &'a Column>,
    ) -> Vec<usize> {
        let mut bytes = vec![0; self.row_count];
        for ((rows, column), planned) in self.columns.iter().zip(columns).zip(planned) {
            // a column that cannot be read causes an error when it is copied
            let Ok(rows) = rows else { continue };
            let element = rows.dtype.element_bytes().saturating_mul(planned.value_cast.map_or(1, |cast| cast.extent));
            let stored = column.dtype.element_bytes();
            let of_item = |bytes: usize| (bytes / element.max(1)).saturating_mul(stored);
            rows.add_bytes(&mut bytes, inner_bytes(column, column.dtype), of_item);
        }
        bytes
    }
}

/// Returns the raw size in bytes of every row of a stored column, or `None` if sizes differ.
pub(super) fn fixed_row_bytes(column: &ColumnSchema) -> Option<usize> {
    let is_fixed = column.levels.is_empty() && !column.shape.is_ragged();
    is_fixed.then(|| inner_bytes(column, column.dtype))
}

/// Returns the size of an item of fixed shape in bytes, or 0 if the shape varies.
fn inner_bytes(column: &ColumnSchema, dtype: DType) -> usize {
    let elements = column.shape.inner_elements().filter(|_| !column.shape.is_ragged());
    let elements = elements.and_then(|elements| usize::try_from(elements).ok()).unwrap_or(0);
    elements.saturating_mul(dtype.element_bytes())
}

/// Consecutive rows of one column.
#[derive(Clone, Debug)]
pub(super) struct ColumnRows {
    /// The type of the values.
    pub dtype: DType,
    /// The number of items: rows, or members of the innermost lists.
    pub item_count: usize,
    /// The lists of each level, outermost first.
    pub lists: Vec<ListBuffer>,
    /// The extents that the type leaves open, or [`UNKNOWN`], item by item. For strings, the
    /// lengths.
    pub extents: Vec<u32>,
    /// Elements in the byte order of this machine, or bytes of strings, item by item.
    pub values: SharedBytes,
    pub item_bytes: ItemBytes,
    /// The items that are not null.
    pub validity: Option<Bitmap>,
    pub null_elements: Option<NullElementBits>,
    /// The facts about a cast of the values.
    pub cast: Option<CastFacts>,
}

/// The position of each item in the values.
#[derive(Clone, Debug)]
pub(super) enum ItemBytes {
    /// All items have this number of bytes.
    Equal(usize),
    /// The offset of each item in the values, and the end offset of the last.
    Offsets(Vec<usize>),
}

/// The treatment of null elements inside tensors. Tensors cannot hold nulls, but lists can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NullElements {
    /// Stores a column with null elements as lists of nullable elements. Refuses null elements if
    /// this is impossible: in a column whose shape is declared by the caller or fixed by the file
    /// to append to, in Arrow's tensor types, and in the input of `write_reader`.
    #[default]
    Keep,
    /// Refuses the input. The error names the column and the row.
    Refuse,
    /// Stores NaN in float columns, and refuses null elements of other columns.
    Nan,
    /// Stores zero.
    Zero,
}

/// Null elements inside tensors.
#[derive(Clone, Debug)]
pub(super) struct NullElementBits {
    /// Whether each element of the values is null.
    pub are_null: Vec<bool>,
    /// The size of an element in bytes.
    pub width: usize,
}

impl MemorySize for ColumnRows {
    fn byte_count(&self) -> usize {
        let lists = self.lists.iter().map(|lists| size_of_val(lists.offsets()) + lists.bits().len());
        let offsets = match &self.item_bytes {
            ItemBytes::Equal(_) => 0,
            ItemBytes::Offsets(offsets) => size_of_val(offsets.as_slice()),
        };
        let nulls = self.null_elements.as_ref().map_or(0, |nulls| nulls.are_null.len());
        let validity = self.validity.as_ref().map_or(0, |Bitmap(bits)| bits.len());
        // no overflow: all are in memory
        self.values.len() + size_of_val(self.extents.as_slice()) + offsets + lists.sum::<usize>() + nulls + validity
    }
}

impl ItemBytes {
    fn range(&self, item: usize) -> Range<usize> {
        match self {
            // no overflow: all items are in memory
            Self::Equal(bytes) => item * bytes..(item + 1) * bytes,
            Self::Offsets(offsets) => {
                let offset = |item: usize| offsets.get(item).copied().unwrap_or(0);
                offset(item)..offset(item + 1)
            }
        }
    }
}

impl ColumnRows {
    /// Returns the rows of a column of scalars or strings.
    pub(super) fn scalars(dtype: DType, row_count: usize, values: SharedBytes, validity: Option<Bitmap>) -> Self {
        Self {
            dtype,
            item_count: row_count,
            lists: Vec::new(),
            extents: Vec::new(),
            values,
            item_bytes: ItemBytes::Equal(dtype.element_bytes()),
            validity,
            null_elements: None,
            cast: None,
        }
    }

    /// Returns the rows of a column that holds the nulls of a struct.
    pub(super) fn structs(item_count: usize, lists: Vec<ListBuffer>, validity: Option<Bitmap>) -> Self {
        let rows = Self::scalars(DType::Bool, item_count, SharedBytes::new([]), validity);
        Self { lists, item_bytes: ItemBytes::Equal(0), ..rows }
    }

    /// Returns the rows as a batch for the writer.
    pub(super) fn as_batch(&self) -> ColumnBatch<'_> {
        let batch = ColumnBatch::from_bytes(self.dtype, self.item_count, &self.extents, &self.values);
        let batch = match &self.validity {
            Some(Bitmap(bits)) => batch.with_validity(bits),
            None => batch,
        };
        if self.lists.is_empty() { batch } else { batch.in_buffers(&self.lists) }
    }

    pub(super) fn is_null(&self, item: usize) -> bool {
        self.validity.as_ref().is_some_and(|bitmap| !bitmap.is_set(item))
    }

    /// Returns the bytes of an item.
    pub(super) fn item(&self, item: usize) -> Option<&[u8]> {
        self.values.get(self.item_bytes.range(item))
    }

    /// Adds the size of each row's items to `rows`. `of_item` converts the size of an item in bytes
    /// to the size to add. At least `min_bytes` are added for each item.
    fn add_bytes(&self, rows: &mut [usize], min_bytes: usize, of_item: impl Fn(usize) -> usize) {
        let mut items = 0..self.item_count;
        for (row, bytes) in rows.iter_mut().enumerate() {
            let end = self.items_of(&(row..row + 1)).end;
            while items.start < end
                && let Some(item) = items.next()
            {
                *bytes = bytes.saturating_add(of_item(self.item_bytes.range(item).len()).max(min_bytes));
            }
        }
    }

    /// Returns the items of a range of rows.
    fn items_of(&self, rows: &Range<usize>) -> Range<usize> {
        self.lists.iter().fold(rows.clone(), |entries, lists| members(lists, &entries))
    }

    /// Returns a range of the rows. Values are shared; everything else is copied.
    pub(super) fn rows(&self, rows: &Range<usize>) -> Result<Self, RowError> {
        let mut lists = Vec::with_capacity(self.lists.len());
        let mut items = rows.clone();
        for level in &self.lists {
            lists.push(slice_lists(level, &items)?);
            items = members(level, &items);
        }
        let per_item = self.extents.len().checked_div(self.item_count).unwrap_or(0);
        // no overflow: the range is inside the column
        let bytes = self.item_bytes.range(items.start).start..self.item_bytes.range(items.end).start;
        let extents = self.extents.get(items.start * per_item..items.end * per_item).ok_or_else(outside)?;
        let item_bytes = match &self.item_bytes {
            ItemBytes::Equal(bytes) => ItemBytes::Equal(*bytes),
            ItemBytes::Offsets(offsets) => {
                let own = offsets.get(items.start..=items.end).ok_or_else(outside)?;
                ItemBytes::Offsets(own.iter().map(|offset| offset - bytes.start).collect()) // offsets ascend
            }
        };
        let null_elements = self.null_elements.as_ref().map(|NullElementBits { are_null, width }| {
            let range = bytes.start / (*width).max(1)..bytes.end / (*width).max(1);
            Some(NullElementBits { are_null: are_null.get(range)?.to_vec(), width: *width })
        });
        let null_elements = match null_elements {
            Some(some) => Some(some.ok_or_else(outside)?),
            None => None,
        };
        Ok(Self {
            dtype: self.dtype,
            item_count: items.len(),
            lists,
            extents: extents.to_vec(),
            values: self.values.slice(bytes).ok_or_else(outside)?,
            item_bytes,
            validity: self.validity.as_ref().map(|bitmap| bitmap.slice(&items)),
            null_elements,
            cast: self.cast,
        })
    }

    /// Returns the first row with a null struct that is not inside another null struct. The items
    /// are structs; `around` has the enclosing structs.
    pub(super) fn first_null_struct(&self, around: &[&Self]) -> Option<usize> {
        self.validity.as_ref()?;
        let count = self.item_count;
        let mut is_inside = vec![false; count];
        // for each item, its entry in the current level; the innermost level comes first
        let mut entries: Vec<Option<usize>> = (0..count).map(Some).collect();
        for level in (0..=self.lists.len()).rev() {
            for outer in around.iter().filter(|outer| outer.lists.len() == level) {
                let is_null = |entry: &Option<usize>| entry.is_some_and(|entry| outer.is_null(entry));
                is_inside.iter_mut().zip(&entries).for_each(|(inside, entry)| *inside |= is_null(entry));
            }
            if let Some(lists) = level.checked_sub(1).and_then(|level| self.lists.get(level)) {
                entries.iter_mut().for_each(|entry| *entry = entry.and_then(|entry| list_of(lists, entry)));
            }
        }
        let own = (0..count).zip(is_inside).find(|&(item, is_inside)| self.is_null(item) && !is_inside);
        row_of(own?.0, &self.lists)
    }

    /// Converts the rows to the form of a column of the file. The shape of that column is already
    /// known.
    pub(super) fn fit(mut self, column: &Column, shape: &Shape, null_elements: NullElements) -> Result<Self, RowError> {
        self.unfold(column)?;
        self.check_nulls(column)?;
        if let Some(cast) = column.value_cast {
            self.cast_values(&mut ValueCaster::new(cast), cast.extent, column.kind.dtype)?;
        }
        self.replace_null_elements(null_elements)?;
        if !column.kind.dtype.is_string() {
            self.fit_shape(&column.kind, shape)?;
        }
        Ok(self)
    }

    fn problem(&self, item: usize, message: impl Into<String>) -> RowError {
        RowError::at(item, message).in_lists(&self.lists).with_advice([Advice::SkipColumns])
    }

    /// Turns outer dimensions that are lists in the file into lists, unless the importer has
    /// already done so.
    fn unfold(&mut self, column: &Column) -> Result<(), RowError> {
        let missing = column.kind.lists.len().saturating_sub(self.lists.len()).min(column.unfolded.len());
        if missing > 0 {
            self.drop_values_of_nulls()?;
        }
        for (i, level) in column.unfolded.iter().enumerate().skip(column.unfolded.len() - missing) {
            let below = column.unfolded.iter().skip(i + 1).chain(&column.kind.levels);
            let open_below = below.filter(|level| matches!(level, Level::Open)).count();
            self.unfold_level(level, open_below)?;
        }
        Ok(())
    }

    /// Drops the values of null items, which become lists without members.
    fn drop_values_of_nulls(&mut self) -> Result<(), RowError> {
        let ItemBytes::Equal(bytes) = self.item_bytes else { return Ok(()) };
        if self.validity.is_none() || bytes == 0 {
            return Ok(());
        }
        let (mut values, mut offsets) = (Vec::new(), vec![0]);
        for item in 0..self.item_count {
            if !self.is_null(item) {
                values.extend_from_slice(self.item(item).ok_or_else(outside)?);
            }
            offsets.push(values.len());
        }
        self.values = SharedBytes::new(values);
        self.item_bytes = ItemBytes::Offsets(offsets);
        Ok(())
    }

    /// Turns the outermost dimension into lists. `open_below` is the number of open dimensions
    /// below it.
    fn unfold_level(&mut self, level: &Level, open_below: usize) -> Result<(), RowError> {
        let open_here = open_count(std::slice::from_ref(level));
        let per_item = open_here.saturating_add(open_below);
        let mut lists = ListBuffer::default();
        lists.clear()?;
        let (mut extents, mut offsets) = (Vec::new(), vec![0]);
        for item in 0..self.item_count {
            let open = self.extents.get(item * per_item..(item + 1) * per_item).unwrap_or(&[]);
            let length = match level {
                Level::Open => open.first().copied().filter(|&extent| extent != UNKNOWN).unwrap_or(0),
                Level::Fixed(extents) => extents.first().copied().unwrap_or(0),
            };
            let (range, is_null) = (self.item_bytes.range(item), self.is_null(item));
            lists.push((!is_null).then_some(length))?;
            let length = if is_null { 0 } else { usize::try_from(length).unwrap_or(usize::MAX) };
            let step = range.len().checked_div(length).unwrap_or(0);
            if step == 0 && length.saturating_add(offsets.len()) > MAX_EMPTY_ITEMS {
                return Err(format!("a batch has more than {MAX_EMPTY_ITEMS} lists without elements").into());
            }
            for member in 1..=length {
                offsets.push(range.start + member * step); // inside the range
                extents.extend_from_slice(open.get(open_here..).unwrap_or(&[]));
            }
        }
        self.item_count = offsets.len().saturating_sub(1);
        (self.extents, self.validity) = (extents, None);
        self.item_bytes = ItemBytes::Offsets(offsets);
        self.lists.push(lists);
        Ok(())
    }

    /// Refuses nulls that the column does not allow.
    fn check_nulls(&self, column: &Column) -> Result<(), RowError> {
        let levels = &column.kind.lists;
        let may_be_null = |level: usize| match level.checked_sub(1).and_then(|above| levels.get(above)) {
            Some(level) => level.nullable,
            None => column.nullable,
        };
        let with_advice = |problem: RowError| problem.with_advice([Advice::SkipColumns]);
        for (level, lists) in self.lists.iter().enumerate().filter(|(level, _)| !may_be_null(*level)) {
            if let Some(null) = (0..lists.list_count()).find(|&i| lists.is_null(i)) {
                let problem = RowError::at(null, "found a null in a column or list that is declared non-nullable");
                return Err(with_advice(problem.in_lists(self.lists.get(..level).unwrap_or(&[]))));
            }
        }
        if self.validity.is_none() || may_be_null(levels.len()) {
            return Ok(());
        }
        match (0..self.item_count).find(|&item| self.is_null(item)) {
            Some(null) => Err(self.problem(null, "found a null in a column that is declared non-nullable")),
            None => Ok(()),
        }
    }

    /// Casts the values to another type. Each value consists of `extent` elements. Nulls become
    /// zero.
    fn cast_values(&mut self, caster: &mut ValueCaster, extent: usize, dtype: DType) -> Result<(), RowError> {
        let width = self.dtype.element_bytes().saturating_mul(extent).max(1);
        let cast_width = dtype.element_bytes();
        let mut offsets = vec![0];
        for item in 0..self.item_count {
            let range = self.item_bytes.range(item);
            let bytes = self.values.get(range.clone()).ok_or_else(outside)?;
            for (element, value) in (range.start / width..).zip(bytes.chunks_exact(width)) {
                let nulls = self.null_elements.as_ref().map(|nulls| &nulls.are_null);
                let is_null = nulls.is_some_and(|nulls| nulls.get(element).is_some_and(|is_null| *is_null));
                let value = (!is_null && !self.is_null(item)).then_some(value);
                caster.push(value).map_err(|message| self.problem(item, message))?;
            }
            offsets.push(caster.out.len());
        }
        self.cast = caster.facts();
        self.values = SharedBytes::new(std::mem::take(&mut caster.out));
        self.dtype = dtype;
        self.null_elements.iter_mut().for_each(|nulls| nulls.width = cast_width);
        self.item_bytes = match &self.item_bytes {
            ItemBytes::Equal(bytes) => ItemBytes::Equal(bytes / width * cast_width),
            ItemBytes::Offsets(_) => ItemBytes::Offsets(offsets),
        };
        Ok(())
    }

    /// Replaces null elements of items that are not null, as the caller requested.
    fn replace_null_elements(&mut self, treatment: NullElements) -> Result<(), RowError> {
        let Some(NullElementBits { are_null, width }) = self.null_elements.take() else { return Ok(()) };
        let mut bytes = None;
        for item in (0..self.item_count).filter(|&item| !self.is_null(item)) {
            let range = self.item_bytes.range(item);
            let elements = range.start / width.max(1)..range.end / width.max(1);
            for element in elements.filter(|&element| are_null.get(element) == Some(&true)) {
                if bytes.is_none() {
                    let value = replacement(self.dtype, width, treatment)
                        .map_err(|(message, advice)| self.null_element(item, message, advice))?;
                    bytes = Some((self.values.to_vec(), value));
                }
                if let Some((bytes, value)) = &mut bytes {
                    let destination = bytes.get_mut(element * width..(element + 1) * width);
                    destination.into_iter().for_each(|destination| destination.copy_from_slice(value)); // equal lengths
                }
            }
        }
        if let Some((bytes, _)) = bytes {
            self.values = SharedBytes::new(bytes);
        }
        Ok(())
    }

    fn null_element(&self, item: usize, message: String, advice: Advice) -> RowError {
        RowError::at(item, message).in_lists(&self.lists).with_advice([advice, Advice::SkipColumns])
    }

    /// Keeps only the extents that vary in the file. Checks open extents if they are fixed in the
    /// file. If the shape is fixed, null items get elements.
    fn fit_shape(&mut self, kind: &ColumnKind, shape: &Shape) -> Result<(), RowError> {
        let open = open_extents(kind, shape);
        let mut varying = Vec::new();
        for (item, extents) in self.extents.chunks_exact(open.len().max(1)).enumerate() {
            for (expected, &extent) in open.iter().zip(extents) {
                match expected {
                    Extent::Varying if self.is_null(item) || extent == UNKNOWN => varying.push(0),
                    Extent::Varying => varying.push(extent),
                    Extent::Fixed(expected) if extent == UNKNOWN || extent == *expected => {}
                    Extent::Fixed(_) => {
                        return Err(shape_mismatch(item, extents, kind, shape).in_lists(&self.lists));
                    }
                }
            }
        }
        self.extents = varying;
        if !shape.is_ragged() && self.validity.is_some() {
            self.fill_nulls(shape)?;
        }
        Ok(())
    }

    /// Gives null items of a fixed shape the elements that they have in the file. Refuses a size
    /// that exceeds a chunk or the available memory. Rows are fitted in slices, so only a slice of
    /// a single row can be that large.
    fn fill_nulls(&mut self, shape: &Shape) -> Result<(), RowError> {
        let elements = shape.inner_elements().and_then(|count| usize::try_from(count).ok());
        let null_bytes = elements.and_then(|count| count.checked_mul(self.dtype.element_bytes()));
        let null_bytes = null_bytes.ok_or_else(outside)?;
        if matches!(self.item_bytes, ItemBytes::Equal(bytes) if bytes == null_bytes) {
            return Ok(());
        }
        let mut nulls = (0..self.item_count).filter(|&item| self.is_null(item));
        let Some(first) = nulls.next() else { return Ok(()) };
        let count = nulls.count().saturating_add(1);
        let bytes = count.saturating_mul(null_bytes);
        let fits = u32::try_from(bytes).is_ok_and(|bytes| bytes <= limits::CHUNK_BYTES);
        let mut filled = Vec::new();
        if !fits || filled.try_reserve_exact(bytes.saturating_add(self.values.len())).is_err() {
            let message = format!(
                "{count} null items of shape {shape} take {bytes} bytes, which exceeds the size of a chunk or the \
                 available memory; in a column of fixed shape, a null takes as many bytes as any other item"
            );
            return Err(self.problem(first, message));
        }
        for item in 0..self.item_count {
            if self.is_null(item) {
                filled.resize(filled.len().saturating_add(null_bytes), 0);
            } else {
                filled.extend_from_slice(self.item(item).ok_or_else(outside)?);
            }
        }
        self.values = SharedBytes::new(filled);
        self.item_bytes = ItemBytes::Equal(null_bytes);
        Ok(())
    }
}

/// Returns the members of consecutive lists.
fn members(lists: &ListBuffer, entries: &Range<usize>) -> Range<usize> {
    let offset = |i: usize| lists.offsets().get(i).and_then(|&offset| usize::try_from(offset).ok()).unwrap_or(0);
    offset(entries.start)..offset(entries.end)
}

fn slice_lists(lists: &ListBuffer, entries: &Range<usize>) -> Result<ListBuffer, RowError> {
    let mut some = ListBuffer::default();
    some.clear()?;
    for i in entries.clone() {
        let length = u32::try_from(members(lists, &(i..i + 1)).len()).map_err(|_| outside())?;
        some.push((!lists.is_null(i)).then_some(length))?;
    }
    Ok(some)
}

pub(super) fn outside() -> RowError {
    "the elements of a sample lie outside the array".to_owned().into()
}

/// Returns the bytes of one element that replaces a null.
fn replacement(dtype: DType, width: usize, treatment: NullElements) -> Result<Vec<u8>, (String, Advice)> {
    match (treatment, dtype) {
        (NullElements::Zero, _) => Ok(vec![0; width]),
        (NullElements::Nan, DType::Bf16) => Ok(bf16::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F16) => Ok(f16::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F32) => Ok(f32::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F64) => Ok(f64::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, _) => {
            let message = format!("a tensor has a null element, but its type {dtype} has no NaN");
            Err((message, Advice::ReplaceNullsWithZero))
        }
        (NullElements::Keep | NullElements::Refuse, _) => {
            let advice = if dtype.is_float() { Advice::ReplaceNulls } else { Advice::ReplaceNullsWithZero };
            Err(("a tensor has a null element".to_owned(), advice))
        }
    }
}

/// Returns the error about an item whose open extents do not fit the shape.
fn shape_mismatch(item: usize, open: &[u32], kind: &ColumnKind, shape: &Shape) -> RowError {
    let own = kind.item_shape(open);
    let both = own.extents().iter().zip(shape.extents());
    let fitting = both.map(|(own, expected)| match expected {
        Extent::Fixed(extent) if own == expected || *own == Extent::Varying => Some(*extent),
        _ => None,
    });
    let advice = [Advice::DeclareShape(fitting.collect()), Advice::SkipColumns];
    RowError::at(item, format!("the sample has shape {own}, but the column has shape {shape}")).with_advice(advice)
}

/// Returns the extents of `shape` in the dimensions that the type leaves open.
fn open_extents(kind: &ColumnKind, shape: &Shape) -> Vec<Extent> {
    let mut dimension = 0;
    let mut open = Vec::new();
    for level in &kind.levels {
        match level {
            Level::Open => {
                open.extend(shape.extents().get(dimension));
                dimension += 1;
            }
            Level::Fixed(extents) => dimension += extents.len(),
        }
    }
    open
}

/// A bitmap of items: bit `i % 8` (0 is the least significant) of byte `i / 8` is 1 if item `i` is
/// not null.
#[derive(Clone, Debug)]
pub(super) struct Bitmap(pub SharedBytes);

impl Bitmap {
    /// Creates a bitmap of `count` bits.
    pub(super) fn of(count: usize, is_set: impl Fn(usize) -> bool) -> Self {
        let mut bits: Vec<u8> = all_present(count).collect();
        for i in (0..count).filter(|&i| !is_set(i)) {
            bits.get_mut(i / 8).into_iter().for_each(|byte| *byte &= !(1 << (i % 8)));
        }
        Self(SharedBytes::new(bits))
    }

    fn is_set(&self, i: usize) -> bool {
        bit(&self.0, i)
    }

    fn slice(&self, range: &Range<usize>) -> Self {
        let start = range.start / 8;
        let aligned = range.start.is_multiple_of(8).then(|| self.0.slice(start..start + validity_bytes(range.len())));
        aligned.flatten().map_or_else(|| Self::of(range.len(), |i| self.is_set(range.start + i)), Self)
    }
}

/// A range of a shared, immutable buffer. Cloning and slicing copy no bytes.
#[derive(Clone)]
pub(super) struct SharedBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl SharedBytes {
    pub(super) fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let range = 0..owner.as_ref().len();
        Self { owner: Arc::new(owner), range }
    }

    /// Returns the bytes of `range`, or `None` if it is out of bounds.
    pub(super) fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        let start = self.range.start;
        // in bounds
        Some(Self { owner: Arc::clone(&self.owner), range: start + range.start..start + range.end })
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or(&[]) // in bounds: checked by `slice`
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_slices_stay_inside() {
        let all = SharedBytes::new(vec![0_u8, 1, 2, 3, 4]);
        let some = all.slice(1..4).unwrap();
        assert_eq!((&some[..], &some.slice(1..3).unwrap()[..]), (&[1_u8, 2, 3][..], &[2_u8, 3][..]));
        assert!(some.slice(2..4).is_none() && some.slice(3..3).is_some_and(|none| none.is_empty()));
    }

    #[test]
    fn a_problem_has_kind_and_advice_of_its_error() {
        let error = Error::over_limit("too many").with_advice([Advice::SkipColumns]);
        let problem = RowError::from(error);
        assert_eq!((problem.kind, &problem.advice[..]), (ErrorKind::OverLimit, &[Advice::SkipColumns][..]));
    }

    #[test]
    fn some_rows_of_nested_columns_are_the_same_rows() {
        let mut lists = ListBuffer::default();
        lists.clear().unwrap();
        [Some(2), None, Some(0), Some(3)].into_iter().for_each(|length| lists.push(length).unwrap());
        let all = ColumnRows {
            lists: vec![lists],
            extents: vec![1, 0, 2, 1, 0],
            item_bytes: ItemBytes::Offsets(vec![0, 1, 1, 3, 4, 4]),
            ..ColumnRows::scalars(DType::Utf8, 5, SharedBytes::new(*b"abcd"), Some(Bitmap::of(5, |i| i != 1)))
        };
        let some = all.rows(&(1..4)).unwrap();
        assert_eq!((some.item_count, &some.values[..], some.extents.as_slice()), (3, &b"bcd"[..], &[2, 1, 0][..]));
        assert_eq!(some.lists[0].offsets(), [0, 0, 0, 3]);
        assert!(some.lists[0].is_null(0) && !some.lists[0].is_null(1) && some.validity.is_some());
        assert_eq!([0, 1, 2, 4].map(|item| row_of(item, &all.lists)), [Some(0), Some(0), Some(3), Some(3)]);
        assert_eq!(row_of(5, &all.lists), None);
        let mut bytes = vec![0; 4];
        all.add_bytes(&mut bytes, 1, |bytes| bytes);
        assert_eq!(bytes, [2, 0, 0, 4]);
    }
}
