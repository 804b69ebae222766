//! Expands an input to files: the file itself, the files of a folder or prefix, or the matches of a
//! pattern.
//!
//! A folder stands for its Parquet files, Arrow files or tensilo files; a mix of Parquet and Arrow
//! files is refused. Names that start with `.` or `_` are skipped, except for folders named
//! `key=value`. Each folder is searched once. A folder behind a symbolic link is searched last, and
//! only if it was not reached otherwise, so the search terminates even if links form a cycle.
//! Addresses in a store follow the same rules as paths. If the Python library `datasets` saved a
//! folder (`Dataset.save_to_disk`), `state.json` in that folder states the order of its files.

use super::file::InputStore;
use super::tables;
use crate::open::check_regular;
use crate::open::foreign::explain_missing;
use crate::open::pattern::{SHELL_OPTIONS, has_wildcard, paths_matching};
use crate::{Error, Result};
use glob::Pattern;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirEntry, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// Returns the files of one input: the file itself, the files of a folder, or the matches of a
/// pattern.
pub(super) fn files(input: &Path) -> Result<Vec<PathBuf>> {
    let found = match fs::metadata(input) {
        Ok(metadata) if metadata.is_dir() => {
            tables::refuse([input])?;
            data_files(input)?
        }
        Ok(_) => return Ok(vec![input.to_path_buf()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_wildcard(input) => matching(input)?,
        Err(error) => return Err(Error::io("opening the input", explain_missing(input, error)).with_path(input)),
    };
    tables::refuse(found.iter().filter_map(|file| file.parent()))?;
    Ok(found)
}

/// Returns the files that match a pattern, in the byte order of paths. If a folder matches, it is
/// searched, and other matches inside it are ignored.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = paths_matching(pattern)?;
    paths.sort_by(|a, b| compare(a, b));
    let (mut files, mut searched): (Vec<PathBuf>, Option<PathBuf>) = (Vec::new(), None);
    for path in paths {
        if searched.as_ref().is_some_and(|folder| path.starts_with(folder)) {
            continue;
        }
        // a link without a target has no metadata; opening it later fails
        let metadata = fs::metadata(&path).ok();
        if metadata.as_ref().is_some_and(fs::Metadata::is_dir) {
            files.extend(data_files(&path)?);
            searched = Some(path);
        } else {
            // opening a pipe without a writer blocks forever
            let checked = metadata.map_or(Ok(()), |metadata| check_regular(&metadata));
            checked.map_err(|error| Error::io("opening the input", error).with_path(&path))?;
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Error::bad_argument("no file matches this pattern").with_path(pattern));
    }
    Ok(files)
}

/// The message about the Arrow files of a cache. They are refused, because some are splits and
/// others are results of computations.
const CACHE: &str = "the folder is a cache of the Python library `datasets` and contains several splits and computed \
                     results; name the intended files, such as FOLDER/*-train.arrow";

/// The file that identifies a cache of the library `datasets`.
const CACHE_MARK: &str = "dataset_info.json";

/// Returns the data files below a folder, in the byte order of their paths, component by component.
///
/// Returns the Parquet files or the Arrow files; a mix of both is refused. If there are none,
/// returns the tensilo files. Names that start with `.` or `_` are skipped, except for folders
/// named `key=value`.
fn data_files(root: &Path) -> Result<Vec<PathBuf>> {
    if let Some(shards) = saved_shards(root)? {
        return Ok(shards);
    }
    let mut walk = FolderWalk::default();
    walk.all(root)?;
    if let (true, Some(folder)) = (walk.found.are_arrow(), &walk.cache) {
        return Err(Error::bad_input(CACHE).with_path(folder));
    }
    walk.found.chosen().map_err(|error| error.with_path(root))
}

/// The data files that were found, by format.
#[derive(Default)]
struct DataFiles {
    parquet: Vec<PathBuf>,
    arrow: Vec<PathBuf>,
    tensilo: Vec<PathBuf>,
}

impl DataFiles {
    /// Adds a path if it has the name of a data file. Returns whether it was added.
    fn take(&mut self, path: &Path) -> bool {
        let files = match path.file_name().and_then(format_of) {
            Some(DataFormat::Parquet) => &mut self.parquet,
            Some(DataFormat::Arrow) => &mut self.arrow,
            Some(DataFormat::Tensilo) => &mut self.tensilo,
            None => return false,
        };
        files.push(path.to_path_buf());
        true
    }

    /// Returns whether the files to read are Arrow files.
    fn are_arrow(&self) -> bool {
        self.parquet.is_empty() && !self.arrow.is_empty()
    }

    /// Returns the files to read, in the byte order of their paths.
    fn chosen(self) -> Result<Vec<PathBuf>> {
        let mut files = match (self.parquet, self.arrow) {
            (parquet, arrow) if parquet.is_empty() && arrow.is_empty() => self.tensilo,
            (parquet, arrow) if arrow.is_empty() => parquet,
            (parquet, arrow) if parquet.is_empty() => arrow,
            _ => {
                let message = "the folder has Parquet and Arrow files; choose one format with a pattern, such as \
                               FOLDER/**/*.parquet";
                return Err(Error::bad_input(message));
            }
        };
        if files.is_empty() {
            let message = "the folder and its subfolders have no *.parquet, *.arrow, *.feather or *.tsl file";
            return Err(Error::bad_input(message));
        }
        files.sort_by(|a, b| compare(a, b));
        Ok(files)
    }
}

/// Returns whether a file or folder with this name is not skipped.
fn is_visible(name: &[u8]) -> bool {
    !matches!(name.first(), Some(b'.' | b'_'))
}

/// Compares paths by the bytes of their components, so the content of a folder directly follows the
/// folder.
pub(super) fn compare(a: &Path, b: &Path) -> Ordering {
    fn components(path: &Path) -> impl Iterator<Item = &[u8]> {
        path.components().map(|component| component.as_os_str().as_encoded_bytes())
    }
    components(a).cmp(components(b))
}

/// A folder: the path by which it was reached, and its canonical path.
struct Folder {
    path: PathBuf,
    canonical: PathBuf,
}

/// A search that enters every folder once. A folder behind a symbolic link is searched last, and
/// only if it was not reached otherwise. So the search terminates even if links form a cycle, and a
/// link to a sibling adds nothing.
#[derive(Default)]
struct FolderWalk {
    found: DataFiles,
    /// A folder that has a [`CACHE_MARK`], if one was found.
    cache: Option<PathBuf>,
    folders: Vec<Folder>,
    links: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
}

impl FolderWalk {
    fn all(&mut self, root: &Path) -> Result<()> {
        self.links.push(root.to_path_buf());
        while !self.links.is_empty() {
            self.links.sort_by(|a, b| compare(b, a)); // popped from the end
            let Some(path) = self.links.pop() else { break };
            let canonical = fs::canonicalize(&path).map_err(|error| list_error(&path, error))?;
            self.folders.push(Folder { path, canonical });
            while let Some(folder) = self.folders.pop() {
                if !self.seen.contains(&folder.canonical) {
                    self.folder(&folder)?;
                    self.seen.insert(folder.canonical);
                }
            }
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Folder) -> Result<()> {
        let failed = |error| list_error(&folder.path, error);
        for entry in fs::read_dir(&folder.path).map_err(failed)? {
            self.entry(folder, &entry.map_err(failed)?)?;
        }
        Ok(())
    }

    fn entry(&mut self, folder: &Folder, entry: &DirEntry) -> Result<()> {
        let (name, path) = (entry.file_name(), entry.path());
        let file_type = entry.file_type().map_err(|error| list_error(&path, error))?;
        let (mut is_folder, mut is_file) = (file_type.is_dir(), file_type.is_file());
        if file_type.is_symlink() {
            // a link without a target is an error only if it has the name of a data file
            match fs::metadata(&path) {
                Ok(target) => (is_folder, is_file) = (target.is_dir(), target.is_file()),
                Err(_) if format_of(&name).is_none() => {}
                Err(error) => return Err(Error::io("following the link", error).with_path(&path)),
            }
        }
        let is_visible = is_visible(name.as_encoded_bytes());
        if is_folder && (is_visible || name.as_encoded_bytes().contains(&b'=')) {
            if file_type.is_symlink() {
                self.links.push(path);
            } else {
                self.folders.push(Folder { path, canonical: folder.canonical.join(&name) });
            }
        } else if is_file && is_visible && !self.found.take(&path) {
            match name == CACHE_MARK {
                true => self.cache = Some(folder.path.clone()),
                false => check_not_saved(&folder.path, &name)?,
            }
        } else if !is_file && !is_folder && is_visible && format_of(&name).is_some() {
            let checked = fs::metadata(&path).and_then(|metadata| check_regular(&metadata));
            checked.map_err(|error| Error::io("opening the input", error).with_path(&path))?;
        }
        Ok(())
    }
}

fn list_error(path: &Path, error: io::Error) -> Error {
    Error::io("listing the folder", error).with_path(path)
}

/// Refuses a saved dataset in a subfolder of an input, because `state.json` states the order of its
/// files, which can differ from the byte order of their paths.
fn check_not_saved(folder: &Path, name: &OsStr) -> Result<()> {
    if SAVED_MARKS.iter().any(|mark| name == *mark) && saved_shards(folder)?.is_some() {
        let message = "a folder saved by the Python library `datasets` must be a separate input; pass its own path";
        return Err(Error::bad_input(message).with_path(folder));
    }
    Ok(())
}

enum DataFormat {
    Parquet,
    Arrow,
    Tensilo,
}

fn format_of(name: &OsStr) -> Option<DataFormat> {
    let extension = Path::new(name).extension()?;
    match extension.to_ascii_lowercase().as_encoded_bytes() {
        b"parquet" => Some(DataFormat::Parquet),
        b"arrow" | b"feather" => Some(DataFormat::Arrow),
        b"tsl" => Some(DataFormat::Tensilo),
        _ => None,
    }
}

/// The file that identifies a saved dataset.
const SAVED_STATE: &str = "state.json";
/// The file that identifies several datasets saved together.
const SAVED_DICT: &str = "dataset_dict.json";
/// Both of these files.
const SAVED_MARKS: [&str; 2] = [SAVED_STATE, SAVED_DICT];
/// The maximum size of a JSON document in bytes, far more than a list of shards needs.
const MAX_JSON_BYTES: u64 = 64 << 20;

/// Returns the shards of a saved dataset, in its order, or `None` if the folder is not a saved
/// dataset.
///
/// Several datasets saved together (`DatasetDict`) are refused, because each of them is a separate
/// input.
fn saved_shards(folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let refuse = |message: String| Error::bad_input(message).with_path(folder);
    if let Some(splits) = read_json(folder, SAVED_DICT)?.as_ref().and_then(|dict| dict.get("splits")?.as_array()) {
        let splits: Vec<String> = splits.iter().filter_map(Value::as_str).map(|split| format!("{split:?}")).collect();
        let message = format!("the folder has several datasets ({}); pass one of these subfolders", splits.join(", "));
        return Err(refuse(message));
    }
    let Some(state) = read_json(folder, SAVED_STATE)? else { return Ok(None) };
    let Some(files) = state.get("_data_files").and_then(Value::as_array) else { return Ok(None) };
    let is_mapped = |key: &&str| match state.get(key) {
        None | Some(Value::Null) => false,
        Some(indices) => indices.as_array().is_none_or(|files| !files.is_empty()),
    };
    if ["_indices_files", "_indices_data_files"].iter().any(is_mapped) {
        let message = "the dataset was saved with a selection of rows that is not applied to its data; call \
                       flatten_indices() and save it again";
        return Err(refuse(message.to_owned()));
    }
    let shard = |file: &Value| {
        let name = file.get("filename").and_then(Value::as_str).unwrap_or_default();
        let is_plain = matches!(Path::new(name).components().collect::<Vec<_>>().as_slice(), [Component::Normal(_)]);
        let outside = || refuse(format!("{SAVED_STATE} lists the shard {name:?}, which is not a file in this folder"));
        let path = if is_plain { folder.join(name) } else { return Err(outside()) };
        // a missing shard causes an error later, when it is opened
        let checked = fs::metadata(&path).map_or(Ok(()), |metadata| check_regular(&metadata));
        checked.map_err(|error| Error::io("opening the input", error).with_path(&path))?;
        Ok(path)
    };
    let shards = files.iter().map(shard).collect::<Result<Vec<PathBuf>>>()?;
    if shards.is_empty() {
        return Err(refuse(format!("{SAVED_STATE} lists no shards")));
    }
    Ok(Some(shards))
}

/// Reads a document in a folder. Returns `None` if it does not exist.
fn read_json(folder: &Path, name: &str) -> Result<Option<Value>> {
    let path = folder.join(name);
    let mut bytes = Vec::new();
    let checked = fs::metadata(&path).and_then(|metadata| check_regular(&metadata)); // opening a pipe can block forever
    let read = checked.and_then(|()| File::open(&path)?.take(MAX_JSON_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("reading the description of the folder", error).with_path(&path)),
    }
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|error| Error::bad_input(format!("not valid JSON: {error}")).with_path(&path))
}

/// Returns the addresses of one input: the address itself, the addresses below a prefix, or the
/// matches of a pattern. An address without an extension, or with a trailing `/`, is a prefix if
/// there are inputs below it.
pub(super) fn stored_inputs(input: &Path, store: &dyn InputStore) -> Result<Vec<PathBuf>> {
    let is_prefix = input.extension().is_none() || input.as_os_str().as_encoded_bytes().ends_with(b"/");
    let found = match input {
        input if has_query(input) => Ok(vec![input.to_path_buf()]),
        input if has_wildcard(input) => matching_addresses(input, store),
        input if is_prefix => list_prefix(input, store),
        input => Ok(vec![input.to_path_buf()]),
    };
    found.map_err(|error| error.with_path(input))
}

/// Returns whether a URL has a query. Such a URL is not a pattern: only the store can interpret it.
fn has_query(input: &Path) -> bool {
    let text = input.to_string_lossy();
    let query = text.split_once('?').filter(|_| text.starts_with("http"));
    query.is_some_and(|(_, query)| query.contains('='))
}

/// Returns the addresses that match a pattern. If the pattern itself is an existing address,
/// returns only that address.
fn matching_addresses(pattern: &Path, store: &dyn InputStore) -> Result<Vec<PathBuf>> {
    let text = pattern.to_str().ok_or_else(|| Error::bad_argument("the pattern is not UTF-8"))?;
    let plain = text.find(['*', '?', '[']).and_then(|wildcard| text.get(..wildcard)).unwrap_or(text);
    let prefix = plain.rfind('/').and_then(|slash| plain.get(..=slash)).unwrap_or(plain);
    let all = store.list_prefix(Path::new(prefix))?;
    if all.contains(&pattern.to_path_buf()) {
        return Ok(vec![pattern.to_path_buf()]);
    }
    let rule = Pattern::new(text).map_err(|error| Error::bad_argument(format!("not a pattern: {error}")))?;
    let is_match = |path: &&PathBuf| path.to_str().is_some_and(|path| rule.matches_with(path, SHELL_OPTIONS));
    let mut found: Vec<PathBuf> = all.iter().filter(is_match).cloned().collect();
    if found.is_empty() {
        return Err(Error::bad_argument("no object matches this pattern"));
    }
    found.sort_by(|a, b| compare(a, b));
    tables::refuse_stored(&all, &found)?;
    refuse_around(Path::new(prefix), store)?;
    Ok(found)
}

/// Refuses a prefix inside a table. Enclosing folders that cannot be listed are ignored.
fn refuse_around(prefix: &Path, store: &dyn InputStore) -> Result<()> {
    tables::marks_around(prefix).iter().try_for_each(|mark| match store.list_prefix(mark) {
        Ok(found) => tables::refuse_stored(&found, &[]),
        Err(error) if is_transient(&error) => Err(error),
        Err(_) => Ok(()),
    })
}

/// Returns whether a listing failed for a transient reason, rather than because the store has no
/// such listing or forbids it.
fn is_transient(error: &Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, NotFound, PermissionDenied, Unsupported};
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let permanent = [InvalidData, InvalidInput, NotFound, PermissionDenied, Unsupported];
    cause.is_some_and(|cause| !permanent.contains(&cause.kind()))
}

