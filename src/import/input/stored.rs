//! The inputs that an address in a store stands for.

use super::folder::{CACHE_MARK, DataFiles, compare, is_visible};
use super::{saved, tables};
use crate::import::store::InputStore;
use crate::pattern::{AS_IN_A_SHELL, has_wildcard};
use crate::{Error, Result};
use glob::Pattern;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Returns the addresses that one input means: itself, those below a prefix, or those that match a
/// pattern. What has no extension, or ends in `/`, is a prefix if there are inputs below it.
pub(super) fn inputs(input: &Path, store: &dyn InputStore) -> Result<Vec<PathBuf>> {
    let is_prefix = input.extension().is_none() || input.as_os_str().as_encoded_bytes().ends_with(b"/");
    let found = match input {
        input if has_query(input) => Ok(vec![input.to_path_buf()]),
        input if has_wildcard(input) => matching(input, store),
        input if is_prefix => below(input, store),
        input => Ok(vec![input.to_path_buf()]),
    };
    found.map_err(|error| error.with_path(input))
}

/// Returns whether a URL has a query, which is no pattern: the store says what it does with it.
fn has_query(input: &Path) -> bool {
    let text = input.to_string_lossy();
    let query = text.split_once('?').filter(|_| text.starts_with("http"));
    query.is_some_and(|(_, query)| query.contains('='))
}

/// Returns the addresses that match a pattern. One that is an address itself means that, as the
/// name of a file does.
fn matching(pattern: &Path, store: &dyn InputStore) -> Result<Vec<PathBuf>> {
    let text = pattern.to_str().ok_or_else(|| Error::bad_argument("a pattern that is not UTF-8"))?;
    let plain = text.find(['*', '?', '[']).and_then(|wildcard| text.get(..wildcard)).unwrap_or(text);
    let prefix = plain.rfind('/').and_then(|slash| plain.get(..=slash)).unwrap_or(plain);
    let all = store.below(Path::new(prefix))?;
    if all.contains(&pattern.to_path_buf()) {
        return Ok(vec![pattern.to_path_buf()]);
    }
    let rule = Pattern::new(text).map_err(|error| Error::bad_argument(format!("not a pattern: {error}")))?;
    let is_match = |path: &&PathBuf| path.to_str().is_some_and(|path| rule.matches_with(path, AS_IN_A_SHELL));
    let mut found: Vec<PathBuf> = all.iter().filter(is_match).cloned().collect();
    if found.is_empty() {
        return Err(Error::bad_argument("no object matches this pattern"));
    }
    found.sort_by(|a, b| compare(a, b));
    tables::refuse_stored(&all, &found)?;
    refuse_around(Path::new(prefix), store)?;
    Ok(found)
}

/// Refuses a prefix that is a part of a table. What cannot be listed around it tells nothing.
fn refuse_around(prefix: &Path, store: &dyn InputStore) -> Result<()> {
    tables::marks_around(prefix).iter().try_for_each(|mark| match store.below(mark) {
        Ok(found) => tables::refuse_stored(&found, &[]),
        Err(error) if may_succeed_later(&error) => Err(error),
        Err(_) => Ok(()),
    })
}

/// Returns whether a listing failed for a reason that may pass, and not because the store has no
/// such listing, or forbids it.
fn may_succeed_later(error: &Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, NotFound, PermissionDenied, Unsupported};
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let lasting = [InvalidData, InvalidInput, NotFound, PermissionDenied, Unsupported];
    cause.is_some_and(|cause| !lasting.contains(&cause.kind()))
}

fn below(prefix: &Path, store: &dyn InputStore) -> Result<Vec<PathBuf>> {
    let all = store.below(prefix)?;
    if all.is_empty() {
        return Ok(vec![prefix.to_path_buf()]);
    }
    let mut found = DataFiles::default();
    for path in all.iter().filter(|path| is_searched(path, prefix)) {
        found.take(path);
    }
    let is_mark = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name == CACHE_MARK || saved::MARKS.iter().any(|mark| name == *mark))
    };
    if found.are_arrow() && all.iter().any(is_mark) {
        let message = "the library datasets has written this folder, and its files have an order of their own; give \
                       the files that are meant, by a pattern, or a local copy of the folder";
        return Err(Error::bad_input(message));
    }
    let chosen = found.chosen();
    tables::refuse_stored(&all, chosen.as_deref().unwrap_or(&[]))?;
    refuse_around(prefix, store)?;
    chosen
}

