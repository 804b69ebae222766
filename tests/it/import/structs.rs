//! Tests that structs come back: their fields, and where they are null.
//!
//! A struct has no column of its own; its fields become columns with dotted names and paths. Only
//! if a struct is null somewhere does it get a column, of bools without elements, whose validity
//! records the nulls.

use super::common::*;
use super::struct_values::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, Schema};
use tensilo::import::{ConvertOptions, write_reader};
use tensilo::sink::Stream;
use tensilo::{ErrorKind, Reader, export, limits};

#[test]
fn a_struct_comes_back_and_has_a_column_only_if_it_is_null() {
    let rows = [of([Number(1), Number(2)]), of([Null, Null]), of([Null, Number(3)])];
    let file = round_trip(&pair(), &rows);
    assert_eq!(names(&file), [("x.a", "i32".to_owned()), ("x.b", "i32".to_owned())]);
    let mut rows = rows.to_vec();
    rows.push(Null);
    let file = round_trip(&pair(), &rows);
    assert_eq!(names(&file)[0], ("x", "struct nulls".to_owned()));
    assert_eq!(file.columns().next().unwrap().facts().null_count, 1);
    assert_eq!(column(&file, "x").shape.to_string(), "[0]");
}

#[test]
fn a_column_with_a_dot_in_its_name_is_not_a_struct() {
    let x = batch(vec![(Field::new("a.b", DataType::Int32, true), array(&DataType::Int32, &[Number(1), Null]))]);
    let file = import(&x);
    assert!(file.schema().columns[0].metadata.is_empty());
    assert_eq!(exported_column(&file).data_type(), &DataType::Int32);
}

/// A struct adds only the bit *paths* (3.4) to the header; the field is at offset 40.
#[test]
fn a_flag_states_that_columns_have_paths() {
    let compat = |file: &Reader| {
        let mut flags = [0; 4];
        file.source().read_exact_at(40, &mut flags).unwrap();
        u32::from_le_bytes(flags)
    };
    assert_eq!(compat(&import(&batch_of(&pair(), &[of([Null, Null])]))), 1);
    assert_eq!(compat(&import(&batch_of(&DataType::Int32, &[Null]))), 0);
}

#[test]
fn metadata_of_an_input_says_nothing_about_paths() {
    let field = Field::new("x", DataType::Int32, true);
    let field = field.with_metadata(HashMap::from([("tensilo.path".to_owned(), "s.x".to_owned())]));
    let file = import(&batch(vec![(field, array(&DataType::Int32, &[Number(1)]))]));
    assert_eq!(exported_column(&file).data_type(), &DataType::Int32);
}

#[test]
fn null_structs_inside_structs_have_their_own_column() {
    let outer = structs(vec![("in", pair()), ("c", DataType::Utf8)]);
    let inner = of([Number(1), Null]);
    // the fields of a null struct are hidden, so the inner struct needs no column here
    let file = round_trip(&outer, &[of([inner.clone(), Null]), Null]);
    assert_eq!(names(&file).iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["x", "x.in.a", "x.in.b", "x.c"]);
    let file = round_trip(&outer, &[of([inner.clone(), Null]), of([Null, Null])]);
    assert_eq!(names(&file).iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["x.in", "x.in.a", "x.in.b", "x.c"]);
    let file = round_trip(&outer, &[Null, of([inner, Null]), of([Null, Null])]);
    assert_eq!(file.schema().columns.len(), 5);
}

#[test]
fn null_structs_in_lists_have_the_lists_of_their_fields() {
    let lists = list(pair());
    let member = of([Null, Number(2)]);
    let rows = [List(vec![member.clone(), Null, of([Null, Null])]), Null, List(vec![]), List(vec![Null])];
    let file = round_trip(&lists, &rows);
    assert_eq!(names(&file)[0], ("x", "list<struct nulls>".to_owned()));
    assert_eq!(file.schema().columns[0].metadata["tensilo.path"], "x[]");
    // without null members
    let file = round_trip(&lists, &[List(vec![member]), Null, List(vec![])]);
    assert_eq!(names(&file)[0].0, "x.a");
}

