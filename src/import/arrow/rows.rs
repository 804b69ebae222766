//! Converts the rows of a column in a record batch: from nested arrays to contiguous elements.
//!
//! A [path](ColumnPath) leads through structs and lists to an array whose rows are the items of the
//! column. [`locate`] follows the path, and then the dimensions of the items, down to the elements.
//! For each item, it finds the range of the item's elements and the extents that the type leaves
//! open. It reads only offsets and validity. The first pass stops there, and returns these facts as
//! an [`Outline`]. The second pass makes the elements contiguous. It does not copy elements that
//! are already contiguous.
//!
//! Sibling lists of different lengths do not form a tensor. In that case, as few outer dimensions
//! as possible become levels of lists. The first pass finds their number, and the request of the
//! second pass contains it.

use super::decode::{AnyList, by_index, check_rows, decode, field_of};
use super::elements::{Refusal, Values, instants, plain_bytes, values};
use super::paths::{ColumnPath, Step};
use crate::batch::ListBuffer;
use crate::error::Advice;
use crate::format::content::product_of_extents;
use crate::import::plan::in_unit;
use crate::import::plan::input_column::{ColumnKind, Level, UNKNOWN};
use crate::import::rows::{
    Bitmap, ColumnRows, ItemBytes, NullElementBits, Outline, RowError, SharedBytes, outside, row_of,
};
use crate::logical::arrow_type::{ArrowType, StoredElement, TimeUnit};
use crate::{DType, limits};
use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType, Int32Type};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, RecordBatch, StructArray, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;
use std::iter;
use std::ops::Range;
use std::result::Result;

/// The maximum number of list members in a batch that take no memory.
const MAX_EMPTY_MEMBERS: usize = 1 << 24;

/// The items of a column in a batch.
pub(super) struct ColumnItems {
    /// The kind of the items.
    kind: ColumnKind,
    /// The enclosing lists.
    lists: Vec<ListBuffer>,
    nulls: Option<NullBuffer>,
    items: Items,
}

enum Items {
    /// Structs, and the first row with a null struct that is not inside another null struct.
    Structs {
        count: usize,
        first_null: Option<usize>,
    },
    Strings(ArrayRef),
    Tensors(Tensors),
}

/// Finds the items of a column of this kind in a batch. `fields` are the fields of the schema that
/// the batch has. `unfolded` is the number of outer dimensions that are lists, if it is already
/// known.
pub(super) fn locate(
    batch: &RecordBatch,
    fields: &[usize],
    path: &ColumnPath,
    kind: &ColumnKind,
    unfolded: Option<usize>,
) -> Result<ColumnItems, RowError> {
    let mut at = ArrayCursor::at_root(batch, fields, &path.fields)?;
    let mut kind = kind.clone();
    let mut lists = Vec::new();
    let enter = |at: &mut ArrayCursor, lists: &mut Vec<ListBuffer>| -> Result<(), RowError> {
        let entered = at.enter_lists().map_err(|problem| problem.in_lists(lists))?;
        lists.push(entered);
        Ok(())
    };
    for step in &path.steps {
        match step {
            Step::List => enter(&mut at, &mut lists)?,
            Step::Field(child) => at.enter_field(*child)?,
        }
    }
    if path.is_struct {
        return Ok(at.structs(kind, lists));
    }
    for _ in kind.unfold(unfolded.unwrap_or(0)) {
        enter(&mut at, &mut lists)?;
    }
    loop {
        let (items, nulls) = at.items()?;
        match items_of(&items, nulls.as_ref(), &kind) {
            Ok((items, nulls)) => return Ok(ColumnItems { kind, lists, nulls, items }),
            Err(NotTensors::Nested { dimensions, .. }) if unfolded.is_none() => {
                for _ in kind.unfold(dimensions) {
                    enter(&mut at, &mut lists)?;
                }
            }
            Err(NotTensors::Refusal(problem) | NotTensors::Nested { problem, .. }) => {
                return Err(problem.in_lists(&lists));
            }
        }
    }
}