/// Returns whether no name below the prefix is hidden.
fn is_searched(path: &Path, prefix: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(prefix) else { return false };
    let mut names = rest.components().map(Component::as_os_str).map(std::ffi::OsStr::as_encoded_bytes);
    let is_file_searched = names.next_back().is_some_and(is_visible);
    is_file_searched && names.all(|name| is_visible(name) || name.contains(&b'='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{InMemory, Source};
    use std::sync::Arc;

    struct Names(&'static [&'static str]);

    impl InputStore for Names {
        fn has(&self, input: &Path) -> bool {
            input.starts_with("s3://")
        }

        fn below(&self, prefix: &Path) -> Result<Vec<PathBuf>> {
            let names: Vec<&str> = prefix.to_str().unwrap().strip_prefix("s3://").unwrap().split('/').collect();
            match names.as_slice() {
                ["forbidden", mark] if mark.starts_with(['_', '.']) => {
                    return Err(Error::io("listing", io::ErrorKind::PermissionDenied.into()));
                }
                ["busy", mark] if mark.starts_with(['_', '.']) => {
                    return Err(Error::io("listing", io::ErrorKind::TimedOut.into()));
                }
                _ => {}
            }
            Ok(self.0.iter().map(PathBuf::from).filter(|path| path.starts_with(prefix)).collect())
        }

        fn open(&self, _: &Path) -> Result<Arc<dyn Source>> {
            Ok(Arc::new(InMemory(Vec::new())))
        }
    }

    fn found(names: &'static [&'static str], input: &str) -> Vec<String> {
        match inputs(Path::new(input), &Names(names)) {
            Ok(paths) => paths.iter().map(|path| path.display().to_string()).collect(),
            Err(error) => vec![format!("error: {error}")],
        }
    }

    const BUCKET: &[&str] = &[
        "s3://b/train/year=2/b.parquet",
        "s3://b/train/_key=1/a.parquet",
        "s3://b/train/_tmp/x.parquet",
        "s3://b/train/c.parquet",
        "s3://b/train/.d.parquet",
        "s3://b/train/notes.txt",
        "s3://b/other/z.arrow",
        "s3://b/other/state.json",
        "s3://b/both/z.arrow",
        "s3://b/both/z.parquet",
        "s3://b/odd/a[1].parquet",
        "s3://b/odd/a1.parquet",
        "s3://b/delta/_delta_log/00000000000000000001.json",
        "s3://b/delta/part-0.parquet",
        "s3://b/delta/year=2/part-1.parquet",
        "s3://b/ice/data/part-0.parquet",
        "s3://b/ice/metadata/v1.metadata.json",
        "s3://b/hudi/.hoodie/hoodie.properties",
        "s3://b/hudi/part-0.parquet",
        "s3://b/lance/_versions/1.manifest",
        "s3://b/zarr/x/zarr.json",
        "s3://b/zarr/zarr.json",
        "s3://data/a.parquet",
        "s3://data/year=1/a.parquet",
        "s3://forbidden/data/a.parquet",
        "s3://busy/data/a.parquet",
    ];

    #[test]
    fn prefixes_and_patterns_mean_what_folders_do() {
        let all = ["s3://b/train/_key=1/a.parquet", "s3://b/train/c.parquet", "s3://b/train/year=2/b.parquet"];
        assert_eq!(found(BUCKET, "s3://b/train"), all);
        assert_eq!(found(BUCKET, "s3://b/train/"), all);
        assert_eq!(found(BUCKET, "s3://b/train/*.parquet"), ["s3://b/train/c.parquet"]);
        assert_eq!(found(BUCKET, "s3://b/train/**/[ab].parquet"), [all[0], all[2]]);
        assert_eq!(found(BUCKET, "s3://b/train/c.parquet"), ["s3://b/train/c.parquet"]);
        assert_eq!(found(BUCKET, "s3://b/object"), ["s3://b/object"]);
        assert_eq!(found(BUCKET, "s3://b/odd/a[1].parquet"), ["s3://b/odd/a[1].parquet"]);
    }

    #[test]
    fn tables_of_other_libraries_are_refused() {
        for (input, mark) in [
            ("s3://b/delta", "s3://b/delta: the folder is a Delta table (_delta_log)"),
            ("s3://b/delta/*.parquet", "(_delta_log)"),
            ("s3://b/d*/**/*.parquet", "(_delta_log)"),
            ("s3://b/delta/year=2", "(_delta_log)"),
            ("s3://b/delta/year=2/*.parquet", "(_delta_log)"),
            ("s3://b/ice", "s3://b/ice: the folder is an Iceberg table (metadata)"),
            ("s3://b/ice/data/", "(metadata)"),
            ("s3://b/hudi", "(.hoodie)"),
            ("s3://b/lance", "a Lance dataset"),
            ("s3://b/zarr", "s3://b/zarr: the folder is a Zarr store"),
        ] {
            let error = found(BUCKET, input).join(" ");
            assert!(error.starts_with("error: ") && error.contains(mark), "{input}: {error}");
        }
        // by its own name, a file is read
        assert_eq!(found(BUCKET, "s3://b/delta/part-0.parquet"), ["s3://b/delta/part-0.parquet"]);
    }

    #[test]
    fn folders_around_a_prefix_need_not_be_listed() {
        for input in ["s3://data/*.parquet", "s3://data/year=1", "s3://forbidden/data/", "s3://forbidden/data/*"] {
            assert!(found(BUCKET, input)[0].ends_with("/a.parquet"), "{input}: {:?}", found(BUCKET, input));
        }
        // but a failure that passes hides a table
        assert!(found(BUCKET, "s3://busy/data")[0].starts_with("error: "));
    }

    #[test]
    fn what_is_unclear_is_refused() {
        for (input, finding) in [
            ("s3://b/train/*.arrow", "no object matches"),
            ("s3://b/train/[", "not a pattern"),
            ("s3://b/other", "library datasets"),
            ("s3://b/both", "Parquet and Arrow files"),
        ] {
            let error = found(BUCKET, input).join(" ");
            assert!(error.contains(finding) && error.contains(input), "{error}");
        }
    }
}
