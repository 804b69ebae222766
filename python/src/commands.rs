//! CLI commands as functions: `verify`, `inspect`, `salvage`, `draw_layout`, and the CLI itself.
//!
//! Commands run in this process, not in a subprocess whose output would have to be parsed. So a
//! report becomes a dict, an error becomes an exception, and Ctrl-C stops a command, like all other
//! long work of the package. `verify` calls the library and returns a dict per file; the other
//! commands call [`tensilo_cli::embed`].

use crate::arguments::{Natural, Threads};
use crate::dataset::source::is_pattern;
use crate::work::{Progress, run, wait_for};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::facts::RegionKind;
use tensilo::verify::{FileState, Finding, FindingKind, VerifyOptions, VerifyReport, verify};
use tensilo_cli::embed;
use tensilo_data::{DataError, Dataset};
use tensilo_object::{Address, source_at};

/// Runs the `tensilo` program and returns its exit code. The first argument is the program name.
#[pyfunction]
pub fn _main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| tensilo_cli::run(arguments))
}

/// Describes a file or a dataset, see `tensilo.inspect`.
#[pyfunction]
pub fn _inspect(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let document = wait_for(py, move || embed::inspect(&path))?;
    object(py, &document)
}

/// Recovers the intact samples of a file, see `tensilo.salvage`.
#[pyfunction]
pub fn _salvage(py: Python<'_>, path: PathBuf, output: Option<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let document = run(py, None, |progress| {
        let mut update = |phase, done, total| progress.update(phase, done, total);
        embed::salvage(&path, output.as_deref(), &mut update)
    })?;
    object(py, &document)
}

/// Draws the layout of a file or a dataset, see `tensilo.draw_layout`.
#[pyfunction]
pub fn _draw_layout(py: Python<'_>, path: PathBuf, width: Natural<u32>, verify: bool) -> PyResult<String> {
    let progress = Arc::new(Progress::default());
    let thread_progress = Arc::clone(&progress);
    let drawn = wait_for(py, move || {
        let mut update = |phase, done, total| thread_progress.update(phase, done, total);
        embed::draw_layout(&path, width.0, verify, &mut update)
    });
    if drawn.is_err() {
        progress.cancel(); // after Ctrl-C, the thread is still running
    }
    drawn
}

/// Converts a JSON document to dicts and lists.
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

/// The result of verifying one file.
struct FileReport {
    path: PathBuf,
    /// The report, or why the file cannot be opened or does not belong to the dataset.
    found: Result<VerifyReport, String>,
}

/// Verifies every byte, see `tensilo.verify`. Returns a dict per file.
#[pyfunction]
#[pyo3(signature = (path, *, deep, threads, progress))]
pub fn _verify(
    py: Python<'_>,
    path: PathBuf,
    deep: bool,
    threads: Threads,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyList>> {
    let threads = threads.or_all_cpus().min(1024);
    let reports = run(py, progress.as_ref(), move |progress| {
        let is_dataset = Address::is_dataset_prefix(&path) || path.is_dir() || is_pattern(&path);
        let files = match is_dataset {
            true => Dataset::files_without_manifest(&path)?,
            false => Some(vec![path.clone()]),
        };
        let mut done = 0;
        let mut check = |bytes: u64, report: &dyn Fn(VerifyOptions<'_>) -> tensilo::Result<VerifyReport>| {
            let mut update = |bytes| -> ControlFlow<()> { progress.update("verifying", done + bytes, None) };
            let report = report(VerifyOptions::new().deep(deep).threads(threads).progress(&mut update));
            done += bytes;
            report
        };
        let mut reports = Vec::new();
        if let Some(files) = files {
            for path in files {
                let source = source_at(&path)?;
                let found = check(source.byte_count(), &|options| verify(&*source, options))?;
                reports.push(FileReport { path, found: Ok(found) });
            }
            return Ok(reports);
        }
        let dataset = Dataset::open(&path)?;
        match dataset.check_lineage() {
            Ok(()) => {}
            Err(ref error @ DataError::Corrupt { ref path, .. }) => {
                reports.push(FileReport { path: path.clone(), found: Err(error.to_string()) });
            }
            Err(error) => return Err(error),
        }
        for group in dataset.groups() {
            let group = group?;
            for (number, file) in group.files.iter().enumerate() {
                let found = match dataset.open_file(&group, number) {
                    Ok(reader) => Ok(only_damaged(check(reader.file_bytes(), &|options| reader.verify(options))?)),
                    Err(error) if error.is_permanent() => Err(error.to_string()),
                    Err(error) => return Err(error),
                };
                reports.push(FileReport { path: file.path.clone(), found });
            }
        }
        Ok(reports)
    })?;
    let reports: Vec<_> = reports.iter().map(|report| file_dict(py, report)).collect::<PyResult<_>>()?;
    PyList::new(py, reports)
}

/// Keeps only the findings that affect a dataset. A dataset never reads the bytes that an
/// interrupted writer left after the last commit, so findings about these bytes are dropped.
fn only_damaged(mut report: VerifyReport) -> VerifyReport {
    report.findings.retain(|finding| finding.kind == FindingKind::Damaged);
    report
}

fn file_dict<'py>(py: Python<'py>, file: &FileReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("path", file.path.to_string_lossy())?;
    let (report, message) = match &file.found {
        Ok(report) => (Some(report), None),
        Err(message) => (None, Some(message)),
    };
    dict.set_item("message", message)?;
    dict.set_item("state", report.map_or(FileState::Damaged, VerifyReport::state).name())?;
    dict.set_item("file_bytes", report.map(|report| report.file_bytes))?;
    dict.set_item("sample_count", report.and_then(|report| report.sample_count))?;
    let findings = report.map_or(&[][..], |report| &report.findings);
    let findings: Vec<_> =
        findings.iter().map(|finding| finding_dict(py, &file.path, finding)).collect::<PyResult<_>>()?;
    dict.set_item("findings", findings)?;
    Ok(dict)
}

fn finding_dict<'py>(py: Python<'py>, path: &Path, finding: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let range = &finding.file_range;
    dict.set_item("path", path.to_string_lossy())?;
    dict.set_item("kind", finding.kind.name())?;
    dict.set_item("offset", range.start)?;
    dict.set_item("bytes", range.end.saturating_sub(range.start))?;
    dict.set_item("region", finding.region.map(RegionKind::name))?;
    dict.set_item("column", finding.column.as_deref())?;
    dict.set_item("samples", finding.samples.as_ref().map(|samples| (samples.start, samples.end)))?;
    dict.set_item("rule", finding.error.rule())?;
    dict.set_item("message", finding.error.message())?;
    Ok(dict)
}
