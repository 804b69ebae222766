//! Tests structs of several inputs: converting and appending files with and without null structs
//! together.

use super::common::*;
use super::struct_values::*;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Int8Type, Int32Type};
use tensilo::import::{AppendOptions, ConvertOptions, Progress, convert};
use tensilo::{Error, ErrorKind, export};
use tensilo_testing::Folder;

/// Writes each table to a file of this format, in batches of 100 rows. Returns their paths.
fn files(folder: &Folder, format: &str, tables: &[RecordBatch]) -> Vec<PathBuf> {
    let write = |(i, table): (usize, &RecordBatch)| {
        let path = folder.path(format!("{i}.{format}"));
        let batch = |first: usize| table.slice(first, (table.num_rows() - first).min(100));
        let batches: Vec<RecordBatch> = (0..table.num_rows()).step_by(100).map(batch).collect();
        match format {
            "arrow" => write_arrow(&path, &batches),
            "stream" => write_stream(&path, &batches),
            #[cfg(feature = "parquet")]
            "parquet" => write_parquet(&path, &batches),
            other => panic!("{other}"),
        }
        path
    };
    tables.iter().enumerate().map(write).collect()
}

const FORMATS: &[&str] = if cfg!(feature = "parquet") { &["arrow", "stream", "parquet"] } else { &["arrow", "stream"] };

/// Returns a struct in a struct and in lists, with a field that identifies rows.
fn deep() -> DataType {
    let inner = structs(vec![("p", pair()), ("lists", list(pair()))]);
    structs(vec![("in", inner), ("n", DataType::Int32)])
}

fn deep_row(i: i32, with_nulls: bool) -> Value {
    let pair = of([Number(i), Null]);
    let lists = List(vec![pair.clone(), if with_nulls && i % 3 == 0 { Null } else { pair.clone() }]);
    let p = if with_nulls && i % 5 == 0 { Null } else { pair };
    match i % 7 {
        0 if with_nulls => Null,
        1 if with_nulls => of([Null, Number(i)]),
        _ => of([of([p, lists]), Number(i)]),
    }
}

#[test]
fn only_the_second_of_two_inputs_has_null_structs() {
    let first: Vec<Value> = (0..150).map(|i| deep_row(i, false)).collect();
    let second: Vec<Value> = (150..400).map(|i| deep_row(i, true)).collect();
    let all: Vec<Value> = first.iter().chain(&second).cloned().collect();
    let tables = [batch_of(&deep(), &first), batch_of(&deep(), &second)];
    for format in FORMATS {
        let folder = Folder::new();
        let inputs = files(&folder, format, &tables);
        for threads in [1, 3] {
            let options = ConvertOptions::new().writer(tensilo::WriterOptions::new().threads(threads));
            let file = converted(&folder, &inputs, &options).unwrap();
            assert_eq!(names(&file).iter().filter(|(_, name)| name.contains("struct")).count(), 4, "{format}");
            assert_eq!(&exported_column(&file), &array(&deep(), &all), "{format}");
        }
        let file = converted(&folder, &inputs[..1], &ConvertOptions::new()).unwrap();
        assert!(names(&file).iter().all(|(_, name)| !name.contains("struct")), "{format}");
        assert_eq!(&exported_column(&file), &array(&deep(), &first), "{format}");
    }
}

#[test]
fn a_struct_that_one_input_declares_without_nulls_may_be_null_in_another() {
    let required = |rows: &[Value]| batch(vec![(Field::new("x", pair(), false), array(&pair(), rows))]);
    let (first, second) = (of([Number(1), Null]), Null);
    let folder = Folder::new();
    for format in FORMATS {
        let tables = [required(std::slice::from_ref(&first)), batch_of(&pair(), std::slice::from_ref(&second))];
        let inputs = files(&folder, format, &tables);
        let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
        assert_eq!(values(&exported_column(&file)), [first.clone(), second.clone()], "{format}");
    }
}

/// The field is a struct in one input only, so the file has no struct.
#[test]
fn a_field_in_one_input_may_be_a_column_in_another() {
    let folder = Folder::new();
    let only_a = structs(vec![("a", DataType::Int32)]);
    let flat = batch(vec![(Field::new("x.a", DataType::Int32, true), array(&DataType::Int32, &[Number(2)]))]);
    let inputs = files(&folder, "arrow", &[batch_of(&only_a, &[of([Number(1)]), Null]), flat]);
    let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
    assert_eq!(values(&exported_column(&file)), [Number(1), Null, Number(2)]);
}

