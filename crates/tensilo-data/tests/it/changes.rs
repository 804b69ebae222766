//! Versions: each change has its effect, and changes nothing else.

use crate::common::{check_all, create, files_below, numbers, read, second_reader, write};
use std::fs;
use tensilo::{ColumnSchema, DType, Schema, Shape};
use tensilo_data::{DataError, Dataset, DatasetOptions};
use tensilo_testing::Folder;

fn all(dataset: &Dataset, column: &str) -> Vec<Option<u32>> {
    (0..dataset.sample_count()).map(|sample| read(dataset, column, sample).expect("a sample")).collect()
}

fn some(numbers: impl IntoIterator<Item = u32>) -> Vec<Option<u32>> {
    numbers.into_iter().map(Some).collect()
}

#[test]
fn samples_and_columns_are_added_renamed_and_dropped() {
    let folder = Folder::new();
    let first = create(folder.root(), &[3, 1, 4]);
    assert_eq!((first.version(), first.parent(), all(&first, "x")), (1, None, some(0..8)));

    let mut changes = first.change().unwrap();
    changes.rename_column("x", "number").unwrap();
    changes.add_nullable_column(numbers("label").nullable()).unwrap();
    let path = changes.next_path().unwrap();
    write(&path, &[numbers("number"), numbers("label")], 8, 2);
    changes.add_file(&path).unwrap();
    let second = changes.publish("rename x, add label and two samples").unwrap();
    assert_eq!((second.version(), second.parent(), second.id()), (2, Some(1), first.id()));
    assert_eq!(all(&second, "number"), some(0..10));
    assert_eq!(all(&second, "label"), [vec![None; 8], some(8..10)].concat());

    let mut changes = second.change().unwrap();
    changes.drop_column("label").unwrap();
    let files: Vec<_> = [(0, 3), (3, 1), (4, 4), (8, 2)]
        .into_iter()
        .map(|(start, samples)| {
            let path = changes.next_path().unwrap();
            write(&path, &[numbers("label")], 100 + start, samples);
            path
        })
        .collect();
    changes.add_columns(&files).unwrap();
    let third = changes.publish("label all samples").unwrap();
    assert_eq!((all(&third, "number"), all(&third, "label")), (some(0..10), some(100..110)));

    // versions do not change once they are published
    let all_versions = [(1, some(0..8), "x"), (2, some(0..10), "number"), (3, some(0..10), "number")];
    for (version, expected, column) in all_versions {
        let dataset = DatasetOptions::new().version(version).open(folder.root()).unwrap();
        check_all(&dataset).unwrap();
        assert_eq!(all(&dataset, column), expected);
    }
    if let Some(read) = second_reader(folder.root()) {
        assert_eq!((read["version"].as_u64(), read["samples"].as_u64()), (Some(3), Some(10)));
        assert_eq!(read["groups"].as_array().map(Vec::len), Some(4));
    }
}

#[test]
fn a_dataset_of_many_files_has_pages() {
    let folder = Folder::new();
    let mut changes = Dataset::create(folder.root()).unwrap();
    let path = changes.next_path().unwrap();
    write(&path, &[numbers("x")], 7, 2);
    for _ in 0..1_300 {
        changes.add_file(&path).unwrap(); // the same file
    }
    let dataset = changes.publish("many").unwrap();
    assert_eq!(files_below(&folder.path("manifest/pages")).len(), 1, "pages with the same files are the same");
    assert_eq!((dataset.sample_count(), dataset.groups().count()), (2_600, 1_300));
    for sample in [0, 1, 511, 512, 2_047, 2_048, 2_599] {
        assert_eq!(read(&dataset, "x", sample).unwrap(), Some(7 + u32::try_from(sample % 2).unwrap()));
    }

    let mut changes = dataset.change().unwrap();
    let path = changes.next_path().unwrap();
    write(&path, &[numbers("x")], 9, 1);
    changes.add_file(&path).unwrap();
    let dataset = changes.publish("one more").unwrap();
    assert_eq!(files_below(&folder.path("manifest/pages")).len(), 1, "pages are shared");
    assert_eq!(read(&dataset, "x", 2_600).unwrap(), Some(9));
    check_all(&dataset).unwrap();
}

