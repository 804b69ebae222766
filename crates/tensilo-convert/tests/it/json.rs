//! JSON: objects in lines, in several lines, or in an array.

use super::common::{check_left_out, check_refused, columns, convert};
use serde_json::{Value, json};
use tensilo::DType;
use tensilo_convert::FormatOptions;
use tensilo_testing::Folder;

/// Returns the type of column `a`, and its samples as floats or integers.
fn numbers(folder: &Folder, text: &str) -> (DType, Vec<Value>) {
    let file = convert(&[folder.file("a.jsonl", text)], FormatOptions::new()).unwrap_or_else(|error| panic!("{error}"));
    let column = file.column("a").unwrap();
    let mut cursor = column.cursor();
    let dtype = column.schema().dtype;
    let value = |i: u64| {
        let bytes: [u8; 8] = cursor.read(i).unwrap().bytes().try_into().unwrap();
        match dtype {
            DType::F64 => json!(f64::from_ne_bytes(bytes).to_string()),
            DType::I64 => json!(i64::from_ne_bytes(bytes)),
            _ => json!(u64::from_ne_bytes(bytes)),
        }
    };
    (dtype, (0..column.sample_count()).map(value).collect())
}

#[test]
fn integers_that_no_float_equals_are_refused() {
    let folder = Folder::new();
    for (lines, finding) in [
        (
            "{\"a\": 18446744073709551617}\n{\"a\": 18446744073709551616}\n",
            "line 1: a: the integer 18446744073709551617",
        ),
        (
            "{\"a\": null}\n{\"a\": {\"b\": [-9223372036854775809]}}\n",
            "line 2: a.b[]: the integer -9223372036854775809",
        ),
        (
            "{\"a\": 9007199254740993}\n{\"a\": 0.5}\n",
            "line 2: a: found a float, but no f64 represents the earlier integer 9007199254740993 exactly",
        ),
        ("{\"a\": 0.5}\n{\"a\": 9007199254740993}\n", "line 2: a: found the integer 9007199254740993 among floats"),
        ("{\"a\": -1}\n{\"a\": 18446744073709551615}\n", "line 2: a: integers from -1 to 18446744073709551615"),
        ("{\"a\": 1e400}\n", "line 1: a: the number 1e400 is beyond the range of f64"),
    ] {
        check_refused(&folder.file("a.jsonl", lines), finding);
    }
}

#[test]
fn integers_that_floats_equal_are_floats_if_they_have_to_be() {
    let folder = Folder::new();
    let found = numbers(&folder, "{\"a\": 18446744073709551616}\n{\"a\": 9007199254740994}\n{\"a\": -0}\n");
    assert_eq!(found, (DType::F64, vec![json!("18446744073709552000"), json!("9007199254740994"), json!("0")]));
    let found = numbers(&folder, "{\"a\": 18446744073709551615}\n{\"a\": -0}\n");
    assert_eq!(found, (DType::U64, vec![json!(u64::MAX), json!(0)]));
    let found = numbers(&folder, "{\"a\": 1.0}\n{\"a\": 1e20}\n{\"a\": 2}\n");
    assert_eq!(found, (DType::F64, vec![json!("1"), json!("100000000000000000000"), json!("2")]));
}

#[test]
fn nan_and_infinities_are_those_of_python() {
    let folder = Folder::new();
    let found = numbers(&folder, "{\"a\": NaN}\n{\"a\": Infinity}\n{\"a\": -Infinity}\n{\"a\": 1}\n");
    assert_eq!(found, (DType::F64, vec![json!("NaN"), json!("inf"), json!("-inf"), json!("1")]));
}

/// The same objects give the same samples in every layout.
#[test]
fn objects_follow_one_another_or_are_in_an_array() {
    let folder = Folder::new();
    let expected = convert(
        &[folder.file("due.jsonl", "{\"a\": [1, 2], \"b\": \"x\"}\n{\"a\": [], \"b\": \"y\"}\n")],
        FormatOptions::new(),
    );
    let expected = columns(&expected.unwrap());
    let texts = [
        "\u{feff}{\"a\":[1,2],\"b\":\"x\"}\r\n\r\n{\"a\":[],\"b\":\"y\"}\r\n",
        "{\"a\":[1,2],\"b\":\"x\"}\n\u{feff}{\"a\":[],\"b\":\"y\"}",
        "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": \"x\"\n}\n{\n  \"a\": [],\n  \"b\": \"y\"\n}\n",
        "[{\"a\":[1,2],\"b\":\"x\"},{\"a\":[],\"b\":\"y\"}]",
        "\u{feff}[\n  {\"a\": [1, 2], \"b\": \"x\"},\n  {\"a\": [], \"b\": \"y\"}\n]\n",
    ];
    for (name, text) in texts.iter().flat_map(|text| [("unnamed", text), ("a.json", text)]) {
        let found = convert(&[folder.file(name, text)], FormatOptions::new());
        let found = found.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(columns(&found), expected, "{text:?}");
    }
}

