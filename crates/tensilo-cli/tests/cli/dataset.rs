//! `tensilo dataset`, and other commands on datasets.

use super::{Folder, Run, SAMPLES, SPEECH, SampleFile, on, program, run, sample_file};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tensilo_data::Dataset;

/// Runs `tensilo dataset COMMAND WORDS... FILES...`.
pub(super) fn dataset<'a>(command: &'a str, words: &[&'a str], files: impl IntoIterator<Item = &'a Path>) -> Run {
    let words = ["dataset", command].into_iter().chain(words.iter().copied()).map(OsStr::new);
    run(words.chain(files.into_iter().map(Path::as_os_str)))
}

/// Converts the speech features to a dataset.
pub(super) fn convert(folder: &Folder, name: &str, words: &str) -> (PathBuf, Run) {
    let output = folder.path(name);
    let fixed = [OsStr::new("convert"), OsStr::new(SPEECH), OsStr::new("-o"), output.as_os_str()];
    let mut command = program();
    command.env("SOURCE_DATE_EPOCH", "1767225600").args(fixed).args(words.split_whitespace());
    let run = command.output().expect("it starts").into();
    (output, run)
}

/// Returns the files below a folder, by their paths in it.
pub(super) fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn a_conversion_to_shards_is_the_same_for_any_number_of_threads() {
    let folder = Folder::new();
    let (one, run) = convert(&folder, "one", "--shard-bytes 100KiB --threads 1");
    let text = run.done().text();
    assert!(text.contains("one: ") && text.contains(" files, ") && text.contains("version 1"), "{text}");
    let (more, run) = convert(&folder, "more", "--shard-bytes 100KiB --threads 3 --quiet");
    assert_eq!(run.done().text(), "");
    assert!(content(&one).len() > 5);
    assert!(content(&one) == content(&more));

    // the samples are those of one file
    let whole = folder.path("whole.tsl");
    super::run([OsStr::new("convert"), OsStr::new(SPEECH), OsStr::new("-o"), whole.as_os_str()]).done();
    let whole = tensilo::Reader::open(&whole).unwrap();
    let dataset = Dataset::open(&one).unwrap();
    assert_eq!((dataset.sample_count(), &dataset.schema().columns), (whole.sample_count(), &whole.schema().columns));
    for (number, column) in whole.columns().enumerate().filter(|(_, column)| column.schema().levels.is_empty()) {
        let mut cursor = column.cursor();
        for sample in [0, 1, whole.sample_count() / 2, whole.sample_count() - 1] {
            let found = dataset.find(number, sample).unwrap();
            let mut shard = found.column.unwrap().cursor();
            let (due, found) = (cursor.read(sample).unwrap(), shard.read(found.index).unwrap());
            assert_eq!((due.shape(), due.bytes(), due.is_null()), (found.shape(), found.bytes(), found.is_null()));
        }
    }
    on("verify", &one, "--deep").done();
}

#[test]
fn a_folder_with_a_dataset_is_not_converted_into() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "train", "--shard-bytes 1GiB");
    run.done();
    let before = content(&path);
    let (_, run) = convert(&folder, "train", "--shard-bytes 1GiB");
    run.failed(2, "the folder has a dataset, at version 1");
    assert!(content(&path) == before);
}

#[test]
fn a_conversion_that_fails_leaves_no_file_and_no_folder() {
    let folder = Folder::new();
    for (words, due) in [("--columns utt_id,nothing", "nothing"), ("--shape tokens=3", "tokens")] {
        let (path, run) = convert(&folder, "train", &format!("--shard-bytes 1KiB {words}"));
        run.failed(2, due);
        assert!(!path.exists());
    }
}

