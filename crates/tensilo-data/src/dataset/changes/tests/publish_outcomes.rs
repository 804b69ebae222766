//! Versions for which it is not immediately certain whether they were published (M-8.7, M-8.8).

use super::super::publish::{PublishError, publish};
use super::{append, root};
use crate::dataset::store::Store;
use crate::dataset::store::folder::Folder;
use crate::error::DataError;
use crate::manifest::{Hex, Version, path_of};
use std::io;
use tensilo_testing::Folder as TestFolder;

/// The answer of the store when a writer creates the name of a version, and what really happened.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// An error; nothing happened.
    Failed,
    /// The name exists; this writer created it.
    ExistsByUs,
    /// The name exists; another writer created it.
    ExistsByAnother,
    /// An error, although the name was created.
    FailedAfterwards,
    /// An error, although the name was created; the version cannot be made durable.
    FailedForGood,
    /// Success, but the version has since been removed, and there is a much newer one.
    Gone,
    /// Success, and there is a much newer version.
    Passed,
    /// Success, but the next version was made from a different one.
    Overtaken,
    /// Success, and the next version was made from this one.
    Followed,
    /// Success, and the next version is damaged.
    FollowedByDamage,
}

/// A folder that gives a fixed answer when a version is published.
#[derive(Debug)]
struct FaultyFolder(Folder, Answer);

impl FaultyFolder {
    /// Publishes a version as another writer would, with the digest of its parent.
    fn publish_newer(&self, number: u64, parent: Hex) -> io::Result<()> {
        let newer = Version { number, parent: Some((number - 1, parent)), ..Version::empty() };
        self.0.publish(&path_of(number), &newer.to_bytes().0)
    }
}

impl Store for FaultyFolder {
    fn read(&self, path: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        self.0.read(path, max_bytes)
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.names(folder)
    }

    fn create_folder(&self, path: &str) -> io::Result<bool> {
        self.0.create_folder(path)
    }

    fn publish(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let (bytes, answer) = match self.1 {
            Answer::Failed => return Err(io::ErrorKind::PermissionDenied.into()),
            Answer::ExistsByUs => (bytes, io::ErrorKind::AlreadyExists),
            Answer::ExistsByAnother => (&b"another version"[..], io::ErrorKind::AlreadyExists),
            Answer::FailedAfterwards | Answer::FailedForGood => (bytes, io::ErrorKind::TimedOut),
            Answer::Gone => return self.publish_newer(9, Hex::default()),
            Answer::Passed => {
                self.0.publish(path, bytes)?;
                return self.publish_newer(9, Hex::default());
            }
            Answer::Overtaken => {
                self.0.publish(path, bytes)?;
                return self.publish_newer(2, Hex::default());
            }
            Answer::Followed => {
                self.0.publish(path, bytes)?;
                return self.publish_newer(2, Version::parse(bytes, 1).unwrap().1);
            }
            Answer::FollowedByDamage => {
                self.0.publish(path, bytes)?;
                return self.0.publish(&path_of(2), b"torn");
            }
        };
        self.0.publish(path, bytes)?;
        Err(answer.into())
    }

    fn make_durable(&self, path: &str) -> io::Result<()> {
        match self.1 {
            Answer::FailedForGood => Err(io::ErrorKind::TimedOut.into()),
            _ => self.0.make_durable(path),
        }
    }

    fn bytes(&self, path: &str) -> io::Result<u64> {
        self.0.bytes(path)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        self.0.sync_folder(path)
    }

    fn left_behind(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.left_behind(folder)
    }
}

