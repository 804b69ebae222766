//! The environment of a test run: its variables, the repository, and programs that some machines
//! lack.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::LazyLock;

/// Returns the number in an environment variable, or `default` if the variable is unset or not a
/// number.
pub fn env_or<T: FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// Returns the root of the repository: the copy that `TENSILO_REPOSITORY` names, or else the copy
/// from which this crate was built.
pub fn repository() -> PathBuf {
    std::env::var_os("TENSILO_REPOSITORY")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}

/// Returns a command that runs `python3`, if it is Python 3.9 or later and has the package
/// zstandard, which the second implementation of the reader needs. Otherwise, does the same as
/// [`available`] with the variable `TENSILO_REQUIRE_PYTHON`.
pub fn python() -> Option<Command> {
    static PROBLEM: LazyLock<Option<String>> = LazyLock::new(|| {
        let probe = ["-c", "import sys, zstandard; assert sys.version_info >= (3, 9)"];
        match Command::new("python3").args(probe).output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Some(error.to_string()),
        }
    });
    let found = PROBLEM.as_ref().map_or_else(|| Ok(Command::new("python3")), |problem| Err(problem.clone()));
    available("python3 (3.9 or later) with the package zstandard", found, "TENSILO_REQUIRE_PYTHON")
}

/// Returns something that a test needs in addition to Rust, if the machine has it.
///
/// Otherwise, reports that the test was not run, and the caller skips the test or a section of it.
/// If `variable` is set to 1, panics instead.
pub fn available<T, E: Display>(need: &str, found: Result<T, E>, variable: &str) -> Option<T> {
    let is_required = std::env::var(variable).is_ok_and(|value| value == "1");
    match found {
        Ok(found) => Some(found),
        Err(problem) if is_required => panic!("{need} is missing, but {variable}=1 requires it: {problem}"),
        Err(_) => {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            // written directly, because libtest hides output of the print macros in passing tests
            let _ = writeln!(std::io::stderr(), "not run: {test}: needs {need}");
            None
        }
    }
}
