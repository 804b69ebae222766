//! Tests lists that are not tensors: of different lengths side by side, or with nulls inside.

use super::common::*;
use proptest::prelude::*;
use std::sync::Arc;
use tensilo::export::batches;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Int32Type};
use tensilo::import::{AppendOptions, ConvertOptions, NullElements};
use tensilo::{Extent, Reader, Shape};
use tensilo_testing::Folder;

/// A sample of a column of lists: `None` is a null.
type Node = Option<Tree>;

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    List(Vec<Node>),
    Number(i32),
}

fn number(value: i32) -> Node {
    Some(Tree::Number(value))
}

fn list(members: impl Into<Vec<Node>>) -> Node {
    Some(Tree::List(members.into()))
}

fn numbers(values: &[i32]) -> Node {
    list(values.iter().map(|&value| number(value)).collect::<Vec<_>>())
}

/// Makes an array of nodes with `depth` levels of lists.
fn array(nodes: &[Node], depth: usize) -> ArrayRef {
    if depth == 0 {
        let value = |node: &Node| match node {
            Some(Tree::Number(value)) => Some(*value),
            _ => None,
        };
        return Arc::new(nodes.iter().map(value).collect::<Int32Array>());
    }
    let members = |node: &Node| match node {
        Some(Tree::List(members)) => members.clone(),
        _ => Vec::new(),
    };
    let all: Vec<Node> = nodes.iter().flat_map(members).collect();
    let values = array(&all, depth - 1);
    let offsets = OffsetBuffer::from_lengths(nodes.iter().map(|node| members(node).len()));
    let nulls = NullBuffer::from(nodes.iter().map(Option::is_some).collect::<Vec<_>>());
    Arc::new(ListArray::new(item(values.data_type().clone()), offsets, values, Some(nulls)))
}

/// Reads the nodes of an array of lists.
fn nodes(array: &ArrayRef) -> Vec<Node> {
    let row = |i: usize| {
        if array.is_null(i) {
            return None;
        }
        match array.data_type() {
            DataType::Int32 => number(array.as_primitive::<Int32Type>().value(i)),
            DataType::List(_) => list(nodes(&array.as_list::<i32>().value(i))),
            DataType::FixedSizeList(..) => list(nodes(&array.as_fixed_size_list().value(i))),
            other => panic!("{other}"),
        }
    };
    (0..array.len()).map(row).collect()
}

fn exported(file: &Reader) -> Vec<Node> {
    let arrays = batches(file, None).unwrap().map(|batch| batch.unwrap().column(0).clone());
    arrays.flat_map(|array| nodes(&array)).collect()
}

/// Converts samples; returns the file and the type and shape of the column.
fn stored(samples: &[Node], depth: usize, options: &ConvertOptions) -> (Reader, String) {
    let file = import_with(&[one(array(samples, depth))], options).unwrap();
    let schema = column(&file, "x");
    let text = format!("{} {}", schema.type_name(), schema.shape);
    (file, text)
}

#[test]
fn lists_of_different_lengths_are_lists_of_tensors() {
    let samples =
        [list([numbers(&[1, 2]), numbers(&[3])]), list([numbers(&[4])]), list([]), None, list([numbers(&[])])];
    let (file, text) = stored(&samples, 2, &ConvertOptions::new());
    assert_eq!(text, "list<i32> [*]");
    assert_eq!(exported(&file), samples);
}

#[test]
fn only_dimensions_that_do_not_form_a_tensor_become_lists() {
    let table = |extents: [usize; 2]| list(vec![numbers(&vec![7; extents[1]]); extents[0]]);
    let samples = [list([table([2, 3]), table([1, 3])]), list([table([4, 3])])];
    let (file, text) = stored(&samples, 3, &ConvertOptions::new());
    assert_eq!(text, "list<i32> [*,3]");
    let first = file.column("x").unwrap().cursor().read_list(0).unwrap().items().count();
    assert_eq!(first, 2);
}

#[test]
fn null_elements_are_items_unless_the_caller_replaces_them() {
    let samples = [list([number(1), None]), list([]), None, numbers(&[3])];
    let (file, text) = stored(&samples, 1, &ConvertOptions::new());
    assert_eq!((text.as_str(), exported(&file)), ("list<i32> []", samples.to_vec()));
    let (file, text) = stored(&samples, 1, &ConvertOptions::new().null_elements(NullElements::Zero));
    let expected = [numbers(&[1, 0]), list([]), None, numbers(&[3])];
    assert_eq!((text.as_str(), exported(&file)), ("i32 [*]", expected.to_vec()));
}

#[test]
fn a_null_list_in_a_list_is_a_null_item() {
    let samples = [list([numbers(&[1, 2]), None]), list([numbers(&[4, 5])])];
    let (file, text) = stored(&samples, 2, &ConvertOptions::new());
    assert_eq!((text.as_str(), exported(&file)), ("list<i32> [2]", samples.to_vec()));
}

