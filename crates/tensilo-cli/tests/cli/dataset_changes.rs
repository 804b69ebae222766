//! `tensilo dataset` commands that change columns and files.

use super::dataset::{content, convert, dataset};
use super::{Folder, Run, SAMPLES, SampleFile, on, program};
use std::fs;
use std::path::Path;
use tensilo::{ColumnSchema, DType, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_data::Dataset;

/// Returns the samples of each group, and the content ids of its files.
fn groups(folder: &Path) -> Vec<(u64, Vec<[u8; 16]>)> {
    let dataset = Dataset::open(folder).unwrap();
    let groups = dataset.groups().map(|group| group.unwrap());
    let described = groups.map(|group| {
        let ids = group.files.iter().map(|file| file.content_id.0).collect();
        (group.samples.end - group.samples.start, ids)
    });
    described.collect()
}

#[test]
fn a_repack_is_as_a_conversion_to_files_of_that_size() {
    let folder = Folder::new();
    let (small, run) = convert(&folder, "small", "--shard-bytes 30KiB --profile raw");
    run.done();
    let (large, run) = convert(&folder, "large", "--shard-bytes 150KiB --profile fast");
    run.done();
    let text = dataset("repack", &["--shard-bytes", "150KiB", "--profile", "fast"], [small.as_path()]).done().text();
    assert!(text.contains("version 2") && text.contains("before: ") && text.contains("version 1 keeps"), "{text}");
    assert!((2..5).contains(&groups(&large).len()), "{} files of 5 samples", groups(&large).len());
    assert_eq!(groups(&small), groups(&large));
    on("verify", &small, "--deep").done();
    let log = dataset("log", &["--json"], [small.as_path()]).done().text();
    assert!(log.contains("repack to files of 153.6 kB, profile fast"), "{log}");

    // the default is files of 1 GiB
    let text = dataset("repack", &["--quiet", "--threads", "3"], [small.as_path()]).done().text();
    assert_eq!((text.as_str(), groups(&small).len()), ("", 1));
    let before = content(&small);
    dataset("repack", &["--shard-bytes", "0"], [small.as_path()]).failed(2, "at least 1 byte");
    dataset("repack", &[], [folder.root()]).failed(2, "neither a manifest");
    assert!(content(&small) == before);
}

#[test]
fn a_malformed_time_is_refused_before_the_work() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "data", "--shard-bytes 30KiB");
    run.done();
    // the work would find the damage
    let (name, mut bytes) = content(&path).into_iter().find(|(name, _)| name.starts_with("data")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path.join(name), bytes).unwrap();
    let repack = |time: &str| {
        let mut command = program();
        command.env("SOURCE_DATE_EPOCH", time).args(["dataset", "repack"]).arg(&path);
        Run::from(command.output().unwrap())
    };
    assert_eq!(repack("1").code, 1);
    repack("today").failed(2, "SOURCE_DATE_EPOCH=\"today\"");
}

#[test]
fn values_that_were_rounded_stay_as_they_are() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "data", "--shard-bytes 30KiB --bf16");
    run.done();
    let cast_errors = || {
        let dataset = Dataset::open(&path).unwrap();
        let mut errors = std::collections::BTreeMap::<String, f64>::new();
        for group in dataset.groups() {
            let group = group.unwrap();
            let reader = dataset.open_file(&group, 0).unwrap();
            for column in reader.columns() {
                if let Some(facts) = column.facts().cast {
                    let most = errors.entry(column.schema().name.clone()).or_default();
                    *most = most.max(facts.max_abs_error);
                }
            }
        }
        errors
    };
    let before = cast_errors();
    assert!(before.values().any(|&error| error > 0.0), "{before:?}");
    dataset("repack", &["--shard-bytes", "200KiB"], [path.as_path()]).done();
    assert_eq!(cast_errors(), before);
    on("verify", &path, "--deep").done();
}