#[test]
fn structs_in_structs_in_lists_come_back() {
    let inner = structs(vec![("words", list(DataType::Utf8)), ("p", pair())]);
    let lists = list(list(structs(vec![("in", inner), ("n", DataType::Int32)])));
    let words = List(vec![Value::Text("w".to_owned()), Null]);
    let full = of([of([words, of([Number(1), Null])]), Number(5)]);
    let rows = [
        List(vec![List(vec![full.clone(), Null]), Null, List(vec![])]),
        List(vec![List(vec![of([Null, Null]), of([of([Null, Null]), Null]), full])]),
        Null,
    ];
    let file = round_trip(&lists, &rows);
    let paths = file.schema().columns.iter().map(|column| column.metadata["tensilo.path"].as_str());
    let expected = ["x[][]", "x[][].in", "x[][].in.words[]", "x[][].in.p", "x[][].in.p.a", "x[][].in.p.b", "x[][].n"];
    assert_eq!(paths.collect::<Vec<_>>(), expected);
}

#[test]
fn structs_without_fields_come_back() {
    let empty = structs(vec![]);
    let file = round_trip(&empty, &[of([]), of([])]);
    assert_eq!(names(&file), [("x", "struct nulls".to_owned())]);
    round_trip(&empty, &[of([]), Null]);
    round_trip(&list(empty.clone()), &[List(vec![of([]), Null]), Null, List(vec![])]);
    let nested = structs(vec![("e", empty.clone()), ("a", DataType::Int32)]);
    round_trip(&nested, &[of([of([]), Null]), Null, of([Null, Null])]);
    round_trip(&structs(vec![("e", empty)]), &[of([of([])]), Null, of([Null])]);
    let required = batch(vec![(
        Field::new("x", structs(vec![]), false),
        Arc::new(StructArray::new_empty_fields(2, None)) as ArrayRef,
    )]);
    let batches: Vec<RecordBatch> = export::batches(&import(&required), None).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches, [required]);
}

/// Lists of bools without elements could be mistaken for a struct.
#[test]
fn empty_lists_of_bools_are_not_structs() {
    let mut lists = ListBuilder::new(BooleanBuilder::new());
    (0..3).for_each(|_| lists.append(true));
    let lists = lists.finish();
    let fields: Fields = vec![Field::new("flags", lists.data_type().clone(), true)].into();
    let file = import(&one(Arc::new(StructArray::new(fields, vec![Arc::new(lists)], None))));
    assert_eq!(column(&file, "x.flags").shape.to_string(), "[*]");
    assert!(matches!(exported_column(&file).data_type(), DataType::Struct(_)));
    let fixed = FixedSizeListArray::try_new_with_length(
        item(DataType::Boolean),
        0,
        Arc::new(BooleanArray::from(Vec::<bool>::new())),
        None,
        2,
    );
    let fixed = fixed.unwrap();
    let fields: Fields = vec![Field::new("flags", fixed.data_type().clone(), true)].into();
    let file = import(&one(Arc::new(StructArray::new(fields, vec![Arc::new(fixed)], None))));
    assert_eq!(column(&file, "x.flags").type_name(), "bool");
    assert!(matches!(exported_column(&file).data_type(), DataType::Struct(_)));
}

