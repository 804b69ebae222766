//! Old versions are removed, and nothing that is still needed.

use crate::common::{check_all, create, files_below, numbers, read, write};
use std::fs;
use std::ops::ControlFlow;
use tensilo::WriterOptions;
use tensilo_data::{DataError, Dataset, DatasetOptions, Garbage};
use tensilo_testing::Folder;

fn values(dataset: &Dataset) -> Vec<Option<u32>> {
    (0..dataset.sample_count()).map(|sample| read(dataset, "x", sample).unwrap()).collect()
}

/// Creates three versions: two files of the caller, a repack, and one more file.
fn three_versions(folder: &Folder) -> Dataset {
    let mut changes = Dataset::create(folder.root()).unwrap();
    for (name, first) in [("a.tsl", 0), ("b.tsl", 10)] {
        write(&folder.path(name), &[numbers("x")], first, 10);
        changes.add_file(folder.path(name)).unwrap();
    }
    let mut changes = changes.publish("create").unwrap().change().unwrap();
    changes.repack(20, &WriterOptions::new(), &mut |_| ControlFlow::Continue(())).unwrap();
    let mut changes = changes.publish("repack").unwrap().change().unwrap();
    let path = changes.next_path().unwrap();
    write(&path, &[numbers("x")], 20, 5);
    changes.add_file(path).unwrap();
    changes.publish("add").unwrap()
}

#[test]
fn what_only_old_versions_list_is_removed_and_nothing_else() {
    let folder = Folder::new();
    let newest = three_versions(&folder);
    let expected = values(&newest);
    // files of killed writers, and files that do not belong to the dataset
    for (name, is_garbage) in [
        ("data/0000000002/left.tsl", true),
        ("data/0000000003-2/00000.tsl", true),
        ("data/0000000003-2/.00000.tsl.abcdefgh.tmp", true),
        ("data/0000000004/00000.tsl", false),
        ("data/0000000004-7/00000.tsl", false),
        ("data/notes.txt", false),
        ("data/mine/00000.tsl", false),
        ("data/00000000010/00000.tsl", false),
        ("data/0000000001-b/00000.tsl", false),
        ("c.tsl", false),
        ("manifest/pages/00000000000000000000000000000000.json", false),
    ] {
        let path = folder.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, if is_garbage { "garbage" } else { "kept" }).unwrap();
    }
    let before = files_below(folder.root());
    let all = Garbage::find(folder.root(), u64::MAX).unwrap();
    assert!(all.versions.is_empty(), "{all:?}");
    assert_eq!((all.paths.len(), all.bytes), (2, 21), "{all:?}");

    let some = Garbage::find(folder.root(), 2).unwrap();
    assert_eq!(some.versions, [1]);
    let path = |name: &str| folder.path(name);
    let expected_paths = ["a.tsl", "b.tsl", "data/0000000002/left.tsl", "data/0000000003-2"].map(path);
    assert_eq!(some.paths, expected_paths);
    let lengths = [path("a.tsl"), path("b.tsl")].map(|path| fs::metadata(path).unwrap().len());
    assert_eq!(some.bytes, lengths.iter().sum::<u64>() + 21);
    assert_eq!(files_below(folder.root()), before, "finding removes nothing");

    some.remove().unwrap();
    some.remove().unwrap(); // removing again does nothing
    let text = |path: &std::path::PathBuf| fs::read(path).unwrap();
    assert!(files_below(folder.root()).iter().all(|path| text(path) != b"garbage"));
    assert_eq!(files_below(folder.root()).iter().filter(|path| text(path) == b"kept").count(), 8);
    let versions = Dataset::open(folder.root()).unwrap().versions().unwrap();
    assert_eq!(versions, [2, 3]);
    for version in versions {
        let dataset = DatasetOptions::new().version(version).open(folder.root()).unwrap();
        check_all(&dataset).unwrap();
        assert_eq!(values(&dataset), expected[..usize::try_from(dataset.sample_count()).unwrap()]);
    }
    assert!(Garbage::find(folder.root(), 2).unwrap().paths.is_empty());
}

