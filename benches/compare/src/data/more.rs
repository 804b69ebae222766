//! Data sets from a folder of the user: `sets.json` lists raw little-endian files with their
//! element types and shapes. `data/make.py` makes such a folder.

use super::{Dataset, Element};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "sets.json";
const SCHEMA: &str = "tensilo.compare.data/1";

/// The element types that the list may contain.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    Bf16,
    F32,
    F64,
    I16,
    I32,
    I64,
}

#[derive(Deserialize)]
struct List {
    schema: String,
    sets: Vec<DatasetEntry>,
}

/// A data set of the list, before it is read.
#[derive(Deserialize)]
pub struct DatasetEntry {
    /// The name of the file, and of the data set.
    pub name: String,
    pub dtype: ElementType,
    /// The shape of a sample.
    shape: Vec<u32>,
    origin: String,
    #[serde(skip)]
    folder: PathBuf,
}

/// Reads the list of a folder.
pub fn list(folder: &Path) -> Result<Vec<DatasetEntry>> {
    let path = folder.join(LIST);
    let read = || -> Result<Vec<DatasetEntry>> {
        let list: List = serde_json::from_slice(&fs::read(&path)?)?;
        ensure!(list.schema == SCHEMA, "unknown schema {}, expected {SCHEMA}", list.schema);
        Ok(list.sets)
    };
    let mut sets = read().with_context(|| path.display().to_string())?;
    for set in &mut sets {
        ensure!(
            is_plain(&set.name),
            "{}: {:?} is not a plain file name; use letters, digits, dots, dashes and underscores",
            path.display(),
            set.name
        );
        set.folder = folder.to_path_buf();
    }
    Ok(sets)
}

/// Returns whether the name consists of letters, digits, dots, dashes and underscores, and does not
/// begin with a dot.
fn is_plain(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_allowed)
}

impl DatasetEntry {
    /// Reads the values. `T` must match `dtype`.
    pub fn load<T: Element>(&self) -> Result<Dataset<T>> {
        let path = self.folder.join(&self.name);
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let width = size_of::<T>();
        ensure!(
            bytes.len().is_multiple_of(width),
            "{}: {} bytes are not a multiple of the element size, {width}",
            path.display(),
            bytes.len()
        );
        Dataset::new(&self.name, &self.shape, bytemuck::pod_collect_to_vec(&bytes), self.origin.clone())
    }
}
