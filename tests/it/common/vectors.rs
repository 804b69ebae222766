//! Loads the vectors of the specification.

use serde_json::Value as Json;
use std::fs;
use std::path::PathBuf;
use tensilo_testing::vector_files;

pub use tensilo_testing::vector as bytes;

/// Returns the folder of the specification, which also has the second reader, `reader.py`.
pub fn spec_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("format-spec")
}

/// Returns a JSON file of the vectors.
pub fn json(path: &str) -> Json {
    serde_json::from_slice(&vector_files()[path]).unwrap()
}

/// Returns the manifest's entries for valid or for invalid vectors.
pub fn vectors(valid: bool) -> Vec<Json> {
    let text = fs::read_to_string(spec_folder().join("vectors/manifest.json")).unwrap();
    let manifest: Json = serde_json::from_str(&text).unwrap();
    let all = manifest["vectors"].as_array().unwrap();
    all.iter().filter(|vector| vector["valid"] == valid).cloned().collect()
}

/// Returns the file name of an entry.
pub fn file_of(vector: &Json) -> &str {
    vector["file"].as_str().unwrap()
}