#[test]
fn nulls_of_a_struct_follow_its_fields() {
    let x = batch_of(&pair(), &[of([Number(1), Number(2)]), Null]);
    let columns = |options: &ConvertOptions| {
        let file = import_with(std::slice::from_ref(&x), options).unwrap();
        names(&file).iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(columns(&ConvertOptions::new().columns(["x"])), ["x", "x.a", "x.b"]);
    assert_eq!(columns(&ConvertOptions::new().columns(["x.b"])), ["x", "x.b"]);
    assert_eq!(columns(&ConvertOptions::new().columns(["x.b", "x.a"])), ["x", "x.b", "x.a"]);
    assert_eq!(columns(&ConvertOptions::new().skip(["x.a"])), ["x", "x.b"]);
    let error = refused(std::slice::from_ref(&x), &ConvertOptions::new().skip(["x"]));
    assert_eq!(error.kind(), ErrorKind::BadArgument, "{error}");
}

#[test]
fn structs_in_more_structs_than_a_path_names_are_refused() {
    let row = |structs: usize| (0..structs).fold(Number(7), |inner, _| of([inner]));
    let deep = |depth: usize| (0..depth).fold(DataType::Int32, |inner, _| structs(vec![("s", inner)]));
    // the name of the field counts, too
    let max_depth = limits::PATH_NAMES - 1;
    let file = round_trip(&deep(max_depth), &[row(max_depth)]);
    assert_eq!(file.schema().columns.len(), 1);
    let table = batch_of(&deep(max_depth + 1), &[row(max_depth + 1)]);
    let error = refused(&[table], &ConvertOptions::new());
    assert!(error.to_string().contains("a path of 129 names, but the format allows 128"), "{error}");
}

#[test]
fn a_column_with_the_name_of_a_null_struct_is_refused() {
    let inner = structs(vec![("b", pair())]);
    let clash = |rows: &[Value]| {
        let numbers = vec![Number(1); rows.len()];
        batch(vec![
            (Field::new("a", inner.clone(), true), array(&inner, rows)),
            (Field::new("a.b", DataType::Int32, true), array(&DataType::Int32, &numbers)),
        ])
    };
    let error = refused(&[clash(&[of([Null])])], &ConvertOptions::new());
    assert_eq!((error.kind(), error.column()), (ErrorKind::BadInput, Some("a.b")), "{error}");
    assert!(error.to_string().contains("rename"), "{error}");
    // without null structs, this column does not exist
    let file = import(&clash(&[of([of([Null, Null])])]));
    assert_eq!(file.schema().columns.len(), 3);
}

#[test]
fn inputs_read_once_have_nulls_of_all_structs_that_may_be_null() {
    let all = [of([Number(1), Null]), Null];
    let batches = |rows: &[Value], nullable| {
        let field = Field::new("x", pair(), nullable);
        let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array(&pair(), rows)]).unwrap();
        RecordBatchIterator::new(vec![Ok(rows.clone())], rows.schema())
    };
    let write = |rows: &[Value], nullable| {
        let written = write_reader(batches(rows, nullable), Stream(Vec::new()), &ConvertOptions::new());
        opened(written.unwrap().sink.0)
    };
    assert_eq!(values(&exported_column(&write(&all, true))), all);
    assert_eq!(write(&all[..1], true).schema().columns.len(), 3);
    assert_eq!(write(&all[..1], false).schema().columns.len(), 2);
}

#[test]
fn an_export_of_a_struct_has_its_fields_and_nulls() {
    let outer = structs(vec![("in", pair()), ("c", DataType::Utf8)]);
    let rows = [of([of([Number(1), Null]), Null]), of([Null, Null]), Null];
    let file = import(&batch_of(&outer, &rows));
    let export = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let batch = export::batches(&file, Some(&names))?.next().unwrap().unwrap();
        assert_eq!(batch.num_columns(), 1);
        tensilo::Result::Ok(values(batch.column(0)))
    };
    assert_eq!(export(&["x"]).unwrap(), rows);
    let only_in = [of([of([Number(1), Null])]), of([Null]), Null];
    assert_eq!(export(&["x.in"]).unwrap(), only_in);
    let only_b = [of([of([Null])]), of([Null]), Null];
    assert_eq!(export(&["x.in.b"]).unwrap(), only_b);
    // a complete struct has the order of the source
    assert_eq!(export(&["x.c", "x.in"]).unwrap(), rows);
    assert_eq!(export(&["x", "x"]).unwrap_err().kind(), ErrorKind::BadArgument);
    assert!(export(&["x.d"]).is_err());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_no_structs_without_fields() {
    let file = import(&batch_of(&list(structs(vec![])), &[List(vec![of([])])]));
    let options = export::ExportOptions::new();
    let error = export::export_into(&file, Stream(Vec::new()), export::ExportFormat::Parquet, options).err().unwrap();
    assert_eq!((error.kind(), error.column()), (ErrorKind::BadArgument, Some("x")), "{error}");
}

