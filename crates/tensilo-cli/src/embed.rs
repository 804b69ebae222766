//! The results of `inspect`, `salvage` and `map`, as functions for the Python package.
//!
//! [`run`](crate::run) takes over the whole process: it installs signal handlers, prints, and
//! returns an exit code. A package for another language needs values, has its own handlers, and
//! raises its own errors. So these functions return documents and drawings, never write to the
//! terminal, and fail with a [`DataError`].
//!
//! The documents and drawings are made by the code of the commands. Only the steps that show a
//! progress bar are repeated here, with a [`ProgressCallback`] instead, because the progress bar of
//! a command reacts only to signals that the handlers of `run` catch.

use crate::commands::dataset::DatasetFacts;
use crate::commands::inspect;
use crate::commands::layout::{Form, Subject, draw_dataset, draw_file};
use crate::commands::salvage::{FileLosses, SalvageReport, create_like, dataset_document};
use crate::failure::Failure;
use crate::open;
use crate::options::threads;
pub use crate::terminal::ProgressCallback;
use serde_json::Value;
use std::io;
use std::path::Path;
use tensilo::salvage::{RewriteOptions, SalvageOptions, Salvaged, salvage as find_intact};
use tensilo::sink::Sink;
use tensilo::{Error, Summary, WriterOptions};
use tensilo_data::{DataError, DataFile, Dataset};

/// Returns the document of `tensilo inspect --json`: the columns, sizes, encodings and metadata of
/// a file or a dataset.
///
/// # Errors
///
/// The file or the dataset cannot be opened or read.
pub fn inspect(path: &Path) -> Result<Value, DataError> {
    if let Some(dataset) = open::dataset(path)? {
        return Ok(inspect::dataset_document(&dataset, &DatasetFacts::of(&dataset, true)?));
    }
    Ok(inspect::document(&open::open(path, true)?, None)?)
}

/// Finds the intact samples of a damaged file or dataset, writes them to `output` if it is given,
/// and returns the document of `tensilo salvage --json`.
///
/// # Errors
///
/// Nothing can be salvaged, reading or writing failed, or the output path exists.
pub fn salvage(path: &Path, output: Option<&Path>, report_progress: ProgressCallback<'_>) -> Result<Value, DataError> {
    if let Some(dataset) = open::dataset(path)? {
        return salvage_dataset(&dataset, output, report_progress);
    }
    let source = open::source(path)?;
    let output = output.map(|path| Ok::<_, DataError>((path, DataFile::create(path, false)?))).transpose()?;
    let mut look = |done, total| report_progress("looking for chunks", done, Some(total));
    let options = SalvageOptions::new().deep(true).progress(&mut look);
    let salvaged = find_intact(source, options).map_err(|error| Failure::about(path, error))?;
    let written = output.map(|(path, output)| Ok::<_, DataError>((path, rewrite(&salvaged, output, report_progress)?)));
    let written = written.transpose()?;
    let written = written.as_ref().map(|(path, summary)| (*path, summary));
    Ok(SalvageReport { salvaged: &salvaged, written }.document())
}

/// Returns the drawing of `tensilo layout --svg`: the chunks of a file to scale, or the files of a
/// dataset. If `verify`, also checks every byte of a file and draws the damage.
///
/// # Errors
///
/// The width is not 600 to 10000 pixels, `verify` is set for a dataset, or the file or the dataset
/// cannot be opened or read.
pub fn draw_layout(
    path: &Path,
    width: u32,
    verify: bool,
    report_progress: ProgressCallback<'_>,
) -> Result<String, DataError> {
    if !(600..=10_000).contains(&width) {
        return Err(DataError::BadArgument(format!("width={width}: expected 600 to 10000 pixels")));
    }
    match open::dataset(path)? {
        Some(_) if verify => {
            let message = format!("{}: this is a dataset; verify needs one of its files", path.display());
            Err(DataError::BadArgument(message))
        }
        Some(dataset) => Ok(draw_dataset(path, &dataset, Form::Svg(width))?),
        None => {
            let subject = Subject::open(path, verify, true, report_progress)?;
            Ok(draw_file(path, &subject, Form::Svg(width), true)?)
        }
    }
}

/// Salvages all files of a dataset, and writes a new dataset to `output` if it is given.
fn salvage_dataset(
    dataset: &Dataset,
    output: Option<&Path>,
    report_progress: ProgressCallback<'_>,
) -> Result<Value, DataError> {
    let mut changes = output.map(|folder| create_like(dataset, &folder.to_path_buf())).transpose()?;
    let mut losses = Vec::new();
    for group in dataset.groups() {
        let group = group?;
        let mut written = Vec::new();
        for (number, file) in group.files.iter().enumerate() {
            let mut look = |done, total| report_progress("looking for chunks", done, Some(total));
            let options = SalvageOptions::new().deep(true).progress(&mut look);
            let found = dataset.salvage_file(&group, number, options)?;
            let lost = FileLosses::of(dataset, &group, file, &found);
            if let Some(changes) = &mut changes {
                for column in lost.columns.iter().filter(|column| !column.lost.is_empty()) {
                    changes.make_nullable(column.number);
                }
                let output = changes.next_file()?;
                let path = output.path().to_path_buf();
                rewrite(&found.salvaged, output, report_progress)?;
                written.push((path, file.columns.clone()));
            }
            losses.push(lost);
        }
        if let Some(changes) = &mut changes {
            changes.add_group(&written)?;
        }
    }
    let made = changes.map(|changes| changes.publish("salvage")).transpose()?;
    Ok(dataset_document(dataset, &losses, made.as_ref().zip(output))?)
}

/// Writes the intact samples of a file, with nulls in place of lost samples.
fn rewrite<K: Sink>(
    salvaged: &Salvaged,
    output: K,
    report_progress: ProgressCallback<'_>,
) -> tensilo::Result<Summary<K>> {
    let total = Some(salvaged.reader.sample_count());
    let mut advance = |done| report_progress("writing", done, total);
    let writer = WriterOptions::new().threads(threads(None)).alignment(salvaged.reader.alignment());
    salvaged.write_to(output, &writer, RewriteOptions::new().progress(&mut advance))
}

/// Converts a failure to an error of the library, without the hints that the program would print.
impl From<Failure> for DataError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Library(error, Some(path)) if error.path().is_none() => error.with_path(&path).into(),
            Failure::Library(error, _) => error.into(),
            Failure::Dataset(error) => error,
            Failure::Usage(message) => Self::BadArgument(message),
            Failure::Output(error, _) => Error::io("writing the output", error).into(),
            Failure::Cancelled => Error::cancelled().into(),
            Failure::Closed => Error::io("writing the output", io::ErrorKind::BrokenPipe.into()).into(),
        }
    }
}
