//! The second reader, `format-spec/reader.py`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether to go on: `false` only where Python is not there and the environment does not say that
/// it must be.
pub fn python_is_there() -> bool {
    let probe =
        Command::new("python3").args(["-c", "import sys, zstandard; assert sys.version_info >= (3, 9)"]).output();
    let problem = match probe {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let must = std::env::var("TENSILO_REQUIRE_PYTHON").is_ok_and(|value| value == "1");
    assert!(!must, "python3 (3.9 or later) with the package zstandard is needed: {problem}");
    println!("not run: python3 (3.9 or later) with the package zstandard is not there");
    false
}

/// The folder of the specification.
pub fn spec_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec")
}
