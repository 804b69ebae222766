//! The verification of a dataset: its manifest, if it has one, and then its files.

use super::args::VerifyArgs;
use super::file::verify;
use super::report::{document, write_text};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::options::threads;
use crate::output::{Output, shown, write_json};
use crate::progress::{Progress, Unit};
use crate::text::human;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use tensilo::verify::{DamageKind, FileState, VerifyOptions, VerifyReport};
use tensilo::{Reader, Result};
use tensilo_data::{DataError, Dataset};

/// A file of a dataset, checked: a report, or the reason why it is not the file that the manifest
/// lists.
type Checked = std::result::Result<VerifyReport, String>;

/// Verifies all files that a manifest lists, and prints every damage.
pub(super) fn verify_dataset(args: &VerifyArgs, dataset: &Dataset, quiet: bool) -> Outcome<Exit> {
    let mut report = DatasetReport::new(args);
    match dataset.check_lineage() {
        Ok(()) => {}
        Err(ref error @ DataError::Corrupt { ref path, .. }) => report.add(path, &Err(error.to_string()))?,
        Err(error) => return Err(error.into()),
    }
    for group in dataset.groups() {
        let group = group?;
        for (number, file) in group.files.iter().enumerate() {
            let checked = match dataset.open_file(&group, number) {
                Ok(reader) => Ok(verify_listed(&reader, args, quiet)?),
                Err(error) => Err(error.to_string()),
            };
            report.add(&file.path, &checked)?;
        }
    }
    report.finish(Some(dataset.version()), dataset.sample_count(), quiet)
}

/// Verifies files, and prints every damage. Each is one of its own: it may have other columns, or
/// such damage that it cannot be opened.
pub(super) fn verify_files(args: &VerifyArgs, files: Vec<PathBuf>, quiet: bool) -> Outcome<Exit> {
    let mut report = DatasetReport::new(args);
    let mut samples = 0_u64;
    for file in files {
        let checked = verify(&file, args, quiet)?;
        samples = samples.saturating_add(checked.sample_count.unwrap_or(0));
        report.add(&file, &Ok(checked))?;
    }
    report.finish(None, samples, quiet)
}

fn verify_listed(reader: &Reader, args: &VerifyArgs, quiet: bool) -> Result<VerifyReport> {
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |bytes| progress.set("verifying", bytes, Some(reader.file_bytes()));
    let options = VerifyOptions::new().decode(args.deep).threads(threads(args.threads)).progress(&mut advance);
    let mut report = reader.verify(options)?;
    // the dataset reads an earlier commit of a file: there its writer had not finished
    report.damages.retain(|damage| damage.kind == DamageKind::Damaged);
    Ok(report)
}

/// The findings, which are printed file by file, or as one document.
struct DatasetReport<'a> {
    args: &'a VerifyArgs,
    output: Output,
    files: u64,
    bytes: u64,
    damaged_files: u64,
    unfinished_files: u64,
    documents: Vec<Value>,
}

impl<'a> DatasetReport<'a> {
    fn new(args: &'a VerifyArgs) -> Self {
        Self {
            args,
            output: Output::stdout(),
            files: 0,
            bytes: 0,
            damaged_files: 0,
            unfinished_files: 0,
            documents: Vec::new(),
        }
    }

    fn add(&mut self, path: &Path, checked: &Checked) -> Outcome {
        self.files = self.files.saturating_add(1);
        self.bytes = self.bytes.saturating_add(checked.as_ref().map_or(0, |report| report.file_bytes));
        let state = checked.as_ref().map_or(FileState::Damaged, VerifyReport::state);
        match state {
            FileState::Intact => {}
            FileState::Unfinished => self.unfinished_files = self.unfinished_files.saturating_add(1),
            _ => self.damaged_files = self.damaged_files.saturating_add(1),
        }
        if self.args.json {
            self.documents.push(file_document(&shown(path), checked));
        } else if state != FileState::Intact {
            write_file(&shown(path), checked, self.args, &mut self.output)?;
        }
        Ok(())
    }

    /// Prints the sums.
    fn finish(self, version: Option<u64>, samples: u64, quiet: bool) -> Outcome<Exit> {
        let Self { args, mut output, files, bytes, damaged_files, unfinished_files, documents } = self;
        let state = match (damaged_files, unfinished_files) {
            (0, 0) => FileState::Intact,
            (0, _) => FileState::Unfinished,
            _ => FileState::Damaged,
        };
        let is_whole = state == FileState::Intact;
        let version_text = version.map_or(String::new(), |version| format!(", version {version}"));
        let printed = if args.json {
            let (schema, version) = ("tensilo.verify-dataset/1", version.unwrap_or(0));
            write_json(
                &mut output,
                &json!({ "schema": schema, "ok": is_whole, "state": state.name(), "version": version, "files": documents }),
            )
        } else if quiet {
            Ok(())
        } else if is_whole {
            let files = human::count(files, "file");
            let line = format!("ok: {files}, {bytes} bytes, {samples} samples{version_text}");
            writeln!(output, "{line}").map_err(Failure::from)
        } else {
            let (state, count) = (state.name(), if damaged_files > 0 { damaged_files } else { unfinished_files });
            let line = format!("{state}: {count} of {files} files; {samples} samples{version_text}");
            writeln!(output, "{line}").map_err(Failure::from)
        };
        match printed.and_then(|()| output.finish()) {
            // if the reader closes the pipe early, the verdict stays the same
            Ok(()) | Err(Failure::Closed) => Ok(state.into()),
            Err(failure) => Err(failure),
        }
    }
}

fn file_document(path: &str, checked: &Checked) -> Value {
    let mut object = match checked {
        Ok(report) => document(report),
        Err(message) => json!({ "ok": false, "message": message, "damages": [] }),
    };
    if let Some(members) = object.as_object_mut() {
        members.shift_remove("schema");
        members.shift_insert(0, "path".to_owned(), path.into());
    }
    object
}

fn write_file(path: &str, checked: &Checked, args: &VerifyArgs, output: &mut impl Write) -> Outcome {
    match checked {
        Ok(report) => {
            writeln!(output, "{path}:")?;
            Ok(write_text(report, args.deep, false, output)?)
        }
        Err(message) => Ok(writeln!(output, "{message}")?),
    }
}
