//! Decodes dictionaries, run-end encoding and list views to plain values and lists, in bounded
//! memory.
//!
//! A short encoded array can expand to a very long one. So the decoded size is computed before
//! anything is allocated. Record batches are cut into [slices](Slices) of rows that decode to about
//! 2 MiB. A single row that decodes to more bytes than a sample can have is refused.
//!
//! `arrow_select::take` does the same as [`by_index`], but it would be slow: its crate is compiled
//! without optimization, because an optimized build takes minutes.

use super::elements::plain_bytes;
use crate::format::content::product_of_extents;
use crate::import::plan::input_column::Level;
use crate::import::rows::RowError;
use crate::limits;
use arrow_array::builder::GenericByteBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, ByteViewType, Int16Type, Int32Type, Int64Type, RunEndIndexType,
};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericByteArray, GenericByteViewArray, GenericListArray, LargeListArray,
    ListArray, MapArray, NullArray, OffsetSizeTrait, PrimitiveArray, RecordBatch, downcast_integer_array, make_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_data::{ArrayData, ByteView};
use arrow_schema::{ArrowError, DataType, FieldRef};
use std::ops::Range;
use std::result::Result;
use std::sync::Arc;

/// Decodes dictionaries and run-end encoding, and turns list views into lists.
pub(super) fn decode(array: &ArrayRef) -> Result<ArrayRef, RowError> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (dictionary.keys(), decode(dictionary.values())?);
            // if the dictionary has no values, all keys are null
            let indices = if values.is_empty() { vec![0; keys.len()] } else { dictionary.normalized_keys() };
            by_index(array, &values, &indices, keys.nulls())
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => expanded::<Int16Type>(array),
            DataType::Int32 => expanded::<Int32Type>(array),
            _ => expanded::<Int64Type>(array),
        },
        DataType::ListView(item) => contiguous::<i32>(array, item),
        DataType::LargeListView(item) => contiguous::<i64>(array, item),
        _ => Ok(array.clone()),
    }
}

/// Returns a field of an array of structs, in the same encoding as the structs. Decoding the
/// structs for each field would take time quadratic in the number of fields. Rows that are null
/// only because their struct is null can have any value. Returns `None` if there is no such field.
pub(super) fn field_of(array: &ArrayRef, child: usize) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            Some(dictionary.with_values(field_of(dictionary.values(), child)?))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => field_of_runs::<Int16Type>(array, child),
            DataType::Int32 => field_of_runs::<Int32Type>(array, child),
            _ => field_of_runs::<Int64Type>(array, child),
        },
        _ => array.as_struct_opt()?.columns().get(child).cloned(),
    }
}

fn field_of_runs<R: RunEndIndexType>(array: &ArrayRef, child: usize) -> Option<ArrayRef> {
    let runs = array.as_run_opt::<R>()?;
    Some(Arc::new(runs.with_values(field_of(runs.values(), child)?)))
}

/// Expands a run-end encoded array, so that each row has its own value.
fn expanded<R: RunEndIndexType>(array: &ArrayRef) -> Result<ArrayRef, RowError> {
    let runs = array.as_run_opt::<R>().ok_or_else(|| "an array has run ends of an unknown type".to_owned())?;
    let ends = runs.run_ends().values();
    let mut run = runs.get_start_physical_index();
    let rows = (runs.offset()..).take(runs.len());
    let ranges = rows.map(move |row| {
        if ends.get(run).is_some_and(|end| end.as_usize() <= row) {
            run += 1; // runs are never empty
        }
        Some(one(run))
    });
    by_range(array, &decode(runs.values())?, ranges)
}