/// Returns the rows of an array as items, and which of them are null.
fn items_of(
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
    kind: &ColumnKind,
) -> Result<(Items, Option<NullBuffer>), NotTensors> {
    // an array of type null has no bitmap
    let all_null = (array.data_type() == &DataType::Null).then(|| NullBuffer::new_null(array.len()));
    let nulls = all_null.as_ref().or(nulls);
    let items = match kind.dtype {
        dtype if dtype.is_string() => Items::Strings(array.clone()),
        DType::Complex64 => {
            let halves = kind.as_pairs();
            let tensors = tensors(array, nulls, &halves)?;
            if tensors.has_nulls(nulls) {
                return Err(NotTensors::Refusal("a part of a complex number is null".to_owned().into()));
            }
            Items::Tensors(tensors)
        }
        _ => Items::Tensors(tensors(array, nulls, kind)?),
    };
    Ok((items, nulls.filter(|nulls| nulls.null_count() > 0).cloned()))
}

impl ColumnItems {
    /// Returns the outline of a column whose type has `level_count` levels of lists.
    pub(super) fn outline(self, level_count: usize) -> Result<Outline, RowError> {
        let has_null_elements = self.has_null_elements();
        let mut outline =
            Outline { unfolded: self.lists.len().saturating_sub(level_count), has_null_elements, ..Outline::default() };
        match self.items {
            Items::Strings(_) => {}
            Items::Structs { first_null, .. } => outline.has_null_struct = first_null.is_some(),
            Items::Tensors(tensors) => {
                if self.kind.instants {
                    let found = instants(&tensors.elements).map_err(|refused| RowError::from(refused.message))?;
                    let ranges = tensors.ranges.iter().enumerate();
                    let present =
                        ranges.filter(|(item, _)| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*item)));
                    outline.instants = present
                        .flat_map(|(item, range)| {
                            let row = row_of(item, &self.lists).unwrap_or(0); // every item is in a row
                            found.get(range.clone()).unwrap_or(&[]).iter().map(move |instant| (*instant, row))
                        })
                        .collect();
                }
                outline.extents = tensors.open_extents;
            }
        }
        Ok(outline)
    }

    /// Returns whether any tensor that is not null has a null element.
    fn has_null_elements(&self) -> bool {
        // a null scalar is a null item
        let is_scalar = self.kind.list_levels().is_empty() && !self.kind.variable_tensor;
        matches!(&self.items, Items::Tensors(tensors) if !is_scalar && tensors.has_nulls(self.nulls.as_ref()))
    }

    /// Returns whether any struct is null or any row has nulls inside: null elements, or null
    /// members of lists that are dimensions. The type of the column has `level_count` levels of
    /// lists.
    pub(super) fn has_nulls(&self, level_count: usize) -> bool {
        if let Items::Structs { first_null, .. } = self.items {
            return first_null.is_some();
        }
        let unfolded = self.lists.get(level_count..).unwrap_or(&[]);
        let inner = unfolded.iter().skip(1).any(|lists| lists.null_count() > 0);
        inner || (!unfolded.is_empty() && self.nulls.is_some()) || self.has_null_elements()
    }

    /// Makes the elements of all items contiguous. Timestamps whose type does not state a unit are
    /// converted to `unit`.
    pub(super) fn rows(self, unit: Option<TimeUnit>) -> Result<ColumnRows, RowError> {
        let has_null_elements = self.has_null_elements();
        let Self { kind, lists, nulls, items } = self;
        let validity = nulls.as_ref().map(|nulls| Bitmap(SharedBytes::new(nulls.inner().sliced())));
        let is_null = |item: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(item));
        match items {
            Items::Structs { count, .. } => Ok(ColumnRows::structs(count, lists, validity)),
            Items::Strings(array) => {
                let (bytes, mut ranges) = string_bytes(&array, nulls.as_ref())?;
                ranges.iter_mut().enumerate().filter(|(i, _)| is_null(*i)).for_each(|(_, range)| *range = 0..0);
                let length = |(item, range): (usize, &Range<usize>)| {
                    let length = u32::try_from(range.len()).ok().filter(|&length| length <= limits::EXTENT);
                    let too_long = || RowError::at(item, format!("a string of {} bytes is too long", range.len()));
                    length.ok_or_else(|| too_long().in_lists(&lists))
                };
                let extents = ranges.iter().enumerate().map(length).collect::<Result<_, _>>()?;
                let (values, item_bytes) = contiguous_bytes(bytes, &ranges).ok_or_else(outside)?;
                let item_count = ranges.len();
                let rows = ColumnRows::scalars(kind.dtype, item_count, values, validity);
                Ok(ColumnRows { lists, extents, item_bytes, ..rows })
            }
            Items::Tensors(mut tensors) => {
                let elements = trim(&tensors.elements, &mut tensors.ranges)?;
                let stored = match kind.dtype {
                    DType::Complex64 => StoredElement::one(DType::F32),
                    dtype => StoredElement { dtype, extent: kind.element_extent },
                };
                let refused = |Refusal { element, message }: Refusal| {
                    let item =
                        element.and_then(|element| tensors.ranges.iter().position(|range| range.contains(&element)));
                    RowError { row: item, ..RowError::from(message) }
                        .with_advice([Advice::SkipColumns])
                        .in_lists(&lists)
                };
                let bytes_of = |elements: &ArrayRef| match values(elements, stored)? {
                    Values::Plain(bytes) => Ok(bytes),
                    Values::Instants(instants) => in_units(&instants, unit),
                };
                // null items have arbitrary elements, which can be refused: try again without these
                // elements
                let bytes = bytes_of(&elements).or_else(|refused| match tensors.with_nulls(&elements, is_null) {
                    Some(elements) => bytes_of(&elements),
                    None => Err(refused),
                });
                let bytes = bytes.map_err(refused)?;
                let extent = stored.extent.and_then(|extent| usize::try_from(extent).ok()).unwrap_or(1);
                let width = stored.dtype.element_bytes().saturating_mul(extent);
                // no overflow: the ranges lie inside elements of this width
                let ranges: Vec<Range<usize>> =
                    tensors.ranges.iter().map(|range| range.start * width..range.end * width).collect();
                let (values, item_bytes) = contiguous_bytes(bytes, &ranges).ok_or_else(outside)?;
                let null_elements = has_null_elements.then(|| {
                    let elements_of_items = tensors.ranges.iter().flat_map(Clone::clone);
                    NullElementBits { are_null: elements_of_items.map(|i| elements.is_null(i)).collect(), width }
                });
                let rows = ColumnRows::scalars(kind.dtype, ranges.len(), values, validity);
                Ok(ColumnRows { lists, extents: tensors.open_extents, item_bytes, null_elements, ..rows })
            }
        }
    }
}