#[test]
fn old_versions_are_listed_and_removed() {
    let folder = Folder::new();
    let root = folder.root();
    for name in ["a.tsl", "b.tsl"] {
        folder.samples(name);
    }
    dataset("create", &[], [root]).done();
    dataset("repack", &[], [root]).done();
    let before = content(root);

    // without --keep, all versions stay
    let text = dataset("gc", &[], [root]).done().text();
    assert!(text.ends_with("removed 0 versions and 0 paths, 0 B together\n"), "{text}");
    assert!(content(root) == before);

    let text = dataset("gc", &["--keep", "1", "--dry-run"], [root]).done().text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0], "version 1");
    assert!(lines[1].ends_with("a.tsl") && lines[2].ends_with("b.tsl"), "{text}");
    assert!(lines[3].contains("would remove 1 version and 2 paths, "), "{text}");
    assert!(content(root) == before);

    dataset("gc", &["--keep", "0"], [root]).failed(2, "--keep");
    let text = dataset("gc", &["--keep", "1", "--quiet"], [root]).done().text();
    assert_eq!(text, "");
    let names: Vec<_> = content(root).into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["data/0000000002/00000.tsl", "manifest/0000000002.json"].map(Path::new));
    on("verify", root, "--deep").done();
    dataset("gc", &[], [folder.path("data").as_path()]).failed(2, "has no manifest");
}

/// Writes labels: sample `i` is `i`.
fn labels(path: &Path, samples: u32) {
    let schema = Schema::new([ColumnSchema::tensor("label", DType::U32, Shape::scalar())]);
    let mut writer = Writer::create(path, schema, &WriterOptions::new()).unwrap();
    (0..samples).for_each(|i| writer.push(&[Value::tensor(&[i])]).unwrap());
    writer.finish().unwrap();
}

#[test]
fn the_order_of_trainings_is_set() {
    let folder = Folder::new();
    folder.samples("a.tsl");
    dataset("create", &[], [folder.root()]).done();
    dataset("set-order", &["--run", "2", "--window", "5"], [folder.root()]).done();
    let document = on("inspect", folder.root(), "--json").done().json();
    assert_eq!((&document["run_samples"], &document["window_runs"]), (&2.into(), &5.into()));
    dataset("set-order", &["--run", "0", "--window", "5"], [folder.root()]).failed(2, "--run");
    assert_eq!(Dataset::open(folder.root()).unwrap().version(), 2);
}

#[test]
fn columns_are_added_renamed_and_dropped() {
    let folder = Folder::new();
    let root = folder.root();
    for name in ["a.tsl", "b.tsl"] {
        folder.samples(name);
    }
    dataset("create", &[], [root]).done();
    let [one, two] = ["labels-1.tsl", "labels-2.tsl"].map(|name| folder.path(name));
    labels(&one, SAMPLES);
    labels(&two, SAMPLES);
    let before = content(root);
    dataset("add-columns", &[], [root, &one]).failed(2, "1 files for 2 groups");
    assert!(content(root) == before);
    let columns = || {
        let dataset = Dataset::open(root).unwrap();
        let names: Vec<String> = dataset.schema().columns.iter().map(|column| column.name.clone()).collect();
        names
    };
    let old = columns();
    let text = dataset("add-columns", &[], [root, &one, &two]).done().text();
    assert!(text.contains("in 4 files") && text.contains("version 2"), "{text}");
    assert_eq!(columns(), [old.as_slice(), &["label".to_owned()]].concat());

    dataset("rename-column", &[], [root, Path::new("label"), Path::new("class")]).done();
    dataset("drop-column", &["--quiet"], [root, Path::new(&old[0])]).done();
    assert_eq!(columns(), [&old[1..], &["class".to_owned()]].concat());
    dataset("drop-column", &[], [root, Path::new("label")]).failed(2, "no column \"label\"");
    dataset("rename-column", &[], [root, Path::new("class"), Path::new(&old[1])]).failed(2, "has a column");
    let log = dataset("log", &["--json"], [root]).done().json();
    let changes = log["versions"].as_array().unwrap().iter().map(|version| version["change"].as_str().unwrap());
    let dropped = format!("drop column {:?}", old[0]);
    let due = [&dropped, "rename column \"label\" to \"class\"", "add the columns of 2 files", "create 2 files"];
    assert_eq!(changes.collect::<Vec<_>>(), due);
    on("verify", root, "--deep").done();
    assert_eq!(fs::read_dir(folder.path("manifest")).unwrap().count(), 5, "four versions and the folder of pages");
}
