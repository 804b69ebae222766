//! Reads the vectors of the specification.

use serde_json::Value as Json;
use std::fs;
use std::path::PathBuf;
use tensilo_testing::vector_files;

pub use tensilo_testing::vector as bytes;

/// The folder of the specification, with the second reader, `reader.py`.
pub fn spec_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("format-spec")
}

/// A JSON file among the vectors.
pub fn json(path: &str) -> Json {
    serde_json::from_slice(&vector_files()[path]).unwrap()
}

/// The manifest's entries for valid or for invalid vectors.
pub fn vectors(valid: bool) -> Vec<Json> {
    let text = fs::read_to_string(spec_folder().join("vectors/manifest.json")).unwrap();
    let manifest: Json = serde_json::from_str(&text).unwrap();
    let all = manifest["vectors"].as_array().unwrap();
    all.iter().filter(|vector| vector["valid"] == valid).cloned().collect()
}

/// The file of an entry.
pub fn file_of(vector: &Json) -> &str {
    vector["file"].as_str().unwrap()
}
