//! Typical mistakes, and what the program says to do.

use super::dataset::{convert, dataset};
use super::{Folder, SPEECH, SampleFile, on, run};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

fn to(output: &Path, words: &str) -> String {
    format!("-o {} {words}", output.display())
}

#[test]
fn the_name_of_a_conversion_fits_what_is_written() {
    let folder = Folder::new();
    let input = Path::new(SPEECH);
    let slash = format!("-o {}/new/", folder.root().display());
    on("convert", input, &slash).failed(2, "the name is that of a folder; --shard-bytes 1GiB writes a dataset");
    on("convert", input, &to(folder.root(), "")).failed(2, "\"tensilo append\"");
    on("convert", input, &to(&folder.path("new.tsl"), "--shard-bytes 1MiB")).failed(2, "leave .tsl out");
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn the_summary_of_a_dataset_has_its_columns_and_casts() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "train", "--shard-bytes 100KiB --bf16");
    let text = run.done().text();
    assert!(text.contains("rounded") && text.contains("f32->bf16") && text.contains("mel"), "{text}");
    let inspected = on("inspect", &path, "").done().text();
    assert!(inspected.contains("rounded") && inspected.contains("f32->bf16"), "{inspected}");
    let document = on("inspect", &path, "--json").done().json();
    let mel = document["columns"].as_array().unwrap().iter().find(|column| column["name"] == "mel").unwrap();
    assert_eq!(mel["cast"]["source"], "f32");
    // the largest error of all files is that of one file
    let (whole, _) =
        (folder.path("whole.tsl"), on("convert", Path::new(SPEECH), &to(&folder.path("whole.tsl"), "--bf16")).done());
    let one = on("inspect", &whole, "--json").done().json();
    let of_one = one["columns"].as_array().unwrap().iter().find(|column| column["name"] == "mel").unwrap();
    assert_eq!(mel["cast"], of_one["cast"]);
}

#[test]
fn a_folder_that_is_no_dataset_is_explained() {
    let folder = Folder::new();
    fs::create_dir(folder.path("crawl")).unwrap();
    fs::copy(SPEECH, folder.path("crawl/a.parquet")).unwrap();
    for command in ["inspect", "verify"] {
        on(command, &folder.path("crawl"), "").failed(2, "\"tensilo convert");
    }
    let (path, run) = convert(&folder, "train", "--shard-bytes 1GiB");
    run.done();
    on("inspect", &path.join("data"), "").failed(2, "it is a part of the dataset ");
    on("append", &folder.path("none"), &format!("{SPEECH} --shard-bytes 1GiB")).failed(2, "there is no such folder");
    on("inspect", &path, "--explain").failed(2, "such as ");
}

#[test]
fn commands_of_datasets_say_what_they_were_given() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    dataset("log", &[], [file.as_path()]).failed(2, "this is no folder of a dataset");
    dataset("drop-column", &[], [folder.root(), Path::new("x")]).failed(2, "\"tensilo dataset create");
    let append = [OsStr::new("append"), folder.root().as_os_str(), OsStr::new(SPEECH)];
    run(append).failed(2, "\"tensilo dataset create");
    dataset("create", &[], [folder.root()]).done();
    dataset("add", &[], [folder.root(), Path::new(SPEECH)]).failed(2, "\"tensilo append");
    dataset("gc", &["--keep", "0"], [folder.root()]).failed(2, "keep at least 1 version");
    // unknown names are compared with those that there are
    dataset("drop-column", &[], [folder.root(), Path::new("xx")]).failed(2, "xx");
}

#[test]
fn a_pattern_without_quotes_is_noticed() {
    let folder = Folder::new();
    let (a, b) = (folder.samples("a.tsl"), folder.samples("b.tsl"));
    for command in ["inspect", "verify", "bench"] {
        run([OsStr::new(command), a.as_os_str(), b.as_os_str()]).failed(2, "quote the pattern");
    }
}

#[test]
fn the_first_sample_that_is_missing_is_named() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    on("get", &file, "-c x -i 0..99").failed(2, "there is no sample 20: there are 20, counted from 0");
    on("get", &file, "-c x -i -1").failed(2, "counted from 0");
}

#[test]
fn sizes_of_runs_and_windows_can_be_tried() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    let words = "--loader --seconds 0.02 --order windowed --run 2 --window 3 --json";
    assert_eq!(on("bench", &file, words).done().json()["order"], "windowed");
    on("bench", &file, "--loader --order shuffled --run 2").failed(2, "--order windowed");
}