/// Converts timestamps to the unit of their column.
fn in_units(instants: &[i128], unit: Option<TimeUnit>) -> Result<Buffer, Refusal> {
    let refused = |element, message| Refusal { element, message };
    let unit = unit.ok_or_else(|| refused(None, "a column of INT96 timestamps has no unit".to_owned()))?;
    let exact = instants.iter().enumerate().map(|(element, &instant)| {
        let expected = ArrowType::Timestamp(unit, None);
        let text =
            || format!("the INT96 timestamp {instant} ns since 1970 cannot be represented exactly as {expected}");
        in_unit(instant, unit).ok_or_else(|| refused(Some(element), text()))
    });
    Ok(Buffer::from_vec(exact.collect::<Result<Vec<i64>, _>>()?))
}

/// Returns the bytes of the ranges, one after the other. If the ranges are contiguous, the bytes
/// are a slice of the buffer; otherwise, they are a copy.
fn contiguous_bytes(buffer: Buffer, ranges: &[Range<usize>]) -> Option<(SharedBytes, ItemBytes)> {
    let first = ranges.first().map_or(0, ExactSizeIterator::len);
    let item_bytes = if ranges.iter().all(|range| range.len() == first) {
        ItemBytes::Equal(first)
    } else {
        let ends = ranges.iter().scan(0_usize, |end, range| {
            *end = end.saturating_add(range.len());
            Some(*end)
        });
        ItemBytes::Offsets(iter::once(0).chain(ends).collect())
    };
    let mut segments: Vec<Range<usize>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        match segments.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => segments.push(range.clone()),
        }
    }
    let all = SharedBytes::new(buffer);
    let values = match segments.as_slice() {
        [] => SharedBytes::new([]),
        [segment] => all.slice(segment.clone())?,
        segments => {
            let mut bytes = Vec::with_capacity(segments.iter().map(ExactSizeIterator::len).sum());
            for segment in segments {
                bytes.extend_from_slice(all.get(segment.clone())?);
            }
            SharedBytes::new(bytes)
        }
    };
    Some((values, item_bytes))
}

