//! `tensilo verify`

use super::{Folder, SAMPLES, SampleFile, damaged_file, file_with_damaged_block, on, sample_file};
use serde_json::{Value, json};
use std::fs;
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};
use tensilo_testing::{vector, vector_files};

#[test]
fn a_file_that_is_missing_is_not_damaged() {
    let folder = Folder::new();
    on("verify", &folder.path("missing.tsl"), "").failed(3, "missing.tsl");
    on("verify", folder.root(), "").failed(2, "nor tensilo files");
}

#[test]
fn json_has_a_schema_and_a_verdict() {
    let folder = Folder::new();
    let document = on("verify", &folder.samples("a.tsl"), "--json").done().json();
    assert_eq!(document["schema"], "tensilo.verify/1");
    assert_eq!(document["ok"], true);
    assert_eq!(document["damages"], Value::Array(Vec::new()));
}

#[test]
fn quiet_leaves_only_the_verdict() {
    let folder = Folder::new();
    let run = on("verify", &folder.samples("a.tsl"), "--quiet").done();
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
fn an_intact_file_is_ok() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    for words in ["", "--deep"] {
        let text = on("verify", &path, words).done().text();
        assert!(text.starts_with(&format!("ok: {} bytes, ", sample_file().len())), "{text}");
        assert!(text.ends_with(&format!(" chunks, {SAMPLES} samples\n")), "{text}");
    }
    let document = on("verify", &path, "--json").done().json();
    assert_eq!(document["file_bytes"], sample_file().len());
    assert_eq!(document["sample_count"], SAMPLES);
    assert!(document["chunk_count"].as_u64().unwrap() > 8);
}

#[test]
fn a_damaged_chunk_is_named() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", damaged_file());
    let run = on("verify", &path, "");
    run.failed(1, "");
    let text = run.text();
    let line = text.lines().next().unwrap();
    assert!(
        line.starts_with("bytes ") && line.contains(": chunk, column \"") && line.ends_with("(rule R-2.6)"),
        "{text}"
    );
    assert!(text.contains("\ndamaged: 1 range in "), "{text}");
    let run = on("verify", &path, "--json");
    run.failed(1, "");
    let document = run.json();
    assert_eq!(document["ok"], false);
    let damage = &document["damages"][0];
    assert_eq!((damage["region"].as_str(), damage["rule"].as_str()), (Some("chunk"), Some("R-2.6")));
    assert!(damage["bytes"].as_u64().unwrap() > 0 && damage["offset"].as_u64().unwrap().is_multiple_of(64));
    assert_eq!(damage["samples"].as_array().unwrap().len(), 2);
    assert!(damage["message"].as_str().unwrap().contains("checksum"));
}

#[test]
fn a_damaged_block_is_named_with_the_samples_that_it_costs() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", file_with_damaged_block());
    for words in ["", "--deep"] {
        let text = on("verify", &path, words).text();
        let line = text.lines().next().unwrap();
        assert!(line.contains(": chunk, column \"x\", samples 8..16: "), "{text}");
        assert!(line.ends_with("; 8 of 64 samples of the chunk are lost (block 2 of 8) (rule R-5.16)"), "{text}");
        assert!(text.contains("\ndamaged: 1 range in "), "{text}");
    }
    let damage = on("verify", &path, "--json").json()["damages"][0].clone();
    assert_eq!((&damage["samples"], &damage["bytes"]), (&json!([8, 16]), &json!(8192)));
}

/// A vector of the specification whose dictionary is damaged.
fn file_of_damaged_dictionary() -> Vec<u8> {
    let mut file = vector("valid/zstd-dictionary.hex");
    // no chunk needs the table before the last
    let table = file.windows(4).rposition(|bytes| bytes == b"TSLT").unwrap();
    file[table + 64 + 8] ^= 1;
    file
}

