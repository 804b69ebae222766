//! Arrays without encodings of the whole: no dictionaries, no runs, no list views.

use super::decoded_bytes::one;
use super::gather::{by_index, by_range, failed};
use crate::import::problem::Problem;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_schema::{DataType, FieldRef};
use std::result::Result;
use std::sync::Arc;

/// Returns the array behind dictionary and run-end encoding, and list views as lists.
pub(super) fn decode(array: &ArrayRef) -> Result<ArrayRef, Problem> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (dictionary.keys(), decode(dictionary.values())?);
            // without values, all keys are null
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

/// Returns a field of an array of structs, encoded as these are. Decoding all fields of structs for
/// each of them would take a time that grows with the square of their number. Rows that are null
/// because their struct is may have any value. Returns `None` if there is no such field.
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

/// Expands a run-end encoded array: each row has its own value.
fn expanded<R: RunEndIndexType>(array: &ArrayRef) -> Result<ArrayRef, Problem> {
    let runs = array.as_run_opt::<R>().ok_or_else(|| "run ends of an unknown type".to_owned())?;
    let ends = runs.run_ends().values();
    let mut run = runs.get_start_physical_index();
    let rows = (runs.offset()..).take(runs.len());
    let ranges = rows.map(move |row| {
        if ends.get(run).is_some_and(|end| end.as_usize() <= row) {
            run += 1; // no run is empty
        }
        Some(one(run))
    });
    by_range(array, &decode(runs.values())?, ranges)
}

/// Returns a list view as lists, one after the other.
fn contiguous<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, Problem> {
    let views = array.as_list_view_opt::<O>().ok_or_else(|| "a list view of an unknown type".to_owned())?;
    let (mut ranges, mut count) = (Vec::new(), 0_usize);
    let mut ends = vec![O::usize_as(0)];
    for (row, (start, size)) in views.offsets().iter().zip(views.sizes()).enumerate() {
        if views.is_valid(row) {
            let (start, size) = (start.as_usize(), size.as_usize());
            ranges.push(Some(start..start.saturating_add(size)));
            count = count.saturating_add(size);
        }
        let end = O::from_usize(count);
        ends.push(end.ok_or_else(|| Problem::at(row, "the lists of a list view are too long together"))?);
    }
    let values = by_range(array, views.values(), ranges.iter().cloned())?;
    GenericListArray::try_new(item.clone(), OffsetBuffer::new(ends.into()), values, views.nulls().cloned())
        .map(|lists| Arc::new(lists) as ArrayRef)
        .map_err(|error| failed(array, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::NullArray;
    use arrow_array::builder::{Int32Builder, ListViewBuilder};
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, Int32Array, Int64Array, RunArray, StringArray, StructArray};

    fn decoded(array: impl Array + 'static) -> ArrayRef {
        decode(&(Arc::new(array) as ArrayRef)).unwrap()
    }

    #[test]
    fn dictionaries_of_numbers_of_any_width_are_their_values() {
        let keys = Int8Array::from(vec![Some(2), Some(0), None, Some(1), Some(2)]);
        let decoded = |values: ArrayRef| decoded(DictionaryArray::new(keys.clone(), values).slice(1, 4));
        let due = [Some(7), None, Some(8), Some(9)];
        let bytes = decoded(Arc::new(Int8Array::from(vec![7, 8, 9])));
        assert_eq!(bytes.as_primitive::<Int8Type>(), &Int8Array::from(due.map(|x| x.map(|x| x as i8)).to_vec()));
        let words = decoded(Arc::new(Int32Array::from(vec![7, 8, 9])));
        assert_eq!(words.as_primitive::<Int32Type>(), &Int32Array::from(due.to_vec()));
        let words = decoded(Arc::new(Int64Array::from(vec![7, 8, 9])));
        assert_eq!(words.as_primitive::<Int64Type>(), &Int64Array::from(due.map(|x| x.map(i64::from)).to_vec()));
    }

    #[test]
    fn dictionaries_in_dictionaries_are_their_values() {
        let inner = DictionaryArray::new(Int32Array::from(vec![Some(1), None, Some(0)]), {
            Arc::new(StringArray::from(vec![Some("a"), Some("b")]))
        });
        let keys = Int8Array::from(vec![Some(2), Some(0), None, Some(1), Some(0)]);
        let outer = DictionaryArray::new(keys, Arc::new(inner));
        let due = StringArray::from(vec![Some("b"), None, None, Some("b")]);
        assert_eq!(decoded(outer.slice(1, 4)).as_string::<i32>(), &due);
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
                let due = Int32Array::from(rows[start..start + count].to_vec());
                assert_eq!(decoded(runs.slice(start, count)).as_primitive::<Int32Type>(), &due, "{start} {count}");
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
}