/// Returns the error about a batch that contradicts its schema.
pub(super) fn schema_mismatch() -> RowError {
    RowError::from("the columns of a batch differ from its schema".to_owned())
}

/// Returns the maximum number of list members that are examined. Members without content take no
/// memory, so a small file can have any number of them.
fn max_members(members: &ArrayRef) -> usize {
    members.get_array_memory_size().saturating_mul(8).max(MAX_EMPTY_MEMBERS)
}

/// An array, and the entries in it that belong to samples.
struct ArrayCursor {
    array: ArrayRef,
    /// The nulls of the enclosing structs.
    around: Option<NullBuffer>,
    /// The nulls of the array and of the enclosing structs.
    nulls: Option<NullBuffer>,
    /// The positions of the entries in the array, ascending, or `None` if every position is an
    /// entry. The members of null lists are not entries.
    entries: Option<Vec<usize>>,
}

impl ArrayCursor {
    /// Finds the array at a path of struct fields. `fields` are the fields of the schema that the
    /// batch has.
    fn at_root(batch: &RecordBatch, fields: &[usize], path: &[usize]) -> Result<Self, RowError> {
        let (root, rest) = path.split_first().ok_or_else(schema_mismatch)?;
        let position = fields.binary_search(root).map_err(|_| schema_mismatch())?;
        let mut array = batch.columns().get(position).ok_or_else(schema_mismatch)?.clone();
        let mut around: Option<NullBuffer> = None;
        for &child in rest {
            around = NullBuffer::union(around.as_ref(), array.logical_nulls().as_ref());
            array = field_of(&array, child).ok_or_else(schema_mismatch)?;
        }
        let array = decode(&array)?;
        let nulls = NullBuffer::union(around.as_ref(), array.nulls()).filter(|nulls| nulls.null_count() > 0);
        Ok(Self { array, around, nulls, entries: None })
    }

    fn entry_count(&self) -> usize {
        self.entries.as_ref().map_or(self.array.len(), Vec::len)
    }

    fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| i < nulls.len() && nulls.is_null(i))
    }

    /// Returns the nulls of the structs in these lists.
    fn structs(&self, kind: ColumnKind, lists: Vec<ListBuffer>) -> ColumnItems {
        let count = self.entry_count();
        let (around, own) = (self.of_entries(self.around.as_ref()), self.of_entries(self.nulls.as_ref()));
        let is_around = |i: usize| around.as_ref().is_none_or(|nulls| nulls.is_valid(i));
        let first = own.as_ref().and_then(|own| (0..count).find(|&i| own.is_null(i) && is_around(i)));
        let first_null = first.and_then(|entry| row_of(entry, &lists));
        ColumnItems { kind, lists, nulls: own, items: Items::Structs { count, first_null } }
    }

    /// Returns the nulls of the entries, if there are any.
    fn of_entries(&self, nulls: Option<&NullBuffer>) -> Option<NullBuffer> {
        let nulls = nulls?;
        let nulls = match &self.entries {
            None => nulls.clone(),
            Some(entries) => {
                let present: BooleanBuffer = entries.iter().map(|&i| i >= nulls.len() || nulls.is_valid(i)).collect();
                NullBuffer::new(present)
            }
        };
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn enter_lists(&mut self) -> Result<ListBuffer, RowError> {
        let list = AnyList::from_array(&self.array)?;
        let max = max_members(list.values());
        let mut members = Vec::new();
        let mut lists = ListBuffer::default();
        lists.clear()?;
        let entries: &mut dyn Iterator<Item = usize> = match &self.entries {
            Some(entries) => &mut entries.iter().copied(),
            None => &mut (0..self.array.len()),
        };
        for (row, i) in entries.enumerate() {
            let is_null = self.is_null(i);
            let range = if is_null { 0..0 } else { list.start(i)..list.start(i + 1) };
            let too_long = || RowError::at(row, format!("a list of {} members is too long", range.len()));
            let length = u32::try_from(range.len()).map_err(|_| too_long())?;
            lists.push((!is_null).then_some(length))?;
            if range.len().saturating_add(members.len()) > max {
                return Err(RowError::at(row, format!("the lists have too many members without content (over {max})")));
            }
            if members.try_reserve(range.len()).is_err() {
                let message = format!("there is not enough memory for more than {} list members", members.len());
                return Err(RowError::at(row, message));
            }
            members.extend(range);
        }
        // a slice of a batch uses only some of the members
        let first = members.first().copied().unwrap_or(0);
        let end = members.last().map_or(first, |last| last.saturating_add(1));
        let array = decode(&checked_slice(list.values(), first..end)?)?;
        members.iter_mut().for_each(|member| *member -= first); // positions ascend, so `first` is the minimum
        let entries = (members.len() != array.len()).then_some(members);
        *self = Self { around: None, nulls: array.nulls().cloned(), array, entries };
        Ok(lists)
    }

    fn enter_field(&mut self, child: usize) -> Result<(), RowError> {
        let parent = self.array.as_struct_opt().ok_or_else(schema_mismatch)?;
        let child = decode(parent.columns().get(child).ok_or_else(schema_mismatch)?)?;
        self.around = self.nulls.take();
        self.nulls = NullBuffer::union(self.around.as_ref(), child.nulls());
        self.array = child;
        Ok(())
    }

    /// Returns the entries as a separate array, and their nulls.
    fn items(&self) -> Result<(ArrayRef, Option<NullBuffer>), RowError> {
        let items = match &self.entries {
            None => self.array.clone(),
            Some(entries) => {
                let first = entries.first().copied().unwrap_or(0);
                let last = entries.last().map_or(first, |&last| last.saturating_add(1));
                if last.saturating_sub(first) == entries.len() && last <= self.array.len() {
                    self.array.slice(first, entries.len()) // ascending and without gaps
                } else {
                    by_index(&self.array, &self.array, entries, None)?
                }
            }
        };
        let nulls = NullBuffer::union(self.of_entries(self.nulls.as_ref()).as_ref(), items.nulls());
        Ok((items, nulls.filter(|nulls| nulls.null_count() > 0)))
    }
}

/// The tensors of one column in one batch.
struct Tensors {
    /// The range of each item in `elements`. The range of a null item is arbitrary.
    ranges: Vec<Range<usize>>,
    /// The extents that the type leaves open, item by item.
    open_extents: Vec<u32>,
    elements: ArrayRef,
}

impl Tensors {
    /// Returns whether an item that is not null has a null element.
    fn has_nulls(&self, nulls: Option<&NullBuffer>) -> bool {
        let Some(elements) = self.elements.nulls().filter(|elements| elements.null_count() > 0) else { return false };
        let is_present = |item: usize| nulls.is_none_or(|nulls| nulls.is_valid(item));
        let mut present = self.ranges.iter().enumerate().filter(|(item, _)| is_present(*item));
        present.any(|(_, range)| range.clone().any(|element| elements.is_null(element)))
    }