#[test]
fn a_damaged_table_is_named_and_deep_names_the_samples_that_need_it() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", file_of_damaged_dictionary());
    let text = on("verify", &path, "").text();
    assert!(text.contains(": table, column ") && text.contains("--deep names their samples\n"), "{text}");
    let text = on("verify", &path, "--deep").text();
    assert!(text.contains(": chunk, column ") && !text.contains("--deep"), "{text}");
}

#[test]
fn files_that_cannot_be_opened_are_damaged() {
    let folder = Folder::new();
    let text = folder.file("a.txt", b"this is not a tensilo file, however long it may be, at least 64 bytes or so");
    let whole = sample_file();
    let truncated = folder.file("b.tsl", &whole[..whole.len() / 2]);
    let empty = folder.file("c.tsl", b"");
    for path in [text, truncated, empty] {
        let run = on("verify", &path, "--json");
        run.failed(1, "");
        assert_eq!(run.json()["ok"], false, "{}", path.display());
    }
}

#[test]
fn any_number_of_threads_prints_the_same() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", damaged_file());
    for words in ["--json", "--deep", "--deep --json"] {
        let due = on("verify", &path, &format!("{words} --threads 1"));
        due.failed(1, "");
        for threads in ["", "--threads 2", "--threads 7"] {
            let run = on("verify", &path, &format!("{words} {threads}"));
            run.failed(1, "");
            assert_eq!(run.text(), due.text(), "{words} {threads}");
        }
    }
    on("verify", &path, "--threads 0").failed(2, "--threads");
}

#[test]
fn a_file_whose_writer_has_not_finished_is_not_damaged() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[16]))]);
    let options = WriterOptions::new().profile(Profile::Raw);
    Writer::create(&path, schema, &options).unwrap().finish().unwrap();
    let mut writer = Writer::append(&path, &options).unwrap();
    for kind in ["unfinished", "uncommitted"] {
        (0..100_000).for_each(|_| writer.push(&[tensilo::Value::tensor(&[kind.len() as u8; 16])]).unwrap());
        if kind == "unfinished" {
            writer.commit().unwrap();
        }
        let run = on("verify", &path, "");
        run.failed(5, "");
        let text = run.text();
        assert!(
            text.contains("\nunfinished: ") && text.contains(", 100000 samples; all of these are intact"),
            "{text}"
        );
        on("verify", &path, "--quiet").failed(5, "");
        let document = on("verify", &path, "--json").json();
        assert_eq!((&document["ok"], &document["state"]), (&json!(false), &json!("unfinished")));
        assert_eq!(document["damages"][0]["kind"], kind);
        let pattern = folder.path("*.tsl");
        let run = on("verify", &pattern, "");
        run.failed(5, "");
        assert!(run.text().contains("unfinished: 1 of 1 files"), "{}", run.text());
        on("map", &path, "--verify").done();
    }
    writer.finish().unwrap();
    assert_eq!(on("verify", &path, "--json").done().json()["state"], "ok");
    let damaged = on("verify", &folder.file("b.tsl", damaged_file()), "--json").json();
    assert_eq!((&damaged["state"], &damaged["damages"][0]["kind"]), (&json!("damaged"), &json!("damaged")));
}

/// M-3.5
#[test]
fn a_dataset_with_a_wrong_id_or_parent_is_damaged() {
    for name in ["M-3.5-id", "M-3.5-parent-id", "M-3.5-parent-digest"] {
        let folder = Folder::new();
        let [data, manifest] = ["data/0000000001", "manifest"].map(|name| folder.path(name));
        [&data, &manifest].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        fs::write(data.join("00000.tsl"), vector("valid/worked.hex")).unwrap();
        for (path, text) in vector_files() {
            if let Some(file) = path.strip_prefix(&format!("manifests/invalid/{name}/manifest/")) {
                fs::write(manifest.join(file), text).unwrap();
            }
        }
        let run = on("verify", folder.root(), "");
        run.failed(1, "");
        assert!(run.text().contains("M-3.5") && run.text().contains("damaged: 1 of "), "{name}: {}", run.text());
        assert_eq!(on("verify", folder.root(), "--json").json()["ok"], false);
    }
}
