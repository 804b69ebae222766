//! Refuses folders that contain a table of another library.
//!
//! Such a table consists of data files and a log, which says which of the files are valid. Deleted
//! and rewritten rows remain in files that the log no longer lists. Reading all files would bring
//! these rows back, some of them twice. So a file that is found through a folder, a prefix or a
//! pattern is refused if it belongs to such a table. A file that is named explicitly is read.

use crate::{Error, Result};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The format of a table.
struct TableFormat {
    /// The folder or file that every table of the format has.
    mark: &'static str,
    name: &'static str,
    /// Why the files of a table cannot be read individually.
    reason: &'static str,
    /// How to read such a table.
    reader: &'static str,
}

const TABLES: [TableFormat; 8] = [
    table("_delta_log", "a Delta table", "deltalake.DeltaTable(PATH).to_pyarrow_table()"),
    table(".hoodie", "a Hudi table", "hudi.HudiTableBuilder.from_base_uri(PATH).build().read_snapshot()"),
    table(ICEBERG, "an Iceberg table", "pyiceberg's Table.scan().to_arrow()"),
    table("_versions", "a Lance dataset", "lance.dataset(PATH).to_table()"),
    zarr("zarr.json"),
    zarr(".zgroup"),
    zarr(".zarray"),
    zarr(".zmetadata"),
];

/// The metadata folder of Iceberg, with files named `*`[`ICEBERG_FILE`].
const ICEBERG: &str = "metadata";
const ICEBERG_FILE: &str = ".metadata.json";

const REMOVED: &str = "whose files can contain rows that were removed or replaced";
const CHUNKS: &str = "whose files are chunks of arrays, not tables";

const fn table(mark: &'static str, name: &'static str, reader: &'static str) -> TableFormat {
    TableFormat { mark, name, reason: REMOVED, reader }
}

const fn zarr(mark: &'static str) -> TableFormat {
    let reader = "zarr.open(PATH), whose arrays can be saved as .npy";
    TableFormat { mark, name: "a Zarr store", reason: CHUNKS, reader }
}

impl TableFormat {
    fn error(&self, folder: &Path) -> Error {
        let Self { mark, name, reason, reader } = self;
        let message = format!(
            "the folder is {name} (it contains {mark:?}), {reason}; read it with its own library ({reader}) and \
             convert the result, or name individual files"
        );
        Error::bad_input(message).with_path(folder)
    }

    /// Returns whether a folder of the file system is a table of this format.
    fn is_at(&self, folder: &Path) -> bool {
        let mark = folder.join(self.mark);
        if self.mark != ICEBERG {
            return mark.symlink_metadata().is_ok();
        }
        let entries = fs::read_dir(mark).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| is_iceberg_metadata(name.as_encoded_bytes()))
    }
}

/// Returns whether a file has a name that Iceberg uses: `v1.metadata.json`, or
/// `00000-<uuid>.metadata.json`.
fn is_iceberg_metadata(name: &[u8]) -> bool {
    let number = name.strip_prefix(b"v").unwrap_or(name);
    name.ends_with(ICEBERG_FILE.as_bytes()) && number.first().is_some_and(u8::is_ascii_digit)
}

/// Refuses folders that are tables, or are inside a table.
pub(super) fn refuse<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let (mut seen, mut last) = (HashSet::new(), None);
    for folder in folders {
        // files of one folder are consecutive
        if last.replace(folder) == Some(folder) {
            continue;
        }
        // the folders that enclose a relative path are also checked
        let path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        for folder in path.ancestors() {
            if !seen.insert(folder.to_path_buf()) {
                break; // its enclosing folders have also been checked
            }
            if let Some(table) = TABLES.iter().find(|table| table.is_at(folder)) {
                return Err(table.error(folder));
            }
        }
    }
    Ok(())
}

/// Refuses the chosen addresses if they are in a table whose mark is among `all` addresses. If no
/// address is chosen, refuses any table.
pub(super) fn refuse_stored(all: &[PathBuf], chosen: &[PathBuf]) -> Result<()> {
    let around: HashSet<&Path> = chosen.iter().flat_map(|path| path.ancestors()).collect();
    let has_chosen = |folder: &Path| chosen.is_empty() || around.contains(folder);
    // a log can have thousands of addresses, so each table is collected only once
    let tables: BTreeMap<&Path, &TableFormat> = all.iter().filter_map(|path| marked(path)).collect();
    let refused = tables.into_iter().filter(|(folder, _)| has_chosen(folder));
    match refused.min_by_key(|(folder, _)| folder.components().count()) {
        Some((folder, table)) => Err(table.error(folder)),
        None => Ok(()),
    }
}

/// Returns the addresses where a table that contains a prefix would have its marks. Folders named
/// `key=value` or `data` can be inside a table.
pub(super) fn marks_around(prefix: &Path) -> Vec<PathBuf> {
    let is_inside = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
        name == b"data" || name.contains(&b'=')
    };
    // a mark cannot lie outside the bucket
    let is_in_bucket = |folder: &&Path| folder.components().nth(1).is_some();
    let around = prefix.ancestors().take_while(is_inside).filter_map(Path::parent).filter(is_in_bucket);
    let marks = || TABLES.iter().filter(|table| table.reason != CHUNKS).map(|table| table.mark);
    around.flat_map(|folder| marks().map(|mark| folder.join(mark))).collect()
}

/// Returns the outermost table whose mark is the address or one of its enclosing folders.
fn marked(path: &Path) -> Option<(&Path, &'static TableFormat)> {
    let tables = path.ancestors().filter_map(|mark| {
        let name = mark.file_name()?;
        let is_marked = |table: &&TableFormat| match table.mark {
            ICEBERG => {
                name == ICEBERG && path.file_name().is_some_and(|file| is_iceberg_metadata(file.as_encoded_bytes()))
            }
            mark => name == mark,
        };
        Some((mark.parent()?, TABLES.iter().find(is_marked)?))
    });
    tables.last()
}