    /// Returns the elements. Elements that belong to no item or to a null item become null.
    fn with_nulls(&self, elements: &ArrayRef, is_null: impl Fn(usize) -> bool) -> Option<ArrayRef> {
        let mut present = vec![false; elements.len()];
        for (_, range) in self.ranges.iter().enumerate().filter(|(item, _)| !is_null(*item)) {
            present.get_mut(range.clone())?.fill(true);
        }
        let nulls = NullBuffer::union(elements.nulls(), Some(&NullBuffer::from(present)));
        Some(make_array(elements.to_data().into_builder().nulls(nulls).build().ok()?))
    }
}

/// The reason why the rows of an array are not tensors.
enum NotTensors {
    /// A row cannot be stored.
    Refusal(RowError),
    /// A row is not a tensor unless the outermost `dimensions` dimensions become lists.
    Nested { dimensions: usize, problem: RowError },
}

impl From<RowError> for NotTensors {
    fn from(problem: RowError) -> Self {
        Self::Refusal(problem)
    }
}

/// Returns the rows of an array as tensors. `nulls` are the null rows.
fn tensors(array: &ArrayRef, nulls: Option<&NullBuffer>, kind: &ColumnKind) -> Result<Tensors, NotTensors> {
    if kind.variable_tensor {
        return Ok(variable_tensors(array, nulls, kind)?);
    }
    let mut walk = Walk { ranges: (0..array.len()).map(|i| i..i + 1).collect(), nulls, kind };
    let mut array = array.clone();
    let mut open = Vec::with_capacity(kind.open_count());
    for (dimension, level) in kind.list_levels().iter().enumerate() {
        let list = AnyList::of(&array, level)?;
        match level {
            Level::Fixed(_) => walk.enter_fixed(&list, dimension)?,
            Level::Open => open.push(walk.enter_lists(&list, dimension)?),
        }
        // a slice of a batch uses only some of the members
        array = decode(&trim(list.values(), &mut walk.ranges)?)?;
    }
    let rows = walk.ranges.len();
    let open_extents = (0..rows).flat_map(|row| open.iter().filter_map(move |extents| extents.get(row).copied()));
    Ok(Tensors { open_extents: open_extents.collect(), ranges: walk.ranges, elements: array })
}

/// For each row, its range in the current level. The levels of lists are entered one by one.
struct Walk<'a> {
    ranges: Vec<Range<usize>>,
    nulls: Option<&'a NullBuffer>,
    kind: &'a ColumnKind,
}

impl Walk<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    fn enter_fixed(&mut self, list: &AnyList, dimension: usize) -> Result<(), NotTensors> {
        let mut ranges = std::mem::take(&mut self.ranges);
        for (row, range) in ranges.iter_mut().enumerate() {
            if !self.is_null(row) {
                self.check_no_null_list(list, dimension, row, range)?;
            }
            let bounds = |i: usize| i.checked_mul(list.fixed_length());
            let (Some(start), Some(end)) = (bounds(range.start), bounds(range.end)) else {
                return Err(RowError::at(row, "a tensor is too large").into());
            };
            *range = start..end;
        }
        self.ranges = ranges;
        Ok(())
    }

    /// Enters the lists of each row, and returns the extents of all rows in this dimension.
    fn enter_lists(&mut self, list: &AnyList, dimension: usize) -> Result<Vec<u32>, NotTensors> {
        let mut ranges = std::mem::take(&mut self.ranges);
        let mut extents = Vec::with_capacity(ranges.len());
        for (row, range) in ranges.iter_mut().enumerate() {
            if self.is_null(row) || range.start == range.end {
                extents.push(UNKNOWN);
                *range = 0..0;
                continue;
            }
            self.check_no_null_list(list, dimension, row, range)?;
            extents.push(self.common_length(list, dimension, row, range)?);
            *range = list.start(range.start)..list.start(range.end);
        }
        self.ranges = ranges;
        Ok(extents)
    }

    fn check_no_null_list(
        &self,
        list: &AnyList,
        dimension: usize,
        row: usize,
        range: &Range<usize>,
    ) -> Result<(), NotTensors> {
        // a null list of the outermost dimension is a null sample
        let Some(nulls) = list.nulls().filter(|_| dimension > 0) else { return Ok(()) };
        if range.clone().any(|i| nulls.is_null(i)) {
            return Err(self.nested(dimension, row, "a tensor has a null list, whose length is unknown".to_owned()));
        }
        Ok(())
    }

    /// Returns the common length of all lists in a non-empty range.
    fn common_length(
        &self,
        list: &AnyList,
        dimension: usize,
        row: usize,
        range: &Range<usize>,
    ) -> Result<u32, NotTensors> {
        let length = |i: usize| list.start(i + 1).saturating_sub(list.start(i));
        let first = length(range.start);
        if let Some(other) = range.clone().map(length).find(|&other| other != first) {
            let message = format!("lists of {first} and {other} elements side by side do not form a tensor");
            return Err(self.nested(dimension, row, message));
        }
        let fits = u32::try_from(first).ok().filter(|&length| length <= limits::EXTENT);
        fits.ok_or_else(|| RowError::at(row, format!("a list of {first} elements is too long")).into())
    }

    /// Returns the error about a row that is a tensor only from this dimension inward.
    fn nested(&self, dimension: usize, row: usize, message: String) -> NotTensors {
        let problem = RowError::at(row, message).with_advice([Advice::SkipColumns]);
        match self.kind.can_unfold(dimension) {
            true => NotTensors::Nested { dimensions: dimension, problem },
            false => problem.into(),
        }
    }
}

