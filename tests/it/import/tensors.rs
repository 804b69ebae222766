//! Tests lists, nested lists and tensors: which shapes they get, and how nulls and casts are
//! handled.

use super::common::*;
use half::{bf16, f16};
use std::sync::Arc;
use tensilo::import::arrow::array::types::*;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use tensilo::import::arrow::record_batch::RecordBatchIterator;
use tensilo::import::{ConvertOptions, NullElements, write_batches, write_reader};
use tensilo::sink::Stream;
use tensilo::{CastSpec, DType, ErrorKind, Extent, Reader, Shape, WriterOptions};

type Lists = Vec<Option<Vec<Option<f32>>>>;

fn list(lists: Lists) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists))
}

fn full(lists: &[&[f32]]) -> Lists {
    lists.iter().map(|list| Some(list.iter().copied().map(Some).collect())).collect()
}

/// Returns lists of lists: `lengths[i]` are the lengths of the inner lists of row `i`, and elements
/// count up from 0.
fn nested(lengths: &[Option<&[usize]>], outer_nulls: bool) -> ArrayRef {
    let inner_lengths = lengths.iter().flatten().flat_map(|lengths| lengths.iter().copied());
    let total: usize = inner_lengths.clone().sum();
    let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..total as i32));
    let inner = ListArray::new(item(DataType::Int32), OffsetBuffer::from_lengths(inner_lengths), values, None);
    let nulls = NullBuffer::from(lengths.iter().map(Option::is_some).collect::<Vec<_>>());
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|lengths| lengths.map_or(0, <[usize]>::len)));
    let nulls = outer_nulls.then_some(nulls);
    Arc::new(ListArray::new(item(inner.data_type().clone()), offsets, Arc::new(inner), nulls))
}

#[test]
fn equal_lists_are_a_fixed_shape_whatever_batch_they_are_in() {
    let batches =
        [one(list(full(&[&[1.0, 2.0], &[3.0, 4.0]]))), one(list(vec![None])), one(list(full(&[&[5.0, 6.0]])))];
    let file = import_with(&batches, &ConvertOptions::new()).unwrap();
    assert_eq!(column(&file, "x").shape, Shape::fixed(&[2]));
    let expected =
        [Some((vec![2], vec![1.0, 2.0])), Some((vec![2], vec![3.0, 4.0])), None, Some((vec![2], vec![5.0, 6.0]))];
    assert_eq!(tensors::<f32>(&file, "x"), expected);
}

#[test]
fn a_null_list_an_empty_list_and_a_null_element_differ() {
    let file = import(&one(list(vec![None, Some(vec![]), Some(vec![Some(1.0)])])));
    assert_eq!(column(&file, "x").shape, Shape::ragged());
    assert_eq!(tensors::<f32>(&file, "x"), [None, Some((vec![0], vec![])), Some((vec![1], vec![1.0]))]);

    let batches = [one(list(full(&[&[0.0]]))), one(list(vec![None, Some(vec![Some(1.0), None])]))];
    let error = refused(&batches, &ConvertOptions::new().null_elements(NullElements::Refuse));
    assert_eq!((error.kind(), error.column(), error.samples()), (ErrorKind::BadInput, Some("x"), Some(2..3)));
    assert!(error.message().contains("null element"), "{error}");

    for (requested, bits) in [(NullElements::Zero, 0), (NullElements::Nan, f32::NAN.to_bits())] {
        let file = import_with(&batches, &ConvertOptions::new().null_elements(requested)).unwrap();
        let (extents, values) = tensors::<f32>(&file, "x")[2].clone().unwrap();
        assert_eq!((extents, values[0], values[1].to_bits()), (vec![2], 1.0, bits));
    }
}

#[test]
fn nan_is_refused_for_types_without_it() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None])]);
    let options = ConvertOptions::new().null_elements(NullElements::Nan);
    let error = refused(&[one(Arc::new(lists))], &options);
    assert!(error.message().contains("NaN"), "{error}");
}