#[test]
fn fixed_size_lists_of_texts_are_lists() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some(""), Some("d")]));
    let pairs: ArrayRef = Arc::new(FixedSizeListArray::new(item(DataType::Utf8), 2, texts, None));
    let file = import(&one(pairs.clone()));
    let exported = batches(&file, None).unwrap().next().unwrap().unwrap();
    assert_eq!((column(&file, "x").type_name(), exported.column(0)), ("list<utf8>".to_owned(), &pairs));
}

/// Boxes of objects have this form.
#[test]
fn lists_of_numbers_in_structs_in_lists_are_tensors() {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..12));
    let boxes: ArrayRef =
        Arc::new(ListArray::new(item(DataType::Int32), OffsetBuffer::from_lengths([4; 3]), numbers, None));
    let objects: ArrayRef =
        Arc::new(StructArray::from(vec![(Arc::new(Field::new("box", boxes.data_type().clone(), true)), boxes)]));
    let lists: ArrayRef =
        Arc::new(ListArray::new(item(objects.data_type().clone()), OffsetBuffer::from_lengths([2, 1]), objects, None));
    let file = import(&one(lists.clone()));
    let schema = column(&file, "x.box");
    assert_eq!((schema.type_name(), schema.shape.to_string()), ("list<i32>".to_owned(), "[4]".to_owned()));
    let exported = batches(&file, None).unwrap().next().unwrap().unwrap();
    assert_eq!(exported.column(0), &lists);
}

#[test]
fn fields_of_a_struct_that_are_not_tensors_are_reassembled() {
    let jagged = array(&[list([numbers(&[1]), numbers(&[2, 3])]), None, list([])], 2);
    let field = |array: &ArrayRef| Arc::new(Field::new("a", array.data_type().clone(), true));
    let structs: ArrayRef = Arc::new(StructArray::from(vec![(field(&jagged), jagged)]));
    let offsets = OffsetBuffer::from_lengths([1, 0, 2]);
    let lists: ArrayRef = Arc::new(ListArray::new(item(structs.data_type().clone()), offsets, structs.clone(), None));
    for array in [structs, lists] {
        let file = import(&one(array.clone()));
        assert!(column(&file, "x.a").type_name().starts_with("list<"));
        let exported = batches(&file, None).unwrap().next().unwrap().unwrap();
        assert_eq!(exported.column(0), &array);
    }
}

/// Nulls take no memory, so a small file can have any number of them.
#[test]
fn lists_of_very_many_nulls_are_refused() {
    let count = 1 << 30;
    let nulls: ArrayRef = Arc::new(NullArray::new(count));
    let offsets = OffsetBuffer::from_lengths([count]);
    let lists: ArrayRef = Arc::new(ListArray::new(item(DataType::Null), offsets, nulls.clone(), None));
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(item(DataType::Null), count as i32, nulls, None));
    for array in [lists, fixed] {
        let error = refused(&[one(array)], &ConvertOptions::new());
        assert!(error.message().contains("too many members without content"), "{error}");
    }
}

/// The first pass stops early where nothing more can be found.
#[test]
fn the_last_sample_of_the_last_input_decides() {
    let folder = Folder::new();
    let tensors: Vec<Node> = (1..=60).map(|extent| list(vec![numbers(&vec![1; extent]); 2])).collect();
    let odd = [list([numbers(&[1]), numbers(&[1, 2])])];
    let inputs = [&tensors[..], &tensors[..], &odd[..]].map(|samples| one(array(samples, 2)));
    let paths: Vec<_> = ["a", "b", "c"]
        .iter()
        .zip(&inputs)
        .map(|(name, batch)| arrow_file(&folder, name, std::slice::from_ref(batch)))
        .collect();
    let file = converted(&folder, &paths, &ConvertOptions::new()).unwrap();
    assert_eq!(column(&file, "x").type_name(), "list<i32>");
    assert_eq!(exported(&file), [&tensors[..], &tensors[..], &odd[..]].concat());
}

/// Each input tells on its own where nulls may be.
#[test]
fn the_order_of_inputs_does_not_decide_whether_null_elements_are_preserved() {
    let folder = Folder::new();
    let samples = [[numbers(&[1]), numbers(&[2])], [list([number(1), None]), numbers(&[3])]];
    let paths = ["a", "b"].map(|name| folder.path(name));
    for write in [write_arrow, write_stream] {
        paths.iter().zip(&samples).for_each(|(path, samples)| write(path.clone(), &[one(array(samples, 1))]));
        for order in [[0, 1], [1, 0]] {
            let inputs = order.map(|i: usize| paths[i].clone());
            let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
            assert_eq!(exported(&file), order.map(|i| samples[i].clone()).concat());
        }
    }
}

