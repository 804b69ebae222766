//! `tensilo inspect`: the JSON document, tables, and explanations of chunks.

use super::convert::PROFILES;
use super::{
    CommandLine, Folder, NAMES, SAMPLES, damage, damaged_file, empty_file, folder_of, has, raw_file, unfinished_file,
    written,
};
use serde_json::{Value, json};
use tensilo::{ColumnSchema, DType, Schema, Shape, WriterOptions};

#[test]
fn json_has_what_the_contract_names_and_more() {
    let folder = folder_of(&["a.tsl"]);
    let run = folder.done("inspect a.tsl --json");
    assert_eq!(run.stderr, "");
    let document = run.json();
    for (member, expected) in [
        ("schema", json!("tensilo.inspect/1")),
        ("file_bytes", json!(super::sample_file().len())),
        ("sample_count", json!(SAMPLES)),
        ("finished", json!(true)),
        ("alignment", json!(64)),
        ("commit_count", json!(1)),
        ("tail_bytes", json!(0)),
        ("metadata", json!({"source": "a\u{1b}test"})),
    ] {
        assert_eq!(document[member], expected);
    }
    assert_eq!(document["file_id"].as_str().unwrap().len(), 24);
    assert_eq!(document["content_id"].as_str().unwrap().len(), 32);
    let columns = document["columns"].as_array().unwrap();
    let list = |key: &str| columns.iter().map(|column| column[key].clone()).collect::<Vec<Value>>();
    assert_eq!(list("name"), NAMES);
    assert_eq!(list("dtype"), ["bf16", "f32", "utf8", "bytes", "i32", "bool", "i64", "f16"]);
    assert_eq!(list("nullable"), [false, false, true, false, true, false, true, false]);
    let shapes = json!([[2], [], [null], [null], [null, 2], [3], [2], [1, 2]]);
    assert_eq!(Value::Array(list("shape")), shapes);
    let keys: Vec<&String> = columns[0].as_object().unwrap().keys().take(10).collect();
    let expected = "name dtype shape nullable nullable_levels chunk_count raw_bytes stored_bytes encodings cast";
    assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
    assert_eq!(columns[6]["null_count"], 2);

    let column = &columns[0];
    let number = |member: &str| column[member].as_u64().unwrap();
    assert_eq!(column["metadata"], json!({"unit": "m"}));
    assert_eq!((number("raw_bytes"), number("chunk_count")), (80, 3), "20 samples of 4 bytes in chunks of 32");
    let encodings = column["encodings"].as_object().unwrap();
    assert_eq!(encodings.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 3);
    let cast = &column["cast"];
    assert_eq!((&cast["source"], &cast["rounding"]), (&json!("f32"), &json!("nearest-even")));
    assert!((0.001..0.004).contains(&cast["max_rel_error"].as_f64().unwrap()));
    assert!((0.001..0.004).contains(&cast["max_abs_error"].as_f64().unwrap()));
    assert_eq!((&cast["to_infinite"], &cast["to_subnormal"]), (&json!(0), &json!(0)));
    assert_eq!(columns[1]["cast"], Value::Null);
    assert_eq!(number("cold_read_bytes"), number("stored_bytes") / 3 + 64);
    for column in columns {
        let number = |member: &str| column[member].as_u64().unwrap() as f64;
        let expected = number("cold_read_bytes") / (number("stored_bytes") / f64::from(SAMPLES));
        assert_eq!(column["read_amplification"], expected);
    }
    folder.file("empty.tsl", empty_file());
    assert_eq!(folder.json("inspect empty.tsl --json")["columns"][0]["read_amplification"], Value::Null);
}

#[test]
fn text_is_a_table_without_escapes() {
    let folder = folder_of(&["a.tsl"]);
    let text = folder.text("inspect a.tsl --wide");
    let row = text.lines().find(|line| line.starts_with("x ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((&cells[..5], cells[8]), (&["x", "bf16", "[2]", "80", "B"][..], "-"), "{row}");
    let cast = text.lines().find(|line| line.starts_with("x ") && line.contains("f32->bf16"));
    let cast: Vec<&str> = cast.unwrap().split_whitespace().collect();
    assert_eq!((cast[1], &cast[3..]), ("f32->bf16", &["0", "0"][..]), "{text}");
    has(&text, &["20 samples", "finished", "alignment 64", "[*,2]", "source = a\\u{1b}test"]);
    has(&text, &["metadata of column x\n  unit = m", "cold read", "amplification"]);
    assert!(!text.contains('\u{1b}'));
    let narrow = folder.text("inspect a.tsl");
    has(&narrow, &["column", "type", "shape", "raw", "stored", "ratio", "nulls", "encodings"]);
    assert!(!narrow.contains("cold read"), "{narrow}");
    // encodings without chunks appear only in the JSON document
    let document = folder.json("inspect a.tsl --json");
    let zero = |column: &Value| column["encodings"].as_object().unwrap().values().any(|count| count == 0);
    assert!(document["columns"].as_array().unwrap().iter().any(zero), "otherwise this test proves nothing: {document}");
    for line in ["inspect a.tsl", "inspect a.tsl --wide", "layout a.tsl"] {
        let text = folder.text(line);
        assert!(!text.contains(":0") && text.contains(":1"), "{text}");
    }
    // a column of facts is hidden if it is blank
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::scalar())]);
    let push = |writer: &mut tensilo::Writer<_>| writer.push(&[tensilo::Value::tensor(&[1_i32])]).unwrap();
    folder.file("b.tsl", written(schema, WriterOptions::new(), push));
    assert!(!folder.text("inspect b.tsl").contains("nulls"));
    has(&folder.text("inspect b.tsl --wide"), &["nulls"]);
    folder.fails("inspect a.tsl --wide --json", 2, "--wide");
}

