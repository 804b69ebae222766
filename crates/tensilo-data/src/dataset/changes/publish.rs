//! Publishing: a new version appears either complete or not at all (chapter 8 of `MANIFEST.md`).
//!
//! There is no lock. A writer first writes data files to a folder of its own ([`DataFolder`]), then
//! pages, and finally the manifest file of the version, under a name that must not exist yet. Of
//! two writers that start from the same version, exactly one gets the name; the other fails with a
//! conflict.
//!
//! Each step is durable before the next one begins. So after a power loss, a version either exists
//! with everything that it lists, or does not exist.
//!
//! The hard case is an uncertain outcome. The last step may have succeeded although it reports an
//! error. Or the name may have been free only because another writer won, and its version has since
//! been removed. In both cases, the writer reads the existing versions to find out whether its
//! version is published. If it cannot, it removes nothing ([`PublishError::Unknown`]).

use crate::dataset::store::Store;
use crate::dataset::versions;
use crate::error::DataError;
use crate::manifest::{
    Group, Hex, MAX_PAGE_BYTES, MAX_VERSION_BYTES, PageEntry, RuleViolation, Version, join, page_to_bytes, path_of,
};
use std::io;
use std::path::Path;

/// The maximum number of inline groups. Further groups are moved into pages.
const INLINE_GROUPS: usize = 512;
/// The number of groups per page.
const PAGE_GROUPS: usize = 256;

/// Why a version was not published.
#[derive(Debug)]
pub(super) enum PublishError {
    /// The version is not published. This is [`DataError::Conflict`] if another writer has
    /// published a version with its number.
    NotPublished(DataError),
    /// The version may have been published, so nothing that it lists may be removed.
    Unknown(DataError),
}

impl From<DataError> for PublishError {
    fn from(error: DataError) -> Self {
        Self::NotPublished(error)
    }
}

/// Publishes a version, given the files that it adds to its parent. Returns its digest.
pub(super) fn publish(
    store: &dyn Store,
    folder: &Path,
    version: &mut Version,
    added: &[Box<str>],
) -> Result<Hex, PublishError> {
    for path in added {
        store.make_durable(path).map_err(|error| match newest(store, folder) {
            // this writer lost the race, and its files were removed as garbage (M-8.6)
            Some(newest) if newest >= version.number => conflict(folder, newest),
            _ => DataError::Io { path: join(folder, path), operation: "making the file durable", error },
        })?;
    }
    for path in ["manifest", "manifest/pages"] {
        let made = store.create_folder(path);
        made.map_err(|error| DataError::Io { path: join(folder, path), operation: "creating the folder", error })?;
    }
    while version.groups.len() > INLINE_GROUPS {
        let (count, bytes, entry) = page_of(&version.groups);
        publish_page(store, folder, &entry, &bytes)?;
        version.groups.drain(..count.min(version.groups.len()));
        version.pages.push(entry);
    }
    let (bytes, digest) = version.to_bytes();
    // catches changes by the caller that a reader would refuse
    Version::parse(&bytes, version.number).map_err(|violation| DataError::BadArgument(violation.message))?;
    let writer = Writer { store, folder, number: version.number, bytes: &bytes, digest };
    let published = store.publish(&path_of(version.number), &bytes);
    published.map_or_else(|error| writer.after_failure(error), |()| writer.after_success())?;
    Ok(digest)
}

/// A writer that has tried to create the name of its version.
struct Writer<'a> {
    store: &'a dyn Store,
    folder: &'a Path,
    number: u64,
    bytes: &'a [u8],
    digest: Hex,
}

impl Writer<'_> {
    /// Checks whether the name was free only because another writer's version had been removed in
    /// the meantime (M-8.7).
    fn after_success(&self) -> Result<(), PublishError> {
        let versions = versions::list(self.store, self.folder).map_err(PublishError::Unknown)?;
        let next = self.number.saturating_add(1);
        let lost = match versions.last() {
            Some(&newest) if newest > self.number => conflict(self.folder, newest),
            _ => return Ok(()),
        };
        match versions::read(self.store, self.folder, next) {
            Ok((version, _)) if version.parent == Some((self.number, self.digest)) => Ok(()),
            Ok(_) => self.remove(lost),
            // the next version, which would show whose version won, has since been removed
            Err(DataError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                Err(PublishError::Unknown(lost))
            }
            Err(error) => Err(PublishError::Unknown(error)),
        }
    }

    /// Removes the version, because another writer has won.
    fn remove(&self, lost: DataError) -> Result<(), PublishError> {
        let path = path_of(self.number);
        match self.store.read(&path, MAX_VERSION_BYTES) {
            Ok(found) if found == self.bytes => {
                let removed = self.store.remove(&path);
                removed.map_err(|error| PublishError::Unknown(self.failed("removing the version", error)))?;
                Err(lost.into())
            }
            // other writers may have continued from this version, and then removed it
            _ => Err(PublishError::Unknown(lost)),
        }
    }

    /// Finds out whether the version is published although creating its name failed (M-8.8).
    fn after_failure(&self, error: io::Error) -> Result<(), PublishError> {
        let path = path_of(self.number);
        let operation = "publishing the version";
        match self.store.read(&path, MAX_VERSION_BYTES) {
            Ok(found) if found == self.bytes => {
                let durable = self.store.make_durable(&path);
                durable.map_err(|error| PublishError::Unknown(self.failed(operation, error)))?;
                self.after_success()
            }
            Ok(_) => Err(conflict(self.folder, self.number).into()),
            Err(found) if found.kind() == io::ErrorKind::NotFound => Err(self.failed(operation, error).into()),
            Err(_) => Err(PublishError::Unknown(self.failed(operation, error))),
        }
    }

    fn failed(&self, operation: &'static str, error: io::Error) -> DataError {
        DataError::Io { path: join(self.folder, &path_of(self.number)), operation, error }
    }
}

