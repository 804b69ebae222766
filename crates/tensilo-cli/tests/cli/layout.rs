//! The width of printed lines: that of the terminal, or 80 characters.

use super::convert::speech;
use super::{Folder, SampleFile, on, run};
use std::fs;
use std::path::PathBuf;
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Reader, Schema, Shape, Value, Writer, WriterOptions};

/// Names that differ only at one end, or in the middle.
fn name(i: usize) -> String {
    format!("encoder.layers.{i}.attention.self.query_projection_with_a_name_that_goes_on.{i}.weight")
}

/// Returns a file of sixty columns of all kinds, with long names and much metadata.
fn wide_file() -> Vec<u8> {
    let columns = (0..60).map(|i| {
        let mut column = match i % 4 {
            0 => ColumnSchema::tensor(name(i), DType::Bf16, Shape::fixed(&[2, 1, 1, 1, 1, 2])).cast_from(DType::F32),
            1 => ColumnSchema::tensor(name(i), DType::I64, Shape::scalar()).nullable(),
            2 => ColumnSchema::utf8(name(i)),
            _ => ColumnSchema::tensor(name(i), DType::F32, Shape::fixed(&[100, 3])),
        };
        column.metadata.insert("comment".repeat(20), "long ".repeat(40));
        column
    });
    let mut schema = Schema::new(columns);
    schema.metadata.insert("source".into(), "x".repeat(1000));
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().chunk_bytes(4096)).unwrap();
    let tensor: Vec<f32> = (0..300).map(|i| (i as f32).sin()).collect();
    for sample in 0..50_i64 {
        let integers = [sample];
        let values = |i: usize| match i % 4 {
            0 => Value::tensor(&[1.1_f32, 2.2, 3.3, 4.4]),
            1 if sample % 3 == 0 => Value::NULL,
            1 => Value::tensor(&integers),
            2 => Value::text("text"),
            _ => Value::tensor(&tensor),
        };
        writer.push(&(0..60).map(values).collect::<Vec<_>>()).unwrap();
    }
    writer.into_bytes().unwrap()
}

/// Returns that file with a bit flipped in every chunk of every seventh column.
fn damaged_wide_file() -> Vec<u8> {
    let mut bytes = wide_file();
    let reader = Reader::from_bytes(bytes.clone()).unwrap();
    for column in reader.columns().step_by(7) {
        for number in 0..column.facts().chunk_count {
            bytes[column.chunk(number).unwrap().unwrap().file_range.start as usize] ^= 1;
        }
    }
    bytes
}

/// Files with the longest paths and contents.
fn files(folder: &Folder) -> Vec<PathBuf> {
    let deep = folder.path("a-folder-with-a-long-name/".repeat(4));
    fs::create_dir_all(&deep).unwrap();
    let long_path = deep.join("a-file-with-a-long-name.tsl");
    fs::write(&long_path, wide_file()).unwrap();
    vec![long_path, folder.file("damaged.tsl", damaged_wide_file()), speech(folder, ""), folder.samples("a.tsl")]
}

/// Checks that no line is wider than it may be. Each character printed here has width 1.
#[track_caller]
fn fits(text: &str, width: usize) {
    assert!(!text.is_empty());
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{} characters: {line}", line.chars().count());
    }
}

#[test]
fn all_tables_fit_in_80_columns() {
    let folder = Folder::new();
    for file in files(&folder) {
        fits(&on("inspect", &file, "").done().text(), 80);
        fits(&on("salvage", &file, "").text(), 80);
        for words in ["", "--verify"] {
            fits(&on("map", &file, words).text(), 80);
        }
        if !file.ends_with("damaged.tsl") {
            fits(&on("inspect", &file, "--explain").done().text(), 80);
            fits(&on("bench", &file, "--seconds 0.001").done().text(), 80);
            let parquet = folder.path("out.parquet");
            on("export", &file, &format!("-f -o {}", parquet.display())).done();
            let out = folder.path("out.tsl");
            fits(&on("convert", &parquet, &format!("--bf16 -f -o {}", out.display())).done().text(), 80);
        }
    }
}