#[test]
fn an_unfinished_file_gives_a_warning_unless_quiet() {
    let folder = Folder::new();
    folder.file("a.tsl", unfinished_file());
    let run = folder.done("inspect a.tsl --json");
    assert_eq!((&run.json()["sample_count"], &run.json()["finished"]), (&json!(SAMPLES), &json!(false)));
    assert!(run.json()["tail_bytes"].as_u64().unwrap() > 0);
    for line in ["inspect a.tsl", "get a.tsl -c x -i 0", "layout a.tsl", "bench a.tsl --seconds 0.01"] {
        has(&folder.done(line).stderr, &["warning: ", "not finished", "bytes after the last commit"]);
        assert_eq!(folder.done(&format!("{line} --quiet")).stderr, "");
    }
}

/// Returns the sum of a member over a list of objects.
fn sum(list: &Value, member: &str) -> u64 {
    list.as_array().unwrap().iter().map(|object| object[member].as_u64().unwrap()).sum()
}

#[test]
fn what_each_profile_wrote_is_explained_in_json_and_in_words() {
    let folder = Folder::new();
    for profile in PROFILES {
        let file = folder.speech(&format!("--profile {profile}"));
        let document = folder.json(&format!("inspect {file} --json --explain"));
        for column in document["columns"].as_array().unwrap() {
            let explanation = &column["explanation"];
            assert_eq!(
                sum(&explanation["sections"], "stored_bytes"),
                explanation["stored_bytes"],
                "{profile} {column}"
            );
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
        let text = folder.text(&format!("inspect {file} --explain"));
        assert!(text.starts_with(&folder.text(&format!("inspect {file}"))), "{text}");
        for column in ["utt_id", "speaker", "mel", "f0_hz", "voiced", "tokens", "text"] {
            has(&text, &[&format!("\ncolumn {column}: chunk 0 of ")]);
        }
        assert_eq!(text.matches("* stored in this file").count(), 7, "{text}");
        assert_eq!(text.matches("read amplification").count(), 7, "{text}");
        for encoding in
            ["raw", "constant", "bitshuffle-zstd", "zstd", "exponent-tiers", "residual-tiers", "planes-zstd"]
        {
            let lines = text.lines().filter(|line| line.starts_with(&format!("{encoding} "))).count();
            assert!(lines >= 7, "{encoding}: {text}");
        }
        if profile == "balanced" {
            let reasons = ["the smallest encoding of the profile", "no encoding saves 5 %", "would have to be 20 %"];
            has(&text, &reasons);
            has(&text, &["the profile stores all values raw"]);
        }
    }
}

#[test]
fn an_explanation_has_what_the_contract_names() {
    let folder = Folder::new();
    let file = folder.speech("");
    let document = folder.json(&format!("inspect {file} --json --explain"));
    let explanation = &document["columns"][2]["explanation"];
    let mel = explanation.as_object().unwrap();
    let keys: Vec<&str> = mel.keys().map(String::as_str).collect();
    let expected = "chunk samples encoding transform elements raw_bytes stored_bytes bits_per_element sections trials \
                    choices blocks prefix_bytes cold_read_bytes read_amplification";
    assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&mel["samples"], &mel["elements"], &mel["raw_bytes"]), (&json!([0, 1]), &json!(12928), &json!(51712)));
    assert!(mel["transform"].as_str().unwrap().ends_with("stride 128, restart 12928"), "{mel:?}");
    for (list, expected) in [
        ("sections", "name detail stored_bytes bits_per_element"),
        ("trials", "encoding profiles stored_bytes bits_per_element ratio in_file"),
        ("choices", "profile encoding stored_bytes reason in_file regret"),
    ] {
        let keys: Vec<&str> = explanation[list][0].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
    }
    // a chunk of one sample: its body and its header
    let stored = mel["stored_bytes"].as_u64().unwrap();
    assert_eq!(mel["cold_read_bytes"], stored + 64);
    let amplification = mel["read_amplification"].as_f64().unwrap();
    assert!((amplification - (stored + 64) as f64 / stored as f64).abs() < 1e-9, "{amplification}");
}

