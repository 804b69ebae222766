//! Expands a path pattern into the files and folders that match it.
//!
//! The crate `glob` decides whether a name matches, and this module lists the folders. If `glob`
//! listed them too, it would panic on the first name that is not UTF-8, or skip it silently. This
//! module matches the displayed form of a name, in which U+FFFD replaces bytes that are not UTF-8.
//! Therefore, `*` and `?` match any bytes, and no file is silently skipped.
//!
//! `**` follows symbolic links to folders, but not into a folder that the path has already passed
//! through. The search therefore ends even if links form a cycle.

use crate::{Error, Result};
use glob::{MatchOptions, Pattern};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Shell rules: `*` does not match hidden names.
pub(crate) const SHELL_OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Returns whether a path contains a wildcard character.
#[cfg(feature = "import")]
pub(crate) fn has_wildcard(path: &Path) -> bool {
    path.to_string_lossy().contains(WILDCARDS)
}

const WILDCARDS: [char; 3] = ['*', '?', '['];

/// Returns the files and folders that match a pattern, each once and in no particular order. Fails
/// if a folder cannot be searched.
///
/// In a pattern, `*` matches any number of characters except `/`, `?` matches one character, `[ab]`
/// and `[a-f]` match one of several characters, and `**` matches any number of folders. A hidden
/// name matches only if the pattern contains its leading dot. A pattern that ends in `/` matches
/// only folders.
pub fn paths_matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let (start, segments) = parsed(pattern)?;
    let only_folders = pattern.as_os_str().as_encoded_bytes().ends_with(b"/");
    let mut found = Vec::new();
    let mut todo = vec![Step { path: start, segment: 0, through: None }];
    // with several `**`, the same path can be reached in several ways
    let mut done = HashSet::new();
    while let Some(step) = todo.pop() {
        if !done.insert((step.path.clone(), step.segment)) {
            continue;
        }
        match segments.get(step.segment) {
            None if only_folders && !is_folder(&step.path)? => {}
            None => found.push(named(&step.path).to_path_buf()),
            Some(Segment::Plain(name)) => {
                let path = step.path.join(name);
                if metadata_if_exists(&path, path.symlink_metadata())?.is_some() {
                    todo.push(Step { path, segment: step.segment + 1, through: None });
                }
            }
            Some(Segment::Wild(rule)) => {
                for name in entries(&step.path)?.iter().map(DirEntry::file_name) {
                    if rule.matches_with(&name.to_string_lossy(), SHELL_OPTIONS) {
                        todo.push(Step { path: step.path.join(name), segment: step.segment + 1, through: None });
                    }
                }
            }
            Some(Segment::Folders) => {
                todo.extend(subfolders(&step)?);
                // at the end of a pattern, `**` matches the folders themselves
                todo.push(Step { path: step.path, segment: step.segment + 1, through: None });
            }
        }
    }
    Ok(found)
}

/// A component of a pattern.
enum Segment {
    Plain(OsString),
    Wild(Pattern),
    /// `**`
    Folders,
}

/// A path that matches the pattern up to `segment`.
struct Step {
    path: PathBuf,
    segment: usize,
    /// The path by which `**` has reached this folder.
    through: Option<Arc<FolderTrail>>,
}

/// The canonical folders that `**` has passed through, as a linked list.
struct FolderTrail {
    canonical: PathBuf,
    before: Option<Arc<FolderTrail>>,
}

/// Splits a pattern into its starting folder and its segments.
fn parsed(pattern: &Path) -> Result<(PathBuf, Vec<Segment>)> {
    let bad = |message: String| Error::bad_argument(message).with_path(pattern);
    let (mut start, mut segments) = (PathBuf::new(), Vec::new());
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            match component {
                Component::CurDir => {}
                Component::ParentDir if !segments.is_empty() => segments.push(Segment::Plain("..".into())),
                other => start.push(other),
            }
            continue;
        };
        segments.push(match name.to_str() {
            _ if !name.to_string_lossy().contains(WILDCARDS) => Segment::Plain(name.to_owned()),
            None => return Err(bad(format!("the component {name:?} of the pattern is not UTF-8"))),
            Some("**") => Segment::Folders,
            Some(text) => Segment::Wild(Pattern::new(text).map_err(|error| bad(format!("not a pattern: {error}")))?),
        });
    }
    segments.dedup_by(|a, b| matches!((a, b), (Segment::Folders, Segment::Folders)));
    Ok((start, segments))
}