#[test]
fn tensilo_files_with_and_without_null_structs_become_one() {
    let folder = Folder::new();
    for data_type in [pair(), list(pair()), deep(), structs(vec![])] {
        let some = match &data_type {
            DataType::Struct(fields) if fields.is_empty() => of([]),
            DataType::List(_) => List(vec![of([Number(1), Null]), of([Null, Null])]),
            data_type if *data_type == deep() => deep_row(1, false),
            _ => of([Number(1), Null]),
        };
        let null = if let DataType::List(_) = &data_type { List(vec![Null, of([Null, Null]), Null]) } else { Null };
        let parts = [vec![some.clone()], vec![null.clone(), some.clone()]];
        let mut native = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let inputs = files(&folder, "arrow", &[batch_of(&data_type, part)]);
            native.push(folder.path(format!("{i}.tsl")));
            convert_over(&inputs, &native[i]).unwrap();
            let file = converted(&folder, &native[i..], &ConvertOptions::new()).unwrap();
            assert_eq!(file.schema(), read(&native[i]).schema());
        }
        for order in [[0, 1], [1, 0]] {
            let inputs = order.map(|i: usize| native[i].clone());
            let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
            let all: Vec<Value> = order.iter().flat_map(|&i| parts[i].clone()).collect();
            assert_eq!(&exported_column(&file), &array(&data_type, &all));
        }
    }
}

#[test]
fn null_structs_are_appended_to_a_file_that_has_them() {
    let folder = Folder::new();
    for format in FORMATS {
        let (some, null) = (of([Number(1), Null]), Null);
        let tables = [batch_of(&pair(), &[some.clone(), null.clone()]), batch_of(&pair(), std::slice::from_ref(&some))];
        let inputs = files(&folder, format, &tables);
        let (with, without) = (folder.path("with.tsl"), folder.path("without.tsl"));
        convert_over(&inputs[..1], &with).unwrap();
        append_with(&inputs, &with, &AppendOptions::new()).unwrap();
        let all = [some.clone(), null.clone(), some.clone(), null.clone(), some.clone()];
        assert_eq!(values(&exported_column(&read(&with))), all, "{format}");

        convert_over(&inputs[1..], &without).unwrap();
        append_with(&inputs[1..], &without, &AppendOptions::new()).unwrap();
        let error: Error = append_with(&inputs[..1], &without, &AppendOptions::new()).unwrap_err();
        assert_eq!((error.kind(), error.column()), (ErrorKind::BadInput, Some("x")), "{error}");
        assert!(error.to_string().contains("sample 3") && error.to_string().contains("new file"), "{error}");
        assert_eq!(error.path(), Some(inputs[0].as_path()));
        assert_eq!(values(&exported_column(&read(&without))), [some.clone(), some.clone()], "{format}");
        // the same rows as a tensilo file
        let native = folder.path("native.tsl");
        convert_over(&inputs[..1], &native).unwrap();
        assert!(append_with(std::slice::from_ref(&native), &without, &AppendOptions::new()).is_err());
        append_with(std::slice::from_ref(&without), &with, &AppendOptions::new()).unwrap();
        assert_eq!(read(&with).sample_count(), 7);
    }
}

#[test]
fn a_null_struct_in_a_list_is_named_by_its_sample() {
    let folder = Folder::new();
    let some = of([Number(1), Null]);
    let rows = [List(vec![some.clone()]), List(vec![]), List(vec![some.clone(), Null])];
    let inputs = files(&folder, "arrow", &[batch_of(&list(pair()), &rows[..2]), batch_of(&list(pair()), &rows)]);
    let output = folder.path("out.tsl");
    convert_over(&inputs[..1], &output).unwrap();
    let error = append_with(&inputs[1..], &output, &AppendOptions::new()).unwrap_err();
    assert!(error.to_string().contains("sample 4"), "{error}");
}

/// Converts a file; returns how many rows were scanned first.
fn scanned(folder: &Folder, input: &PathBuf) -> u64 {
    let mut scanned = 0;
    let mut progress = |progress: Progress| {
        if let Progress::Scanning { done, .. } = progress {
            scanned = done;
        }
        GO_ON
    };
    let (inputs, output) = (std::slice::from_ref(input), folder.path("scanned.tsl"));
    convert(inputs, &output, &ConvertOptions::new().overwrite(true), &mut progress).unwrap();
    scanned
}

