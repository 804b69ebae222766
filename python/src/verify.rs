//! Verification of files and datasets.

use crate::options::Threads;
use crate::source::is_pattern;
use crate::work;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::facts::RegionKind;
use tensilo::verify::{Damage, DamageKind, FileState, VerifyOptions, VerifyReport, verify};
use tensilo_data::{DataError, Dataset};
use tensilo_object::{Address, source_at};

/// What was found in one file.
struct FileReport {
    path: PathBuf,
    /// A report, or the reason why the file is not the one of the dataset.
    found: Result<VerifyReport, String>,
}

/// Checks every byte: see `tensilo.verify`. Returns a dict for each file.
#[pyfunction]
#[pyo3(signature = (path, *, deep, threads, progress))]
pub fn _verify(
    py: Python<'_>,
    path: PathBuf,
    deep: bool,
    threads: Threads,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyList>> {
    let threads = threads.of_writer().min(1024);
    let reports = work::run(py, progress.as_ref(), move |progress| {
        let is_dataset = Address::is_prefix(&path) || path.is_dir() || is_pattern(&path);
        let files = match is_dataset {
            true => Dataset::files_without_manifest(&path)?,
            false => Some(vec![path.clone()]),
        };
        let mut done = 0;
        let mut check = |source: &dyn tensilo::source::Source| {
            let mut tell = |bytes| -> ControlFlow<()> { progress.tell("verifying", done + bytes, None) };
            let options = VerifyOptions::new().decode(deep).threads(threads).progress(&mut tell);
            let report = verify(source, options);
            done += source.byte_count();
            report
        };
        let mut reports = Vec::new();
        if let Some(files) = files {
            for path in files {
                let found = check(&*source_at(&path)?)?;
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
                    Ok(_) => Ok(listed(check(&*source_at(&file.path)?)?)),
                    Err(error) => Err(error.to_string()),
                };
                reports.push(FileReport { path: file.path.clone(), found });
            }
        }
        Ok(reports)
    })?;
    let reports: Vec<_> = reports.iter().map(|report| file_dict(py, report)).collect::<PyResult<_>>()?;
    PyList::new(py, reports)
}

/// Returns the report on a file of a dataset, which reads an earlier commit of a file whose last
/// writer had not finished.
fn listed(mut report: VerifyReport) -> VerifyReport {
    report.damages.retain(|damage| damage.kind == DamageKind::Damaged);
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
    dict.set_item("bytes", report.map(|report| report.file_bytes))?;
    dict.set_item("samples", report.and_then(|report| report.sample_count))?;
    let damages = report.map_or(&[][..], |report| &report.damages);
    let damages: Vec<_> = damages.iter().map(|damage| damage_dict(py, &file.path, damage)).collect::<PyResult<_>>()?;
    dict.set_item("damages", damages)?;
    Ok(dict)
}

fn damage_dict<'py>(py: Python<'py>, path: &Path, damage: &Damage) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let range = &damage.file_range;
    dict.set_item("path", path.to_string_lossy())?;
    dict.set_item("kind", damage.kind.name())?;
    dict.set_item("offset", range.start)?;
    dict.set_item("bytes", range.end.saturating_sub(range.start))?;
    dict.set_item("region", damage.region.map(RegionKind::name))?;
    dict.set_item("column", damage.column.as_deref())?;
    dict.set_item("samples", damage.samples.as_ref().map(|samples| (samples.start, samples.end)))?;
    dict.set_item("rule", damage.error.rule())?;
    dict.set_item("message", damage.error.message())?;
    Ok(dict)
}