#[test]
fn null_elements_of_null_lists_are_ignored() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    let nulls = Some(NullBuffer::from(vec![false, true]));
    let lists =
        ListArray::new(item(DataType::Int32), OffsetBuffer::from_lengths([2, 2]), values.clone(), nulls.clone());
    let file = import(&one(Arc::new(lists)));
    assert_eq!(tensors::<i32>(&file, "x"), [None, Some((vec![2], vec![3, 4]))]);
    let lists = FixedSizeListArray::new(item(DataType::Int32), 2, values, nulls);
    let file = import(&one(Arc::new(lists.clone())));
    assert_eq!(tensors::<i32>(&file, "x"), [None, Some((vec![2], vec![3, 4]))]);
    let file = import(&one(Arc::new(lists.slice(1, 1))));
    assert_eq!(tensors::<i32>(&file, "x"), [Some((vec![2], vec![3, 4]))]);
}

#[test]
fn no_samples_or_only_nulls_say_nothing_about_the_shape() {
    for lists in [vec![], vec![None, None]] {
        let rows = lists.len();
        let file = import(&one(list(lists)));
        assert_eq!(column(&file, "x").shape, Shape::ragged());
        assert_eq!(tensors::<f32>(&file, "x"), vec![None; rows]);
    }
}

#[test]
fn large_lists_list_views_and_slices_are_tensors() {
    let lists = full(&[&[1.0], &[2.0, 3.0], &[], &[4.0]]);
    let small = ListArray::from_iter_primitive::<Float32Type, _, _>(lists.clone());
    let large = LargeListArray::from_iter_primitive::<Float32Type, _, _>(lists);
    let views = ListViewArray::from(small.clone());
    for array in [Arc::new(small) as ArrayRef, Arc::new(large), Arc::new(views)] {
        let file = import(&one(array.slice(1, 3)));
        let expected = [Some((vec![2], vec![2.0, 3.0])), Some((vec![0], vec![])), Some((vec![1], vec![4.0]))];
        assert_eq!(tensors::<f32>(&file, "x"), expected, "{}", array.data_type());
    }
}

#[test]
fn nested_lists_have_a_dimension_for_each_level() {
    let file = import(&one(nested(&[Some(&[3, 3]), Some(&[3, 3])], true)));
    assert_eq!(column(&file, "x").shape, Shape::fixed(&[2, 3]));
    assert_eq!(tensors::<i32>(&file, "x")[1], Some((vec![2, 3], vec![6, 7, 8, 9, 10, 11])));

    let file = import(&one(nested(&[Some(&[3, 3]), None, Some(&[3]), Some(&[])], true)));
    assert_eq!(column(&file, "x").shape, Shape::new([Extent::Varying, Extent::Fixed(3)]));
    let expected =
        [Some((vec![2, 3], (0..6).collect())), None, Some((vec![1, 3], vec![6, 7, 8])), Some((vec![0, 3], vec![]))];
    assert_eq!(tensors::<i32>(&file, "x"), expected);

    let file = import(&one(nested(&[Some(&[3, 3]), None, Some(&[1, 1]), Some(&[])], true)));
    assert_eq!(column(&file, "x").shape, Shape::new([Extent::Varying, Extent::Varying]));
    let expected =
        [Some((vec![2, 3], (0..6).collect())), None, Some((vec![2, 1], vec![6, 7])), Some((vec![0, 0], vec![]))];
    assert_eq!(tensors::<i32>(&file, "x"), expected);

    let file = import(&one(nested(&[Some(&[3, 3]), Some(&[1, 1])], true).slice(1, 1)));
    assert_eq!(tensors::<i32>(&file, "x"), [Some((vec![2, 1], vec![6, 7]))]);
}

#[test]
fn rows_of_different_length_are_not_a_tensor_even_if_declared() {
    let options = ConvertOptions::new().shapes([("x", Shape::new([Extent::Varying, Extent::Varying]))]);
    let error = refused(&[one(nested(&[Some(&[2, 2]), Some(&[2, 3])], true))], &options);
    assert_eq!((error.kind(), error.column(), error.samples()), (ErrorKind::BadInput, Some("x"), Some(1..2)));
    assert!(error.message().contains("2 and 3"), "{error}");
}

