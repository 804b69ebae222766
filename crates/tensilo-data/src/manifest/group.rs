//! Groups of samples and their files (chapter 5 of `MANIFEST.md`).
//!
//! A group is a range of consecutive samples, and one or more files that store them. Each file of a
//! group has different columns: adding a column adds a file to each group, and rewrites nothing.
//! The entry of a file contains the path of the file in the folder of the dataset (M-1.3), and
//! identifies the commit to read: the length of the file at this commit, the offset of the footer,
//! and the content id. So later commits of the file are not visible.

use super::column::{DatasetColumn, Layout};
use super::json::{Hex, MAX_NUMBER, Number};
use super::{RuleViolation, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The JSON of a group.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupJson {
    samples: Number,
    files: Vec<FileJson>,
}

/// The JSON of a file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileJson {
    layout: Number,
    path: String,
    bytes: Number,
    footer: Number,
    content_id: Hex,
}

/// Consecutive samples, and the files that contain them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub samples: u64,
    pub files: Vec<FileEntry>,
}

/// A file, as a manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileEntry {
    /// The index of the layout.
    pub layout: usize,
    /// The path in the dataset, with components separated by `/`.
    pub path: Box<str>,
    /// The length of the file at its commit, in bytes.
    pub bytes: u64,
    /// The offset of the footer.
    pub footer: u64,
    pub content_id: Hex,
}

/// The columns and layouts that groups refer to.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub columns: &'a [DatasetColumn],
    pub layouts: &'a [Layout],
}

impl GroupJson {
    pub(super) fn of(group: &Group) -> Self {
        let file = |file: &FileEntry| FileJson {
            layout: Number(u64::try_from(file.layout).unwrap_or(u64::MAX)),
            path: file.path.to_string(),
            bytes: Number(file.bytes),
            footer: Number(file.footer),
            content_id: file.content_id,
        };
        Self { samples: Number(group.samples), files: group.files.iter().map(file).collect() }
    }

    /// Parses a group, and checks M-1.3, M-4.2 and M-5.1.
    fn parse(self, columns: Columns<'_>) -> Result<Group, RuleViolation> {
        ensure(!self.files.is_empty(), "M-2.2", || "a group has no files".to_owned())?;
        ensure(self.samples.0 > 0, "M-2.3", || "a group has no samples".to_owned())?;
        let mut found = BTreeSet::new();
        let mut files = Vec::with_capacity(self.files.len());
        for file in self.files {
            check_path(&file.path)?;
            let index = usize::try_from(file.layout.0).unwrap_or(usize::MAX);
            let layout = columns.layouts.get(index).ok_or_else(|| {
                let count = columns.layouts.len();
                RuleViolation::new(
                    "M-4.2",
                    format!("{}: layout {index} does not exist; there are {count} layouts", file.path),
                )
            })?;
            for (name, id) in layout {
                ensure(found.insert(id), "M-5.1", || {
                    format!("{}: column {name:?} is also in another file of the group", file.path)
                })?;
            }
            files.push(FileEntry {
                layout: index,
                path: file.path.into(),
                bytes: file.bytes.0,
                footer: file.footer.0,
                content_id: file.content_id,
            });
        }
        let missing = columns.columns.iter().find(|column| !column.schema.nullable && !found.contains(&column.id));
        ensure(missing.is_none(), "M-5.1", || {
            let name = missing.map(|column| column.schema.name.as_str()).unwrap_or_default();
            format!("{}: no file of the group has column {name:?}, which is not nullable", first_path(&files))
        })?;
        Ok(Group { samples: self.samples.0, files })
    }
}

/// Parses groups. Also returns the total number of samples in the groups.
pub(super) fn parse(groups: Vec<GroupJson>, columns: Columns<'_>) -> Result<(Vec<Group>, u64), RuleViolation> {
    let groups: Vec<_> = groups.into_iter().map(|group| group.parse(columns)).collect::<Result<_, _>>()?;
    let samples = sum(groups.iter().map(|group| group.samples))?;
    Ok((groups, samples))
}

/// Adds up numbers of samples. Fails if the sum is too large (M-2.3).
pub(super) fn sum(numbers: impl IntoIterator<Item = u64>) -> Result<u64, RuleViolation> {
    let sum =
        numbers.into_iter().try_fold(0_u64, |sum, number| sum.checked_add(number).filter(|&sum| sum <= MAX_NUMBER));
    sum.ok_or_else(|| RuleViolation::new("M-2.3", "the total number of samples is too large"))
}

fn first_path(files: &[FileEntry]) -> &str {
    files.first().map_or("a group", |file| &file.path)
}

/// The maximum length of a path in bytes (M-1.3).
const MAX_PATH_BYTES: usize = 1024;

/// Checks a path (M-1.3).
pub(crate) fn check_path(path: &str) -> Result<(), RuleViolation> {
    let is_refused = |c: char| c == '\\' || c == ':' || c.is_ascii_control();
    let is_good = path.len() <= MAX_PATH_BYTES
        && !path.contains(is_refused)
        && path.split('/').all(|component| !matches!(component, "" | "." | ".."))
        && path.split('/').next().is_some_and(|first| !first.eq_ignore_ascii_case("manifest"));
    ensure(is_good, "M-1.3", || {
        format!(
            "the path {path:?} of a file is not valid: expected a relative path outside manifest/, of at most \
             {MAX_PATH_BYTES} bytes, without empty, \".\" or \"..\" components, backslashes, colons or control \
             characters"
        )
    })
}

/// Returns the path of a file in `folder`, given its path in the manifest.
pub(crate) fn join(folder: &Path, path: &str) -> PathBuf {
    path.split('/').fold(folder.to_path_buf(), |folder, component| folder.join(component))
}