#[test]
fn only_structs_that_may_be_null_are_scanned() {
    let folder = Folder::new();
    let required = |rows: &[Value]| batch(vec![(Field::new("x", pair(), false), array(&pair(), rows))]);
    let (full, with_nulls) = (of([Number(1), Null]), of([Null, Number(2)]));
    for format in FORMATS {
        let one = std::slice::from_ref(&full);
        let tables = [required(one), batch_of(&pair(), one)];
        let inputs = files(&folder, format, &tables);
        assert_eq!(inputs.iter().map(|input| scanned(&folder, input)).max(), Some(0), "{format}");
        let tables = [batch_of(&pair(), &[full.clone(), with_nulls.clone()]), batch_of(&pair(), &[full.clone(), Null])];
        let inputs = files(&folder, format, &tables);
        // a Parquet file counts nulls of fields, but not of structs
        assert_eq!(scanned(&folder, &inputs[0]) > 0, *format == "parquet", "{format}");
        assert!(scanned(&folder, &inputs[1]) > 0, "{format}");
    }
}

#[test]
fn only_lists_that_may_have_null_elements_are_scanned_to_the_end() {
    let folder = Folder::new();
    let row = |i: i32| if i % 3 == 0 { Null } else { List(vec![Number(i); i as usize % 3 - 1]) };
    let with_null = |i: i32| if i == 299 { List(vec![Null]) } else { row(i) };
    let table = |row: &dyn Fn(i32) -> Value| batch_of(&list(DataType::Int32), &(0..300).map(row).collect::<Vec<_>>());
    for format in FORMATS {
        let inputs = files(&folder, format, &[table(&row), table(&with_null)]);
        // some of the first rows already show that the lengths vary
        assert!(scanned(&folder, &inputs[0]) < 300, "{format}");
        assert_eq!(scanned(&folder, &inputs[1]), 300, "{format}");
    }
}

#[test]
fn a_null_in_a_dictionary_is_a_null_element() {
    let folder = Folder::new();
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
    let keys = DictionaryArray::new(Int8Array::from(vec![0, 1, 0]), values);
    let table = one(three_lists(&(Arc::new(keys) as ArrayRef)));
    for format in ["arrow", "stream"] {
        let input = files(&folder, format, std::slice::from_ref(&table)).remove(0);
        assert!(scanned(&folder, &input) > 0, "{format}");
        let exported = exported_column(&read(&folder.path("scanned.tsl")));
        let elements = exported.as_list::<i32>().values().as_dictionary::<Int8Type>().clone();
        let elements = elements.downcast_dict::<Int32Array>().unwrap();
        assert!(elements.into_iter().eq([Some(7), None, Some(7)]), "{format}");
    }
}

#[test]
fn null_counts_reveal_null_structs_at_any_depth() {
    let folder = Folder::new();
    let outer = structs(vec![("n", DataType::Int32), ("lists", list(structs(vec![("p", pair())])))]);
    let row = |p: Value| of([Null, List(vec![of([p])])]);
    let full = row(of([Null, Number(2)]));
    for (rows, expected) in [(vec![full.clone()], false), (vec![full, row(Null)], true)] {
        // an earlier column, so that leaves have to be counted
        let first = (Field::new("first", pair(), true), array(&pair(), &vec![of([Number(1), Null]); rows.len()]));
        let table = batch(vec![first, (Field::new("x", outer.clone(), true), array(&outer, &rows))]);
        for format in FORMATS {
            let input = files(&folder, format, std::slice::from_ref(&table)).remove(0);
            assert_eq!(scanned(&folder, &input) > 0, expected, "{format}");
            let file = read(&folder.path("scanned.tsl"));
            let columns = ["x".to_owned()];
            let mut batches = export::batches(&file, Some(&columns)).unwrap();
            assert_eq!(values(batches.next().unwrap().unwrap().column(0)), rows);
        }
    }
}

/// Each run array has a node for its ends and one for its values.
#[test]
fn counts_of_nulls_are_read_beside_runs() {
    let folder = Folder::new();
    let runs: RunArray<Int32Type> = [Some("a"), Some("a"), None].into_iter().collect();
    let rows: Vec<Value> = (0..3).map(|i| of([Number(i), Null])).collect();
    let first = (Field::new("runs", runs.data_type().clone(), true), Arc::new(runs) as ArrayRef);
    let table = |rows: &[Value]| batch(vec![first.clone(), (Field::new("x", pair(), true), array(&pair(), rows))]);
    let with_null = [&rows[..2], &[Null]].concat();
    for format in ["arrow", "stream"] {
        let inputs = files(&folder, format, &[table(&rows), table(&with_null)]);
        assert_eq!([scanned(&folder, &inputs[0]) > 0, scanned(&folder, &inputs[1]) > 0], [false, true], "{format}");
    }
}
