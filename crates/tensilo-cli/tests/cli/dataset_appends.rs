//! `tensilo append` to datasets.

use super::dataset::{content, convert, dataset};
use super::{Folder, Run, SAMPLES, SPEECH, SampleFile, on, program, run, sample_file};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tensilo_data::Dataset;

fn append(to: &Path, input: &Path, words: &str) -> Run {
    let fixed = [OsStr::new("append"), to.as_os_str(), input.as_os_str()];
    run(fixed.into_iter().chain(words.split_whitespace().map(OsStr::new)))
}

/// Returns all samples of all columns, as JSON.
fn samples(path: &Path, columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| on("get", path, &format!("-c {column} -i ..")).done().text()).collect()
}

#[test]
fn samples_are_appended_as_to_a_file() {
    let folder = Folder::new();
    let columns = ["x", "e", "t", "b", "r", "flag", "n", "h"];
    let table = folder.path("in.parquet");
    // x was rounded: its exported values are f32 again
    on("export", &folder.samples("first.tsl"), &format!("-o {}", table.display())).done();
    let file = folder.file("whole.tsl", sample_file());
    append(&file, &table, "").done();
    fs::create_dir(folder.path("data")).unwrap();
    folder.samples("data/a.tsl");
    let path = folder.path("data");
    append(&path, &table, "").failed(2, "\"tensilo dataset create ");
    dataset("create", &["-q"], [path.as_path()]).done();
    let text = append(&path, &table, "--shard-bytes 200").done().text();
    assert!(text.contains(&format!("{SAMPLES} samples appended, {} in all", 2 * SAMPLES)), "{text}");
    assert!(Dataset::open(&path).unwrap().groups().count() > 3);
    assert_eq!(samples(&path, &columns), samples(&file, &columns));
    on("verify", &path, "--deep").done();

    // one file unless told
    assert_eq!(append(&path, &table, "-q --profile raw").done().text(), "");
    let document = dataset("log", &["--json"], [path.as_path()]).done().json();
    let versions = document["versions"].as_array().unwrap();
    assert_eq!((&versions[0]["change"], &versions[0]["samples"]), (&"append".into(), &(3 * SAMPLES).into()));
    assert_eq!(versions[0]["files"].as_u64().unwrap(), versions[1]["files"].as_u64().unwrap() + 1);
}

#[test]
fn renamed_columns_are_appended_by_their_new_names() {
    let folder = Folder::new();
    let input = folder.samples("in.tsl");
    let (one, two) = (folder.path("one.parquet"), folder.path("data"));
    fs::create_dir(&two).unwrap();
    folder.samples("data/a.tsl");
    dataset("create", &["-q"], [two.as_path()]).done();
    let mut changes = Dataset::open(&two).unwrap().change().unwrap();
    changes.rename_column("t", "e2").unwrap();
    ["x", "e", "r", "flag", "n", "h"].iter().for_each(|column| changes.drop_column(column).unwrap());
    changes.publish("change").unwrap();
    on("export", &two, &format!("-o {}", one.display())).done();
    append(&two, &input, "").failed(2, "column \"e2\" is missing");
    append(&two, &input, "").failed(2, "the columns are not those of");
    append(&two, &one, "").done();
    let texts = on("get", &two, "-c e2 -i 3,23,4,24").done().json();
    assert_eq!((&texts[0], &texts[2]), (&texts[1], &texts[3]));
}

#[test]
fn a_failed_append_leaves_the_dataset_as_it_was() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "data", "--shard-bytes 100KiB");
    run.done();
    let before = content(&path);
    let other = folder.samples("other.tsl");
    append(&path, &other, "").failed(2, "is missing");
    append(&path, &folder.path("missing.parquet"), "").failed(3, "missing.parquet");
    append(&path, Path::new(SPEECH), "--discard-tail").failed(2, "--discard-tail");
    append(&other, &other, "--shard-bytes 1KiB").failed(2, "--shard-bytes");
    assert!(content(&path) == before);
}

/// The first program reads its input while the second one publishes a version.
#[cfg(unix)]
#[test]
fn the_slower_of_two_appends_is_told_to_repeat() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "data", "--shard-bytes 100KiB");
    run.done();
    let mut slow = program();
    slow.args([OsStr::new("append"), path.as_os_str(), OsStr::new("-")]);
    let mut child = slow.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = fs::read(SPEECH).unwrap();
    let (first, rest) = input.split_at(input.len() - 1);
    let mut pipe = child.stdin.take().unwrap();
    // more than a pipe holds: the program has opened the dataset, and reads
    pipe.write_all(first).unwrap();
    append(&path, Path::new(SPEECH), "-q").done();
    let before = content(&path);
    pipe.write_all(rest).unwrap();
    drop(pipe);
    Run::from(child.wait_with_output().unwrap()).failed(2, "another writer has published version 2");
    assert!(content(&path) == before);
}
