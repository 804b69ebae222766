//! Power loss while old versions are removed.

use super::super::garbage::{find, remove};
use super::super::publish::{DataFolder, PublishError, publish};
use super::simulated::{CrashStore, Image};
use super::{DATA, VersionContext, append, path_of, root, samples_of};
use crate::dataset::store::Store;
use crate::dataset::versions;
use crate::error::DataError;
use crate::manifest::Version;

/// Creates a dataset with one version for each entry of `appended`, which says how many groups the
/// version adds. Version `repacked` drops all earlier groups. For each version, there is also the
/// folder of a writer that was killed.
fn dataset(appended: &[usize], repacked: u64) -> (CrashStore, Version) {
    let store = CrashStore::default();
    let mut version = Version::empty();
    for &groups in appended {
        if version.number + 1 == repacked {
            (version.groups, version.pages, version.samples) = (Vec::new(), Vec::new(), 0);
        }
        let (mut next, added) = append(&store, &version, groups);
        let killed = DataFolder::new(next.number).next_path(&store, root()).unwrap().0;
        store.write_unsynced(&killed, DATA);
        publish(&store, root(), &mut next, &added).unwrap();
        version = next;
    }
    (store, version)
}

/// Checks that every version of an image is complete, and returns their numbers.
fn whole_versions(image: &Image) -> Vec<u64> {
    let versions = versions::list(image, root()).unwrap();
    assert!(versions.iter().all(|&version| samples_of(image, version) > 0));
    versions
}

/// Removes all but the newest `keep` versions, and checks every image that a power loss can leave.
fn check(appended: &[usize], repacked: u64, keep: u64) {
    let (store, version) = dataset(appended, repacked);
    // a writer is working on the next version
    let (mut next, added) = append(&store, &version, 1);
    let from = store.moments();
    let found = find(&store, root(), keep).unwrap();
    remove(&store, root(), &found).unwrap();
    let (mut images, mut numbers_of_versions) = (0, std::collections::BTreeSet::new());
    store.crash_images(from, |image, _| {
        let versions = whole_versions(image);
        assert_eq!(versions.last(), Some(&version.number));
        numbers_of_versions.insert(versions.len());
        images += 1;
    });
    let newest = version.number;
    let retained = keep.clamp(1, newest);
    assert_eq!(numbers_of_versions.len() as u64, newest - retained + 1, "each version is removed on its own");
    println!("{images} images");

    // all remaining files are listed, except the files of the active writer
    let left = store.now();
    assert_eq!(whole_versions(&left), (newest - retained + 1..=newest).collect::<Vec<_>>());
    let again = find(&store, root(), keep).unwrap();
    assert!(again.versions.is_empty() && again.paths.is_empty(), "{again:?}");
    let killed = |path: &&String| path.starts_with("data/") && path.ends_with("-2/00000.tsl");
    assert_eq!(left.0.keys().filter(killed).count(), 0);
    publish(&store, root(), &mut next, &added).unwrap();
    assert_eq!(samples_of(&store.now(), newest + 1), version.samples + 2);
}

#[test]
fn every_version_that_is_left_is_whole() {
    for keep in 0..6 {
        check(&[2, 1, 3, 1, 2], 4, keep);
    }
}

#[test]
fn every_version_that_is_left_has_its_pages() {
    check(&[600, 1, 520], 3, 1);
    check(&[600, 1], 9, 1);
}

/// Only an old version has its groups in pages. A writer that is working on the next version may
/// list such a page again, so the page must not be removed.
#[test]
fn a_page_that_may_be_listed_again_stays() {
    let (store, paged) = dataset(&[600], 9);
    let (mut groups, mut inline) = (Vec::new(), Version { number: 2, pages: Vec::new(), ..paged.clone() });
    for entry in &paged.pages {
        groups.extend(VersionContext { store: &store, folder: root(), version: &paged }.read_page(entry).unwrap());
    }
    inline.groups.splice(0..0, groups);
    store.publish(&path_of(2), &inline.to_bytes().0).unwrap();
    let found = find(&store, root(), 1).unwrap();
    remove(&store, root(), &found).unwrap();
    let (mut next, added) = append(&store, &inline, 1);
    publish(&store, root(), &mut next, &added).unwrap();
    assert_eq!(next.pages, paged.pages);
    assert_eq!(whole_versions(&store.now()), [2, 3]);
    // a page whose groups have changed is removed
    let mut changed = Version { number: 4, pages: Vec::new(), ..inline.clone() };
    changed.groups.iter_mut().for_each(|group| group.files[0].footer = 1);
    publish(&store, root(), &mut changed, &[]).unwrap();
    let found = find(&store, root(), 1).unwrap();
    remove(&store, root(), &found).unwrap();
    assert_eq!(whole_versions(&store.now()), [4]);
    assert_eq!(store.names("manifest/pages").unwrap().len(), changed.pages.len());
}

/// The images reveal files that were removed before the versions that list them.
#[test]
#[should_panic(expected = "called `Result::unwrap()` on an `Err` value")]
fn files_that_are_removed_first_are_noticed() {
    let (store, _) = dataset(&[1, 1], 2);
    let from = store.moments();
    let found = find(&store, root(), 1).unwrap();
    found.paths.iter().for_each(|path| store.remove(path).unwrap());
    store.crash_images(from, |image, _| drop(whole_versions(image)));
}

/// The images reveal files that were removed before the removal of their versions was durable.
#[test]
#[should_panic(expected = "called `Result::unwrap()` on an `Err` value")]
fn versions_that_come_back_without_their_files_are_noticed() {
    let (store, _) = dataset(&[1, 1], 2);
    let from = store.moments();
    let found = find(&store, root(), 1).unwrap();
    let versions = found.versions.iter().map(|&version| path_of(version));
    versions.chain(found.paths.clone()).for_each(|path| store.remove(&path).unwrap());
    store.crash_images(from, |image, _| drop(whole_versions(image)));
}

/// A slow writer finds the name of its version free, because the version that had this name was
/// removed.
#[test]
fn a_name_that_was_freed_is_no_win() {
    let (store, version) = dataset(&[1], 9);
    let (mut slow, slow_added) = append(&store, &version, 1);
    let (mut second, added) = append(&store, &version, 1);
    publish(&store, root(), &mut second, &added).unwrap();
    let (mut third, added) = append(&store, &second, 1);
    third.parent = Some((2, second.to_bytes().1));
    publish(&store, root(), &mut third, &added).unwrap();
    // this also removes the data files of the slow writer, because a version with its number
    // exists; this store reports success when missing files are made durable
    let found = find(&store, root(), 1).unwrap();
    remove(&store, root(), &found).unwrap();
    assert!(store.read(&path_of(2), 1 << 20).is_err());
    let published = publish(&store, root(), &mut slow, &slow_added);
    assert!(
        matches!(published, Err(PublishError::NotPublished(DataError::Conflict { version: 3, .. }))),
        "{published:?}"
    );
    assert_eq!(whole_versions(&store.now()), [3]);
}
