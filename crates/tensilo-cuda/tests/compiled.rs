//! The machine code in `kernels/compiled` was built from the current kernels.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// `build.py --check`, which `.ci/full` runs, compiles and compares the code itself.
#[test]
fn kernels_were_compiled_since_they_were_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_source = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        name.ends_with(".h") || name == "build.py" || name == "decode.cu"
    };
    let mut sources: Vec<PathBuf> = entries.filter(is_source).collect();
    sources.sort();
    assert!(sources.len() > 8, "{sources:?}");
    let mut digest = Sha256::new();
    for source in sources {
        digest.update(source.file_name().unwrap().as_encoded_bytes());
        digest.update([0]);
        digest.update(fs::read(source).unwrap());
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let compiled = fs::read_to_string(folder.join("compiled/sources")).unwrap();
    assert_eq!(compiled.trim(), digest, "run python3 crates/tensilo-cuda/kernels/build.py");
}