#[test]
fn a_null_list_inside_a_declared_tensor_is_refused() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let inner = ListArray::new(item(DataType::Int32), OffsetBuffer::from_lengths([2, 0]), values, nulls);
    let offsets = OffsetBuffer::from_lengths([1, 1]);
    let outer = ListArray::new(item(inner.data_type().clone()), offsets, Arc::new(inner), None);
    for null_elements in [NullElements::Refuse, NullElements::Zero] {
        let shape = Shape::new([Extent::Varying, Extent::Varying]);
        let options = ConvertOptions::new().null_elements(null_elements).shapes([("x", shape)]);
        let error = refused(&[one(Arc::new(outer.clone()))], &options);
        assert_eq!(error.samples(), Some(1..2), "{error}");
    }
}

#[test]
fn fixed_size_lists_around_and_inside_lists_are_tensors() {
    let values: ArrayRef = Arc::new(UInt8Array::from_iter_values(0..12));
    let pairs: ArrayRef = Arc::new(FixedSizeListArray::new(item(DataType::UInt8), 2, values, None));
    let offsets = OffsetBuffer::from_lengths([1, 0, 5]);
    let lists = ListArray::new(item(pairs.data_type().clone()), offsets, pairs.clone(), None);
    let file = import(&one(Arc::new(lists)));
    assert_eq!(column(&file, "x").shape, Shape::new([Extent::Varying, Extent::Fixed(2)]));
    let expected =
        [Some((vec![1, 2], vec![0, 1])), Some((vec![0, 2], vec![])), Some((vec![5, 2], (2..12).collect::<Vec<u8>>()))];
    assert_eq!(tensors::<u8>(&file, "x"), expected);

    let triples = FixedSizeListArray::new(item(pairs.data_type().clone()), 3, pairs, None);
    let file = import(&one(Arc::new(triples.slice(1, 1))));
    assert_eq!(column(&file, "x").shape, Shape::fixed(&[3, 2]));
    assert_eq!(tensors::<u8>(&file, "x"), [Some((vec![3, 2], (6..12).collect()))]);
}

#[test]
fn bools_and_dates_can_be_elements_of_tensors() {
    let lists = ListArray::from_iter_primitive::<Date32Type, _, _>([Some([Some(-1), Some(5)])]);
    let file = import(&one(Arc::new(lists)));
    assert_eq!(column(&file, "x").metadata["arrow.type"], "date32");
    assert_eq!(tensors::<i64>(&file, "x"), [Some((vec![2], vec![-1, 5]))]);
    let bits: ArrayRef = Arc::new(BooleanArray::from((0..20).map(|i| i % 3 == 0).collect::<Vec<_>>()));
    let lists = FixedSizeListArray::new(item(DataType::Boolean), 5, bits, None);
    let file = import(&one(Arc::new(lists.slice(1, 2))));
    let expected = |row: u32| Some((vec![5], (row * 5..row * 5 + 5).map(|i| u8::from(i % 3 == 0)).collect()));
    assert_eq!(tensors::<u8>(&file, "x"), [expected(1), expected(2)]);
}

fn extension(field: Field, name: &str, parameters: &str) -> Field {
    field.with_metadata([("ARROW:extension:name", name), ("ARROW:extension:metadata", parameters), ("unit", "dB")])
}

