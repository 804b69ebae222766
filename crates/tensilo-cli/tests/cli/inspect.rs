//! `tensilo inspect`

use super::convert::{PROFILES, speech};
use super::{
    Folder, SAMPLES, SampleFile, check_warning_of_unfinished_file, damaged_file, empty_file, on, raw_file,
    unfinished_file,
};
use serde_json::{Value, json};
use std::fs;
use tensilo::Reader;

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
    let keys: Vec<&String> = columns[0].as_object().unwrap().keys().take(10).collect();
    let due = ["name", "dtype", "shape", "nullable", "nullable_levels"];
    let facts = ["chunk_count", "raw_bytes", "stored_bytes", "encodings", "cast"];
    let due = [due, facts].concat();
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
    assert_eq!(document["file_id"].as_str().unwrap().len(), 24);
    assert_eq!(document["content_id"].as_str().unwrap().len(), 32);
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
    let text = on("inspect", &folder.samples("a.tsl"), "--wide").done().text();
    assert!(text.contains("20 samples") && text.contains("finished") && text.contains("alignment 64"), "{text}");
    let row = text.lines().find(|line| line.starts_with("x ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((&cells[..5], cells[8]), (&["x", "bf16", "[2]", "80", "B"][..], "-"), "{row}");
    let cast = text.lines().find(|line| line.starts_with("x ") && line.contains("f32->bf16"));
    let cast: Vec<&str> = cast.unwrap().split_whitespace().collect();
    assert_eq!((cast[1], &cast[3..]), ("f32->bf16", &["0", "0"][..]), "{text}");
    assert!(text.contains("[*,2]"));
    assert!(text.contains("source = a\\u{1b}test") && !text.contains('\u{1b}'));
    assert!(text.contains("metadata of column x\n  unit = m"));
}

#[test]
fn an_unfinished_file_gives_a_warning() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", unfinished_file());
    let run = on("inspect", &path, "--json").done();
    assert_eq!((&run.json()["sample_count"], &run.json()["finished"]), (&json!(SAMPLES), &json!(false)));
    assert!(run.json()["tail_bytes"].as_u64().unwrap() > 0);
    assert!(run.stderr.contains("warning: ") && run.stderr.contains("not finished"), "{}", run.stderr);
    assert!(run.stderr.contains("bytes after the last commit"), "{}", run.stderr);
    check_warning_of_unfinished_file("inspect", "");
    check_warning_of_unfinished_file("get", "-c x -i 0");
}

/// Returns the sum of a member over a list of objects.
fn sum(list: &Value, member: &str) -> u64 {
    list.as_array().unwrap().iter().map(|object| object[member].as_u64().unwrap()).sum()
}

#[test]
fn json_explains_what_each_profile_wrote() {
    let folder = Folder::new();
    for profile in PROFILES {
        let document =
            on("inspect", &speech(&folder, &format!("--profile {profile}")), "--json --explain").done().json();
        assert_eq!(document["schema"], "tensilo.inspect/1");
        for column in document["columns"].as_array().unwrap() {
            let explanation = &column["explanation"];
            assert_eq!(sum(&explanation["pieces"], "stored_bytes"), explanation["stored_bytes"], "{profile} {column}");
            let choices = explanation["choices"].as_array().unwrap();
            assert_eq!(choices.len(), PROFILES.len());
            let choice = choices.iter().find(|choice| choice["profile"] == profile).unwrap();
            assert_eq!((&choice["in_file"], &choice["encoding"]), (&json!(true), &explanation["encoding"]));
            assert_eq!(choice["stored_bytes"], explanation["stored_bytes"]);
            let trials = explanation["trials"].as_array().unwrap();
            let in_file: Vec<&Value> = trials.iter().filter(|trial| trial["in_file"] == true).collect();
            assert_eq!(in_file.len(), 1, "{profile} {column}");
            assert_eq!(in_file[0]["bits_per_element"], explanation["bits_per_element"]);
            assert!(in_file[0]["profiles"].as_array().unwrap().contains(&json!(profile)));
        }
    }
}

