//! Removes old versions, and the files that only they list (chapter 8.1 of `MANIFEST.md`).
//!
//! Writers may be working at the same time, and there is no lock. A writer starts from the newest
//! version, so it lists only files of that version and new files. A file is therefore garbage if no
//! retained version lists it and it is not newer than the newest version. Folders in `data/` whose
//! version does not exist yet, and pages that a writer may list again, are not removed.
//!
//! The manifest files of old versions are removed first. The data files and pages that they list
//! are removed only after that is durable. So every remaining version is complete, even if the
//! removal is interrupted.

use crate::dataset::store::Store;
use crate::dataset::store::location::{ReadOptions, location};
use crate::dataset::versions::{self, VersionContext};
use crate::error::{DataError, Result};
use crate::manifest::{Group, PageEntry, join, path_of};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::error::display_path;

/// The old versions of a dataset, and files that no other version needs.
///
/// [`Garbage::find`] finds them and changes nothing; [`Garbage::remove`] removes them.
///
/// This is safe while writers are working: nothing that they may still publish is removed
/// (`MANIFEST.md`, M-8.4 to M-8.7). Readers of a removed version get errors for files that they
/// have not opened yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct Garbage {
    /// The versions to remove, in ascending order.
    pub versions: Vec<u64>,
    /// The files and folders to remove, sorted by path. Folders are removed with their contents.
    pub paths: Vec<PathBuf>,
    /// The total size of `paths` in bytes; the manifest files of the versions are not counted.
    pub bytes: u64,
    folder: PathBuf,
    store: Arc<dyn Store>,
    found: RemovalPlan,
}

/// The versions and paths to remove. Paths are relative to the folder of the dataset.
#[derive(Debug, Default)]
pub(super) struct RemovalPlan {
    pub versions: Vec<u64>,
    pub paths: BTreeSet<String>,
}

impl Garbage {
    /// Finds what can be removed from the folder of a dataset if its newest `keep` versions (at
    /// least one) are kept:
    ///
    /// * all other versions, and the data files and pages that only they list. A page stays if all
    ///   of its groups are also in the newest version, inline or in other pages;
    /// * everything in `data/` that no version lists, that is, files of killed writers. Folders for
    ///   versions that do not exist yet stay;
    /// * temporary files of killed writers.
    ///
    /// Cost: reads all versions and pages of the manifest. Needs memory for the names of all files,
    /// and for the groups of the newest version.
    pub fn find(folder: impl AsRef<Path>, keep: u64) -> Result<Self> {
        Self::find_in(folder.as_ref(), keep, ReadOptions::default())
    }

    /// Finds what can be removed from the folder of a dataset that is read with these options.
    pub(in crate::dataset) fn find_in(folder: &Path, keep: u64, options: ReadOptions) -> Result<Self> {
        let folder = folder.to_path_buf();
        let (store, _) = location(&folder, options)?;
        let found = find(&*store, &folder, keep)?;
        let mut bytes = 0_u64;
        for path in &found.paths {
            let length = store.bytes(path).map_err(|error| io_error(&folder, path, "reading the file size", error))?;
            bytes = bytes.saturating_add(length);
        }
        let paths = found.paths.iter().map(|path| join(&folder, path)).collect();
        Ok(Self { versions: found.versions.clone(), paths, bytes, folder, store, found })
    }

    /// Removes everything that was found. Versions are removed first, so every remaining version is
    /// complete, even if the removal is interrupted.
    pub fn remove(&self) -> Result<()> {
        remove(&*self.store, &self.folder, &self.found)
    }
}