fn conflict(folder: &Path, version: u64) -> DataError {
    DataError::Conflict { path: folder.to_path_buf(), version }
}

fn newest(store: &dyn Store, folder: &Path) -> Option<u64> {
    versions::list(store, folder).ok()?.last().copied()
}

/// Returns the number of groups of the first page, its bytes and its entry. If the entries of
/// groups are long, the page has fewer of them.
fn page_of(groups: &[Group]) -> (usize, Vec<u8>, PageEntry) {
    let mut count = PAGE_GROUPS.min(groups.len());
    loop {
        let (bytes, entry) = page_to_bytes(groups.get(..count).unwrap_or(groups));
        if entry.bytes <= MAX_PAGE_BYTES || count <= 1 {
            return (count, bytes, entry);
        }
        count /= 2;
    }
}

/// Publishes a page. A page is named by the digest of its bytes, so an existing page has the same
/// bytes unless it is damaged.
fn publish_page(store: &dyn Store, folder: &Path, entry: &PageEntry, bytes: &[u8]) -> Result<(), DataError> {
    let path = entry.path();
    let failed =
        |error| DataError::Io { path: join(folder, &path), operation: "publishing a page of the manifest", error };
    match store.publish(&path, bytes) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        published => return published.map_err(failed),
    }
    let found = store.read(&path, MAX_PAGE_BYTES).map_err(failed)?;
    if found != bytes {
        let violation = RuleViolation::new("M-6.1", "the existing page is damaged; remove its file, and publish again");
        return Err(violation.of(&join(folder, &path)));
    }
    store.make_durable(&path).map_err(failed)
}

/// A folder in `data/` for one writer, created when it is first needed.
#[derive(Debug)]
pub(super) struct DataFolder {
    version: u64,
    /// The path of the folder in the dataset.
    made: Option<String>,
    files: u32,
}

impl DataFolder {
    /// Returns the folder for the files of this version.
    pub(super) fn new(version: u64) -> Self {
        Self { version, made: None, files: 0 }
    }

    /// Returns the path of the next file in the dataset, and whether `data/` was created for it.
    pub(super) fn next_path(&mut self, store: &dyn Store, folder: &Path) -> Result<(String, bool), DataError> {
        let (made, is_data_new) = match &self.made {
            Some(made) => (made, false),
            None => {
                let (made, is_data_new) = make_folder(store, folder, self.version)?;
                (&*self.made.insert(made), is_data_new)
            }
        };
        let path = format!("{made}/{:05}.tsl", self.files);
        self.files = self.files.saturating_add(1);
        Ok((path, is_data_new))
    }

    /// Keeps the folder, because a version lists its files or may list them.
    pub(super) fn keep(&mut self) {
        self.made = None;
    }

    /// Removes the folder, if it was created and is not kept.
    pub(super) fn remove(&mut self, store: &dyn Store) {
        if let Some(made) = self.made.take() {
            let _ = store.remove(&made); // no version lists what remains
        }
    }
}

/// Creates a folder that no other writer, running or killed, has created. Returns its path, and
/// whether `data/` was created for it.
fn make_folder(store: &dyn Store, folder: &Path, version: u64) -> Result<(String, bool), DataError> {
    let create = |path: &str| {
        let created = store.create_folder(path);
        created.map_err(|error| DataError::Io { path: join(folder, path), operation: "creating the folder", error })
    };
    let is_data_new = create("data")?;
    let mut attempt = 1_u32;
    loop {
        let path = match attempt {
            1 => format!("data/{version:010}"),
            _ => format!("data/{version:010}-{attempt}"),
        };
        if create(&path)? {
            return Ok((path, is_data_new));
        }
        attempt = attempt.saturating_add(1);
    }
}
