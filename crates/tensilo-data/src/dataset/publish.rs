//! Chapter 8: a new version appears whole, or not at all.

use super::store::Store;
use crate::error::DataError;
use crate::manifest::{
    Broken, Group, MOST_PAGE_BYTES, MOST_VERSION_BYTES, PageEntry, Version, join, page_to_bytes, path_of,
};
use std::io;
use std::path::Path;

/// A page is begun when so many groups are in none.
const INLINE_GROUPS: usize = 512;
/// The groups of a page.
const PAGE_GROUPS: usize = 256;

/// The reason why a version is not published.
#[derive(Debug)]
pub(super) enum Unpublished {
    /// Not published: [`DataError::Conflict`] if another writer has published one of that number.
    No(DataError),
    /// Possibly published: nothing that it lists may be removed.
    Unknown(DataError),
}

impl From<DataError> for Unpublished {
    fn from(error: DataError) -> Self {
        Self::No(error)
    }
}

/// Publishes a version, given the files that it adds to those of the version before.
pub(super) fn publish(
    store: &dyn Store,
    folder: &Path,
    version: &mut Version,
    added: &[Box<str>],
) -> Result<(), Unpublished> {
    for path in added {
        let durable = store.make_durable(path);
        durable.map_err(|error| DataError::Io { path: join(folder, path), doing: "making the file durable", error })?;
    }
    for path in ["manifest", "manifest/pages"] {
        let made = store.create_folder(path);
        made.map_err(|error| DataError::Io { path: join(folder, path), doing: "making the folder", error })?;
    }
    while version.groups.len() > INLINE_GROUPS {
        let (count, bytes, entry) = page_of(&version.groups);
        publish_page(store, folder, &entry, &bytes)?;
        version.groups.drain(..count.min(version.groups.len()));
        version.pages.push(entry);
    }
    let (bytes, _) = version.to_bytes();
    // whatever a caller has changed, no reader may refuse it
    Version::parse(&bytes, version.number).map_err(|broken| DataError::BadArgument(broken.message))?;
    match store.publish(&path_of(version.number), &bytes) {
        Ok(()) => Ok(()),
        Err(error) => after_failure(store, folder, version.number, &bytes, error),
    }
}

/// Finds out what became of a version whose name could not be given (M-8.4).
fn after_failure(
    store: &dyn Store,
    folder: &Path,
    number: u64,
    bytes: &[u8],
    error: io::Error,
) -> Result<(), Unpublished> {
    let path = path_of(number);
    let failed = |error| DataError::Io { path: join(folder, &path), doing: "publishing the version", error };
    match store.read(&path, MOST_VERSION_BYTES) {
        Ok(found) if found == bytes => match store.make_durable(&path) {
            Ok(()) => Ok(()),
            Err(error) => Err(Unpublished::Unknown(failed(error))),
        },
        Ok(_) => Err(DataError::Conflict { path: folder.to_path_buf(), version: number }.into()),
        Err(found) if found.kind() == io::ErrorKind::NotFound => Err(failed(error).into()),
        Err(_) => Err(Unpublished::Unknown(failed(error))),
    }
}

/// Returns the first page of groups, and how many it has: fewer than usual if they are long.
fn page_of(groups: &[Group]) -> (usize, Vec<u8>, PageEntry) {
    let mut count = PAGE_GROUPS.min(groups.len());
    loop {
        let (bytes, entry) = page_to_bytes(groups.get(..count).unwrap_or(groups));
        if entry.bytes <= MOST_PAGE_BYTES || count <= 1 {
            return (count, bytes, entry);
        }
        count /= 2;
    }
}

/// Publishes a page. One that exists has the same bytes, unless it is damaged: its name is their
/// digest.
fn publish_page(store: &dyn Store, folder: &Path, entry: &PageEntry, bytes: &[u8]) -> Result<(), DataError> {
    let path = entry.path();
    let failed = |error| DataError::Io { path: join(folder, &path), doing: "publishing a page of the manifest", error };
    match store.publish(&path, bytes) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        published => return published.map_err(failed),
    }
    let found = store.read(&path, MOST_PAGE_BYTES).map_err(failed)?;
    if found != bytes {
        let broken = Broken::new("M-6.1", "the page is damaged, and no new version can list it: remove it");
        return Err(broken.of(&join(folder, &path)));
    }
    store.make_durable(&path).map_err(failed)
}
