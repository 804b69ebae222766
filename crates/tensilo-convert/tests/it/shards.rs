//! Several inputs of formats that do not declare types: types are found over all inputs, as within
//! one file.

use super::common::{convert, gzip, npy};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tensilo::import::{AppendOptions, ConvertOptions, append, convert as convert_to, convert_rows, plan_shards};
use tensilo::sink::Stream;
use tensilo::{Column, ColumnBuffer, Reader, Result};
use tensilo_convert::{FormatOptions, input_formats};
use tensilo_testing::Folder;

fn go_on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn options() -> ConvertOptions {
    ConvertOptions::new().formats(input_formats(FormatOptions::new()))
}

fn append_options() -> AppendOptions {
    AppendOptions::new().formats(input_formats(FormatOptions::new()))
}

/// Returns the columns of a file with their types and all values, as text.
type Values = Vec<(String, String)>;

fn values(file: &Reader) -> Values {
    let column = |column: Column| {
        let mut buffer = ColumnBuffer::new();
        column.cursor().range_into(0..column.sample_count(), &mut buffer).unwrap();
        let lists: Vec<_> = buffer.lists().iter().map(|lists| (lists.offsets(), lists.validity())).collect();
        let schema = column.schema();
        let kind = (schema.type_name(), schema.nullable, &schema.levels);
        let values = (buffer.bytes(), buffer.offsets(), buffer.varying_extents(), buffer.validity(), lists);
        (schema.name.clone(), format!("{kind:?}: {values:?}"))
    };
    file.columns().map(column).collect()
}

fn read(inputs: &[PathBuf]) -> Values {
    values(&convert(inputs, FormatOptions::new()).unwrap_or_else(|error| panic!("{inputs:?}: {error}")))
}

/// Converts the first input, appends the others, and returns the values.
fn appended(folder: &Folder, inputs: &[PathBuf]) -> Result<Values> {
    let file = folder.path("appended.tsl");
    fs::remove_file(&file).ok();
    convert_to(&inputs[..1], &file, &options(), &mut go_on)?;
    append(&inputs[1..], &file, &append_options(), &mut go_on)?;
    Ok(values(&Reader::from_bytes(fs::read(&file).unwrap())?))
}

/// Returns the values that a planned conversion gives.
fn planned(inputs: &[PathBuf]) -> Values {
    let plan = plan_shards(inputs, u64::MAX, &options(), &mut go_on).unwrap();
    let rows = plan.shards[0].rows.clone();
    let table = std::path::Path::new("table");
    let file = convert_rows(&plan.inputs, rows, &plan.schema, table, Stream(Vec::new()), &append_options(), &mut go_on);
    values(&Reader::from_bytes(file.unwrap().sink.0).unwrap())
}

/// Checks that shards, converted together and planned, have the values of one file with all
/// samples. The columns are the columns of `whole`, in any order of the shards.
#[track_caller]
fn check_shards(shards: &[PathBuf; 2], whole: [PathBuf; 2]) {
    let reversed = [shards[1].clone(), shards[0].clone()];
    for (shards, whole) in [(shards, &whole[0]), (&reversed, &whole[1])] {
        let expected = read(std::slice::from_ref(whole));
        assert_eq!(read(shards), expected);
        assert_eq!(planned(shards), expected);
    }
}