#[test]
fn of_two_writers_one_wins_and_the_other_leaves_nothing() {
    for _ in 0..50 {
        let folder = Folder::new();
        let first = create(folder.root(), &[2]);
        let append = |number: u32| {
            let mut changes = first.change()?;
            let path = changes.next_path()?;
            write(&path, &[numbers("x")], number, 1);
            changes.add_file(&path)?;
            changes.publish(format!("append {number}"))
        };
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = [50, 60].map(|number| scope.spawn(move || append(number))).into_iter().collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let won: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
        let lost: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(matches!(lost[..], [DataError::Conflict { version: 2, .. }]), "{results:?}");
        let newest = Dataset::open(folder.root()).unwrap();
        assert_eq!(all(&newest, "x"), all(won[0], "x"));
        let mut listed: Vec<_> = newest.groups().flat_map(|group| group.unwrap().files).map(|file| file.path).collect();
        listed.sort_unstable();
        assert_eq!(files_below(&folder.path("data")), listed, "the loser's files are removed");

        // it repeats, and its samples come after the samples of the winner
        let mut changes = newest.change().unwrap();
        let path = changes.next_path().unwrap();
        write(&path, &[numbers("x")], 70, 1);
        changes.add_file(&path).unwrap();
        assert_eq!(changes.publish("again").unwrap().sample_count(), 4);
    }
}

#[test]
fn declared_metadata_are_added_to_those_that_were_set() {
    let folder = Folder::new();
    let mut changes = Dataset::create(folder.root()).unwrap();
    changes.set_metadata([("mine".to_owned(), "kept".into())].into_iter().collect());
    let mut schema = Schema::new([numbers("x")]);
    schema.metadata.insert("theirs".into(), "added".into());
    changes.declare(&schema).unwrap();
    let found = changes.schema().metadata;
    assert!(found.len() == 2 && found.contains_key("mine") && found.contains_key("theirs"), "{found:?}");
}

#[test]
fn what_cannot_be_changed_is_refused_with_the_reason_and_leaves_nothing() {
    let folder = Folder::new();
    let dataset = create(folder.root(), &[2, 3]);
    let before = files_below(folder.root());
    let refused = |columns: &[ColumnSchema], expected: &str| {
        let mut changes = dataset.change().unwrap();
        let path = changes.next_path().unwrap();
        write(&path, columns, 0, 2);
        let error = changes.add_file(&path).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        drop(changes);
        assert_eq!(files_below(folder.root()), before);
    };
    refused(&[numbers("y")], "the dataset has no column \"y\"");
    refused(&[numbers("x"), numbers("y")], "first add it");
    refused(&[numbers("x").nullable()], "can have nulls");
    refused(&[ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[1]))], "is u32 [] in the dataset");

    let mut changes = dataset.change().unwrap();
    let error = changes.add_nullable_column(numbers("y")).unwrap_err();
    assert!(error.to_string().contains("not nullable"), "{error}");
    assert!(changes.drop_column("y").is_err());
    assert!(changes.rename_column("x", "x").is_err());
    let path = changes.next_path().unwrap();
    write(&path, &[numbers("y")], 0, 2);
    let error = changes.add_columns([&path]).unwrap_err();
    assert!(error.to_string().contains("1 files for 2 groups"), "{error}");
    let error = changes.add_columns([&path, &path]).unwrap_err();
    assert!(error.to_string().contains("2 samples, but group 1 has 3"), "{error}");
    let outside = Folder::new();
    write(&outside.path("x.tsl"), &[numbers("x")], 0, 2);
    let error = changes.add_file(outside.path("x.tsl")).unwrap_err();
    assert!(error.to_string().contains("not in the folder"), "{error}");
    drop(changes);

    let mut changes = dataset.change().unwrap();
    changes.rename_column("x", "").unwrap();
    assert!(matches!(changes.publish("a name that no file can have"), Err(DataError::BadArgument(_))));
    assert!(matches!(Dataset::create(folder.root()), Err(DataError::BadArgument(_))));
    assert_eq!(files_below(folder.root()), before);

    // empty folders that were created are removed, and others stay
    std::fs::create_dir(folder.path("mine")).unwrap();
    for inner in ["mine", "new", "new/inner"] {
        let mut changes = Dataset::create(folder.path(inner)).unwrap();
        write(&changes.next_path().unwrap(), &[numbers("x")], 0, 2);
        assert!(folder.path(inner).join("data").exists());
        drop(changes);
    }
    assert!(folder.path("mine").exists() && !folder.path("mine/data").exists() && !folder.path("new").exists());
}

