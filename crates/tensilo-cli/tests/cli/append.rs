//! `tensilo append`

use super::{Folder, Run, SAMPLES, empty_file, on, run, sample_file, unfinished_file};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

fn append(file: &Path, input: &Path, words: &str) -> Run {
    let fixed = [OsStr::new("append"), file.as_os_str(), input.as_os_str()];
    run(fixed.into_iter().chain(words.split_whitespace().map(OsStr::new)))
}

/// Writes the columns of a tensilo file to a Parquet file.
fn exported(folder: &Folder, name: &str, file: &[u8]) -> std::path::PathBuf {
    let (from, to) = (folder.file(format!("{name}.tsl"), file), folder.path(format!("{name}.parquet")));
    on("export", &from, &format!("-o {}", to.display())).done();
    to
}

#[test]
fn appended_samples_are_read() {
    let folder = Folder::new();
    let input = exported(&folder, "input", &sample_file());
    // the exported values of x are f32, like the values that they were rounded from
    let file = folder.file("a.tsl", sample_file());
    let text = append(&file, &input, "--profile raw --threads 2").done().text();
    assert!(text.contains("20 samples appended, 40 in all"), "{text}");
    on("verify", &file, "--deep").done();
    for column in ["x", "e", "t", "b", "r", "flag", "n", "h"] {
        let samples = |range: &str| on("get", &file, &format!("-c {column} -i {range}")).done().text();
        assert_eq!(samples(&format!("..{SAMPLES}")), samples(&format!("{SAMPLES}..")), "{column}");
    }
    let quiet = append(&file, &input, "-q").done();
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty());
    let empty = folder.file("empty.tsl", empty_file());
    append(&empty, &input, "").done();
    assert_eq!(on("inspect", &empty, "--json").done().json()["sample_count"], SAMPLES);
}

#[test]
fn a_tail_is_kept_until_it_is_given_up() {
    let folder = Folder::new();
    let input = exported(&folder, "input", &sample_file());
    let file = folder.file("a.tsl", unfinished_file());
    append(&file, &input, "").failed(1, "tensilo salvage");
    append(&file, &input, "").failed(1, "--discard-tail");
    assert!(fs::read(&file).unwrap() == unfinished_file());
    append(&file, &input, "--discard-tail").done();
    on("verify", &file, "").done();
    assert_eq!(on("inspect", &file, "--json").done().json()["sample_count"], 2 * SAMPLES);
}

#[test]
fn a_failed_append_changes_nothing() {
    let folder = Folder::new();
    let file = folder.file("a.tsl", sample_file());
    let text = folder.file("text.parquet", b"this is no Parquet file, however long it may be");
    append(&file, &text, "").failed(2, "text.parquet");
    append(&file, &folder.path("missing.parquet"), "").failed(3, "missing.parquet");
    let columns = folder.path("columns.parquet");
    on("export", &file, &format!("-o {} --columns e,t", columns.display())).done();
    append(&file, &columns, "").failed(2, "column \"x\" is missing");
    assert!(fs::read(&file).unwrap() == sample_file());
    append(&folder.path("no.tsl"), &columns, "").failed(3, "no.tsl");
    assert!(!folder.path("no.tsl").exists());
}