#[test]
fn versions_share_files_and_the_newest_is_never_removed() {
    let folder = Folder::new();
    let first = create(folder.root(), &[3, 4]);
    let mut changes = first.change().unwrap();
    changes.rename_column("x", "y").unwrap();
    changes.publish("rename").unwrap();
    let garbage = Garbage::find(folder.root(), 0).unwrap();
    assert_eq!((garbage.versions.as_slice(), garbage.paths.len(), garbage.bytes), ([1].as_slice(), 0, 0));
    garbage.remove().unwrap();
    let dataset = Dataset::open(folder.root()).unwrap();
    assert_eq!((dataset.version(), dataset.versions().unwrap()), (2, vec![2]));
    assert_eq!(read(&dataset, "y", 6).unwrap(), Some(6));
    check_all(&dataset).unwrap();
    // the dataset can still be changed
    let mut changes = dataset.change().unwrap();
    changes.rename_column("y", "z").unwrap();
    assert_eq!(changes.publish("rename").unwrap().version(), 3);
}

#[test]
fn an_active_writer_is_not_harmed_and_a_losing_one_gets_a_conflict() {
    let folder = Folder::new();
    let newest = three_versions(&folder);
    let append = |dataset: &Dataset| {
        let mut changes = dataset.change().unwrap();
        let path = changes.next_path().unwrap();
        write(&path, &[numbers("x")], 25, 2);
        changes.add_file(path).unwrap();
        changes
    };
    let at_work = append(&newest);
    let old = DatasetOptions::new().version(1).open(folder.root()).unwrap();
    let lost = append(&old);
    let without_files = old.change().unwrap();
    Garbage::find(folder.root(), 1).unwrap().remove().unwrap();
    // the name of version 2 is free
    assert!(!folder.path("manifest/0000000002.json").exists());
    for changes in [lost, without_files] {
        let error = changes.publish("too late").unwrap_err();
        assert!(matches!(error, DataError::Conflict { version: 3, .. }), "{error}");
    }
    let dataset = at_work.publish("in time").unwrap();
    assert_eq!(dataset.versions().unwrap(), [3, 4]);
    check_all(&dataset).unwrap();
    assert_eq!(values(&dataset), (0..27).map(Some).collect::<Vec<_>>());
}

#[test]
fn damage_is_an_error_in_a_retained_version_and_not_in_an_old_one() {
    let folder = Folder::new();
    three_versions(&folder);
    let damage = |version: u64| fs::write(folder.path(format!("manifest/{version:010}.json")), "{}").unwrap();
    damage(1);
    let garbage = Garbage::find(folder.root(), 1).unwrap();
    assert_eq!(garbage.versions, [1, 2]);
    assert!(garbage.paths.is_empty(), "the files of version 1 are unknown: {garbage:?}");
    damage(3);
    let error = Garbage::find(folder.root(), 1).unwrap_err();
    assert!(matches!(error, DataError::Corrupt { .. }), "{error}");
    let error = Garbage::find(folder.path("data"), 1).unwrap_err();
    assert!(error.to_string().contains("has no manifest"), "{error}");
}

/// A folder of data files was moved and replaced by a link: nothing behind the link is removed.
#[cfg(unix)]
#[test]
fn nothing_behind_a_link_is_removed() {
    let folder = Folder::new();
    let dataset = create(&folder.path("ds"), &[2]);
    let listed = dataset.groups().next().unwrap().unwrap().files[0].path.clone();
    let data = listed.parent().unwrap();
    fs::rename(data, folder.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.path("elsewhere"), data).unwrap();
    fs::write(folder.path("elsewhere/notes.txt"), "of the user").unwrap();
    let found = Garbage::find(folder.path("ds"), 1).unwrap();
    assert!(found.remove().is_err() || found.paths.is_empty());
    assert!(folder.path("elsewhere/notes.txt").exists());
    check_all(&Dataset::open(folder.path("ds")).unwrap()).unwrap();
}
