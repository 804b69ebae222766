//! `tensilo inspect`

use super::{Folder, SAMPLES, on, unfinished_file};
use serde_json::{Value, json};
use std::fs;

#[test]
fn json_has_what_the_contract_names() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let run = on("inspect", &path, "--json").done();
    let document = run.json();
    assert_eq!(document["schema"], "tensilo.inspect/1");
    assert_eq!(document["file_bytes"], fs::metadata(&path).unwrap().len());
    assert_eq!(document["sample_count"], SAMPLES);
    let columns = document["columns"].as_array().unwrap();
    let list = |key: &str| columns.iter().map(|column| column[key].clone()).collect::<Vec<Value>>();
    assert_eq!(list("name"), ["x", "e", "t", "b", "r", "flag", "n", "h"]);
    assert_eq!(list("dtype"), ["bf16", "f32", "utf8", "bytes", "i32", "bool", "i64", "f16"]);
    assert_eq!(list("nullable"), [false, false, true, false, true, false, true, false]);
    let shapes = json!([[2], [], [null], [null], [null, 2], [3], [2], [1, 2]]);
    assert_eq!(Value::Array(list("shape")), shapes);
    let keys: Vec<&String> = columns[0].as_object().unwrap().keys().take(9).collect();
    let due = ["name", "dtype", "shape", "nullable", "chunk_count", "raw_bytes", "stored_bytes", "encodings", "cast"];
    assert_eq!(keys, due);
    assert_eq!(columns[0]["raw_bytes"], SAMPLES * 4);
    assert!(columns[0]["stored_bytes"].as_u64().unwrap() > 0);
    assert_eq!(run.stderr, "");
}

#[test]
fn json_counts_chunks_by_encoding_and_tells_what_the_cast_cost() {
    let folder = Folder::new();
    let document = on("inspect", &folder.samples("a.tsl"), "--json").done().json();
    let columns = document["columns"].as_array().unwrap();
    let chunks = columns[0]["chunk_count"].as_u64().unwrap();
    assert_eq!(chunks, 3, "20 samples of 4 bytes in chunks of 32");
    let encodings = columns[0]["encodings"].as_object().unwrap();
    assert_eq!(encodings.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), chunks);
    let cast = &columns[0]["cast"];
    assert_eq!((&cast["source"], &cast["rounding"]), (&json!("f32"), &json!("nearest-even")));
    assert!((0.001..0.004).contains(&cast["max_rel_error"].as_f64().unwrap()));
    assert!((0.001..0.004).contains(&cast["max_abs_error"].as_f64().unwrap()));
    assert_eq!((&cast["to_infinite"], &cast["to_subnormal"]), (&json!(0), &json!(0)));
    assert_eq!(columns[1]["cast"], Value::Null);
}

#[test]
fn json_has_more_than_the_contract_names() {
    let folder = Folder::new();
    let document = on("inspect", &folder.samples("a.tsl"), "--json").done().json();
    assert_eq!(document["finished"], true);
    assert_eq!((&document["alignment"], &document["commit_count"]), (&json!(64), &json!(1)));
    assert_eq!(document["tail_bytes"], 0);
    assert_eq!(document["file_id"].as_str().unwrap().len(), 32);
    assert_eq!(document["metadata"], json!({"source": "a\u{1b}test"}));
    assert_eq!(document["columns"][0]["metadata"], json!({"unit": "m"}));
    assert_eq!(document["columns"][6]["null_count"], 2);
    let (stored, chunks) = (&document["columns"][0]["stored_bytes"], &document["columns"][0]["chunk_count"]);
    let cold_read = stored.as_u64().unwrap() / chunks.as_u64().unwrap() + 64;
    assert_eq!(document["columns"][0]["cold_read_bytes"], cold_read);
}

#[test]
fn text_is_a_table_without_escapes() {
    let folder = Folder::new();
    let text = on("inspect", &folder.samples("a.tsl"), "").done().text();
    assert!(text.contains("20 samples") && text.contains("finished") && text.contains("alignment 64"), "{text}");
    let row = text.lines().find(|line| line.starts_with("x ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..4], ["x", "bf16", "[2]", "-"]);
    assert!(row.contains("f32->bf16 max rel ") && row.ends_with("0 to inf, 0 to subnormal"), "{row}");
    assert!(text.contains("[*,2]"));
    assert!(text.contains("source = a\\u{1b}test") && !text.contains('\u{1b}'));
    assert!(text.contains("metadata of column x\n  unit = m"));
}

#[test]
fn an_unfinished_file_gives_a_warning() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", &unfinished_file());
    let run = on("inspect", &path, "--json").done();
    assert_eq!((&run.json()["sample_count"], &run.json()["finished"]), (&json!(SAMPLES), &json!(false)));
    assert!(run.json()["tail_bytes"].as_u64().unwrap() > 0);
    assert!(run.stderr.contains("warning: ") && run.stderr.contains("not finished"), "{}", run.stderr);
    assert!(run.stderr.contains("bytes after the last commit"), "{}", run.stderr);
    assert!(on("get", &path, "-c x -i 0").done().stderr.contains("not finished"));
    assert_eq!(on("get", &path, "-c x -i 0 --quiet").done().stderr, "");
}
