//! The environment of a test run: its variables, the repository, Python.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// Returns the number in an environment variable, or `default` if the variable is unset or holds no
/// number.
pub fn asked<T: FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether Python 3.9 or later with the package zstandard, which the second reader needs, is
/// installed. If not, a test prints that it was not run, or panics if `TENSILO_REQUIRE_PYTHON=1`.
pub fn python_is_present() -> bool {
    let probe =
        Command::new("python3").args(["-c", "import sys, zstandard; assert sys.version_info >= (3, 9)"]).output();
    let problem = match probe {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let must = std::env::var("TENSILO_REQUIRE_PYTHON").is_ok_and(|value| value == "1");
    assert!(!must, "python3 (3.9 or later) with the package zstandard is needed: {problem}");
    println!("not run: python3 (3.9 or later) with the package zstandard is not installed");
    false
}