#[test]
fn a_declared_shape_of_fewer_dimensions_makes_lists_of_the_outer_ones() {
    let samples = [list([numbers(&[1, 2]), numbers(&[3, 4])]), list([numbers(&[5, 6])])];
    let shape = |extents: &[Extent]| ConvertOptions::new().shapes([("x", Shape::new(extents.to_vec()))]);
    for (options, expected) in [
        (shape(&[Extent::Varying, Extent::Fixed(2)]), "i32 [*,2]"),
        (shape(&[Extent::Varying]), "list<i32> [*]"),
        (shape(&[Extent::Fixed(2)]), "list<i32> [2]"),
        (shape(&[]), "list<list<i32>> []"),
    ] {
        assert_eq!(stored(&samples, 2, &options).1, expected);
    }
}

#[test]
fn tensors_are_appended_to_lists_and_lists_to_tensors_are_refused() {
    let folder = Folder::new();
    let jagged = [list([numbers(&[1]), numbers(&[1, 2])])];
    let tensors = [list([numbers(&[1, 2]), numbers(&[3, 4])])];
    let input = |name: &str, samples: &[Node]| arrow_file(&folder, name, &[one(array(samples, 2))]);
    let (jagged_input, tensor_input) = (input("jagged", &jagged), input("tensors", &tensors));
    let output = folder.path("lists.tsl");
    convert_over(std::slice::from_ref(&jagged_input), &output).unwrap();
    append_with(std::slice::from_ref(&tensor_input), &output, &AppendOptions::new()).unwrap();
    assert_eq!(exported(&read(&output)), [&jagged[..], &tensors[..]].concat());

    let output = folder.path("tensors.tsl");
    convert_over(std::slice::from_ref(&tensor_input), &output).unwrap();
    let before = std::fs::read(&output).unwrap();
    let error = append_with(std::slice::from_ref(&jagged_input), &output, &AppendOptions::new()).unwrap_err();
    assert!(error.message().contains("side by side"), "{error}");
    assert_eq!(std::fs::read(&output).unwrap(), before);
}

fn node(depth: u32) -> BoxedStrategy<Node> {
    if depth == 0 {
        return proptest::option::weighted(0.9, any::<i32>().prop_map(Tree::Number)).boxed();
    }
    let members = prop::collection::vec(node(depth - 1), 0..4);
    proptest::option::weighted(0.9, members.prop_map(Tree::List)).boxed()
}

proptest! {
    /// Lists that are null, empty or of different lengths.
    #[test]
    fn any_lists_come_back((depth, samples) in (1_u32..5).prop_flat_map(|depth| (Just(depth), prop::collection::vec(node(depth), 1..20)))) {
        let depth = usize::try_from(depth).unwrap();
        let file = import_with(&[one(array(&samples, depth))], &ConvertOptions::new()).unwrap();
        prop_assert_eq!(exported(&file), samples);
    }
}

/// Without elements, such lists are stored as the nulls of a struct are.
#[test]
fn lists_of_empty_lists_of_bools_are_lists() {
    let bools: ArrayRef = Arc::new(BooleanArray::from(Vec::<bool>::new()));
    let none = FixedSizeListArray::try_new_with_length(item(DataType::Boolean), 0, bools, None, 2).unwrap();
    let nulls = NullBuffer::from(vec![true, false]);
    let none =
        FixedSizeListArray::try_new_with_length(item(DataType::Boolean), 0, none.values().clone(), Some(nulls), 2);
    let none: ArrayRef = Arc::new(none.unwrap());
    let lists = ListArray::new(item(none.data_type().clone()), OffsetBuffer::from_lengths([2]), none, None);
    let fields = vec![(Arc::new(Field::new("a", lists.data_type().clone(), true)), Arc::new(lists) as ArrayRef)];
    let file = import(&one(Arc::new(StructArray::from(fields))));
    let schema = column(&file, "x.a");
    assert_eq!((schema.type_name(), schema.shape.to_string()), ("list<bool>".to_owned(), "[0]".to_owned()));
    let mut cursor = file.column("x.a").unwrap().cursor();
    let list = cursor.read_list(0).unwrap();
    assert_eq!(list.items().map(|item| item.unwrap().is_null()).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn levels_that_become_lists_keep_whether_their_members_may_be_null() {
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(1.0), Some(2.0)]));
    let required = |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), false));
    let inner = ListArray::new(item(DataType::Float64), OffsetBuffer::from_lengths([2, 1]), numbers, None);
    let inner: ArrayRef = Arc::new(inner);
    let outer = LargeListArray::new(required("element", &inner), OffsetBuffer::from_lengths([1, 1]), inner, None);
    let batch = one(Arc::new(outer));
    let file = import(&batch);
    let levels: Vec<bool> = column(&file, "x").levels.iter().map(|level| level.nullable).collect();
    assert_eq!(levels, [false, true]);
    let found = batches(&file, None).unwrap().next().unwrap().unwrap();
    assert_eq!(found.column(0).data_type(), batch.column(0).data_type());
    assert_eq!(found.column(0), batch.column(0));
}