/// Returns the samples of an `arrow.variable_shape_tensor`: a struct of a list `data` and a
/// fixed-size list `shape`.
fn variable_tensors(array: &ArrayRef, nulls: Option<&NullBuffer>, kind: &ColumnKind) -> Result<Tensors, RowError> {
    let mismatch =
        || RowError::from(format!("a batch has data of type {}, which contradicts its schema", array.data_type()));
    let tensors: &StructArray = array.as_struct_opt().ok_or_else(mismatch)?;
    let (Some(data), Some(shapes)) = (tensors.column_by_name("data"), tensors.column_by_name("shape")) else {
        return Err(mismatch());
    };
    let data = AnyList::of(data, &Level::Open)?;
    let shapes = shapes.as_fixed_size_list_opt().ok_or_else(mismatch)?;
    let extents = shapes.values().as_primitive_opt::<Int32Type>().ok_or_else(mismatch)?;
    let ndim = kind.list_levels().len();
    if usize::try_from(shapes.value_length()).ok() != Some(ndim) {
        return Err(mismatch());
    }
    let (first, end) = (data.start(0), data.start(tensors.len()));
    let elements = decode(&checked_slice(data.values(), first..end)?)?;
    let mut samples = Tensors { ranges: Vec::new(), open_extents: Vec::new(), elements };
    for row in 0..tensors.len() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            samples.ranges.push(0..0);
            samples.open_extents.extend(vec![UNKNOWN; kind.open_count()]);
            continue;
        }
        if data.nulls().is_some_and(|nulls| nulls.is_null(row)) || shapes.is_null(row) {
            return Err(RowError::at(row, "the data or the shape of a tensor is null"));
        }
        let stored = extents.slice(row * ndim, ndim); // in bounds: each row has `ndim` extents
        let extents: Option<Vec<u32>> = stored.iter().map(|extent| u32::try_from(extent?).ok()).collect();
        let extents = extents.ok_or_else(|| RowError::at(row, "a tensor has a null or negative extent"))?;
        let range = data.start(row)..data.start(row + 1);
        if product_of_extents(&extents) != Some(range.len()) {
            return Err(RowError::at(row, format!("a tensor of shape {extents:?} has {} elements", range.len())));
        }
        samples.open_extents.extend(open_extents(row, kind, &extents)?);
        samples.ranges.push(range.start - first..range.end - first); // offsets do not descend
    }
    Ok(samples)
}

