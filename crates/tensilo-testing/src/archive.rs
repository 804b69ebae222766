//! Test files that the repository keeps in archives: the vectors of the specification and the
//! inputs of the fuzz targets.
//!
//! Thousands of small files would be slow to check out and to list. Tests read the archives
//! directly, so there are no unpacked files that could be out of date.

use crate::repository;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

/// The files of an archive: the content of each, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Returns the files of a tar archive of the repository.
pub fn archive(path: &str) -> Files {
    read(&repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(path: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in tar::Archive::new(File::open(path)?).entries()? {
        let mut entry = entry?;
        let name = String::from_utf8(entry.path_bytes().into_owned()).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.insert(name, bytes);
    }
    Ok(files)
}

/// Returns all files of the archives in `format-spec/vectors`. Names are paths below that folder.
pub fn vector_files() -> &'static Files {
    static FILES: LazyLock<Files> = LazyLock::new(|| {
        let names = ["valid", "invalid", "manifests"];
        names.into_iter().flat_map(|name| archive(&format!("format-spec/vectors/{name}.tar"))).collect()
    });
    &FILES
}

/// Returns the tensilo file that a test vector of the specification describes. A name is, for
/// example, `valid/worked.hex`.
pub fn vector(name: &str) -> Vec<u8> {
    let text = vector_files().get(name).unwrap_or_else(|| panic!("there is no vector {name}"));
    commented_hex(std::str::from_utf8(text).expect("a vector is text"))
}

/// Parses hexadecimal bytes, with comments after `#`.
fn commented_hex(text: &str) -> Vec<u8> {
    let uncommented = text.lines().filter_map(|line| line.split('#').next());
    let digits = uncommented.flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}