#[test]
fn files_become_versions_that_the_log_lists() {
    let folder = Folder::new();
    for name in ["b.tsl", "a.tsl"] {
        folder.samples(name);
    }
    let text = dataset("create", &[], [folder.root()]).done().text();
    assert!(text.contains(&format!("{} samples in 2 files", 2 * SAMPLES)), "{text}");
    folder.samples("c.tsl");
    dataset("add", &[], [folder.root(), &folder.path("c.tsl")]).done();
    let document = dataset("log", &["--json"], [folder.root()]).done().json();
    assert_eq!(document["schema"], "tensilo.log/1");
    let numbers = |member: &str| -> Vec<Option<u64>> {
        document["versions"].as_array().unwrap().iter().map(|version| version[member].as_u64()).collect()
    };
    let samples = u64::from(SAMPLES);
    let bytes = sample_file().len() as u64;
    assert_eq!(numbers("version"), [Some(2), Some(1)]);
    assert_eq!(numbers("parent"), [Some(1), None]);
    assert_eq!(numbers("samples"), [Some(3 * samples), Some(2 * samples)]);
    assert_eq!(numbers("files"), [Some(3), Some(2)]);
    assert_eq!(numbers("bytes"), [Some(3 * bytes), Some(2 * bytes)]);
    let text = dataset("log", &[], [folder.root()]).done().text();
    assert!(text.contains("add 1 files") && text.contains("create 2 files"), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn the_log_of_a_folder_without_a_manifest_says_how_to_make_one() {
    let folder = Folder::new();
    folder.samples("a.tsl");
    dataset("log", &[], [folder.root()]).failed(2, "tensilo dataset create");
    dataset("add", &[], [folder.root(), &folder.path("a.tsl")]).failed(2, "\"tensilo dataset create ");
    dataset("log", &[], [folder.path("nothing").as_path()]).failed(3, "nothing");
}

#[test]
fn verify_names_the_damaged_files_of_a_dataset() {
    let folder = Folder::new();
    for name in ["a.tsl", "b.tsl", "c.tsl"] {
        folder.samples(name);
    }
    dataset("create", &["--quiet"], [folder.root()]).done();
    let text = on("verify", folder.root(), "").done().text();
    assert!(text.starts_with("ok: 3 files, "), "{text}");

    let mut bytes = sample_file();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.file("b.tsl", &bytes);
    fs::remove_file(folder.path("c.tsl")).unwrap();
    let run = on("verify", folder.root(), "");
    run.failed(1, "");
    let text = run.text();
    assert!(text.contains("b.tsl:\nbytes ") && text.contains("c.tsl") && !text.contains("a.tsl"), "{text}");
    assert!(text.ends_with("damaged: 2 of 3 files; 60 samples, version 1\n"), "{text}");
    let document = on("verify", folder.root(), "--json").json();
    let ok: Vec<_> = document["files"].as_array().unwrap().iter().map(|file| file["ok"].as_bool()).collect();
    assert_eq!((document["ok"].as_bool(), ok), (Some(false), vec![Some(true), Some(false), Some(false)]));

    // without the manifest, each file is one of its own, also if it cannot be opened
    fs::rename(folder.path("manifest"), folder.path("away")).unwrap();
    folder.file("c.tsl", &sample_file()[..200]);
    folder.file("d.tsl", super::raw_file(4, None));
    for path in [folder.root().to_path_buf(), folder.path("*.tsl")] {
        let run = on("verify", &path, "");
        run.failed(1, "");
        let text = run.text();
        assert!(text.contains("b.tsl:\nbytes ") && text.contains("c.tsl:\n") && !text.contains("d.tsl"), "{text}");
        assert!(text.contains("damaged: 2 of 4 files; "), "{text}");
    }
    fs::rename(folder.path("away"), folder.path("manifest")).unwrap();

    // damage of the manifest itself
    let path = folder.path("manifest/0000000001.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("create", "Create")).unwrap();
    on("verify", folder.root(), "").failed(1, "0000000001.json: it is damaged");
}

#[test]
fn a_folder_is_inspected_as_the_sum_of_its_files() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "data", "--shard-bytes 100KiB");
    run.done();
    let document = on("inspect", &path, "--json").done().json();
    assert_eq!(document["schema"], "tensilo.inspect-dataset/1");
    let whole = folder.path("whole.tsl");
    super::run([OsStr::new("convert"), OsStr::new(SPEECH), OsStr::new("-o"), whole.as_os_str()]).done();
    let file = on("inspect", &whole, "--json").done().json();
    assert_eq!(document["sample_count"], file["sample_count"]);
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(document["files"], dataset.groups().count());
    for (column, due) in document["columns"].as_array().unwrap().iter().zip(file["columns"].as_array().unwrap()) {
        for member in ["name", "dtype", "shape", "nullable", "nullable_levels"] {
            assert_eq!(column[member], due[member]);
        }
        assert!(column["stored_bytes"].as_u64() > Some(0) && column["files"] == document["files"], "{column}");
    }
    let text = on("inspect", &path, "").done().text();
    assert!(text.contains("windows of") && text.contains("mel"), "{text}");
    on("inspect", &path, "--explain").failed(2, "--explain");
}