#[test]
fn inspect_shows_the_most_important_and_names_what_it_leaves_out() {
    let folder = Folder::new();
    let file = folder.file("wide.tsl", wide_file());
    let text = on("inspect", &file, "").done().text();
    assert!(!text.contains(&name(0)) && text.contains("\nencoder.layers"), "{text}");
    for heading in ["column", "type", "shape", "raw", "stored", "ratio", "nulls"] {
        let headings = text.lines().find(|line| line.starts_with("column ")).unwrap();
        assert!(headings.split_whitespace().any(|word| word == heading), "{heading}: {text}");
    }
    let in_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let left_out = "(--wide also shows: encodings, chunks, samples/chunk, cold read, amplification)";
    assert!(in_one_line.contains(left_out), "{text}");
    let wide = on("inspect", &file, "--wide").done().text();
    assert!((0..60).all(|i| wide.contains(&name(i))) && !wide.contains("also shows"), "{wide}");
    assert!(wide.contains("cold read") && wide.contains("amplification"), "{wide}");
}

#[test]
fn facts_that_no_column_has_are_not_printed() {
    let folder = Folder::new();
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::scalar())]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    writer.push(&[Value::tensor(&[1_i32])]).unwrap();
    let file = folder.file("a.tsl", writer.into_bytes().unwrap());
    assert!(!on("inspect", &file, "").done().text().contains("nulls"));
    assert!(on("inspect", &file, "--wide").done().text().contains("nulls"));
}

#[test]
fn encodings_of_no_chunk_are_only_in_the_json_document() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    let document = on("inspect", &file, "--json").done().json();
    let columns = document["columns"].as_array().unwrap();
    let zero = |column: &serde_json::Value| column["encodings"].as_object().unwrap().values().any(|count| count == 0);
    assert!(columns.iter().any(zero), "else this test shows nothing: {document}");
    for words in ["", "--wide"] {
        let text = on("inspect", &file, words).done().text();
        assert!(!text.contains(":0") && text.contains(":1"), "{text}");
    }
    let map = on("map", &file, "").done().text();
    assert!(!map.contains(":0") && map.contains(":1"), "{map}");
}

#[test]
fn wide_is_refused_with_json() {
    let run = run(["inspect", "a.tsl", "--wide", "--json"]);
    run.failed(2, "--wide");
}

#[test]
fn a_column_that_is_not_there_is_answered_with_a_similar_one() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    let similar = "there is no column \"flags\"; the most similar is \"flag\"; there are: x, e, t, b, r, flag, n, h";
    on("get", &file, "-c flags -i 0").failed(2, similar);
    on("bench", &file, "-c flags").failed(2, similar);
    on("export", &file, &format!("--columns flags -o {}", folder.path("a.parquet").display())).failed(2, similar);
    let parquet = folder.path("b.parquet");
    on("export", &file, &format!("-o {}", parquet.display())).done();
    for option in ["--columns flags", "--skip flags", "--cast flags=f16"] {
        let out = folder.path("out.tsl");
        on("convert", &parquet, &format!("{option} -o {}", out.display())).failed(2, similar);
    }
}

#[test]
fn files_of_other_formats_are_named() {
    let folder = Folder::new();
    let parquet = folder.path("a.parquet");
    on("export", &folder.samples("a.tsl"), &format!("-o {}", parquet.display())).done();
    for (command, words) in [("inspect", ""), ("verify", ""), ("get", "-c x -i 0"), ("map", ""), ("salvage", "")] {
        on(command, &parquet, words).failed(1, "this is a Parquet file; \"tensilo convert\"");
        on(command, &folder.file("b.tsl", b""), words).failed(1, "the file is empty");
    }
}