#[test]
fn a_file_that_was_replaced_or_has_vanished_is_named() {
    let folder = Folder::new();
    let dataset = create(folder.root(), &[2, 3, 4]);
    let files: Vec<_> = dataset.groups().map(|group| group.unwrap().files[0].path.clone()).collect();
    fs::remove_file(&files[1]).unwrap();
    write(&files[1], &[numbers("x")], 9, 3);
    fs::remove_file(&files[2]).unwrap();
    let again = Dataset::open(folder.root()).unwrap();
    assert_eq!(read(&again, "x", 1).unwrap(), Some(1));
    let error = read(&again, "x", 2).unwrap_err();
    assert!(matches!(&error, DataError::Corrupt { rule: "M-7.1", path, .. } if *path == files[1]), "{error}");
    let error = read(&again, "x", 5).unwrap_err();
    assert!(error.to_string().contains(&files[2].display().to_string()), "{error}");
}

#[test]
fn what_was_appended_to_a_file_is_not_of_the_dataset() {
    let folder = Folder::new();
    let dataset = create(folder.root(), &[5]);
    let path = dataset.groups().next().unwrap().unwrap().files[0].path.clone();
    let mut writer = tensilo::Writer::append(&path, &tensilo::WriterOptions::new()).unwrap();
    writer.push(&[tensilo::Value::tensor(&[99_u32])]).unwrap();
    writer.finish().unwrap();
    let again = Dataset::open(folder.root()).unwrap();
    assert_eq!(all(&again, "x"), some(0..5));
}

#[test]
fn files_without_a_manifest_are_a_dataset_in_the_order_of_their_names() {
    let folder = Folder::new();
    for (name, first, samples) in [("b.tsl", 2, 3), ("a.tsl", 0, 2), ("c.tsl", 5, 1)] {
        write(&folder.path(name), &[numbers("x")], first, samples);
    }
    fs::write(folder.path("readme.txt"), "not a file of the dataset").unwrap();
    fs::write(folder.path(".d.tsl"), "hidden").unwrap();
    let dataset = Dataset::open(folder.root()).unwrap();
    assert_eq!((dataset.version(), all(&dataset, "x")), (0, some(0..6)));
    assert!(matches!(dataset.change(), Err(DataError::BadArgument(_))));

    let mut changes = Dataset::create(folder.root()).unwrap();
    for name in ["a.tsl", "b.tsl", "c.tsl"] {
        changes.add_file(folder.path(name)).unwrap();
    }
    let created = changes.publish("from files").unwrap();
    assert_eq!(
        (created.id(), created.window_sizes(), all(&created, "x")),
        (dataset.id(), dataset.window_sizes(), some(0..6))
    );

    write(&folder.path("e.tsl"), &[numbers("y")], 0, 1);
    let list = ["a.tsl", "e.tsl"].map(|name| folder.path(name));
    let error = DatasetOptions::new().open_files(list).unwrap_err();
    assert!(error.to_string().contains("e.tsl: there is no column \"x\""), "{error}");
}

