//! `tensilo salvage` of datasets.

use super::dataset::{content, dataset};
use super::{Folder, SAMPLES, SampleFile, on, sample_file};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tensilo::Reader;
use tensilo_data::Dataset;

/// Makes a dataset of these files, which all have the same samples.
fn create(folder: &Folder, names: &[&str]) -> PathBuf {
    let path = folder.path("data");
    fs::create_dir(&path).unwrap();
    names.iter().for_each(|name| drop(folder.samples(format!("data/{name}").as_str())));
    dataset("create", &["-q"], [path.as_path()]).done();
    path
}

fn get(path: &Path, column: &str) -> Vec<Value> {
    on("get", path, &format!("-c {column} -i ..")).done().json().as_array().unwrap().clone()
}

#[test]
fn a_damaged_dataset_becomes_a_whole_one_with_nulls_for_what_is_lost() {
    let folder = Folder::new();
    let path = create(&folder, &["a.tsl", "b.tsl", "c.tsl", "d.tsl", "e.tsl"]);
    let mut changes = Dataset::open(&path).unwrap().change().unwrap();
    changes.rename_column("e", "energy").unwrap();
    changes.publish("rename").unwrap();
    let due: Vec<(&str, Vec<Value>)> = ["energy", "t", "b", "r"].map(|column| (column, get(&path, column))).into();

    // b: a chunk of `e` is damaged; c: cut off; d: missing; e: another file
    let mut bytes = sample_file();
    let chunk = Reader::from_bytes(bytes.clone()).unwrap().column("e").unwrap().chunk(0).unwrap().unwrap();
    bytes[usize::try_from(chunk.file_range.end).unwrap() - 1] ^= 1;
    let lost_of_b: Vec<u64> = chunk.samples.map(|sample| sample + u64::from(SAMPLES)).collect();
    folder.file("data/b.tsl", &bytes);
    let whole = sample_file();
    folder.file("data/c.tsl", &whole[..whole.len() - 200]);
    fs::remove_file(path.join("d.tsl")).unwrap();
    folder.file("data/e.tsl", super::empty_file());
    let before = content(&path);

    let out = folder.path("out");
    let run = on("salvage", &path, &format!("--json -o {}/", out.display()));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(content(&path) == before);
    let document = run.json();
    assert_eq!((&document["schema"], &document["ok"]), (&json!("tensilo.salvage-dataset/1"), &json!(false)));
    let ok: Vec<_> = document["files"].as_array().unwrap().iter().map(|file| file["ok"].as_bool()).collect();
    assert_eq!(ok, [Some(true), Some(false), Some(false), Some(false), Some(false)]);
    // nothing confirms what is left of c, and all of it is there
    let first = 2 * u64::from(SAMPLES);
    for column in document["files"][2]["columns"].as_array().unwrap() {
        assert_eq!((&column["lost"], &column["lost_count"]), (&json!([]), &json!(0)));
        assert_eq!(column["unconfirmed"], json!([[first, first + u64::from(SAMPLES)]]));
        assert_eq!(column["unconfirmed_count"], SAMPLES);
    }
    assert_eq!(document["output"]["sample_count"], 5 * SAMPLES);
    assert!(document["files"][4]["message"].as_str().unwrap().contains("another file is there"), "{document}");

    on("verify", &out, "--deep").done();
    for (column, due) in due {
        for (number, (found, due)) in (0_u64..).zip(get(&out, column).iter().zip(&due)) {
            let is_lost = number >= 3 * u64::from(SAMPLES) || column == "energy" && lost_of_b.contains(&number);
            assert_eq!(found, if is_lost { &Value::Null } else { due }, "{column} {number}");
        }
    }
    let text = on("salvage", &path, "").text();
    assert!(
        text.contains("b.tsl:\ncolumn \"energy\": lost 20..") && text.contains("4 of 5 files are damaged"),
        "{text}"
    );
    on("salvage", &path, &format!("-o {}", out.display())).failed(2, "the folder has a dataset");
    on("salvage", &path, "--leave-out").failed(2, "--leave-out");
}

#[test]
fn a_whole_dataset_has_lost_nothing_and_stays_the_same() {
    let folder = Folder::new();
    let path = create(&folder, &["a.tsl", "b.tsl"]);
    // a column in files of its own
    let mut changes = Dataset::open(&path).unwrap().change().unwrap();
    changes.drop_column("t").unwrap();
    let texts = folder.path("texts.tsl");
    on("convert", &path.join("a.tsl"), &format!("-o {} --columns t", texts.display())).done();
    let files = [0, 1].map(|_| {
        let next = changes.next_path().unwrap();
        fs::copy(&texts, &next).unwrap();
        next
    });
    changes.add_columns(&files).unwrap();
    changes.publish("add t again").unwrap();
    let text = on("salvage", &path, "").done().text();
    assert!(text.contains("All 40 samples in 4 files are intact."), "{text}");
    let out = folder.path("out");
    on("salvage", &path, &format!("-o {}", out.display())).done();
    let (old, new) = (Dataset::open(&path).unwrap(), Dataset::open(&out).unwrap());
    assert_eq!((old.schema(), old.order()), (new.schema(), new.order()));
    for column in ["x", "t", "n"] {
        assert_eq!(get(&out, column), get(&path, column));
    }
}
