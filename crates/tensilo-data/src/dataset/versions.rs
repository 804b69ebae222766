//! The versions of a dataset in its store: listed, read and checked.
//!
//! A version is one manifest file, and the pages that it lists. Everything that is read here is
//! checked: each manifest file and each page against the digest at its own end, and a page also
//! against the version that lists it. The lineage is checked only on request, because this needs
//! the parent version or all pages.

use super::store::Store;
use crate::error::{DataError, Result};
use crate::manifest::{
    Group, Hex, MAX_PAGE_BYTES, MAX_VERSION_BYTES, PageEntry, RuleViolation, Version, content_ids, dataset_id, ensure,
    join, number_of, path_of,
};
use std::io;
use std::path::Path;

/// Returns the numbers of the versions in a folder, in ascending order. A folder without a manifest
/// has none.
pub(super) fn list(store: &dyn Store, folder: &Path) -> Result<Vec<u64>> {
    let names = match store.names("manifest") {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            return Err(DataError::Io { path: folder.join("manifest"), operation: "listing the versions", error });
        }
    };
    let mut versions: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    versions.sort_unstable();
    Ok(versions)
}

/// Reads and checks a version.
pub(super) fn read(store: &dyn Store, folder: &Path, number: u64) -> Result<(Version, Hex)> {
    let path = path_of(number);
    let bytes = read_text(store, folder, &path, MAX_VERSION_BYTES, "reading the version")?;
    Version::parse(&bytes, number).map_err(|violation| violation.of(&join(folder, &path)))
}

/// Checks M-3.5 for a version. `pages` yields the groups of each page, and finally the inline
/// groups.
pub(super) fn check_lineage(
    store: &dyn Store,
    folder: &Path,
    version: &Version,
    pages: impl Iterator<Item = Result<Vec<Group>>>,
) -> Result<()> {
    let path = join(folder, &path_of(version.number));
    let Some((parent, digest)) = version.parent else {
        let mut ids = Vec::new();
        for groups in pages {
            ids.extend(content_ids(&groups?));
        }
        return ensure(version.dataset_id == dataset_id(ids.into_iter()), "M-3.5", || {
            "the dataset id does not match the files of this version, which has no parent".to_owned()
        })
        .map_err(|violation| violation.of(&path));
    };
    let (before, found) = match read(store, folder, parent) {
        // the parent was removed
        Err(DataError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read?,
    };
    ensure(found == digest, "M-3.5", || {
        format!("version {parent} does not have the digest that this version states for its parent")
    })
    .and_then(|()| {
        ensure(before.dataset_id == version.dataset_id, "M-3.5", || {
            format!("the dataset id is not the same as in the parent, version {parent}")
        })
    })
    .map_err(|violation| violation.of(&path))
}

/// A version, and where it is stored.
pub(super) struct VersionContext<'a> {
    pub store: &'a dyn Store,
    pub folder: &'a Path,
    pub version: &'a Version,
}

impl VersionContext<'_> {
    /// Reads a page of the version.
    pub(super) fn read_page(&self, entry: &PageEntry) -> Result<Vec<Group>> {
        let path = entry.path();
        let locate = |violation: RuleViolation| violation.of(&join(self.folder, &path));
        let bytes = read_text(self.store, self.folder, &path, MAX_PAGE_BYTES, "reading a page of the manifest")?;
        entry.parse(&bytes, self.version.columns()).map_err(locate)
    }
}

/// Reads the manifest file of a version, or a page. `MANIFEST.md` calls both sealed texts.
fn read_text(store: &dyn Store, folder: &Path, path: &str, max_bytes: u64, operation: &'static str) -> Result<Vec<u8>> {
    store.read(path, max_bytes).map_err(|error| {
        let path = join(folder, path);
        match error.kind() {
            io::ErrorKind::FileTooLarge => RuleViolation::new("M-2.4", error.to_string()).of(&path),
            _ => DataError::Io { path, operation, error },
        }
    })
}
