//! Files without a manifest (chapter 10 of `MANIFEST.md`).
//!
//! The files of a folder or a prefix, or the files that match a pattern, form a dataset in the
//! order of their names. Each file is opened and becomes a group of a version that exists only in
//! memory, so most other modules need not know whether there is a manifest. All files must have the
//! same columns as the first one.

use super::listed_file::{FileFacts, check_column};
use super::store::Store;
use super::store::folder::Folder;
use super::store::location::{RemoteOptions, remote};
use super::versions;
use crate::error::{DataError, Result};
use crate::io::{Io, IoChoice, PendingReader};
use crate::manifest::{DatasetColumn, Group, Layout, Version, content_ids, dataset_id};
use crate::order::WindowSizes;
use std::path::{Path, PathBuf};
use std::{fs, io};
use tensilo::error::display_path;

/// The maximum number of objects that are opened at the same time. Opening them one by one would
/// take a round trip for each.
const MAX_PENDING_OPENS: usize = 64;

/// Returns the files of a folder or a prefix, or the files that match a pattern. Returns `None` if
/// there is a manifest.
pub(super) fn files(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    if let Some(remote) = remote(path, &RemoteOptions::default())? {
        let has_manifest = !versions::list(&*remote.store, path)?.is_empty();
        return if has_manifest { Ok(None) } else { files_below(&*remote.store, path).map(Some) };
    }
    if !path.is_dir() {
        return matching(path).map(Some);
    }
    let has_manifest = !versions::list(&Folder(path.to_path_buf()), path)?.is_empty();
    if has_manifest { Ok(None) } else { files_in(path).map(Some) }
}

/// Returns the `*.tsl` files of a folder in the order of their names, without hidden files. Fails
/// if there are none.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_pattern = folder.to_string_lossy().contains(['*', '?', '[']);
    let operation = match is_pattern {
        true => "listing the folder (to open files by a pattern, use DatasetOptions::open_glob)",
        false => "listing the folder",
    };
    let io = |error| {
        let error = tensilo::source::explain_missing(folder, error);
        DataError::Io { path: folder.to_path_buf(), operation, error }
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|extension| extension == "tsl") && !is_hidden {
            files.push(path);
        }
    }
    sorted(folder, files)
}

/// Returns the `*.tsl` files directly below a prefix, like [`files_in`].
pub(super) fn files_below(store: &dyn Store, prefix: &Path) -> Result<Vec<PathBuf>> {
    let names = store.names("").map_err(|error| DataError::Io {
        path: prefix.to_path_buf(),
        operation: "listing the prefix",
        error,
    })?;
    let files = names.iter().filter(|name| !name.starts_with('.') && name.ends_with(".tsl"));
    sorted(prefix, files.map(|name| prefix.join(name)).collect())
}

/// Sorts files by their names. Fails if there are none.
fn sorted(folder: &Path, mut files: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    if files.is_empty() {
        let folder = display_path(folder);
        let message = format!("{folder}: the folder has neither a manifest nor tensilo files (*.tsl)");
        return Err(DataError::BadArgument(message));
    }
    files.sort_unstable();
    Ok(files)
}

/// Returns the files that match a pattern, in the order of their names. Fails if there are none.
pub(super) fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut files = tensilo::source::paths_matching(pattern)?;
    files.retain(|path| !path.is_dir());
    if files.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "no file matches this pattern");
        return Err(DataError::Io { path: pattern.to_path_buf(), operation: "looking for files", error });
    }
    files.sort_unstable(); // by components, byte by byte
    Ok(files)
}

/// Returns a version in memory that lists these files.
pub(super) fn version(files: &[PathBuf], io: &IoChoice) -> Result<Version> {
    let mut found: Option<Version> = None;
    let facts = files.chunks(MAX_PENDING_OPENS).flat_map(|files| {
        let pending: Vec<_> = files.iter().map(|path| (path, io.opener.begin(path, None))).collect();
        pending.into_iter().map(|(path, pending)| facts(path, io, pending))
    });
    for (path, facts) in files.iter().zip(facts) {
        let FileFacts { samples, schema, listed } = facts?;
        let version = found.get_or_insert_with(|| first(&schema));
        check_schema(path, &schema, version)?;
        if samples == 0 {
            continue; // a group has at least one sample
        }
        version.samples = version.samples.saturating_add(samples);
        version.groups.push(Group { samples, files: vec![listed] });
    }
    let mut version = found.ok_or_else(|| DataError::BadArgument("there are no tensilo files (*.tsl)".to_owned()))?;
    version.order = version.default_sizes(match io.kind {
        Io::Object => WindowSizes::OBJECT_RUN_BYTES,
        _ => WindowSizes::FILE_RUN_BYTES,
    });
    version.dataset_id = dataset_id(content_ids(&version.groups));
    Ok(version)
}

/// Returns the facts of a file. Its path is also its name in the version.
fn facts(path: &Path, io: &IoChoice, pending: Option<PendingReader>) -> Result<FileFacts> {
    let name = path.to_str().ok_or_else(|| {
        let message = format!("{}: the path is not UTF-8; rename the file", display_path(path));
        DataError::BadArgument(message)
    })?;
    FileFacts::with_id(&io.opener, path, name, pending).map(|(facts, _)| facts)
}

/// Returns a version without files, with the columns of this schema.
fn first(schema: &tensilo::Schema) -> Version {
    let columns = (0..).zip(&schema.columns).map(|(id, column)| DatasetColumn { id, schema: column.clone() });
    let columns: Vec<_> = columns.collect();
    let layout: Layout = columns.iter().map(|column| (column.schema.name.clone(), column.id)).collect();
    Version {
        column_ids: columns.len().try_into().unwrap_or(u64::MAX),
        columns,
        layouts: vec![layout],
        metadata: schema.metadata.clone(),
        ..Version::empty()
    }
}

fn check_schema(path: &Path, schema: &tensilo::Schema, version: &Version) -> Result<()> {
    let differs = |what: String| {
        let path = display_path(path);
        DataError::BadArgument(format!("{path}: {what}; all files of a dataset must have the columns of the first one"))
    };
    if schema.columns.len() != version.columns.len() {
        return Err(differs(format!("found {} columns, expected {}", schema.columns.len(), version.columns.len())));
    }
    for expected in &version.columns {
        let name = &expected.schema.name;
        let found = schema.columns.iter().find(|column| column.name == *name);
        let found = found.ok_or_else(|| differs(format!("there is no column {name:?}")))?;
        check_column(found, &expected.schema).map_err(|violation| differs(violation.message))?;
    }
    Ok(())
}
