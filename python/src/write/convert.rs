//! `convert`, `append` and `add_columns`.
//!
//! The crates do the work. This file parses the Python options, chooses between a file and the
//! folder of a dataset, and runs the work without the GIL. A file or a version appears only when it
//! is complete, so a conversion that fails or is interrupted leaves nothing behind.

use crate::arguments::{ByteCount, Dict, Threads, casts};
use crate::error::OrRaise;
use crate::work::{self, Progress};
use crate::write::inputs::Inputs;
use crate::write::options::{
    DEFAULT_SHARD_BYTES, Profiles, is_folder, null_elements, paths, publish, refuse_manifest, shapes,
    source_date_epoch, writer_options,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tensilo::import::{self, AppendOptions, ConvertOptions};
use tensilo::sink::AtomicFile;
use tensilo_data::{DataFile, Dataset};
use tensilo_object::Address;

/// Reports the progress of a conversion.
pub fn update(progress: &Progress, at: import::Progress) -> ControlFlow<()> {
    match at {
        import::Progress::Scanning { done, total } => progress.update("scanning", done, total),
        import::Progress::Converting { done, total } => progress.update("converting", done, total),
        _ => progress.update("working", 0, None), // the enum is non-exhaustive
    }
}

/// The options that determine the content of the output.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Conversion<'py> {
    bf16: bool,
    casts: Option<Dict<'py>>,
    columns: Option<Vec<String>>,
    skip: Vec<String>,
    rename: HashMap<String, String>,
    shapes: Option<Dict<'py>>,
    null_elements: String,
    profile: Profiles,
    file_is_sample: bool,
    ignore_statistics: bool,
}

impl Conversion<'_> {
    /// Converts the options to the options of the crates, for these inputs.
    pub fn to_options(&self, inputs: &Inputs, threads: &Threads) -> PyResult<ConvertOptions> {
        let options = ConvertOptions::new()
            .bf16(self.bf16)
            .casts(casts(self.casts.as_ref())?)
            .skip(&self.skip)
            .renames(&self.rename)
            .shapes(shapes(self.shapes.as_ref())?)
            .null_elements(null_elements(&self.null_elements)?)
            .ignore_statistics(self.ignore_statistics)
            .writer(writer_options(&self.profile, threads)?)
            .formats(inputs.formats(self.file_is_sample))
            .store(inputs.store());
        Ok(match &self.columns {
            Some(columns) => options.columns(columns),
            None => options,
        })
    }
}

/// Converts files, see `tensilo.convert`. Returns the metadata keys that were left out.
#[pyfunction]
#[pyo3(signature = (inputs, output, options, *, shard_bytes, threads, overwrite, progress))]
#[expect(clippy::too_many_arguments, reason = "one parameter per Python argument")]
pub fn _convert(
    py: Python<'_>,
    inputs: Bound<'_, PyAny>,
    output: PathBuf,
    options: Conversion<'_>,
    shard_bytes: Option<ByteCount>,
    threads: Threads,
    overwrite: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let is_folder = shard_bytes.is_some() || is_folder(&output);
    if is_folder {
        refuse_manifest(&output)?;
    }
    let inputs = Inputs::from_object(&inputs, &output)?;
    let options = options.to_options(&inputs, &threads)?.overwrite(overwrite);
    let (inputs, unreadable) = (inputs.paths, inputs.unreadable);
    let converted = work::run(py, progress.as_ref(), move |progress| {
        let mut update = |at| update(progress, at);
        if !is_folder {
            let schema = if Address::is_url_path(&output) {
                let begin = &mut || DataFile::create(&output, overwrite);
                import::convert_with(&inputs, begin, &options, &mut update)?.schema
            } else {
                let begin = &mut || AtomicFile::create(&output, overwrite);
                import::convert_with(&inputs, begin, &options, &mut update)?.schema
            };
            return Ok(import::dropped_metadata(&schema));
        }
        let time = source_date_epoch()?;
        let mut changes = Dataset::create(&output)?;
        let shard_bytes = shard_bytes.map_or(DEFAULT_SHARD_BYTES, |count| count.0);
        changes.import(&inputs, shard_bytes, &options, &mut update)?;
        if changes.sample_count() == 0 {
            let message = "the inputs have no samples, so there is no dataset to create";
            return Err(tensilo_data::DataError::BadArgument(message.to_owned()));
        }
        let dropped = import::dropped_metadata(&changes.schema());
        publish(changes, "convert", time)?;
        Ok(dropped)
    });
    unreadable.warned(py, converted)
}

/// Appends files to a file or a dataset, see `tensilo.append`.
#[pyfunction]
#[pyo3(signature = (target, inputs, *, skip_extra_columns, file_is_sample, null_elements, profile, shard_bytes, threads, discard_tail, progress))]
#[expect(clippy::too_many_arguments, reason = "one parameter per Python argument")]
pub fn _append(
    py: Python<'_>,
    target: PathBuf,
    inputs: Bound<'_, PyAny>,
    skip_extra_columns: bool,
    file_is_sample: bool,
    null_elements: &str,
    profile: Profiles,
    shard_bytes: Option<ByteCount>,
    threads: Threads,
    discard_tail: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let inputs = Inputs::from_object(&inputs, &target)?;
    let writer = writer_options(&profile, &threads)?.discard_tail(discard_tail);
    let options =
        AppendOptions::new().skip_extra_columns(skip_extra_columns).null_elements(self::null_elements(null_elements)?);
    let options = options.writer(writer).formats(inputs.formats(file_is_sample)).store(inputs.store());
    let (inputs, unreadable) = (inputs.paths, inputs.unreadable);
    if !Address::is_dataset_prefix(&target) && !target.is_dir() {
        if shard_bytes.is_some() {
            return Err(PyValueError::new_err(format!(
                "{}: shard_bytes is only for datasets, not for a file",
                target.display()
            )));
        }
        let appended = work::run(py, progress.as_ref(), move |progress| {
            Ok(import::append(&inputs, &target, &options, &mut |at| update(progress, at))?)
        });
        return unreadable.warned(py, appended);
    }
    let appended = work::run(py, progress.as_ref(), move |progress| {
        let time = source_date_epoch()?;
        let dataset = Dataset::open(&target)?;
        let mut changes = dataset.change()?;
        let shard_bytes = shard_bytes.map_or(u64::MAX, |count| count.0);
        changes.append_rows(&inputs, shard_bytes, &options, &mut |at| update(progress, at))?;
        let appended = changes.sample_count().saturating_sub(dataset.sample_count());
        if appended > 0 {
            publish(changes, "append", time)?;
        }
        Ok(appended)
    });
    unreadable.warned(py, appended)
}

/// Adds columns to a dataset, from tensilo files that contain them for all samples.
///
/// Args:
///     folder (path): the folder of the dataset, with a manifest.
///     files (path or list of paths): a path, a pattern or a list of tensilo files in the folder:
///         one per data file of the dataset, in the same order and with the same number of samples.
///
/// Raises:
///     ConflictError: another writer has published a version in the meantime.
#[pyfunction]
pub fn add_columns(py: Python<'_>, folder: PathBuf, files: Bound<'_, PyAny>) -> PyResult<()> {
    let mut files = paths(&files)?;
    if let [pattern] = files.as_slice()
        && !pattern.exists()
        && let Some(found) = py.detach(|| Dataset::files_without_manifest(pattern)).or_raise(py)?
    {
        files = found;
    }
    work::run(py, None, move |_| {
        let time = source_date_epoch()?;
        let mut changes = Dataset::open(&folder)?.change()?;
        changes.add_columns(&files)?;
        publish(changes, "add columns", time)
    })
}