#[test]
fn text_that_is_no_json_is_named_with_its_line() {
    let folder = Folder::new();
    for (name, text, finding) in [
        // a line that is cut off, and the next one
        (
            "a.jsonl",
            "{\"a\": 1}\n{\"a\": 2\n{\"a\": 3}\n",
            "line 3: invalid JSON: expected ',' or '}' in an object, found '{'",
        ),
        ("a.jsonl", "{\"a\": \"x\n{\"a\": \"y\"}\n", "line 1: invalid JSON: unterminated string"),
        ("a.jsonl", "{\"a\": 1},\n{\"a\": 2}\n", "line 1: invalid JSON: expected a value, found ','"),
        ("a.jsonl", "{\"a\": nan}\n", "line 1: invalid JSON: nan is neither a number nor true, false, null or NaN"),
        ("a.jsonl", "{\"t\": \"\\ud83d half\"}\n", "line 1: t: \\ud83d is an unpaired surrogate"),
        (
            "a.json",
            "[{\"a\": 1}, {\"a\": \"x\"}]",
            "object 2 (line 1): a: found a string, but earlier values are integers",
        ),
        ("a.json", "[{\"a\": 1}, 2]", "object 2 (line 1): the value is not an object"),
        ("a.json", "[1, 2]", "object 1 (line 1): the value is not an object"),
        ("a.json", "[{\"a\": 1}\n", "line 2: invalid JSON: expected ',' or ']' after an object, found the end"),
        (
            "a.json",
            "[{\"a\": 1}]\n[{\"a\": 2}]",
            "line 2: invalid JSON: expected the end of the file after the array, found '['",
        ),
    ] {
        check_refused(&folder.file(name, text), finding);
    }
    // an object whose member has an invalid name
    check_refused(
        &folder.file("a.jsonl", r#"{"\ud83d": 1}"#),
        "line 1: the name of a member: \\ud83d is an unpaired surrogate",
    );
    for text in [&b"\xFF\xFE{\0}\0"[..], b"\xFE\xFF\0{\0}", b"\xFF\xFE"] {
        check_refused(&folder.file("a.jsonl", text), "the text is UTF-16");
    }
}

#[test]
fn the_line_in_which_an_object_begins_is_reported_only_inside_it() {
    let folder = Folder::new();
    for (text, is_inside) in [("[{\"a\": 1}]\n[{\"a\": 2}]", false), ("{\"a\": 1}\n{\"a\":\n,}", true)] {
        let error = convert(&[folder.file("a.json", text)], FormatOptions::new()).err().unwrap().to_string();
        assert_eq!(error.contains("; the object begins on line"), is_inside, "{error}");
    }
    let deep = format!("{{\"a\": {}", "[".repeat(200));
    check_refused(&folder.file("a.json", deep), "line 1: arrays and objects are nested more than 128 levels deep");
}

/// Members of objects in lists are dense arrays, so a small file could need any amount of memory.
#[test]
fn objects_in_lists_that_lack_most_members_are_bounded() {
    let names: Vec<String> = (0..500).map(|i| format!("\"c{i}\":0")).collect();
    let text = |count: usize| format!("{{\"a\":[{{{}}}]}}\n{{\"a\":[{}{{}}]}}\n", names.join(","), "{},".repeat(count));
    let folder = Folder::new();
    let refused = folder.file("a.jsonl", text(600_000));
    check_refused(&refused, "600002 objects in lists, with 500 members each, need too much memory");
    assert_eq!(convert(&[folder.file("b.jsonl", text(20))], FormatOptions::new()).unwrap().sample_count(), 2);
}

/// If the values of a member are invalid, the other members can be converted without it.
#[test]
fn a_member_that_cannot_be_stored_can_be_left_out() {
    let folder = Folder::new();
    for (first, second, finding) in [
        ("1", "\"x\"", "line 2: b: found a string, but earlier values are integers"),
        ("[{\"c\": 1}]", "[{\"c\": [1]}]", "line 2: b[].c: found an array, but earlier values are integers"),
        ("0.5", "9007199254740993", "line 2: b: found the integer 9007199254740993 among floats"),
        ("{\"c\": \"\\ud83d\\\"\"}", "null", "line 1: b.c: \\ud83d is an unpaired surrogate"),
        ("\"\\ude00\"", "1", "line 1: b: \\ude00 is an unpaired surrogate"),
        ("[1e400]", "[1]", "line 1: b[]: the number 1e400 is beyond the range of f64"),
        ("0", "18446744073709551617", "line 2: b: the integer 18446744073709551617 has more than 64 bits"),
    ] {
        let text = format!("{{\"a\": 1, \"b\": {first}}}\n{{\"b\": {second}, \"a\": 2}}\n");
        let path = folder.file("a.jsonl", text);
        assert_eq!(check_left_out(&path, finding, "b", &["a"]).sample_count(), 2, "{finding}");
    }
}
