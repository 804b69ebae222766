//! Folders that the Python library `datasets` saved (`Dataset.save_to_disk`).

use crate::{Error, Result};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The files by which such a folder is recognised.
const STATE: &str = "state.json";
const DICT: &str = "dataset_dict.json";
/// Both.
pub(super) const MARKS: [&str; 2] = [STATE, DICT];
/// The most bytes of a document, far more than a list of shards takes.
const JSON_BYTES: u64 = 64 << 20;

/// Returns the shards of a saved dataset, in its order. `None`: the folder is another.
///
/// Several datasets that were saved together (`DatasetDict`) are refused, because they are as many
/// inputs.
pub(super) fn shards(folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let refuse = |message: String| Error::bad_input(message).with_path(folder);
    if let Some(splits) = json(folder, DICT)?.as_ref().and_then(|dict| dict.get("splits")?.as_array()) {
        let splits: Vec<String> = splits.iter().filter_map(Value::as_str).map(|split| format!("{split:?}")).collect();
        let message = format!("the folder has several datasets ({}); give one of these subfolders", splits.join(", "));
        return Err(refuse(message));
    }
    let Some(state) = json(folder, STATE)? else { return Ok(None) };
    let Some(files) = state.get("_data_files").and_then(Value::as_array) else { return Ok(None) };
    let is_mapped = |key: &&str| match state.get(key) {
        None | Some(Value::Null) => false,
        Some(indices) => indices.as_array().is_none_or(|files| !files.is_empty()),
    };
    if ["_indices_files", "_indices_data_files"].iter().any(is_mapped) {
        let message = "the dataset was saved with a selection of rows beside its data; save it again after \
                       flatten_indices()";
        return Err(refuse(message.to_owned()));
    }
    let shard = |file: &Value| {
        let name = file.get("filename").and_then(Value::as_str).unwrap_or_default();
        let is_plain = matches!(Path::new(name).components().collect::<Vec<_>>().as_slice(), [Component::Normal(_)]);
        let outside = || refuse(format!("{STATE} has a shard {name:?}, which is not a file of this folder"));
        if is_plain { Ok(folder.join(name)) } else { Err(outside()) }
    };
    let shards = files.iter().map(shard).collect::<Result<Vec<PathBuf>>>()?;
    if shards.is_empty() {
        return Err(refuse(format!("{STATE} has no shards")));
    }
    Ok(Some(shards))
}

/// Reads a document in a folder. Returns `None` if it does not exist.
fn json(folder: &Path, name: &str) -> Result<Option<Value>> {
    let path = folder.join(name);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(JSON_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("reading what the folder holds", error).with_path(&path)),
    }
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|error| Error::bad_input(format!("is not JSON: {error}")).with_path(&path))
}