fn list_prefix(prefix: &Path, store: &dyn InputStore) -> Result<Vec<PathBuf>> {
    let all = store.list_prefix(prefix)?;
    if all.is_empty() {
        return Ok(vec![prefix.to_path_buf()]);
    }
    let mut found = DataFiles::default();
    for path in all.iter().filter(|path| is_searched(path, prefix)) {
        found.take(path);
    }
    let is_mark = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name == CACHE_MARK || SAVED_MARKS.iter().any(|mark| name == *mark))
    };
    if found.are_arrow() && all.iter().any(is_mark) {
        let message = "this folder was written by the Python library `datasets`, which defines the order of its \
                       files; name the intended files with a pattern, or use a local copy of the folder";
        return Err(Error::bad_input(message));
    }
    let chosen = found.chosen();
    tables::refuse_stored(&all, chosen.as_deref().unwrap_or(&[]))?;
    refuse_around(prefix, store)?;
    chosen
}

/// Returns whether a file below the prefix is included: neither its name nor the name of an
/// enclosing folder below the prefix is hidden. Folders named `key=value` are never hidden.
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
        fn contains(&self, input: &Path) -> bool {
            input.starts_with("s3://")
        }

        fn list_prefix(&self, prefix: &Path) -> Result<Vec<PathBuf>> {
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
        match stored_inputs(Path::new(input), &Names(names)) {
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
            ("s3://b/delta", "s3://b/delta: the folder is a Delta table (it contains \"_delta_log\")"),
            ("s3://b/delta/*.parquet", "(it contains \"_delta_log\")"),
            ("s3://b/d*/**/*.parquet", "(it contains \"_delta_log\")"),
            ("s3://b/delta/year=2", "(it contains \"_delta_log\")"),
            ("s3://b/delta/year=2/*.parquet", "(it contains \"_delta_log\")"),
            ("s3://b/ice", "s3://b/ice: the folder is an Iceberg table (it contains \"metadata\")"),
            ("s3://b/ice/data/", "(it contains \"metadata\")"),
            ("s3://b/hudi", "(it contains \".hoodie\")"),
            ("s3://b/lance", "a Lance dataset"),
            ("s3://b/zarr", "s3://b/zarr: the folder is a Zarr store"),
        ] {
            let error = found(BUCKET, input).join(" ");
            assert!(error.starts_with("error: ") && error.contains(mark), "{input}: {error}");
        }
        // a file is read if it is named explicitly
        assert_eq!(found(BUCKET, "s3://b/delta/part-0.parquet"), ["s3://b/delta/part-0.parquet"]);
    }

    #[test]
    fn folders_around_a_prefix_need_not_be_listed() {
        for input in ["s3://data/*.parquet", "s3://data/year=1", "s3://forbidden/data/", "s3://forbidden/data/*"] {
            assert!(found(BUCKET, input)[0].ends_with("/a.parquet"), "{input}: {:?}", found(BUCKET, input));
        }
        // a transient failure could hide a table
        assert!(found(BUCKET, "s3://busy/data")[0].starts_with("error: "));
    }

    #[test]
    fn what_is_unclear_is_refused() {
        for (input, finding) in [
            ("s3://b/train/*.arrow", "no object matches"),
            ("s3://b/train/[", "not a pattern"),
            ("s3://b/other", "library `datasets`"),
            ("s3://b/both", "Parquet and Arrow files"),
        ] {
            let error = found(BUCKET, input).join(" ");
            assert!(error.contains(finding) && error.contains(input), "{error}");
        }
    }
}
