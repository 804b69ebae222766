//! Power loss while a version is published, and while old versions are removed.
//!
//! A simulated store records every operation. Each test replays all images that a power loss can
//! leave, and opens the dataset in each of them.

mod garbage;
mod publish_outcomes;
mod simulated;

use super::Changes;
use super::publish::{DataFolder, publish};
use crate::dataset::groups::Groups;
use crate::dataset::store::Store;
use crate::dataset::store::location::ReadOptions;
use crate::dataset::versions::{self, VersionContext};
use crate::manifest::{DatasetColumn, FileEntry, Group, Hex, Layout, Version, path_of};
use simulated::{CrashStore, Image};
use std::path::Path;
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, Shape};

/// The contents of every data file.
const DATA: &[u8] = b"a data file";

fn root() -> &'static Path {
    Path::new("")
}

/// Returns the version after `before`, with `groups` more groups, each in its own file.
fn append(store: &CrashStore, before: &Version, groups: usize) -> (Version, Vec<Box<str>>) {
    let mut version = Version { number: before.number + 1, ..before.clone() };
    if before.number == 0 {
        let schema = ColumnSchema::tensor("x", DType::U8, Shape::scalar());
        version.columns = vec![DatasetColumn { id: 0, schema }];
        version.layouts = vec![Layout::from([("x".to_owned(), 0)])];
        version.column_ids = 1;
    }
    let mut folder = DataFolder::new(version.number);
    let mut added = Vec::new();
    for i in 0..groups {
        let path: Box<str> = folder.next_path(store, root()).unwrap().0.into();
        store.write_unsynced(&path, DATA);
        let content_id = Hex([u8::try_from(i % 251).unwrap(); 16]);
        let file = FileEntry { layout: 0, path: path.clone(), bytes: 1, footer: 0, content_id };
        version.groups.push(Group { samples: 2, files: vec![file] });
        version.samples += 2;
        added.push(path);
    }
    (version, added)
}

/// Reads the newest version as a reader does, with everything that it lists.
fn newest(image: &Image) -> Option<(u64, u64)> {
    let number = *versions::list(image, root()).unwrap().last()?;
    Some((number, samples_of(image, number)))
}

/// Reads a version, all of its pages, and all files that it lists. Returns the number of its
/// samples.
fn samples_of(image: &Image, number: u64) -> u64 {
    let (mut version, _) = versions::read(image, root(), number).unwrap();
    let groups = Groups::new(&mut version);
    let context = VersionContext { store: image, folder: root(), version: &version };
    let mut samples = 0;
    for page in 0..groups.page_count() {
        for group in groups.page_groups(&context, page) {
            let group = group.unwrap();
            samples += group.group.samples;
            for file in &group.group.files {
                assert_eq!(image.read(&file.path, 100).unwrap(), DATA, "{}", file.path);
            }
        }
    }
    assert_eq!(samples, version.samples);
    samples
}

/// Publishes versions that add these numbers of groups, and checks every image that a power loss
/// can leave.
fn check(appended: &[usize]) {
    let store = CrashStore::default();
    let mut version = Version::empty();
    let mut states = vec![None];
    let mut images = 0;
    let mut seen_before = 0;
    for &groups in appended {
        let from = store.moments();
        let (mut next, added) = append(&store, &version, groups);
        publish(&store, root(), &mut next, &added).unwrap();
        states.push(Some((next.number, next.samples)));
        let allowed = &states[states.len() - 2..];
        store.crash_images(from, |image, is_last| {
            let found = newest(image);
            assert!(allowed.contains(&found), "{found:?}, expected one of {allowed:?}");
            assert!(!is_last || found == allowed[1], "a published version is lost");
            seen_before += usize::from(found == allowed[0]);
            images += 1;
        });
        version = next;
    }
    assert!(
        seen_before > appended.len() && images > seen_before,
        "{images} images, {seen_before} with the previous version"
    );
    println!("{images} images");
}

#[test]
fn every_crash_leaves_a_whole_version() {
    check(&[2, 1, 3]);
}

#[test]
fn every_crash_leaves_a_whole_version_with_its_pages() {
    check(&[1_030, 1]);
}

/// The images reveal a version whose files are not durable.
#[test]
#[should_panic(expected = "called `Result::unwrap()` on an `Err` value")]
fn a_version_before_its_files_is_noticed() {
    let store = CrashStore::default();
    let (mut version, _) = append(&store, &Version::empty(), 1);
    publish(&store, root(), &mut version, &[]).unwrap();
    store.crash_images(0, |image, _| {
        let _ = newest(image);
    });
}

/// If a manifest lists the same page many times, the page is in memory only once.
#[test]
fn a_page_that_is_listed_many_times_is_in_memory_once() {
    let store = CrashStore::default();
    let (mut version, added) = append(&store, &Version::empty(), 600);
    publish(&store, root(), &mut version, &added).unwrap();
    let (page, samples) = (version.pages[0], version.samples);
    version.pages = vec![page; 50_000];
    version.samples = samples + 49_999 * page.samples;
    let image = store.now();
    let context = VersionContext { store: &image, folder: root(), version: &version.clone() };
    let groups = Groups::new(&mut version);
    let first = |page: usize| groups.page_groups(&context, page)[0].as_ref().unwrap().group.clone();
    assert!(std::sync::Arc::ptr_eq(&first(0), &first(49_999)));
    let last = groups.find(&context, 49_999 * page.samples).unwrap();
    assert_eq!(last.samples, 49_999 * page.samples..49_999 * page.samples + 2);
}

/// The folder of a killed writer is not reused.
#[test]
fn each_writer_has_a_folder_of_its_own() {
    let store = CrashStore::default();
    let path = || DataFolder::new(7).next_path(&store, root()).unwrap().0;
    let expected = ["data/0000000007/00000.tsl", "data/0000000007-2/00000.tsl", "data/0000000007-3/00000.tsl"];
    assert_eq!([path(), path(), path()], expected.map(std::path::PathBuf::from));
}

#[test]
fn dropped_changes_remove_no_folder_that_was_there() {
    let store = Arc::new(CrashStore::default());
    assert!(DataFolder::new(1).next_path(&*store, root()).unwrap().1);
    let context = (store as Arc<dyn Store>, ReadOptions::default());
    let mut changes = Changes::new(Path::new("s3://bucket/train"), context, None, Version::empty());
    changes.next_path().unwrap();
    assert!(changes.made.is_empty(), "{:?}", changes.made);
}