/// Returns a type and values of it.
fn any_type(depth: u32) -> BoxedStrategy<DataType> {
    let leaf = prop_oneof![Just(DataType::Int32), Just(DataType::Utf8)];
    if depth == 0 {
        return leaf.boxed();
    }
    let name = prop::sample::select(vec!["a", "b.c", "[", r"\", "d[]", "e"]);
    let field = (name, any_type(depth - 1), any::<bool>()).prop_map(|(name, inner, nullable)| (name, inner, nullable));
    let fields = prop::collection::vec(field, 0..4).prop_map(|mut fields| {
        fields.sort_by_key(|(name, ..)| *name);
        fields.dedup_by_key(|(name, ..)| *name);
        DataType::Struct(fields.into_iter().map(|(name, inner, nullable)| Field::new(name, inner, nullable)).collect())
    });
    // lists of numbers are tensors
    let lists = (any_type(depth - 1), any::<bool>()).prop_map(|(inner, nullable)| {
        let inner = if inner == DataType::Int32 { DataType::Utf8 } else { inner };
        DataType::List(Arc::new(Field::new("item", inner, nullable)))
    });
    prop_oneof![2 => leaf, 4 => fields, 2 => lists].boxed()
}

fn any_value(data_type: &DataType, nullable: bool) -> BoxedStrategy<Value> {
    let present = match data_type {
        DataType::Int32 => any::<i32>().prop_map(Number).boxed(),
        DataType::Utf8 => "[a-c]{0,2}".prop_map(Value::Text).boxed(),
        DataType::List(item) => {
            prop::collection::vec(any_value(item.data_type(), item.is_nullable()), 0..3).prop_map(List).boxed()
        }
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| any_value(field.data_type(), field.is_nullable())).collect();
            fields.prop_map(Value::Struct).boxed()
        }
        other => panic!("{other}"),
    };
    if nullable { prop_oneof![4 => present, 1 => Just(Null)].boxed() } else { present }
}

fn any_table() -> impl Strategy<Value = (DataType, bool, Vec<Value>)> {
    (any_type(3), any::<bool>()).prop_flat_map(|(data_type, nullable)| {
        let rows = prop::collection::vec(any_value(&data_type, nullable), 1..12);
        (Just(data_type), Just(nullable), rows)
    })
}

/// Returns the same type with everything nullable.
fn all_nullable(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(inner) => list(all_nullable(inner.data_type())),
        DataType::Struct(fields) => {
            structs(fields.iter().map(|field| (field.name().as_str(), all_nullable(field.data_type()))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn any_structs_come_back((data_type, nullable, rows) in any_table(), cut in 0_usize..12) {
        let table = |data_type: &DataType, nullable, rows: &[Value]| {
            batch(vec![(Field::new("x", data_type.clone(), nullable), array(data_type, rows))])
        };
        let (first, second) = rows.split_at(cut.min(rows.len()));
        let tables = [table(&data_type, nullable, first), table(&data_type, nullable, second)];
        let file = import_with(&tables, &ConvertOptions::new()).unwrap();
        prop_assert_eq!(&values(&exported_column(&file)), &rows);
        let data_type = all_nullable(&data_type);
        let file = import(&table(&data_type, true, &rows));
        prop_assert_eq!(&exported_column(&file), &array(&data_type, &rows));
    }
}
