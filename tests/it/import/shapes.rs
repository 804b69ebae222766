//! Tests inferred and declared shapes, samples of almost the same shape, and errors that list every
//! column that does not fit.

use super::common::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::error::Advice;
use tensilo::export::batches;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, Float32Type, Int32Type};
use tensilo::import::{AppendOptions, ConvertOptions, InferredShape, NullElements};
use tensilo::{Error, Extent, Reader, Shape};
use tensilo_testing::Folder;

/// Returns lists of these lengths; `None` is a null.
fn lists(lengths: &[Option<i32>]) -> ArrayRef {
    let values = lengths.iter().map(|length| length.map(|length| (0..length).map(Some)));
    Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(values))
}

/// Returns a list of lists for each sample: `(rows, elements of a row)`.
fn tables(extents: &[(usize, usize)]) -> ArrayRef {
    let mut builder = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    for &(rows, columns) in extents {
        for _ in 0..rows {
            (0..columns).for_each(|_| builder.values().values().append_value(7));
            builder.values().append(true);
        }
        builder.append(true);
    }
    Arc::new(builder.finish())
}

fn found(file: &Reader) -> Option<String> {
    InferredShape::of(column(file, "x")).map(|found| found.to_string())
}

fn declared(extents: &[Option<u32>]) -> ConvertOptions {
    let extents = extents.iter().map(|extent| extent.map_or(Extent::Varying, Extent::Fixed));
    ConvertOptions::new().shapes([("x", Shape::new(extents.collect::<Vec<_>>()))])
}

#[test]
fn a_found_shape_is_reported_with_the_number_of_samples_that_have_it() {
    let file = import(&one(lists(&[Some(2), None, Some(2), Some(2)])));
    assert_eq!(column(&file, "x").shape, Shape::fixed(&[2]));
    assert_eq!(found(&file).as_deref(), Some("[2] in 3 samples"));
    // a sample without rows does not tell how long they would be
    let file = import(&one(tables(&[(1, 80), (0, 0), (3, 80)])));
    assert_eq!(
        (column(&file, "x").shape.to_string(), found(&file).as_deref()),
        ("[*,80]".to_owned(), Some("[*,80] in 2 samples"))
    );
    for ambiguous in [lists(&[Some(1), Some(2)]), lists(&[None]), Arc::new(Int32Array::from(vec![1]))] {
        assert_eq!(found(&import(&one(ambiguous))), None);
    }
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(2)])], 2);
    assert_eq!(found(&import(&one(Arc::new(fixed)))), None, "the type states it");
    let file = import_with(&[one(lists(&[Some(2), Some(2)]))], &declared(&[None])).unwrap();
    assert_eq!((found(&file), column(&file, "x").shape.to_string()), (None, "[*]".to_owned()));
}

#[test]
fn a_few_odd_samples_are_listed() {
    let mut lengths = vec![Some(4); 1_000];
    lengths[0] = Some(5);
    lengths[17] = Some(3);
    let file = import(&one(lists(&lengths)));
    assert_eq!(column(&file, "x").shape.to_string(), "[*]");
    assert_eq!(found(&file).as_deref(), Some("[4] in 998 of 1000 samples; [5] in sample 0; [3] in sample 17"));
    let reported = InferredShape::of(column(&file, "x")).unwrap();
    assert_eq!((reported.agreeing_count(), reported.odd_count, reported.odd.len()), (998, 2, 2));

    for (odd, is_reported) in [(10, true), (11, false)] {
        let lengths: Vec<Option<i32>> = (0..1_000).map(|i| Some(if i < odd { 10 + i } else { 4 })).collect();
        assert_eq!(found(&import(&one(lists(&lengths)))).is_some(), is_reported, "{odd} of 1000");
    }
    // many more samples; the odd ones come last
    let lengths: Vec<Option<i32>> = (0..5_000).map(|i| Some(if i >= 4_983 { 3 } else { 4 })).collect();
    assert_eq!(found(&import(&one(lists(&lengths)))), None, "17 are more than a few");
    let reported = found(&import(&one(lists(&lengths[1..4_999])))).unwrap();
    assert!(reported.starts_with("[4] in 4982 of 4998 samples; [3] in sample 4982; "), "{reported}");

    let mut extents: Vec<(usize, usize)> = (0..200).map(|i| (1 + i % 3, 80)).collect();
    extents[100] = (2, 79);
    assert_eq!(
        found(&import(&one(tables(&extents)))).as_deref(),
        Some("[*,80] in 199 of 200 samples; [2,79] in sample 100")
    );
}

#[test]
fn a_sample_of_another_shape_than_declared_is_refused_with_both() {
    let batch = one(tables(&[(1, 80), (3, 79)]));
    assert!(import_with(std::slice::from_ref(&batch), &declared(&[None, None])).is_ok());
    let error = refused(std::slice::from_ref(&batch), &declared(&[None, Some(80)]));
    assert_eq!((error.column(), error.samples()), (Some("x"), Some(1..2)));
    assert_eq!(error.message(), "the sample has shape [3,79], but the column has shape [*,80]");
    assert_eq!(error.advice(), [Advice::DeclareShape(vec![None, None]), Advice::SkipColumns]);
    let error = refused(&[batch], &declared(&[Some(3), Some(79)]));
    assert_eq!(error.samples(), Some(0..1));
}

fn append_error(file: &Path, input: PathBuf) -> Error {
    append_with(&[input], file, &AppendOptions::new()).unwrap_err()
}