#[test]
fn the_chunk_that_is_explained_can_be_chosen() {
    let folder = Folder::new();
    let file = folder.speech("");
    let chunks = |words: &str| {
        let document = folder.json(&format!("inspect {file} --json --explain {words}"));
        let columns = document["columns"].as_array().unwrap().clone();
        columns.iter().map(|column| column["explanation"]["chunk"].as_u64()).collect::<Vec<_>>()
    };
    let (first, none) = (Some(0), None);
    assert_eq!(chunks(""), [first; 7]);
    assert_eq!(chunks("--chunk 4"), [none, none, Some(4), none, none, none, none]);
    assert_eq!(chunks("--sample 3"), [first, first, Some(3), first, first, first, first]);
    has(&folder.text(&format!("inspect {file} --explain --chunk 4")), &["no such chunk"]);
    folder.fails(&format!("inspect {file} --explain --sample 5"), 2, "5 samples");
    assert!(folder.json(&format!("inspect {file} --json"))["columns"][0].get("explanation").is_none());
    // regrets are only computed on request
    assert!(!folder.text(&format!("inspect {file} --explain")).contains("regret"));
    let text = folder.text(&format!("inspect {file} --explain --regret"));
    assert_eq!(text.matches("regret").count(), 7, "{text}");
    let document = folder.json(&format!("inspect {file} --explain --regret --json"));
    for column in document["columns"].as_array().unwrap() {
        for choice in column["explanation"]["choices"].as_array().unwrap() {
            assert!(choice["regret"].as_f64().unwrap() < 0.1, "{column}");
        }
    }
    folder.fails(&format!("inspect {file} --regret"), 2, "--explain");

    folder.file("empty.tsl", empty_file());
    has(&folder.text("inspect empty.tsl --explain"), &["column x: no such chunk; the number of chunks is 0"]);
    let document = folder.json("inspect empty.tsl --explain --json");
    assert_eq!(document["columns"][0]["explanation"], Value::Null);
    folder.file("damaged.tsl", damaged_file());
    folder.fails("inspect damaged.tsl --explain", 1, "tensilo verify");
}

#[test]
fn the_cost_of_a_sample_is_that_of_its_blocks() {
    let folder = Folder::new();
    folder.file("raw.tsl", raw_file(100, Some(4096)));
    let document = folder.json("inspect raw.tsl --json --explain --chunk 7");
    let column = &document["columns"][0];
    // the block index: 12 bytes, and 12 for each of 16 blocks, in multiples of 64
    let stored = 64 * 1024 + 256;
    assert_eq!((&column["block_bytes"], &column["prefix_bytes"]), (&json!(4096), &json!(1024)));
    assert_eq!(column["cold_read_bytes"], 1024 + 4096);
    assert_eq!(column["read_amplification"], f64::from(1024 + 4096) / (f64::from(stored) / 64.0));
    let explanation = &column["explanation"];
    assert_eq!((&explanation["prefix_bytes"], &explanation["cold_read_bytes"]), (&json!(1024), &json!(1024 + 4096)));
    let blocks = explanation["blocks"].as_array().unwrap();
    assert_eq!(blocks[1], json!({"samples": [452, 456], "stored_bytes": 4096, "raw_bytes": 4096}));
    assert_eq!(blocks.len(), 16);
    let text = folder.text("inspect raw.tsl --wide --explain");
    has(&text, &[" block ", " 4.1 kB ", "(1.0 kB before the blocks, 4.1 kB of blocks)"]);
    folder.file("raw.tsl", raw_file(100, None));
    let column = folder.json("inspect raw.tsl --json")["columns"][0].clone();
    assert_eq!((&column["block_bytes"], &column["prefix_bytes"]), (&Value::Null, &json!(0)));
    assert_eq!(column["cold_read_bytes"], 64 * 1024 + 64);
    // damaged block indices are skipped
    for chunks in [1, 3] {
        let mut bytes = raw_file(chunks, Some(8192));
        damage(&mut bytes, "x", 0);
        folder.file("a.tsl", bytes);
        let expected = if chunks == 1 { Value::Null } else { json!(8192) };
        assert_eq!(folder.json("inspect a.tsl --json")["columns"][0]["block_bytes"], expected, "{chunks}");
    }
}