#[test]
fn an_explanation_has_what_the_contract_names() {
    let folder = Folder::new();
    let document = on("inspect", &speech(&folder, ""), "--json --explain").done().json();
    let explanation = &document["columns"][2]["explanation"];
    let mel = explanation.as_object().unwrap();
    let keys: Vec<&str> = mel.keys().map(String::as_str).collect();
    let due = "chunk samples encoding transform elements raw_bytes stored_bytes bits_per_element pieces trials choices \
               blocks front_bytes cold_read_bytes read_amplification";
    assert_eq!(keys, due.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&mel["samples"], &mel["elements"], &mel["raw_bytes"]), (&json!([0, 1]), &json!(12928), &json!(51712)));
    assert!(mel["transform"].as_str().unwrap().ends_with("stride 128, restart 12928"), "{mel:?}");
    let keys = |list: &str| explanation[list][0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys("pieces"), ["name", "detail", "stored_bytes", "bits_per_element"]);
    assert_eq!(keys("trials"), ["encoding", "profiles", "stored_bytes", "bits_per_element", "ratio", "in_file"]);
    assert_eq!(keys("choices"), ["profile", "encoding", "stored_bytes", "reason", "in_file", "regret"]);
    // a chunk of one sample: its body and its head
    let stored = mel["stored_bytes"].as_u64().unwrap();
    assert_eq!(mel["cold_read_bytes"], stored + 64);
    let amplification = mel["read_amplification"].as_f64().unwrap();
    assert!((amplification - (stored + 64) as f64 / stored as f64).abs() < 1e-9, "{amplification}");
}

#[test]
fn the_chunk_that_is_explained_can_be_chosen() {
    let folder = Folder::new();
    let file = speech(&folder, "");
    let chunks = |words: &str| {
        let document = on("inspect", &file, &format!("--json --explain {words}")).done().json();
        let columns = document["columns"].as_array().unwrap().clone();
        columns.iter().map(|column| column["explanation"]["chunk"].as_u64()).collect::<Vec<_>>()
    };
    let (first, none) = (Some(0), None);
    assert_eq!(chunks(""), [first; 7]);
    assert_eq!(chunks("--chunk 4"), [none, none, Some(4), none, none, none, none]);
    assert_eq!(chunks("--sample 3"), [first, first, Some(3), first, first, first, first]);
    assert!(on("inspect", &file, "--explain --chunk 4").done().text().contains("no such chunk"));
    on("inspect", &file, "--explain --sample 5").failed(2, "5 samples");
    let plain = on("inspect", &file, "--json").done().json();
    assert!(plain["columns"][0].get("explanation").is_none());
}