#[test]
fn an_append_of_another_shape_gives_advice() {
    let folder = Folder::new();
    let (first, file) = (arrow_file(&folder, "a", &[one(lists(&[Some(2)]))]), folder.path("file.tsl"));
    convert_with(&[first], &file, &ConvertOptions::new()).unwrap();
    let way_out = [Advice::ConvertAgain(vec![None])];
    let error = append_error(&file, arrow_file(&folder, "b", &[one(lists(&[Some(2), Some(3)]))]));
    assert_eq!((error.samples(), error.advice()), (Some(2..3), &way_out[..]), "{error}");
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(2), Some(3)])], 3);
    let error = append_error(&file, arrow_file(&folder, "c", &[one(Arc::new(fixed))]));
    assert_eq!(error.advice(), way_out, "{error}");
    assert!(error.to_string().contains("`ConvertOptions::shapes`"), "{error}");
    let floats = ListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0)])]);
    assert!(
        append_error(&file, arrow_file(&folder, "d", &[one(Arc::new(floats))])).advice().is_empty(),
        "no shape helps"
    );
}

#[test]
fn an_export_does_not_carry_on_what_an_import_found() {
    let file = import(&one(lists(&[Some(2), Some(2)])));
    let fields = batches(&file, None).unwrap().schema();
    assert!(!fields.field(0).metadata().contains_key("import.shape"));
    // the same key in an input is ignored
    let array = lists(&[Some(1), Some(2)]);
    let field = Field::new("x", array.data_type().clone(), true).with_metadata([("import.shape", "[9] in 9 samples")]);
    assert_eq!(found(&import(&batch(vec![(field, array)]))), None);
}

#[test]
fn all_columns_that_do_not_fit_are_in_one_error() {
    let jagged = {
        let mut builder = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
        for lengths in [[1, 1], [1, 2]] {
            for length in lengths {
                (0..length).for_each(|_| builder.values().values().append_value(7));
                builder.values().append(true);
            }
            builder.append(true);
        }
        Arc::new(builder.finish()) as ArrayRef
    };
    let floats = ListArray::from_iter_primitive::<Float32Type, _, _>([Some(vec![None, Some(1.0)]), Some(vec![])]);
    let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), Some(vec![None])]);
    let columns = [
        ("jagged", jagged),
        ("floats", Arc::new(floats)),
        ("numbers", Arc::new(numbers)),
        ("good", lists(&[Some(1), None])),
    ];
    let field = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let batch =
        batch(columns.into_iter().map(|(name, array): (&str, ArrayRef)| (field(name, &array), array)).collect());
    let jagged = ("jagged", Shape::new([Extent::Varying, Extent::Varying]));
    let options = ConvertOptions::new().null_elements(NullElements::Refuse).shapes([jagged]);
    let error = refused(std::slice::from_ref(&batch), &options);
    for part in [
        "3 columns",
        r#"column "jagged": sample 1: lists of 1 and 2 elements side by side do not form a tensor"#,
        r#"column "floats": sample 0: a tensor has a null element"#,
        r#"column "numbers": sample 1: a tensor has a null element"#,
    ] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert!(!error.message().contains("good"), "{error}");
    assert_eq!(error.advice(), [Advice::SkipColumns, Advice::ReplaceNulls, Advice::ReplaceNullsWithZero]);
    // the advice in the error works
    let options =
        |skip: &[&str], null_elements| ConvertOptions::new().skip(skip.iter().copied()).null_elements(null_elements);
    let error = refused(std::slice::from_ref(&batch), &options(&["jagged"], NullElements::Nan));
    assert_eq!((error.column(), error.samples()), (Some("numbers"), Some(1..2)));
    assert!(import_with(&[batch], &options(&["jagged"], NullElements::Zero)).is_ok());
}

#[test]
fn all_columns_whose_schema_is_at_fault_are_in_one_error() {
    let column = |name: &str| (Field::new(name, DataType::Int8, true), Arc::new(Int8Array::from(vec![1])) as ArrayRef);
    let digits = Decimal128Array::from(vec![1]).with_data_type(DataType::Decimal128(39, 0));
    let digits = (Field::new("digits", digits.data_type().clone(), true), Arc::new(digits) as ArrayRef);
    let (field, array) = column("x");
    let inside = StructArray::from(vec![(Arc::new(field), array)]);
    let inside = (Field::new("s", inside.data_type().clone(), true), Arc::new(inside) as ArrayRef);
    let error = refused(&[batch(vec![column("a\nb"), column("s.x"), digits, inside])], &ConvertOptions::new());
    let expected =
        [r#""a\nb" (a name must have 1 to 1,024 bytes and no control characters)"#, r#""digits" (decimal128[39, 0])"#];
    assert_eq!(error.message(), format!("these columns cannot be stored: {}", expected.join(", ")));
}

/// Items are not samples.
#[test]
fn no_shape_is_reported_for_items() {
    let rows = 100;
    let numbers: ArrayRef = lists(&vec![Some(2); rows * 3]);
    let fields = vec![(Arc::new(Field::new("x", numbers.data_type().clone(), true)), numbers)];
    let structs: ArrayRef = Arc::new(StructArray::from(fields));
    let offsets = OffsetBuffer::from_lengths(vec![3; rows]);
    let batch = one(Arc::new(ListArray::new(item(structs.data_type().clone()), offsets, structs, None)));
    let file = import_with(&[batch.clone(), batch], &ConvertOptions::new()).unwrap();
    let column = column(&file, "x.x");
    assert_eq!((column.type_name(), column.shape.to_string()), ("list<i32>".to_owned(), "[2]".to_owned()));
    assert_eq!(InferredShape::of(column), None);
}
