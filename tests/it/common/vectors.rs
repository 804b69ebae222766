//! Reads the vectors of the specification.

use serde_json::Value as Json;
use std::fs;
use std::path::PathBuf;
use tensilo_testing::commented_hex;

/// The folder of the specification, with the second reader, `reader.py`.
pub fn spec_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("format-spec")
}

fn folder() -> PathBuf {
    spec_folder().join("vectors")
}

/// A JSON file among the vectors.
pub fn json(path: &str) -> Json {
    let text = fs::read_to_string(folder().join(path)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The bytes of a commented hex file.
pub fn bytes(path: &str) -> Vec<u8> {
    commented_hex(&fs::read_to_string(folder().join(path)).unwrap())
}

/// The manifest's entries for valid or for invalid vectors.
pub fn vectors(valid: bool) -> Vec<Json> {
    let manifest = json("manifest.json");
    let all = manifest["vectors"].as_array().unwrap();
    all.iter().filter(|vector| vector["valid"] == valid).cloned().collect()
}

/// The file of an entry.
pub fn file_of(vector: &Json) -> &str {
    vector["file"].as_str().unwrap()
}