#[test]
fn fixed_shape_tensors_have_their_shape() {
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..12).map(|i| i as f32)));
    let array: ArrayRef = Arc::new(FixedSizeListArray::new(item(DataType::Float32), 6, values, None));
    let field = |parameters: &str| {
        let field = Field::new("x", array.data_type().clone(), true);
        extension(field, "arrow.fixed_shape_tensor", parameters)
    };
    let file =
        import(&batch(vec![(field(r#"{"shape":[2,3],"dim_names":["H","W"],"permutation":[0,1]}"#), array.clone())]));
    assert_eq!(column(&file, "x").shape, Shape::fixed(&[2, 3]));
    let metadata: Vec<(&str, &str)> =
        column(&file, "x").metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(metadata, [("arrow.dim_names", r#"["H","W"]"#), ("unit", "dB")]);
    assert_eq!(tensors::<f32>(&file, "x")[1], Some((vec![2, 3], (6..12).map(|i| i as f32).collect())));

    for parameters in [r#"{"shape":[2,4]}"#, r#"{"shape":[2,3],"permutation":[1,0]}"#, "{}", "nonsense"] {
        let bad = batch(vec![(field(parameters), array.clone())]);
        let error = refused(&[bad], &ConvertOptions::new());
        assert_eq!(
            (error.column(), error.advice()),
            (Some("x"), &[tensilo::error::Advice::SkipColumns][..]),
            "{error}"
        );
    }
}

pub fn variable_tensors(shapes: &[Option<[i32; 2]>], parameters: &str) -> RecordBatch {
    let lengths = shapes.iter().map(|shape| shape.map_or(0, |[a, b]| (a * b) as usize));
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..lengths.clone().sum()).map(|i| i as f32)));
    let data = ListArray::new(item(DataType::Float32), OffsetBuffer::from_lengths(lengths), values, None);
    let extents: ArrayRef =
        Arc::new(Int32Array::from_iter_values(shapes.iter().flat_map(|shape| shape.unwrap_or_default())));
    let shape = FixedSizeListArray::new(item(DataType::Int32), 2, extents, None);
    let fields = Fields::from(vec![
        Field::new("data", data.data_type().clone(), true),
        Field::new("shape", shape.data_type().clone(), true),
    ]);
    let nulls = NullBuffer::from(shapes.iter().map(Option::is_some).collect::<Vec<_>>());
    let array: ArrayRef = Arc::new(StructArray::new(fields, vec![Arc::new(data), Arc::new(shape)], Some(nulls)));
    let field = Field::new("x", array.data_type().clone(), true);
    batch(vec![(extension(field, "arrow.variable_shape_tensor", parameters), array)])
}

#[test]
fn variable_shape_tensors_have_their_shapes() {
    let shapes = [Some([2, 3]), None, Some([1, 3]), Some([0, 3])];
    let counted = |range: std::ops::Range<i32>| range.map(|i| i as f32).collect::<Vec<_>>();
    let expected =
        [Some((vec![2, 3], counted(0..6))), None, Some((vec![1, 3], counted(6..9))), Some((vec![0, 3], vec![]))];
    for parameters in ["", "{}", r#"{"uniform_shape":[null,3]}"#] {
        let file = import(&variable_tensors(&shapes, parameters));
        assert_eq!(column(&file, "x").shape, Shape::new([Extent::Varying, Extent::Fixed(3)]));
        assert_eq!(tensors::<f32>(&file, "x"), expected);
    }
    let file = import(&variable_tensors(&shapes, "").slice(1, 2));
    assert_eq!(tensors::<f32>(&file, "x"), expected[1..3]);
    for (parameters, text) in
        [(r#"{"uniform_shape":[null,4]}"#, "type fixes an extent at"), (r#"{"permutation":[1,0]}"#, "permuted")]
    {
        let error = refused(&[variable_tensors(&shapes, parameters)], &ConvertOptions::new());
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn casts_round_to_nearest_even_and_are_recorded() {
    let values = [1.0, 1.0 + 2f32.powi(-8), 1.0 + 3.0 * 2f32.powi(-8), f32::NAN, f32::MAX];
    let floats: ArrayRef = Arc::new(Float32Array::from_iter_values(values));
    let doubles: ArrayRef = Arc::new(Float64Array::from_iter_values(values.map(f64::from)));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1; 5]));
    let columns = [("a", floats.clone()), ("b", floats.clone()), ("c", doubles), ("d", floats), ("n", numbers)];
    let columns = columns.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), false), array));
    let whole = batch(columns.collect());
    let casts = [("b", DType::F16), ("c", DType::F32), ("d", DType::F32)];
    let options = ConvertOptions::new().bf16(true).casts(casts);
    let file = import_with(std::slice::from_ref(&whole), &options).unwrap();
    let found = scalars::<bf16>(&file, "a");
    let expected = values.map(|value| Some(bf16::from_f32(value)));
    assert_eq!(found[..3], expected[..3]);
    assert_eq!(found[1], Some(bf16::ONE));
    assert!(found[3].unwrap().is_nan() && found[4] == Some(bf16::INFINITY));
    assert_eq!(column(&file, "a").cast, Some(CastSpec { source: DType::F32.into() }));
    let facts = file.column("a").unwrap().facts().cast.unwrap();
    assert_eq!((facts.max_abs_error, facts.to_infinite), (2f64.powi(-8), 1));
    assert_eq!(scalars::<f16>(&file, "b")[0], Some(f16::ONE));
    assert_eq!(column(&file, "c").cast, Some(CastSpec { source: DType::F64.into() }));
    assert_eq!((column(&file, "d").dtype, column(&file, "d").cast), (DType::F32, None));
    assert_eq!(column(&file, "n").dtype, DType::I32);

    for (name, dtype) in [("n", DType::Bool), ("a", DType::Utf8), ("z", DType::Bf16)] {
        let options = ConvertOptions::new().casts([(name, dtype)]);
        let error = refused(std::slice::from_ref(&whole), &options);
        let expected = if name == "z" { ErrorKind::UnknownColumn } else { ErrorKind::BadArgument };
        assert_eq!(error.kind(), expected, "{error}");
    }
}

#[test]
fn one_pass_over_a_reader_takes_shapes_from_types_or_the_caller() {
    let first = one(list(full(&[&[1.0, 2.0], &[3.0, 4.0]])));
    let reader = || RecordBatchIterator::new([Ok(first.clone())], first.schema());
    let options = ConvertOptions::new();
    let file = write_reader(reader(), Stream(Vec::new()), &options).unwrap().sink.0;
    assert_eq!(column(&Reader::from_bytes(file).unwrap(), "x").shape, Shape::ragged());
    let with = |shape| ConvertOptions::new().shapes([("x", shape)]);
    let file = write_reader(reader(), Stream(Vec::new()), &with(Shape::fixed(&[2]))).unwrap().sink.0;
    let file = Reader::from_bytes(file).unwrap();
    assert_eq!(column(&file, "x").shape, Shape::fixed(&[2]));
    assert_eq!(tensors::<f32>(&file, "x")[1], Some((vec![2], vec![3.0, 4.0])));
    let error = write_reader(reader(), Stream(Vec::new()), &with(Shape::fixed(&[3]))).unwrap_err();
    assert_eq!((error.kind(), error.samples()), (ErrorKind::BadInput, Some(0..1)));
    let error = write_reader(reader(), Stream(Vec::new()), &with(Shape::fixed(&[1, 2]))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadArgument);
}

#[test]
fn a_large_batch_is_cut_into_slices() {
    let rows = 5000_usize;
    let field: FieldRef = item(DataType::Float32);
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..rows * 1000).map(|i| i as f32)));
    let lists = ListArray::new(field, OffsetBuffer::from_repeated_length(1000, rows), values, None);
    let file = import(&one(Arc::new(lists)));
    assert_eq!(column(&file, "x").shape, Shape::fixed(&[1000]));
    let mut cursor = file.column("x").unwrap().cursor();
    for row in [0, 4095, 4999] {
        let sample = cursor.read(row).unwrap();
        assert_eq!(sample.as_slice::<f32>().unwrap()[999], (row * 1000 + 999) as f32);
    }
}

#[test]
fn batches_are_taken_through_the_c_data_interface() {
    use tensilo::import::arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
    let first = mixed(30, 0);
    let reader = RecordBatchIterator::new([Ok(first.clone()), Ok(mixed(5, 30))], first.schema());
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    let reader = RecordBatchStreamReader::try_new(stream).unwrap();
    let options = ConvertOptions::new().shapes([("embedding", Shape::fixed(&[8]))]);
    let file = write_reader(reader, Stream(Vec::new()), &options).unwrap().sink.0;
    check_mixed(&Reader::from_bytes(file).unwrap(), 35);
}

#[test]
fn shapes_do_not_depend_on_how_rows_are_spread_over_batches() {
    let whole = [mixed(100, 0)];
    let parts: Vec<_> = (0..100).step_by(7).map(|i| whole[0].slice(i, 7.min(100 - i))).collect();
    let write = |batches: &[tensilo::import::arrow::array::RecordBatch]| {
        let options = ConvertOptions::new().writer(WriterOptions::new().chunk_bytes(256));
        write_batches(&whole[0].schema(), batches, Stream(Vec::new()), &options).unwrap().sink.0
    };
    assert!(write(&whole) == write(&parts));
}
