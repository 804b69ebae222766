//! The bytes that encoded arrays take when they are decoded.

use super::any_list::AnyList;
use crate::import::problem::Problem;
use crate::limits;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, ByteViewType, Int16Type, Int32Type, Int64Type, RunEndIndexType,
};
use arrow_array::{
    Array, ArrayRef, GenericByteArray, GenericByteViewArray, OffsetSizeTrait, PrimitiveArray, downcast_integer_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_data::ByteView;
use arrow_schema::DataType;
use std::ops::Range;
use std::result::Result;

/// The bytes that a row takes at least, of any type but null.
const OFFSET_BYTES: usize = 4;
/// The most bytes that are decoded at once: those of the largest sample.
const MOST_BYTES: usize = limits::CHUNK_BYTES as usize; // exact: it has at least 32 bits

/// Returns whether arrays of a type can take more memory when they are decoded.
pub(super) fn is_encoded(data_type: &DataType) -> bool {
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

/// Refuses rows that have too many bytes when they are decoded.
pub(super) fn check_rows(array: &ArrayRef, ranges: impl Iterator<Item = Range<usize>>) -> Result<(), Problem> {
    let bytes = |range: Range<usize>, most| {
        let offset_bytes = range.len().saturating_mul(OFFSET_BYTES);
        offset_bytes.max(decoded_bytes(array, range, most))
    };
    check_bytes(sum(ranges, MOST_BYTES, bytes))
}

/// Refuses more bytes than a sample has, or than there is memory for. Several samples are decoded
/// together only if they have fewer, so that the first is at fault.
pub(super) fn check_bytes(bytes: usize) -> Result<(), Problem> {
    let has_memory = || Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    if bytes <= MOST_BYTES && has_memory() {
        return Ok(());
    }
    let message = format!("values that have {bytes} bytes when they are decoded, or more; {MOST_BYTES} are possible");
    Err(Problem::at(0, message))
}

/// Returns the bytes of some rows of an array when they are decoded, or more than `most` if they
/// have more. Offsets and bitmaps do not count.
pub(super) fn decoded_bytes(array: &ArrayRef, rows: Range<usize>, most: usize) -> usize {
    match array.data_type() {
        DataType::Utf8 => text_bytes(array.as_string::<i32>(), &rows),
        DataType::LargeUtf8 => text_bytes(array.as_string::<i64>(), &rows),
        DataType::Binary => text_bytes(array.as_binary::<i32>(), &rows),
        DataType::LargeBinary => text_bytes(array.as_binary::<i64>(), &rows),
        DataType::Utf8View => view_bytes(array.as_string_view(), rows, most),
        DataType::BinaryView => view_bytes(array.as_binary_view(), rows, most),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (dictionary.keys(), dictionary.values());
            downcast_integer_array!(
                keys => dictionary_bytes(keys, values, rows, most),
                _ => 0
            )
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => run_bytes::<Int16Type>(array, &rows, most),
            DataType::Int32 => run_bytes::<Int32Type>(array, &rows, most),
            _ => run_bytes::<Int64Type>(array, &rows, most),
        },
        DataType::ListView(_) => list_view_bytes::<i32>(array, rows, most),
        DataType::LargeListView(_) => list_view_bytes::<i64>(array, rows, most),
        DataType::Struct(_) => {
            sum(array.as_struct().columns().iter(), most, |field, most| decoded_bytes(field, rows.clone(), most))
        }
        DataType::FixedSizeBinary(width) => rows.len().saturating_mul(usize::try_from(*width).unwrap_or(0)),
        DataType::Boolean => rows.len(),
        data_type => match data_type.primitive_width() {
            Some(width) => rows.len().saturating_mul(width),
            None => list_bytes(array, &rows, most),
        },
    }
}

/// Adds numbers up to more than `most`. `bytes` is given what is left of that.
fn sum<T>(all: impl Iterator<Item = T>, most: usize, bytes: impl Fn(T, usize) -> usize) -> usize {
    let mut total = 0_usize;
    for one in all {
        total = total.saturating_add(bytes(one, most.saturating_sub(total)));
        if total > most {
            break;
        }
    }
    total
}

fn text_bytes<T: ByteArrayType>(array: &GenericByteArray<T>, rows: &Range<usize>) -> usize {
    let offset = |row: usize| array.value_offsets().get(row).map_or(0, |offset| offset.as_usize());
    offset(rows.end).saturating_sub(offset(rows.start))
}

fn view_bytes<T: ByteViewType>(array: &GenericByteViewArray<T>, rows: Range<usize>, most: usize) -> usize {
    let views = array.views().get(rows).unwrap_or(&[]);
    sum(views.iter(), most, |view, _| ByteView::from(*view).length.as_usize())
}

fn dictionary_bytes<K: ArrowPrimitiveType>(
    keys: &PrimitiveArray<K>,
    values: &ArrayRef,
    rows: Range<usize>,
    most: usize,
) -> usize {
    let present = rows.filter(|&row| keys.is_valid(row)).filter_map(|row| keys.values().get(row));
    sum(present.map(|key| key.as_usize()), most, |key, most| decoded_bytes(values, one(key), most))
}

fn run_bytes<R: RunEndIndexType>(array: &ArrayRef, rows: &Range<usize>, most: usize) -> usize {
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
    sum(used, most, |(run, length), most| decoded_bytes(runs.values(), one(run), most).saturating_mul(length))
}

/// Returns the bytes of lists: those of their members, and at least one for each.
fn list_bytes(array: &ArrayRef, rows: &Range<usize>, most: usize) -> usize {
    let Ok(list) = AnyList::of_any(array) else { return 0 };
    let members = list.start(rows.start)..list.start(rows.end);
    members.len().max(decoded_bytes(list.values(), members, most))
}

/// Returns the bytes of list views: those of their members, and at least one for each.
fn list_view_bytes<O: OffsetSizeTrait>(array: &ArrayRef, rows: Range<usize>, most: usize) -> usize {
    let Some(views) = array.as_list_view_opt::<O>() else { return 0 };
    let view = |row: usize| Some((views.offsets().get(row)?.as_usize(), views.sizes().get(row)?.as_usize()));
    let present = rows.filter(|&row| views.is_valid(row)).filter_map(view);
    sum(present, most, |(start, size), most| {
        size.max(decoded_bytes(views.values(), start..start.saturating_add(size), most))
    })
}

pub(super) fn one(i: usize) -> Range<usize> {
    i..i.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{LargeListViewBuilder, StringBuilder};
    use std::sync::Arc;

    #[test]
    fn members_without_bytes_count() {
        let mut views = LargeListViewBuilder::new(StringBuilder::new());
        views.append_value((0..1000).map(|_| Some("")));
        let views: ArrayRef = Arc::new(views.finish());
        assert_eq!(decoded_bytes(&views, 0..1, usize::MAX), 1000);
        let members = views.as_list_view::<i64>().values();
        let most = MOST_BYTES / OFFSET_BYTES / 1000;
        let rows = |count| std::iter::repeat_n(0..1000, count);
        assert!(check_rows(members, rows(1)).is_ok() && check_rows(members, rows(most + 1)).is_err());
    }
}