#[test]
fn few_files_are_open_at_once() {
    let folder = Folder::new();
    create(folder.root(), &[1; 40]);
    let dataset = DatasetOptions::new().max_open_files(3).open(folder.root()).unwrap();
    let open = || {
        fs::read_dir("/proc/self/fd").map(|entries| {
            entries
                .filter(|entry| {
                    let target = entry.as_ref().ok().and_then(|entry| fs::read_link(entry.path()).ok());
                    target.is_some_and(|target| target.starts_with(folder.root()))
                })
                .count()
        })
    };
    for round in 0..3_u64 {
        for sample in 0..40 {
            let sample = (sample * 7 + round) % 40;
            assert_eq!(read(&dataset, "x", sample).unwrap(), Some(u32::try_from(sample).unwrap()));
            if let Ok(open) = open() {
                assert!(open <= 3, "{open} open files");
            }
        }
    }
}

#[test]
fn files_that_match_a_pattern_are_a_dataset_in_the_order_of_their_names() {
    let folder = Folder::new();
    for name in ["b", "a", "folder.tsl"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    for (name, first, samples) in [("b/part-1.tsl", 3, 2), ("a/part-10.tsl", 0, 2), ("a/part-2.tsl", 2, 1)] {
        write(&folder.path(name), &[numbers("x")], first, samples);
    }
    write(&folder.path("a/.part-3.tsl"), &[numbers("x")], 9, 1);
    let open = |pattern: &str| DatasetOptions::new().open_glob(folder.path(pattern));
    assert_eq!(all(&open("*/part-*.tsl").unwrap(), "x"), some(0..5));
    assert_eq!(all(&open("**/part-[2-9].tsl").unwrap(), "x"), some(2..3));
    assert_eq!(all(&open("?/part-1.tsl").unwrap(), "x"), some(3..5));
    for (pattern, expected) in [("*.tsl", "no file matches this pattern"), ("a/[", "not a pattern")] {
        let error = open(pattern).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(pattern), "{error}");
    }
}

/// Systems other than Linux may refuse such names.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_do_not_disturb_patterns() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let named = |name: &[u8]| folder.root().join(std::ffi::OsStr::from_bytes(name));
    write(&folder.path("a.tsl"), &[numbers("x")], 0, 2);
    fs::write(named(b"notes caf\xe9.txt"), "").unwrap();
    for pattern in ["*.tsl", "**/*.tsl"] {
        let dataset = DatasetOptions::new().open_glob(folder.path(pattern)).unwrap();
        assert_eq!(all(&dataset, "x"), some(0..2));
        let files = Dataset::files_without_manifest(folder.path(pattern)).unwrap();
        assert_eq!(files, Some(vec![folder.path("a.tsl")]));
    }
    // a file of the dataset is never left out silently
    write(&named(b"caf\xe9.tsl"), &[numbers("x")], 2, 1);
    for path in [folder.path("*.tsl"), folder.root().to_path_buf()] {
        let opened = if path.is_dir() { Dataset::open(&path) } else { DatasetOptions::new().open_glob(&path) };
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("caf") && error.contains("not UTF-8; rename the file"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_instead_of_waited_for() {
    let folder = Folder::new();
    write(&folder.path("a.tsl"), &[numbers("x")], 0, 2);
    let pipe = folder.path("p.tsl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let errors = [
        DatasetOptions::new().open_glob(folder.path("*.tsl")).unwrap_err().to_string(),
        Dataset::open(folder.root()).unwrap_err().to_string(),
        tensilo::Reader::open(&pipe).err().unwrap().to_string(),
    ];
    for error in errors {
        assert!(error.contains("p.tsl") && error.contains("is a named pipe, not a regular file"), "{error}");
    }
}
