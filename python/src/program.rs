//! The command line program.

use pyo3::prelude::*;

/// Runs the program `tensilo` with these arguments, of which the first is its name, and returns its
/// exit code.
#[pyfunction]
pub fn _main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| tensilo_cli::run(arguments))
}
