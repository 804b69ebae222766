//! Chapter 8: a new version appears whole, or not at all.

use super::store::Store;
use crate::error::{DataError, Result};
use crate::manifest::{Group, PageEntry, Version, join, page_to_bytes, path_of};
use std::io;
use std::path::Path;

/// A page is begun when so many groups are in none.
const INLINE_GROUPS: usize = 512;
/// The groups of a page.
const PAGE_GROUPS: usize = 256;

/// Publishes a version, given the files that it adds to those of the version before.
///
/// Fails with [`DataError::Conflict`] if the version exists.
pub(super) fn publish(store: &dyn Store, folder: &Path, version: &mut Version, added: &[Box<str>]) -> Result<()> {
    for path in added {
        let durable = store.make_durable(path);
        durable.map_err(|error| DataError::Io { path: join(folder, path), doing: "making the file durable", error })?;
    }
    for path in ["manifest", "manifest/pages"] {
        let made = store.create_folder(path);
        made.map_err(|error| DataError::Io { path: join(folder, path), doing: "making the folder", error })?;
    }
    while version.groups.len() > INLINE_GROUPS {
        let rest = version.groups.split_off(PAGE_GROUPS);
        let full = std::mem::replace(&mut version.groups, rest);
        version.pages.push(publish_page(store, folder, &full)?);
    }
    let (bytes, _) = version.to_bytes();
    // whatever a caller has changed, no reader may refuse it
    Version::parse(&bytes, version.number).map_err(|broken| DataError::BadArgument(broken.message))?;
    let path = path_of(version.number);
    store.publish(&path, &bytes).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => DataError::Conflict { path: folder.to_path_buf(), version: version.number },
        _ => DataError::Io { path: join(folder, &path), doing: "publishing the version", error },
    })
}

/// Publishes a page. One that exists has the same bytes: its name is their digest.
fn publish_page(store: &dyn Store, folder: &Path, groups: &[Group]) -> Result<PageEntry> {
    let (bytes, entry) = page_to_bytes(groups);
    let path = entry.path();
    match store.publish(&path, &bytes) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(DataError::Io { path: join(folder, &path), doing: "publishing a page of the manifest", error })
        }
        _ => Ok(entry),
    }
}