/// Returns the extents that the type leaves open. Checks the other extents against the type.
fn open_extents(row: usize, kind: &ColumnKind, extents: &[u32]) -> Result<Vec<u32>, RowError> {
    let mut open = Vec::new();
    for (level, &extent) in kind.levels.iter().zip(extents) {
        match level {
            Level::Open => open.push(extent),
            Level::Fixed(expected) if expected.first() == Some(&extent) => {}
            Level::Fixed(expected) => {
                let message = format!("a tensor has shape {extents:?}, but its type fixes an extent at {expected:?}");
                return Err(RowError::at(row, message));
            }
        }
    }
    Ok(open)
}

/// Cuts an array down to the rows that the ranges use, and shifts the ranges accordingly.
fn trim(array: &ArrayRef, ranges: &mut [Range<usize>]) -> Result<ArrayRef, RowError> {
    let used = || ranges.iter().filter(|range| !range.is_empty());
    let start = used().map(|range| range.start).min().unwrap_or(0);
    let end = used().map(|range| range.end).max().unwrap_or(0);
    let checked_slice = checked_slice(array, start..end)?;
    let shifted = |range: &Range<usize>| {
        // `start` is the minimum
        if range.is_empty() { 0..0 } else { range.start - start..range.end - start }
    };
    ranges.iter_mut().for_each(|range| *range = shifted(range));
    Ok(checked_slice)
}

/// Returns some rows of an array, if they are in bounds.
fn checked_slice(array: &ArrayRef, rows: Range<usize>) -> Result<ArrayRef, RowError> {
    let length = rows.end.checked_sub(rows.start).filter(|_| rows.end <= array.len());
    Ok(array.slice(rows.start, length.ok_or_else(outside)?))
}

/// Returns the bytes of all strings, and the range of each string.
fn string_bytes(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<(Buffer, Vec<Range<usize>>), RowError> {
    Ok(match array.data_type() {
        DataType::Utf8 => string_ranges(array.as_string::<i32>()),
        DataType::LargeUtf8 => string_ranges(array.as_string::<i64>()),
        DataType::Binary => string_ranges(array.as_binary::<i32>()),
        DataType::LargeBinary => string_ranges(array.as_binary::<i64>()),
        DataType::Utf8View | DataType::BinaryView => {
            check_rows(array, iter::once(0..array.len()))?;
            match array.as_string_view_opt() {
                Some(texts) => view_ranges(texts, nulls),
                None => view_ranges(array.as_binary_view(), nulls),
            }
        }
        DataType::FixedSizeBinary(length) => fixed_binary_ranges(array, *length)?,
        other => return Err(format!("a batch has data of type {other}, which contradicts its schema").into()),
    })
}

fn string_ranges<T: ByteArrayType>(array: &GenericByteArray<T>) -> (Buffer, Vec<Range<usize>>) {
    let offsets = array.value_offsets().iter().map(|offset| offset.as_usize());
    let ranges = offsets.clone().zip(offsets.skip(1)).map(|(start, end)| start..end);
    (array.values().clone(), ranges.collect())
}

fn view_ranges<T: ByteViewType>(
    array: &GenericByteViewArray<T>,
    nulls: Option<&NullBuffer>,
) -> (Buffer, Vec<Range<usize>>) {
    let mut bytes = Vec::new();
    let mut ranges = Vec::with_capacity(array.len());
    for (row, value) in array.bytes_iter().enumerate() {
        let start = bytes.len();
        if !nulls.is_some_and(|nulls| nulls.is_null(row)) {
            bytes.extend_from_slice(value);
        }
        ranges.push(start..bytes.len());
    }
    (Buffer::from_vec(bytes), ranges)
}

fn fixed_binary_ranges(array: &ArrayRef, length: i32) -> Result<(Buffer, Vec<Range<usize>>), RowError> {
    let width =
        usize::try_from(length).map_err(|_| format!("a fixed-size binary type has the negative width {length}"))?;
    let buffer = plain_bytes(array, width).ok_or_else(outside)?;
    // in bounds: the buffer holds all rows
    Ok((buffer, (0..array.len()).map(|row| row * width..(row + 1) * width).collect()))
}