/// Returns the path of a folder for system calls, which reject an empty path.
fn named(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Returns the metadata of a path; `None` if it does not exist.
fn metadata_if_exists(path: &Path, metadata: io::Result<Metadata>) -> Result<Option<Metadata>> {
    match metadata {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("looking for files", error).with_path(path)),
    }
}

/// Returns whether a path is a folder, or a link to one.
fn is_folder(path: &Path) -> Result<bool> {
    let path = named(path);
    Ok(metadata_if_exists(path, fs::metadata(path))?.is_some_and(|metadata| metadata.is_dir()))
}

/// Returns the entries of a folder, or an empty list if the path is not a folder.
fn entries(folder: &Path) -> Result<Vec<DirEntry>> {
    let folder = named(folder);
    if !is_folder(folder)? {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(|error| Error::io("listing the folder", error).with_path(folder))
}

/// Returns the subfolders that `**` descends into.
fn subfolders(step: &Step) -> Result<Vec<Step>> {
    let failed = |path: &Path, error| Error::io("looking for files", error).with_path(path);
    let canonical = |path: &Path| named(path).canonicalize().map_err(|error| failed(path, error));
    let mut found = Vec::new();
    let mut trail = step.through.clone();
    for entry in entries(&step.path)? {
        let name = entry.file_name();
        let path = step.path.join(&name);
        let file_type = entry.file_type().map_err(|error| failed(&path, error))?;
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let leads_to_folder = file_type.is_dir() || (file_type.is_symlink() && is_folder(&path)?);
        if !leads_to_folder {
            continue;
        }
        let here = match &trail {
            Some(here) => here,
            None => trail.insert(Arc::new(FolderTrail { canonical: canonical(&step.path)?, before: None })),
        };
        let is_link = file_type.is_symlink();
        let folder = if is_link { canonical(&path)? } else { here.canonical.join(&name) };
        let mut trails = std::iter::successors(Some(here), |trail| trail.before.as_ref());
        if !is_link || !trails.any(|trail| trail.canonical.starts_with(&folder)) {
            let through = Some(Arc::new(FolderTrail { canonical: folder, before: Some(here.clone()) }));
            found.push(Step { path, segment: step.segment, through });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the matches below `folder`, sorted and relative to it.
    fn matching(folder: &Path, pattern: &str) -> Vec<String> {
        let mut found = paths_matching(&folder.join(pattern)).unwrap();
        found.sort();
        found.iter().map(|path| path.strip_prefix(folder).unwrap().display().to_string()).collect()
    }

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn patterns_mean_what_they_mean_in_a_shell() {
        let tree = tree(&["a.x", "b.x", "c.y", ".d.x", "e/a.x", "e/f/b.x", ".g/a.x", "h[1].x"]);
        for (pattern, expected) in [
            ("*.x", vec!["a.x", "b.x", "h[1].x"]),
            ("?.[xy]", vec!["a.x", "b.x", "c.y"]),
            ("[!a].x", vec!["b.x"]),
            (".*.x", vec![".d.x"]),
            ("*/a.x", vec!["e/a.x"]),
            (".g/*", vec![".g/a.x"]),
            ("**/*.x", vec!["a.x", "b.x", "e/a.x", "e/f/b.x", "h[1].x"]),
            ("e/**/**/b.x", vec!["e/f/b.x"]),
            ("e/**", vec!["e", "e/f"]),
            ("*/", vec!["e"]),
            ("e/../*.y", vec!["e/../c.y"]),
            ("*/../c.?", vec!["e/../c.y"]),
            ("h[[]1].x", vec!["h[1].x"]),
            ("none/*", vec![]),
            ("a.x/*", vec![]),
            ("a.x/b", vec![]),
        ] {
            assert_eq!(matching(tree.path(), pattern), expected, "{pattern}");
        }
        for pattern in ["[", "a**", "***"] {
            assert!(paths_matching(Path::new(pattern)).unwrap_err().message().contains("not a pattern"), "{pattern}");
        }
    }

    #[test]
    fn each_path_is_found_once() {
        let tree = tree(&["a/a/a/x", "a/b/a/x", "x"]);
        let all = ["a/a/a/x", "a/b/a/x"];
        for (pattern, expected) in [
            ("**/a/**/x", &all[..]),
            ("**/a/**/a/**/x", &all),
            ("**/*/**/*/**/x", &all),
            ("**/a/**/a/**/a/x", &all[..1]),
            ("**/b/**/a/**", &["a/b/a"]),
            ("**/*/**", &["a", "a/a", "a/a/a", "a/a/a/x", "a/b", "a/b/a", "a/b/a/x", "x"]),
        ] {
            assert_eq!(matching(tree.path(), pattern), expected, "{pattern}");
        }
        // 60 nested folders match the pattern in millions of ways
        let tree = tempfile::tempdir().unwrap();
        let deepest = (0..60).fold(tree.path().to_path_buf(), |path, _| path.join("a"));
        fs::create_dir_all(deepest).unwrap();
        assert_eq!(matching(tree.path(), "**/a/**/a/**/a/**/a/**").len(), 57);
    }

    #[test]
    fn the_folder_that_a_pattern_begins_in_has_a_name() {
        for pattern in ["", ".", "./", "././"] {
            assert_eq!(paths_matching(Path::new(pattern)).unwrap(), [Path::new(".")], "{pattern:?}");
        }
    }

    /// The folder that cannot be searched is a link to itself. A folder without read permission
    /// would not do, because root can read it and tests can run as root.
    #[cfg(unix)]
    #[test]
    fn what_cannot_be_searched_is_an_error() {
        let tree = tree(&["a/x", "c/x"]);
        std::os::unix::fs::symlink("b", tree.path().join("b")).unwrap();
        for pattern in ["*/x", "*/*", "*/", "**/x", "b/x", "b/../a/x"] {
            let error = paths_matching(&tree.path().join(pattern)).unwrap_err();
            assert!(error.to_string().contains(&tree.path().join("b").display().to_string()), "{pattern}: {error}");
        }
        assert_eq!(matching(tree.path(), "[ac]/x"), ["a/x", "c/x"]);
        assert_eq!(matching(tree.path(), "b"), ["b"]);
        let too_long = tree.path().join("n".repeat(300));
        assert!(paths_matching(&too_long).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn loops_of_links_end() {
        use std::os::unix::fs::symlink;
        let tree = tree(&["a/b/x", "c/y"]);
        symlink("../..", tree.path().join("a/b/up")).unwrap();
        symlink("../c", tree.path().join("a/c")).unwrap();
        symlink("../a", tree.path().join("c/a")).unwrap();
        assert_eq!(matching(tree.path(), "**/x"), ["a/b/x", "c/a/b/x"]);
        assert_eq!(matching(tree.path(), "**/y"), ["a/c/y", "c/y"]);
    }

    /// Systems other than Linux can refuse such names.
    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_are_not_utf_8_are_matched() {
        use std::os::unix::ffi::OsStrExt;
        let tree = tree(&["a.x"]);
        let named = |bytes: &[u8]| tree.path().join(std::ffi::OsStr::from_bytes(bytes));
        fs::create_dir(named(b"caf\xe9")).unwrap();
        for name in [&b"caf\xe9.x"[..], b"caf\xe9.txt", b"caf\xe9/b.x", b".\xe9.x"] {
            fs::write(named(name), "").unwrap();
        }
        let found = |pattern: &[u8]| {
            let mut found = paths_matching(&named(pattern)).unwrap();
            found.sort();
            found
        };
        assert_eq!(found(b"*.x"), [named(b"a.x"), named(b"caf\xe9.x")]);
        assert_eq!(found(b"**/*.x"), [named(b"a.x"), named(b"caf\xe9/b.x"), named(b"caf\xe9.x")]);
        assert_eq!(found(b"caf?/*"), [named(b"caf\xe9/b.x")]);
        assert_eq!(found(b"caf\xe9/*"), [named(b"caf\xe9/b.x")]);
        assert!(paths_matching(&named(b"caf\xe9*")).unwrap_err().message().contains("not UTF-8"));
    }
}