/// Finds what can be removed.
pub(super) fn find(store: &dyn Store, folder: &Path, keep: u64) -> Result<RemovalPlan> {
    let versions = versions::list(store, folder)?;
    let Some(&newest) = versions.last() else {
        let folder = display_path(folder);
        return Err(DataError::BadArgument(format!(
            "{folder}: the folder has no manifest, so there is no way to tell which files are needed"
        )));
    };
    let retained = usize::try_from(keep).unwrap_or(usize::MAX).clamp(1, versions.len());
    let (old, retained) = versions.split_at(versions.len().saturating_sub(retained));
    let mut seen = HashSet::new();
    let mut listed = BTreeSet::new();
    let mut newest_groups = HashSet::new();
    // newest first, so that a page shared with older versions counts as a page of the newest one
    for &version in retained.iter().rev() {
        visit(store, folder, version, &mut seen, &mut |page, groups| {
            listed.extend(page.map(PageEntry::path));
            listed.extend(paths_of(&groups));
            if version == newest {
                newest_groups.extend(groups);
            }
        })?;
    }
    let mut paths = BTreeSet::new();
    for &version in old {
        let found = visit(store, folder, version, &mut seen, &mut |page, groups| {
            // an active writer may list this page again (M-8.4)
            let stays = groups.iter().all(|group| newest_groups.contains(group));
            paths.extend(page.filter(|_| !stays).map(PageEntry::path));
            paths.extend(paths_of(&groups));
        });
        match found {
            // the files of a damaged version are unknown; the folders of `data/` are searched below
            Err(DataError::Corrupt { .. }) => {}
            found => found?,
        }
    }
    // a path that an old version lists may be a folder with files of a retained version
    paths.retain(|path| !listed.contains(path) && below(&listed, path).next().is_none());
    for name in names(store, folder, "data")? {
        // writers may be working in folders of later versions (M-8.6)
        if folder_version(&name).is_some_and(|version| version <= newest) {
            unlisted(store, folder, &format!("data/{name}"), &listed, &mut paths)?;
        }
    }
    for name in ["manifest", "manifest/pages"] {
        let left = store.left_behind(name);
        paths.extend(left.map_err(|error| io_error(folder, name, "listing the folder", error))?);
    }
    Ok(RemovalPlan { versions: old.to_vec(), paths })
}

/// Removes what was found.
pub(super) fn remove(store: &dyn Store, folder: &Path, found: &RemovalPlan) -> Result<()> {
    let remove = |path: &str| store.remove(path).map_err(|error| io_error(folder, path, "removing the file", error));
    found.versions.iter().try_for_each(|&version| remove(&path_of(version)))?;
    // a power loss must not bring back a version without its files
    let synced = store.sync_folder("manifest");
    synced.map_err(|error| io_error(folder, "manifest", "making the removal durable", error))?;
    found.paths.iter().try_for_each(|path| remove(path))
}

/// Calls `show` with the inline groups of a version, and with the groups of each page that is not
/// in `seen` yet.
fn visit(
    store: &dyn Store,
    folder: &Path,
    number: u64,
    seen: &mut HashSet<PageEntry>,
    show: &mut dyn FnMut(Option<&PageEntry>, Vec<Group>),
) -> Result<()> {
    let (mut version, _) = versions::read(store, folder, number)?;
    show(None, std::mem::take(&mut version.groups));
    let context = VersionContext { store, folder, version: &version };
    for page in &version.pages {
        if !seen.contains(page) {
            let groups = context.read_page(page)?;
            seen.insert(*page);
            show(Some(page), groups);
        }
    }
    Ok(())
}

/// Returns the paths of all files in these groups.
fn paths_of(groups: &[Group]) -> impl Iterator<Item = String> {
    groups.iter().flat_map(|group| &group.files).map(|file| file.path.to_string())
}

/// Adds everything in a folder of `data/` that no retained version lists: the whole folder, or some
/// of its files.
fn unlisted(
    store: &dyn Store,
    folder: &Path,
    data: &str,
    listed: &BTreeSet<String>,
    paths: &mut BTreeSet<String>,
) -> Result<()> {
    let is_listed = |path: &str| listed.contains(path) || below(listed, path).next().is_some();
    if is_listed(data) {
        let inside = names(store, folder, data)?.into_iter().map(|name| format!("{data}/{name}"));
        paths.extend(inside.filter(|path| !is_listed(path)));
    } else {
        let inside: BTreeSet<String> = below(paths, data).cloned().collect();
        paths.retain(|path| !inside.contains(path));
        paths.insert(data.to_owned());
    }
    Ok(())
}

/// Returns the paths in a folder, at any depth.
fn below<'a>(paths: &'a BTreeSet<String>, folder: &str) -> impl Iterator<Item = &'a String> + use<'a> {
    let prefix = format!("{folder}/");
    let from = paths.range::<str, _>((Bound::Excluded(prefix.as_str()), Bound::Unbounded));
    from.take_while(move |path| path.starts_with(&prefix))
}

/// Returns the version whose writer created this folder of `data/`, such as `0000000007` or
/// `0000000007-2`.
fn folder_version(name: &str) -> Option<u64> {
    let (version, attempt) = name.split_once('-').unwrap_or((name, "2"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (version.len() == 10 && is_number(version) && is_number(attempt)).then(|| version.parse().ok())?
}

/// Returns the names in a folder, or none if it does not exist.
fn names(store: &dyn Store, folder: &Path, path: &str) -> Result<Vec<String>> {
    match store.names(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|error| io_error(folder, path, "listing the folder", error)),
    }
}

fn io_error(folder: &Path, path: &str, operation: &'static str, error: io::Error) -> DataError {
    DataError::Io { path: join(folder, path), operation, error }
}