#[test]
fn text_explains_in_tables_and_words() {
    let folder = Folder::new();
    for profile in PROFILES {
        let file = speech(&folder, &format!("--profile {profile}"));
        let text = on("inspect", &file, "--explain").done().text();
        assert!(text.starts_with(&on("inspect", &file, "").done().text()), "{text}");
        for column in ["utt_id", "speaker", "mel", "f0_hz", "voiced", "tokens", "text"] {
            assert!(text.contains(&format!("\ncolumn {column}: chunk 0 of ")), "{text}");
        }
        assert_eq!(text.matches("* stored in this file").count(), 7, "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" "); // a line may be wrapped
        assert_eq!(words.matches("read amplification").count(), 7, "{text}");
        for encoding in
            ["raw", "constant", "bitshuffle-zstd", "zstd", "exponent-tiers", "residual-tiers", "planes-zstd"]
        {
            assert!(
                text.lines().filter(|line| line.starts_with(&format!("{encoding} "))).count() >= 7,
                "{encoding}: {text}"
            );
        }
    }
}

#[test]
fn an_explanation_says_why_an_encoding_was_chosen() {
    let folder = Folder::new();
    let text = on("inspect", &speech(&folder, ""), "--explain").done().text();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for reason in [
        "the smallest encoding of the profile",
        "no encoding saves 5 %",
        "the profile stores all values raw",
        "would have to save 20 %",
    ] {
        assert!(text.contains(reason), "{reason}: {text}");
    }
}

#[test]
fn regrets_are_printed_if_requested() {
    let folder = Folder::new();
    let file = speech(&folder, "");
    assert!(!on("inspect", &file, "--explain").done().text().contains("regret"));
    let text = on("inspect", &file, "--explain --regret").done().text();
    assert_eq!(text.matches("regret").count(), 7, "{text}");
    let document = on("inspect", &file, "--explain --regret --json").done().json();
    for column in document["columns"].as_array().unwrap() {
        for choice in column["explanation"]["choices"].as_array().unwrap() {
            assert!(choice["regret"].as_f64().unwrap() < 0.1, "{column}");
        }
    }
    on("inspect", &file, "--regret").failed(2, "--explain");
}

#[test]
fn explanations_of_what_is_not_there_or_damaged_are_none_or_errors() {
    let folder = Folder::new();
    let empty = folder.file("empty.tsl", empty_file());
    assert!(on("inspect", &empty, "--explain").done().text().contains("column x: no such chunk, it has 0"));
    assert_eq!(on("inspect", &empty, "--explain --json").done().json()["columns"][0]["explanation"], Value::Null);
    on("inspect", &folder.file("damaged.tsl", damaged_file()), "--explain").failed(1, "tensilo verify");
}

#[test]
fn the_cost_of_a_sample_is_that_of_its_blocks() {
    let folder = Folder::new();
    let file = |block_bytes: Option<usize>| folder.file("raw.tsl", raw_file(100, block_bytes));
    let path = file(Some(4096));
    let document = on("inspect", &path, "--json --explain --chunk 7").done().json();
    let column = &document["columns"][0];
    // the front: 12 bytes, and 12 for each of 16 blocks, in multiples of 64
    let stored = 64 * 1024 + 256;
    assert_eq!((&column["block_bytes"], &column["front_bytes"]), (&json!(4096), &json!(1024)));
    assert_eq!(column["cold_read_bytes"], 1024 + 4096);
    assert_eq!(column["read_amplification"], f64::from(1024 + 4096) / (f64::from(stored) / 64.0));
    let explanation = &column["explanation"];
    assert_eq!((&explanation["front_bytes"], &explanation["cold_read_bytes"]), (&json!(1024), &json!(1024 + 4096)));
    let blocks = explanation["blocks"].as_array().unwrap();
    assert_eq!(blocks[1], json!({"samples": [452, 456], "stored_bytes": 4096, "raw_bytes": 4096}));
    assert_eq!(blocks.len(), 16);
    let text = on("inspect", &path, "--wide --explain").done().text();
    assert!(text.contains(" block ") && text.contains(" 4.1 kB "), "{text}");
    assert!(text.contains("(1.0 kB of the front, 4.1 kB of blocks)"), "{text}");
    let column = on("inspect", &file(None), "--json").done().json()["columns"][0].clone();
    assert_eq!((&column["block_bytes"], &column["front_bytes"]), (&Value::Null, &json!(0)));
    assert_eq!(column["cold_read_bytes"], 64 * 1024 + 64);
}

/// A damaged front is no reason not to inspect a file.
#[test]
fn damaged_fronts_are_left_out_of_the_cost_of_a_sample() {
    let folder = Folder::new();
    for chunks in [1, 3] {
        let mut bytes = raw_file(chunks, Some(8192));
        let column = Reader::from_bytes(bytes.clone()).unwrap().column("x").unwrap();
        bytes[column.chunk(0).unwrap().unwrap().file_range.start as usize] ^= 1;
        let document = on("inspect", &folder.file("a.tsl", bytes), "--json").done().json();
        let due = if chunks == 1 { Value::Null } else { json!(8192) };
        assert_eq!(document["columns"][0]["block_bytes"], due, "{chunks}");
    }
}

#[test]
fn read_amplification_is_what_a_cold_sample_reads_by_what_it_takes() {
    let folder = Folder::new();
    let document = on("inspect", &folder.samples("a.tsl"), "--json").done().json();
    for column in document["columns"].as_array().unwrap() {
        let number = |member: &str| column[member].as_u64().unwrap() as f64;
        let due = number("cold_read_bytes") / (number("stored_bytes") / f64::from(SAMPLES));
        assert_eq!(column["read_amplification"], due);
    }
    let empty = on("inspect", &folder.file("empty.tsl", empty_file()), "--json").done().json();
    assert_eq!(empty["columns"][0]["read_amplification"], Value::Null);
}
