//! The data files below a folder.

use super::saved;
use crate::open::check_regular;
use crate::{Error, Result};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// The reason why the Arrow files of a cache are not read: some are splits, others results of
/// computations.
const CACHE: &str = "the folder is a cache of the library datasets, with several splits and results; give the files \
                     that are meant, such as FOLDER/*-train.arrow";

/// The file by which such a cache is recognised.
pub(super) const CACHE_MARK: &str = "dataset_info.json";

/// Returns the data files below a folder, in the byte order of their paths, component by component.
///
/// They are the Parquet files or the Arrow files, of which a folder may not have both. If it has
/// neither, they are the tensilo files. Names that begin with `.` or `_` are passed over, except
/// folders `key=value`.
pub(super) fn data_files(root: &Path) -> Result<Vec<PathBuf>> {
    if let Some(shards) = saved::shards(root)? {
        return Ok(shards);
    }
    let mut walk = FolderWalk::default();
    walk.all(root)?;
    if let (true, Some(folder)) = (walk.found.are_arrow(), &walk.cache) {
        return Err(Error::bad_input(CACHE).with_path(folder));
    }
    walk.found.chosen().map_err(|error| error.with_path(root))
}

/// Data files that were found, by their formats.
#[derive(Default)]
pub(super) struct DataFiles {
    parquet: Vec<PathBuf>,
    arrow: Vec<PathBuf>,
    native: Vec<PathBuf>,
}

impl DataFiles {
    /// Takes a path, if its name is that of a data file. Returns whether it is.
    pub(super) fn take(&mut self, path: &Path) -> bool {
        let files = match path.file_name().and_then(format_of) {
            Some(DataFormat::Parquet) => &mut self.parquet,
            Some(DataFormat::Arrow) => &mut self.arrow,
            Some(DataFormat::Native) => &mut self.native,
            None => return false,
        };
        files.push(path.to_path_buf());
        true
    }

    /// Returns whether the files that are read are those of Arrow.
    pub(super) fn are_arrow(&self) -> bool {
        self.parquet.is_empty() && !self.arrow.is_empty()
    }

    /// Returns the files that are read, in the byte order of their paths.
    pub(super) fn chosen(self) -> Result<Vec<PathBuf>> {
        let mut files = match (self.parquet, self.arrow) {
            (parquet, arrow) if parquet.is_empty() && arrow.is_empty() => self.native,
            (parquet, arrow) if arrow.is_empty() => parquet,
            (parquet, arrow) if parquet.is_empty() => arrow,
            _ => {
                let message =
                    "the folder has Parquet and Arrow files; choose by a pattern, such as FOLDER/**/*.parquet";
                return Err(Error::bad_input(message));
            }
        };
        if files.is_empty() {
            let message = "neither the folder nor a folder in it has a *.parquet, *.arrow, *.feather or *.tsl file";
            return Err(Error::bad_input(message));
        }
        files.sort_by(|a, b| compare(a, b));
        Ok(files)
    }
}

/// Returns whether a name is that of a file or folder that is searched.
pub(super) fn is_visible(name: &[u8]) -> bool {
    !matches!(name.first(), Some(b'.' | b'_'))
}

/// Compares paths by the bytes of their components: the content of a folder follows it directly.
pub(super) fn compare(a: &Path, b: &Path) -> Ordering {
    fn components(path: &Path) -> impl Iterator<Item = &[u8]> {
        path.components().map(|component| component.as_os_str().as_encoded_bytes())
    }
    components(a).cmp(components(b))
}

/// A folder as it was reached, and its path without symbolic links.
struct Folder {
    path: PathBuf,
    canonical: PathBuf,
}

/// A search. It goes into every folder once: those reached through symbolic links come last, and
/// only if they were not reached otherwise. So a loop of links ends, and a link to a sibling adds
/// nothing.
#[derive(Default)]
struct FolderWalk {
    found: DataFiles,
    /// A folder that the library `datasets` describes, without the state of a saved dataset.
    cache: Option<PathBuf>,
    folders: Vec<Folder>,
    links: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
}

impl FolderWalk {
    fn all(&mut self, root: &Path) -> Result<()> {
        self.links.push(root.to_path_buf());
        while !self.links.is_empty() {
            self.links.sort_by(|a, b| compare(b, a)); // the first is taken from the end
            let Some(path) = self.links.pop() else { break };
            let canonical = fs::canonicalize(&path).map_err(|error| listing(&path, error))?;
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
        let failed = |error| listing(&folder.path, error);
        for entry in fs::read_dir(&folder.path).map_err(failed)? {
            self.entry(folder, &entry.map_err(failed)?)?;
        }
        Ok(())
    }

    fn entry(&mut self, folder: &Folder, entry: &DirEntry) -> Result<()> {
        let (name, path) = (entry.file_name(), entry.path());
        let file_type = entry.file_type().map_err(|error| listing(&path, error))?;
        let (mut is_folder, mut is_file) = (file_type.is_dir(), file_type.is_file());
        if file_type.is_symlink() {
            // a link without a target is an error only if its name is that of a data file
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

fn listing(path: &Path, error: io::Error) -> Error {
    Error::io("listing the folder", error).with_path(path)
}

/// Refuses a saved dataset inside a folder: its files have an order of their own.
fn check_not_saved(folder: &Path, name: &OsStr) -> Result<()> {
    if saved::MARKS.iter().any(|mark| name == *mark) && saved::shards(folder)?.is_some() {
        let message =
            "the folder was saved by the library datasets, and is an input by itself; give it by its own path";
        return Err(Error::bad_input(message).with_path(folder));
    }
    Ok(())
}

enum DataFormat {
    Parquet,
    Arrow,
    Native,
}

fn format_of(name: &OsStr) -> Option<DataFormat> {
    let extension = Path::new(name).extension()?;
    match extension.to_ascii_lowercase().as_encoded_bytes() {
        b"parquet" => Some(DataFormat::Parquet),
        b"arrow" | b"feather" => Some(DataFormat::Arrow),
        b"tsl" => Some(DataFormat::Native),
        _ => None,
    }
}