#[test]
fn a_winning_writer_succeeds_whatever_the_store_answers() {
    let answers = [
        Answer::Failed,
        Answer::ExistsByUs,
        Answer::ExistsByAnother,
        Answer::FailedAfterwards,
        Answer::FailedForGood,
        Answer::Gone,
        Answer::Passed,
        Answer::Overtaken,
        Answer::Followed,
        Answer::FollowedByDamage,
    ];
    for answer in answers {
        let folder = TestFolder::new();
        let store = FaultyFolder(Folder(folder.root().to_path_buf()), answer);
        let (mut version, _) = append(&super::CrashStore::default(), &Version::empty(), 1);
        let published = publish(&store, root(), &mut version, &[]).map(drop);
        let is_there = store.read(&path_of(1), 1 << 20).is_ok_and(|bytes| bytes == version.to_bytes().0);
        match (answer, published) {
            (Answer::Failed, Err(PublishError::NotPublished(DataError::Io { .. }))) => assert!(!is_there),
            (Answer::ExistsByUs | Answer::FailedAfterwards | Answer::Followed, Ok(())) => assert!(is_there),
            (Answer::ExistsByAnother, Err(PublishError::NotPublished(DataError::Conflict { version: 1, .. }))) => {
                assert!(!is_there);
            }
            (Answer::FailedForGood, Err(PublishError::Unknown(DataError::Io { .. }))) => assert!(is_there),
            (Answer::Gone, Err(PublishError::Unknown(DataError::Conflict { version: 9, .. }))) => assert!(!is_there),
            (Answer::Passed, Err(PublishError::Unknown(DataError::Conflict { version: 9, .. }))) => assert!(is_there),
            (Answer::Overtaken, Err(PublishError::NotPublished(DataError::Conflict { version: 2, .. }))) => {
                assert!(!is_there)
            }
            (Answer::FollowedByDamage, Err(PublishError::Unknown(DataError::Corrupt { .. }))) => assert!(is_there),
            (_, other) => panic!("{answer:?}: {other:?}"),
        }
    }
}

/// An existing page is compared with the expected bytes, so another writer's damaged page is not
/// listed.
#[test]
fn a_damaged_page_is_never_listed_again() {
    let folder = TestFolder::new();
    let store = Folder(folder.root().to_path_buf());
    let version = || append(&super::CrashStore::default(), &Version::empty(), 600).0;
    publish(&store, root(), &mut version(), &[]).unwrap();
    std::fs::remove_file(folder.path(path_of(1))).unwrap();
    publish(&store, root(), &mut version(), &[]).expect("the same page");
    std::fs::remove_file(folder.path(path_of(1))).unwrap();
    let page = store.names("manifest/pages").unwrap().remove(0);
    std::fs::write(folder.path(format!("manifest/pages/{page}")), "torn").unwrap();
    let refused = publish(&store, root(), &mut version(), &[]);
    assert!(
        matches!(refused, Err(PublishError::NotPublished(DataError::Corrupt { rule: "M-6.1", .. }))),
        "{refused:?}"
    );
    assert!(store.read(&path_of(1), 1 << 20).is_err());
}

/// If groups have many files with long paths, a page has fewer groups, to stay below the limit of
/// M-2.4.
#[test]
fn a_page_of_long_groups_has_fewer_of_them() {
    let folder = TestFolder::new();
    let store = Folder(folder.root().to_path_buf());
    let (mut version, _) = append(&super::CrashStore::default(), &Version::empty(), 600);
    let layouts = 40;
    for id in 1..layouts {
        let name = format!("x{id}");
        version.layouts.push(crate::manifest::Layout::from([(name.clone(), id)]));
        let mut column = version.columns[0].clone();
        (column.id, column.schema.name) = (id, name);
        version.columns.push(column);
    }
    version.column_ids = layouts;
    for group in &mut version.groups {
        for layout in 1..usize::try_from(layouts).unwrap() {
            let path = format!("data/{}/{layout}.tsl", "long".repeat(240)).into();
            group.files.push(crate::manifest::FileEntry { layout, path, ..group.files[0].clone() });
        }
    }
    publish(&store, root(), &mut version, &[]).unwrap();
    assert!(version.pages.len() > 1 && version.pages.iter().all(|page| (1..256).contains(&page.groups)));
    let context = super::VersionContext { store: &store, folder: folder.root(), version: &version.clone() };
    let groups = super::Groups::new(&mut version);
    let found = (0..groups.page_count()).flat_map(|page| groups.page_groups(&context, page));
    assert_eq!(found.map(Result::unwrap).count(), 600);
}
