//! The command line program, and what its commands compute as values of Python.
//!
//! A command is called in this process, and not run as another one: its document becomes a dict,
//! its error an exception, and Ctrl-C ends it, as with all long work of the package.

use crate::options::Natural;
use crate::work::{Progress, run, wait_for};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo_cli::embed;

/// Runs the program `tensilo` with these arguments, of which the first is its name, and returns its
/// exit code.
#[pyfunction]
pub fn _main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| tensilo_cli::run(arguments))
}

/// Describes a file or a dataset: see `tensilo.inspect`.
#[pyfunction]
pub fn _inspect(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let document = wait_for(py, move || embed::inspect(&path))?;
    object(py, &document)
}

/// Saves what is intact: see `tensilo.salvage`.
#[pyfunction]
pub fn _salvage(py: Python<'_>, path: PathBuf, output: Option<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let document = run(py, None, |progress| {
        let mut tell = |phase, done, total| progress.tell(phase, done, total);
        embed::salvage(&path, output.as_deref(), &mut tell)
    })?;
    object(py, &document)
}

/// Draws a file or a dataset: see `tensilo.draw_layout`.
#[pyfunction]
pub fn _draw_layout(py: Python<'_>, path: PathBuf, width: Natural<u32>, verify: bool) -> PyResult<String> {
    let progress = Arc::new(Progress::default());
    let told = Arc::clone(&progress);
    let drawn = wait_for(py, move || {
        let mut tell = |phase, done, total| told.tell(phase, done, total);
        embed::draw_layout(&path, width.0, verify, &mut tell)
    });
    if drawn.is_err() {
        progress.cancel(); // nothing waits for the thread after Ctrl-C
    }
    drawn
}

/// Returns a document as dicts and lists.
fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(members) => {
            let members: Vec<_> = members.iter().map(|member| object(py, member)).collect::<PyResult<_>>()?;
            PyList::new(py, members)?.into_any()
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (name, member) in members {
                dict.set_item(name, object(py, member)?)?;
            }
            dict.into_any()
        }
    })
}