/// Converts a list view to lists whose members are consecutive.
fn contiguous<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, RowError> {
    let views = array.as_list_view_opt::<O>().ok_or_else(|| "a list view has an unknown type".to_owned())?;
    let (mut ranges, mut count) = (Vec::new(), 0_usize);
    let mut ends = vec![O::usize_as(0)];
    for (row, (start, size)) in views.offsets().iter().zip(views.sizes()).enumerate() {
        if views.is_valid(row) {
            let (start, size) = (start.as_usize(), size.as_usize());
            ranges.push(Some(start..start.saturating_add(size)));
            count = count.saturating_add(size);
        }
        let end = O::from_usize(count);
        ends.push(end.ok_or_else(|| RowError::at(row, "the lists of a list view have too many members in total"))?);
    }
    let values = by_range(array, views.values(), ranges.iter().cloned())?;
    GenericListArray::try_new(item.clone(), OffsetBuffer::new(ends.into()), values, views.nulls().cloned())
        .map(|lists| Arc::new(lists) as ArrayRef)
        .map_err(|error| failed(array, &error))
}

/// Returns the values at the given indices. A row that is null in `nulls` becomes null. Errors name
/// the type of `array`, the encoded array.
pub(super) fn by_index(
    array: &ArrayRef,
    values: &ArrayRef,
    indices: &[usize],
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef, RowError> {
    let gathered = match values.data_type() {
        DataType::Utf8 => texts_by_index(values.as_string::<i32>(), indices, nulls)?,
        DataType::LargeUtf8 => texts_by_index(values.as_string::<i64>(), indices, nulls)?,
        DataType::Binary => texts_by_index(values.as_binary::<i32>(), indices, nulls)?,
        DataType::LargeBinary => texts_by_index(values.as_binary::<i64>(), indices, nulls)?,
        _ => numbers_by_index(values, indices, nulls),
    };
    if let Some(gathered) = gathered {
        return Ok(gathered);
    }
    let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    by_range(array, values, indices.iter().enumerate().map(|(row, &i)| is_valid(row).then(|| one(i))))
}

/// Returns the strings at the given indices, or `None` if their total size exceeds the maximum of
/// their offset type.
fn texts_by_index<T: ByteArrayType>(
    values: &GenericByteArray<T>,
    indices: &[usize],
    nulls: Option<&NullBuffer>,
) -> Result<Option<ArrayRef>, RowError> {
    let is_valid =
        |row: usize, i: usize| nulls.is_none_or(|nulls| nulls.is_valid(row)) && i < values.len() && values.is_valid(i);
    let rows = || indices.iter().enumerate().map(|(row, &i)| is_valid(row, i).then_some(i));
    let lengths = rows().flatten().map(|i| values.value_length(i).as_usize());
    let byte_count = lengths.fold(0, usize::saturating_add);
    check_bytes(byte_count)?;
    if T::Offset::from_usize(byte_count).is_none() {
        return Ok(None);
    }
    let mut gathered = GenericByteBuilder::<T>::with_capacity(indices.len(), byte_count);
    for row in rows() {
        // the offsets do not overflow: the total was checked above
        gathered.append_option(row.map(|i| values.value(i)));
    }
    Ok(Some(Arc::new(gathered.finish())))
}

/// Returns the numbers at the given indices. A row that is null in `nulls` becomes null. Returns
/// `None` if any value is null, or if the values are not numbers of 1, 4 or 8 bytes.
fn numbers_by_index(values: &ArrayRef, indices: &[usize], nulls: Option<&NullBuffer>) -> Option<ArrayRef> {
    let width = values.data_type().primitive_width().filter(|_| values.null_count() == 0)?;
    let bytes = plain_bytes(values, width)?;
    // the index of a null may be out of bounds
    let buffer = match width {
        1 => Buffer::from_vec(indices.iter().map(|&i| bytes.get(i).copied().unwrap_or(0)).collect::<Vec<_>>()),
        4 => {
            let words = bytes.as_chunks().0;
            let word = |&i: &usize| words.get(i).map_or(0, |word| u32::from_ne_bytes(*word));
            Buffer::from_vec(indices.iter().map(word).collect::<Vec<_>>())
        }
        8 => {
            let words = bytes.as_chunks().0;
            let word = |&i: &usize| words.get(i).map_or(0, |word| u64::from_ne_bytes(*word));
            Buffer::from_vec(indices.iter().map(word).collect::<Vec<_>>())
        }
        _ => return None,
    };
    let data = ArrayData::builder(values.data_type().clone()).len(indices.len()).nulls(nulls.cloned());
    Some(make_array(data.add_buffer(buffer).build().ok()?))
}

/// Concatenates these ranges of values, with a null for each `None`. Adjacent ranges are copied
/// together.
fn by_range(
    array: &ArrayRef,
    values: &ArrayRef,
    ranges: impl Iterator<Item = Option<Range<usize>>> + Clone,
) -> Result<ArrayRef, RowError> {
    if values.data_type() == &DataType::Null {
        return Ok(Arc::new(NullArray::new(ranges.map(|range| range.map_or(1, |range| range.len())).sum())));
    }
    check_rows(values, ranges.clone().flatten())?;
    copied(&values.to_data(), ranges, array.len()).map_err(|error| failed(array, &error))
}

fn copied(
    values: &ArrayData,
    ranges: impl Iterator<Item = Option<Range<usize>>>,
    capacity: usize,
) -> Result<ArrayRef, ArrowError> {
    let mut out = MutableArrayData::try_new(vec![values], true, capacity)?;
    let mut pending = 0..0;
    for range in ranges {
        match range {
            Some(range) if range.start == pending.end => pending.end = range.end,
            Some(range) => {
                out.try_extend(0, pending.start, pending.end)?;
                pending = range;
            }
            None => {
                out.try_extend(0, pending.start, pending.end)?;
                out.try_extend_nulls(1)?;
                pending = 0..0;
            }
        }
    }
    out.try_extend(0, pending.start, pending.end)?;
    Ok(make_array(out.freeze()))
}

fn failed(array: &ArrayRef, error: &ArrowError) -> RowError {
    format!("decoding {}: {error}", array.data_type()).into()
}

/// An array of lists of any list type.
pub(super) enum AnyList<'a> {
    Small(&'a ListArray),
    Large(&'a LargeListArray),
    Fixed(&'a FixedSizeListArray, usize),
    Map(&'a MapArray, ArrayRef),
}

impl<'a> AnyList<'a> {
    /// Returns the array as lists.
    pub(super) fn from_array(array: &'a ArrayRef) -> Result<Self, RowError> {
        match array.data_type() {
            DataType::FixedSizeList(_, length) => {
                Self::of(array, &Level::Fixed(u32::try_from(*length).into_iter().collect()))
            }
            _ => Self::of(array, &Level::Open),
        }
    }

    /// Returns the array as lists. Refuses an array that does not match the level that the schema
    /// states.
    pub(super) fn of(array: &'a ArrayRef, level: &Level) -> Result<Self, RowError> {
        let mismatch =
            || RowError::from(format!("a batch has data of type {}, which contradicts its schema", array.data_type()));
        match level {
            Level::Open => match array.data_type() {
                DataType::List(_) => array.as_list_opt().map(Self::Small).ok_or_else(mismatch),
                DataType::LargeList(_) => array.as_list_opt().map(Self::Large).ok_or_else(mismatch),
                DataType::Map(..) => {
                    let map = array.as_map_opt().ok_or_else(mismatch)?;
                    Ok(Self::Map(map, Arc::new(map.entries().clone())))
                }
                _ => Err(mismatch()),
            },
            Level::Fixed(extents) => {
                let list = array.as_fixed_size_list_opt().ok_or_else(mismatch)?;
                let length = usize::try_from(list.value_length()).map_err(|_| mismatch())?;
                let expected = product_of_extents(extents);
                if expected == Some(length) { Ok(Self::Fixed(list, length)) } else { Err(mismatch()) }
            }
        }
    }

    pub(super) fn values(&self) -> &ArrayRef {
        match self {
            Self::Small(list) => list.values(),
            Self::Large(list) => list.values(),
            Self::Fixed(list, _) => list.values(),
            Self::Map(_, entries) => entries,
        }
    }

    pub(super) fn nulls(&self) -> Option<&NullBuffer> {
        let nulls = match self {
            Self::Small(list) => list.nulls(),
            Self::Large(list) => list.nulls(),
            Self::Fixed(list, _) => list.nulls(),
            Self::Map(map, _) => map.nulls(),
        };
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// Returns the number of elements in each list of a fixed-size array, or 0 for other arrays.
    pub(super) fn fixed_length(&self) -> usize {
        if let Self::Fixed(_, length) = self { *length } else { 0 }
    }

    /// Returns the position at which list `i` starts and the previous list ends.
    pub(super) fn start(&self, i: usize) -> usize {
        let start = match self {
            Self::Small(list) => list.value_offsets().get(i).and_then(|&offset| usize::try_from(offset).ok()),
            Self::Large(list) => list.value_offsets().get(i).and_then(|&offset| usize::try_from(offset).ok()),
            Self::Fixed(_, length) => i.checked_mul(*length),
            Self::Map(map, _) => map.value_offsets().get(i).and_then(|&offset| usize::try_from(offset).ok()),
        };
        start.unwrap_or(0) // offsets are not negative, and there is one more offset than lists
    }
}

/// A row of any type except null counts as at least this number of bytes, even if it is empty.
const MIN_ROW_BYTES: usize = 4;
/// The maximum number of bytes that are decoded at once: the maximum size of a sample.
const MAX_BYTES: usize = limits::CHUNK_BYTES as usize; // exact: `usize` has at least 32 bits

/// Returns whether decoding can increase the memory that an array of this type takes.
fn is_encoded(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => true,
        DataType::ListView(_) | DataType::LargeListView(_) => true,
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::List(item) | DataType::LargeList(item) => is_encoded(item.data_type()),
        DataType::FixedSizeList(item, _) | DataType::Map(item, _) => is_encoded(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_encoded(field.data_type())),
        _ => false,
    }
}

/// Refuses rows that decode to too many bytes.
pub(super) fn check_rows(array: &ArrayRef, ranges: impl Iterator<Item = Range<usize>>) -> Result<(), RowError> {
    let bytes = |range: Range<usize>, limit| {
        let offset_bytes = range.len().saturating_mul(MIN_ROW_BYTES);
        offset_bytes.max(decoded_bytes(array, range, limit))
    };
    check_bytes(sum(ranges, MAX_BYTES, bytes))
}

/// Refuses a size that exceeds the limit of a sample or the available memory. Samples are decoded
/// together only if their total size is small. So only a slice with one sample can exceed the
/// limit, and the error names that sample.
fn check_bytes(bytes: usize) -> Result<(), RowError> {
    let has_memory = || Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    if bytes <= MAX_BYTES && has_memory() {
        return Ok(());
    }
    let message = match bytes <= MAX_BYTES {
        true => format!("the values decode to at least {bytes} bytes, and this machine lacks the memory for them"),
        false => format!("the values decode to at least {bytes} bytes, but the maximum is {MAX_BYTES}"),
    };
    Err(RowError::at(0, message))
}

/// Returns the decoded size of some rows in bytes. If the size exceeds `limit`, returns some number
/// above `limit`. Offsets and bitmaps are not counted.
fn decoded_bytes(array: &ArrayRef, rows: Range<usize>, limit: usize) -> usize {
    match array.data_type() {
        DataType::Utf8 => text_bytes(array.as_string::<i32>(), &rows),
        DataType::LargeUtf8 => text_bytes(array.as_string::<i64>(), &rows),
        DataType::Binary => text_bytes(array.as_binary::<i32>(), &rows),
        DataType::LargeBinary => text_bytes(array.as_binary::<i64>(), &rows),
        DataType::Utf8View => view_bytes(array.as_string_view(), rows, limit),
        DataType::BinaryView => view_bytes(array.as_binary_view(), rows, limit),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (dictionary.keys(), dictionary.values());
            downcast_integer_array!(
                keys => dictionary_bytes(keys, values, rows, limit),
                _ => 0
            )
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => run_bytes::<Int16Type>(array, &rows, limit),
            DataType::Int32 => run_bytes::<Int32Type>(array, &rows, limit),
            _ => run_bytes::<Int64Type>(array, &rows, limit),
        },
        DataType::ListView(_) => list_view_bytes::<i32>(array, rows, limit),
        DataType::LargeListView(_) => list_view_bytes::<i64>(array, rows, limit),
        DataType::Struct(_) => {
            sum(array.as_struct().columns().iter(), limit, |field, limit| decoded_bytes(field, rows.clone(), limit))
        }
        DataType::FixedSizeBinary(width) => rows.len().saturating_mul(usize::try_from(*width).unwrap_or(0)),
        DataType::Boolean => rows.len(),
        data_type => match data_type.primitive_width() {
            Some(width) => rows.len().saturating_mul(width),
            None => list_bytes(array, &rows, limit),
        },
    }
}

/// Adds the sizes of entries until the sum exceeds `limit`. `bytes` returns the size of an entry;
/// it receives the entry and the remaining limit.
fn sum<T>(all: impl Iterator<Item = T>, limit: usize, bytes: impl Fn(T, usize) -> usize) -> usize {
    let mut total = 0_usize;
    for one in all {
        total = total.saturating_add(bytes(one, limit.saturating_sub(total)));
        if total > limit {
            break;
        }
    }
    total
}

fn text_bytes<T: ByteArrayType>(array: &GenericByteArray<T>, rows: &Range<usize>) -> usize {
    let offset = |row: usize| array.value_offsets().get(row).map_or(0, |offset| offset.as_usize());
    offset(rows.end).saturating_sub(offset(rows.start))
}

fn view_bytes<T: ByteViewType>(array: &GenericByteViewArray<T>, rows: Range<usize>, limit: usize) -> usize {
    let views = array.views().get(rows).unwrap_or(&[]);
    sum(views.iter(), limit, |view, _| ByteView::from(*view).length.as_usize())
}

fn dictionary_bytes<K: ArrowPrimitiveType>(
    keys: &PrimitiveArray<K>,
    values: &ArrayRef,
    rows: Range<usize>,
    limit: usize,
) -> usize {
    let present = rows.filter(|&row| keys.is_valid(row)).filter_map(|row| keys.values().get(row));
    sum(present.map(|key| key.as_usize()), limit, |key, limit| decoded_bytes(values, one(key), limit))
}

fn run_bytes<R: RunEndIndexType>(array: &ArrayRef, rows: &Range<usize>, limit: usize) -> usize {
    let Some(runs) = array.as_run_opt::<R>().filter(|_| !rows.is_empty()) else { return 0 };
    let shifted = |row: usize| row.saturating_add(runs.offset());
    let (mut at, end) = (shifted(rows.start), shifted(rows.end));
    let first = runs.get_physical_index(rows.start);
    let ends = runs.run_ends().values().get(first..).unwrap_or(&[]).iter().map(|run_end| run_end.as_usize().min(end));
    let lengths = ends.map(|run_end| {
        let length = run_end.saturating_sub(at);
        at = run_end;
        length
    });
    let used = (first..).zip(lengths).take_while(|(_, length)| *length > 0);
    sum(used, limit, |(run, length), limit| decoded_bytes(runs.values(), one(run), limit).saturating_mul(length))
}

/// Returns the decoded size of the members of lists in bytes, or the number of members if that is
/// larger.
fn list_bytes(array: &ArrayRef, rows: &Range<usize>, limit: usize) -> usize {
    let Ok(list) = AnyList::from_array(array) else { return 0 };
    let members = list.start(rows.start)..list.start(rows.end);
    members.len().max(decoded_bytes(list.values(), members, limit))
}

/// Returns the decoded size of the members of list views in bytes, or the number of members if that
/// is larger.
fn list_view_bytes<O: OffsetSizeTrait>(array: &ArrayRef, rows: Range<usize>, limit: usize) -> usize {
    let Some(views) = array.as_list_view_opt::<O>() else { return 0 };
    let view = |row: usize| Some((views.offsets().get(row)?.as_usize(), views.sizes().get(row)?.as_usize()));
    let present = rows.filter(|&row| views.is_valid(row)).filter_map(view);
    sum(present, limit, |(start, size), limit| {
        size.max(decoded_bytes(views.values(), start..start.saturating_add(size), limit))
    })
}

fn one(i: usize) -> Range<usize> {
    i..i.saturating_add(1)
}

/// The approximate decoded size of a slice of rows, in bytes. A slice has at least one row. With
/// this size, the buffers of a decoder stay in the processor's cache, and the allocator reuses
/// their memory.
pub(in crate::import) const SLICE_BYTES: usize = 2 << 20;
/// How many bytes the conversion of a slice takes per sample and column, in addition to the values.
const SAMPLE_OVERHEAD_BYTES: usize = 64;

/// A record batch that is cut into slices of consecutive rows.
pub(super) struct Slices {
    batch: RecordBatch,
    /// The columns that can take more memory after decoding.
    encoded: Vec<ArrayRef>,
    next: usize,
    /// The number of rows to try for the next slice.
    step: usize,
    max_rows: usize,
}

impl Slices {
    /// Starts at the first row of a batch. `added_bytes` is the size, per row, of the fields that
    /// the batch does not have.
    pub(super) fn of(batch: RecordBatch, added_bytes: usize) -> Self {
        let max_rows = rows_per_slice(&batch, added_bytes).max(1);
        let encoded = batch.columns().iter().filter(|array| is_encoded(array.data_type())).cloned().collect();
        Self { batch, encoded, next: 0, step: max_rows, max_rows }
    }

    /// Returns whether the next `rows` rows decode to more than [`SLICE_BYTES`].
    fn is_too_large(&self, rows: usize) -> bool {
        let range = self.next..self.next.saturating_add(rows);
        let bytes = self.encoded.iter().map(|array| decoded_bytes(array, range.clone(), SLICE_BYTES));
        bytes.fold(0, usize::saturating_add) > SLICE_BYTES
    }
}

impl Iterator for Slices {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let left = self.batch.num_rows().checked_sub(self.next).filter(|&left| left > 0)?;
        let mut rows = self.step.min(left);
        while rows > 1 && self.is_too_large(rows) {
            rows /= 2;
        }
        // the following rows probably have a similar size
        self.step = rows.saturating_mul(2).min(self.max_rows);
        let slice = self.batch.slice(self.next, rows);
        self.next = self.next.saturating_add(rows);
        Some(slice)
    }
}

fn rows_per_slice(batch: &RecordBatch, added_bytes: usize) -> usize {
    let rows = batch.num_rows().max(1);
    let arrays =
        batch.columns().iter().map(|array| bytes_of(array).div_ceil(rows).saturating_add(SAMPLE_OVERHEAD_BYTES));
    SLICE_BYTES / arrays.fold(added_bytes.max(1), usize::saturating_add)
}

fn bytes_of(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{Int32Builder, LargeListViewBuilder, ListViewBuilder, StringBuilder};
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, Int32Array, Int64Array, RunArray, StringArray, StructArray};

    fn decoded(array: impl Array + 'static) -> ArrayRef {
        decode(&(Arc::new(array) as ArrayRef)).unwrap()
    }

    #[test]
    fn dictionaries_of_numbers_of_any_width_are_their_values() {
        let keys = Int8Array::from(vec![Some(2), Some(0), None, Some(1), Some(2)]);
        let decoded = |values: ArrayRef| decoded(DictionaryArray::new(keys.clone(), values).slice(1, 4));
        let expected = [Some(7), None, Some(8), Some(9)];
        let bytes = decoded(Arc::new(Int8Array::from(vec![7, 8, 9])));
        assert_eq!(bytes.as_primitive::<Int8Type>(), &Int8Array::from(expected.map(|x| x.map(|x| x as i8)).to_vec()));
        let words = decoded(Arc::new(Int32Array::from(vec![7, 8, 9])));
        assert_eq!(words.as_primitive::<Int32Type>(), &Int32Array::from(expected.to_vec()));
        let words = decoded(Arc::new(Int64Array::from(vec![7, 8, 9])));
        assert_eq!(words.as_primitive::<Int64Type>(), &Int64Array::from(expected.map(|x| x.map(i64::from)).to_vec()));
    }

    #[test]
    fn dictionaries_in_dictionaries_are_their_values() {
        let inner = DictionaryArray::new(Int32Array::from(vec![Some(1), None, Some(0)]), {
            Arc::new(StringArray::from(vec![Some("a"), Some("b")]))
        });
        let keys = Int8Array::from(vec![Some(2), Some(0), None, Some(1), Some(0)]);
        let outer = DictionaryArray::new(keys, Arc::new(inner));
        let expected = StringArray::from(vec![Some("b"), None, None, Some("b")]);
        assert_eq!(decoded(outer.slice(1, 4)).as_string::<i32>(), &expected);
    }

    #[test]
    fn a_field_of_encoded_structs_is_encoded_as_they_are() {
        let fields = [("a", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)];
        let structs: ArrayRef = Arc::new(StructArray::try_from(fields.to_vec()).unwrap());
        let keys = Int8Array::from(vec![Some(1), None, Some(0), Some(1)]);
        let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, structs.clone()));
        let runs: ArrayRef = Arc::new(RunArray::<Int16Type>::try_new(&vec![1, 4].into(), &structs).unwrap());
        let of = |array: &ArrayRef| decode(&field_of(&array.slice(1, 3), 0).unwrap()).unwrap();
        assert_eq!(of(&dictionary).as_primitive::<Int32Type>(), &Int32Array::from(vec![None, Some(1), Some(2)]));
        assert_eq!(of(&runs).as_primitive::<Int32Type>(), &Int32Array::from(vec![2, 2, 2]));
        assert!(field_of(&dictionary, 1).is_none() && field_of(structs.as_struct().column(0), 0).is_none());
    }

    #[test]
    fn a_dictionary_without_values_or_of_nulls_is_null() {
        let keys = Int8Array::from(vec![None, None]);
        let empty = DictionaryArray::new(keys, Arc::new(StringArray::from(Vec::<&str>::new())));
        assert_eq!(decoded(empty).as_string::<i32>(), &StringArray::from(vec![None::<&str>, None]));
        let nulls = DictionaryArray::new(Int8Array::from(vec![Some(0), None]), Arc::new(NullArray::new(1)));
        assert_eq!(decoded(nulls).len(), 2);
    }

    #[test]
    fn runs_are_their_rows_wherever_a_slice_begins() {
        let values = Int32Array::from(vec![Some(7), None, Some(9)]);
        let runs = RunArray::<Int16Type>::try_new(&vec![2, 3, 6].into(), &values).unwrap();
        let rows = [Some(7), Some(7), None, Some(9), Some(9), Some(9)];
        for start in 0..6 {
            for count in 0..=6 - start {
                let expected = Int32Array::from(rows[start..start + count].to_vec());
                assert_eq!(decoded(runs.slice(start, count)).as_primitive::<Int32Type>(), &expected, "{start} {count}");
            }
        }
    }

    #[test]
    fn views_may_overlap_and_skip() {
        let mut builder = ListViewBuilder::new(Int32Builder::new());
        builder.append_value([Some(1), None, Some(3)]);
        builder.append_null();
        builder.append_value([]);
        builder.append_value([Some(4)]);
        let lists = decoded(builder.finish().slice(0, 3));
        let lists = lists.as_list::<i32>();
        assert_eq!((lists.len(), lists.null_count(), lists.value_offsets()), (3, 1, &[0, 3, 3, 3][..]));
        assert_eq!(lists.values().as_primitive::<Int32Type>(), &Int32Array::from(vec![Some(1), None, Some(3)]));
    }

    #[test]
    fn members_without_bytes_count() {
        let mut views = LargeListViewBuilder::new(StringBuilder::new());
        views.append_value((0..1000).map(|_| Some("")));
        let views: ArrayRef = Arc::new(views.finish());
        assert_eq!(decoded_bytes(&views, 0..1, usize::MAX), 1000);
        let members = views.as_list_view::<i64>().values();
        let limit = MAX_BYTES / MIN_ROW_BYTES / 1000;
        let rows = |count| std::iter::repeat_n(0..1000, count);
        assert!(check_rows(members, rows(1)).is_ok() && check_rows(members, rows(limit + 1)).is_err());
    }
}