const LINES: [(&str, &str); 12] = [
    (r#"{"a": null}"#, r#"{"a": "x"}"#),
    (r#"{"a": null}"#, r#"{"a": {"b": [1.5], "c": "x"}}"#),
    (r#"{"a": []}"#, r#"{"a": ["x"]}"#),
    (r#"{"a": [[]]}"#, r#"{"a": [[1, 2], [3, 4]]}"#),
    (r#"{"a": []}"#, r#"{"a": [{"b": 1, "c": []}, {"b": null}]}"#),
    (r#"{"a": 1}"#, r#"{"a": 0.5}"#),
    (r#"{"a": [1, 2]}"#, r#"{"a": [0.5, 3]}"#),
    (r#"{"a": 1}"#, r#"{"a": 18446744073709551615}"#),
    (r#"{"a": 1}"#, r#"{"b": "x", "a": 2}"#),
    (r#"{"a": {"b": 1}}"#, r#"{"a": {"c": "x"}, "d": 1}"#),
    (r#"{"l": [{"b": 1}, {}]}"#, r#"{"l": [{"c": [0.5]}, null]}"#),
    (r#"{"a": [[1], [2, 3]]}"#, r#"{"a": [[0.5]]}"#),
];

#[test]
fn json_lines_have_the_types_of_all_files() {
    for (first, second) in LINES {
        let folder = Folder::new();
        let shards = [folder.file("1.jsonl", format!("{first}\n")), folder.file("2.jsonl", format!("{second}\n"))];
        let whole = [
            folder.file("12.jsonl", format!("{first}\n{second}\n")),
            folder.file("21.jsonl", format!("{second}\n{first}\n")),
        ];
        check_shards(&shards, whole);
    }
}

#[test]
fn json_lines_are_appended_if_the_columns_can_have_them() {
    for (file, more) in [
        (r#"{"a": "x"}{"a": null}"#, r#"{"a": null}"#),
        (r#"{"a": "x"}{}"#, r#"{}{}"#),
        (r#"{"a": ["x"]}"#, r#"{"a": []}"#),
        (r#"{"a": 0.5}"#, r#"{"a": 1}"#),
        (r#"{"a": [0.5]}{"a": [1, 2]}"#, r#"{"a": [1]}"#),
        (r#"{"a": [[0.5]]}{"a": [[1, 2], [3, 4]]}"#, r#"{"a": []}{"a": [[1, 2, 3]]}"#),
        (r#"{"l": [{"b": 1, "c": "x"}, {"b": null}]}"#, r#"{"l": [{"b": 2}, {}]}"#),
        (r#"{"o": {"b": 1}}{"o": null, "a": 1}"#, r#"{"a": null}"#),
    ] {
        let folder = Folder::new();
        let shards = [folder.file("1.jsonl", file), folder.file("2.jsonl", more)];
        let whole = folder.file("12.jsonl", format!("{file}{more}"));
        let found = appended(&folder, &shards).unwrap_or_else(|error| panic!("{file} {more}: {error}"));
        assert_eq!(found, read(&[whole]), "{file} {more}");
    }
    let folder = Folder::new();
    for (file, more, finding) in [
        (r#"{"a": 1}"#, r#"{"a": 0.5}"#, "column \"a\" is f64, but i64 in the file"),
        (r#"{"a": 1}"#, r#"{}"#, "column \"a\" is missing"),
        (r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#, "column \"b\" is not in the file"),
        (r#"{"a": 0.5}"#, r#"{"a": 9007199254740993}"#, "the integer 9007199254740993 has no exact f64 value"),
    ] {
        let error = appended(&folder, &[folder.file("1.jsonl", file), folder.file("2.jsonl", more)]).unwrap_err();
        assert!(error.to_string().contains(finding), "{error}");
    }
}

#[test]
fn integers_that_no_float_of_another_shard_equals_are_refused() {
    let folder = Folder::new();
    for (text, finding) in [
        ("{\"a\": 1}\n{\"a\": 9007199254740993}\n", "the integer 9007199254740993 has no exact f64 value"),
        ("{\"a\": 1}\n{\"a\": [9007199254740993]}\n", "a: found an array, but earlier values are integers"),
    ] {
        let shards = [folder.file("1.jsonl", text), folder.file("2.jsonl", "{\"a\": 0.5}\n")];
        let error = convert(&shards, FormatOptions::new()).err().unwrap();
        assert!(error.to_string().contains(finding) && error.path() == Some(&shards[0]), "{error}");
    }
    let lists = [
        folder.file("1.jsonl", "{\"a\": [1]}\n{\"a\": [2, 9007199254740993]}\n"),
        folder.file("2.jsonl", "{\"a\": [0.5]}"),
    ];
    let error = convert(&lists, FormatOptions::new()).err().unwrap();
    assert!(error.to_string().contains("9007199254740993") && error.samples() == Some(1..2), "{error}");
    let signs = [folder.file("1.jsonl", "{\"a\": -1}"), folder.file("2.jsonl", "{\"a\": 18446744073709551615}")];
    let error = convert(&signs, FormatOptions::new()).err().unwrap();
    assert!(error.to_string().contains("-1 is negative"), "{error}");
}

/// The values of a feature.
enum Feature<'a> {
    Integers(&'a [i64]),
    Floats(&'a [f32]),
}

use Feature::{Floats, Integers};

/// Returns a record of a TFRecord file.
fn record(features: &[(&str, Feature<'_>)]) -> Vec<u8> {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    }
    let feature = |values: &Feature<'_>| match values {
        Integers(integers) => {
            field(3, &field(1, &integers.iter().map(|i| u8::try_from(*i).unwrap()).collect::<Vec<_>>()))
        }
        Floats(floats) => field(2, &field(1, &floats.iter().flat_map(|float| float.to_le_bytes()).collect::<Vec<_>>())),
    };
    let entries = features
        .iter()
        .map(|(name, values)| field(1, &[field(1, name.as_bytes()), field(2, &feature(values))].concat()));
    let example = field(1, &entries.collect::<Vec<_>>().concat());
    let crc = |bytes: &[u8]| crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8).to_le_bytes();
    let length = u64::try_from(example.len()).unwrap().to_le_bytes();
    [&length[..], &crc(&length), &example, &crc(&example)].concat()
}

#[test]
fn tfrecords_have_the_features_of_all_files() {
    let pairs: [(Vec<u8>, Vec<u8>); 4] = [
        (record(&[("a", Integers(&[7]))]), record(&[("a", Integers(&[1, 2]))])),
        (record(&[("a", Integers(&[7]))]), record(&[])),
        (
            record(&[("a", Floats(&[0.5])), ("b", Integers(&[1]))]),
            record(&[("a", Floats(&[])), ("b", Integers(&[1, 2, 3]))]),
        ),
        ([record(&[("a", Integers(&[7]))]), record(&[])].concat(), record(&[("a", Integers(&[8, 9]))])),
    ];
    for (first, second) in pairs {
        let folder = Folder::new();
        let shards = [folder.file("1.tfrecord", &first), folder.file("2.tfrecord", &second)];
        let whole = [
            folder.file("12.tfrecord", [first.as_slice(), &second].concat()),
            folder.file("21.tfrecord", [second.as_slice(), &first].concat()),
        ];
        check_shards(&shards, whole);
    }
    let folder = Folder::new();
    let lists =
        folder.file("1.tfrecord", [record(&[("a", Integers(&[7, 8]))]), record(&[("a", Integers(&[]))])].concat());
    let single = folder.file("2.tfrecord", record(&[("a", Integers(&[9]))]));
    let whole = folder.file("3.tfrecord", [fs::read(&lists).unwrap(), fs::read(&single).unwrap()].concat());
    assert_eq!(appended(&folder, &[lists, single]).unwrap(), read(&[whole]));
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(content.len()).unwrap());
        archive.append_data(&mut header, name, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

#[test]
fn archives_have_the_suffixes_of_all_files() {
    let npy = npy("<i2", "False", "(2,)", &[1, 0, 2, 0]);
    type Members<'a> = &'a [(&'a str, &'a [u8])];
    let pairs: [(Members<'_>, Members<'_>); 3] = [
        (&[("a.txt", b"x"), ("a.cls", b"7")], &[("b.txt", b"y")]),
        (&[("a.txt", b"x")], &[("b.txt", b"y"), ("b.m.npy", &npy)]),
        (&[("a.jpg", b"x")], &[("b.json", b"{}")]),
    ];
    for (first, second) in pairs {
        let folder = Folder::new();
        let shards = [folder.file("1.tar", archive(first)), folder.file("2.tar", archive(second))];
        let whole = [
            folder.file("12.tar", archive(&[first, second].concat())),
            folder.file("21.tar", archive(&[second, first].concat())),
        ];
        check_shards(&shards, whole);
    }
    let folder = Folder::new();
    let all = archive(&[("a.txt", b"x"), ("a.m.npy", &npy), ("b.txt", b"y")]);
    let shards = [folder.file("1.tar", &all), folder.file("2.tar", archive(&[("c.txt", b"z")]))];
    let whole = archive(&[("a.txt", b"x"), ("a.m.npy", &npy), ("b.txt", b"y"), ("c.txt", b"z")]);
    assert_eq!(appended(&folder, &shards).unwrap(), read(&[folder.file("3.tar", whole)]));
}

#[test]
fn shards_without_samples_add_none() {
    let no_members = archive(&[]);
    type Shards<'a> = &'a [(&'a str, Vec<u8>)];
    let files: [(&str, Vec<u8>, Shards<'_>); 3] = [
        (
            "1.jsonl",
            b"{\"a\": 1}\n".to_vec(),
            &[
                ("2.jsonl", vec![]),
                ("2.ndjson", b"\n\n".to_vec()),
                ("2.json", b"[]".to_vec()),
                ("2.jsonl.gz", gzip(b"")),
            ],
        ),
        (
            "1.tfrecord",
            record(&[("a", Integers(&[7]))]),
            &[("2.tfrecord", vec![]), ("2.tfrecord-00000-of-00003", vec![]), ("2.tfrecord.gz", gzip(b""))],
        ),
        (
            "1.tar",
            archive(&[("a.txt", b"x")]),
            &[("2.tar", no_members.clone()), ("2.tar.gz", gzip(&no_members)), ("2.tgz", gzip(&no_members))],
        ),
    ];
    for (name, content, empties) in files {
        let folder = Folder::new();
        let some = folder.file(name, content);
        let expected = convert(std::slice::from_ref(&some), FormatOptions::new()).unwrap();
        for (name, content) in empties {
            let empty = folder.file(name, content);
            for inputs in [[some.clone(), empty.clone()], [empty.clone(), some.clone()]] {
                let found = convert(&inputs, FormatOptions::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(values(&found), values(&expected), "{name}");
                assert_eq!(found.schema().columns, expected.schema().columns, "{name}");
            }
            assert_eq!(appended(&folder, &[some.clone(), empty.clone()]).unwrap(), values(&expected));
            // on its own, it has the columns of its format without samples
            match convert(&[empty], FormatOptions::new()) {
                Ok(file) => assert_eq!(file.sample_count(), 0),
                Err(error) => assert!(error.to_string().contains("the input has no columns"), "{error}"),
            }
        }
    }
}
