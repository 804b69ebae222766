//! The verification of a dataset: its manifest, and then its files.

use super::args::VerifyArgs;
use super::report::{document, write_text};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::options::threads;
use crate::output::{Output, shown, write_json};
use crate::progress::{Progress, Unit};
use serde_json::{Value, json};
use std::io::Write;
use tensilo::verify::{VerifyOptions, VerifyReport};
use tensilo::{Reader, Result};
use tensilo_data::{DataError, Dataset};

/// A file of a dataset, checked: a report, or the reason why it is not the file that the manifest
/// lists.
type Checked = std::result::Result<VerifyReport, String>;

/// Verifies all files, and prints every damage.
pub(super) fn run(args: &VerifyArgs, dataset: &Dataset, quiet: bool) -> Outcome<Exit> {
    let mut output = Output::stdout();
    let mut found = FileCounts::default();
    let mut files: Vec<Value> = Vec::new();
    for group in dataset.groups() {
        let group = group?;
        for (number, file) in group.files.iter().enumerate() {
            let checked = match dataset.open_file(&group, number) {
                Ok(reader) => Ok(verify(&reader, args, quiet)?),
                Err(DataError::File(error)) => Err(error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            found.add(&checked);
            if args.json {
                files.push(file_document(&shown(&file.path), &checked));
            } else if found.last_is_damaged {
                write_file(&shown(&file.path), &checked, args, &mut output)?;
            }
        }
    }
    let exit = if found.damaged_files == 0 { Exit::Done } else { Exit::Damaged };
    let printed = if args.json {
        let ok = found.damaged_files == 0;
        let version = dataset.version();
        write_json(
            &mut output,
            &json!({ "schema": "tensilo.verify-dataset/1", "ok": ok, "version": version, "files": files }),
        )
    } else if quiet {
        Ok(())
    } else {
        found.write(dataset, &mut output)
    };
    match printed.and_then(|()| output.finish()) {
        // if the reader closes the pipe early, the verdict stays the same
        Ok(()) | Err(Failure::Closed) => Ok(exit),
        Err(failure) => Err(failure),
    }
}

fn verify(reader: &Reader, args: &VerifyArgs, quiet: bool) -> Result<VerifyReport> {
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |bytes| progress.set("verifying", bytes, Some(reader.file_bytes()));
    let options = VerifyOptions::new().decode(args.deep).threads(threads(args.threads)).progress(&mut advance);
    let mut report = reader.verify(options)?;
    // the dataset reads an earlier commit of a file: there its writer had not finished
    report.damages.retain(|damage| damage.error.rule() != Some("R-7.8"));
    Ok(report)
}

/// The sums of all files.
#[derive(Default)]
struct FileCounts {
    files: u64,
    bytes: u64,
    damaged_files: u64,
    last_is_damaged: bool,
}

impl FileCounts {
    fn add(&mut self, checked: &Checked) {
        self.files = self.files.saturating_add(1);
        self.bytes = self.bytes.saturating_add(checked.as_ref().map_or(0, |report| report.file_bytes));
        self.last_is_damaged = checked.as_ref().map_or(true, |report| !report.damages.is_empty());
        self.damaged_files = self.damaged_files.saturating_add(self.last_is_damaged.into());
    }

    fn write(&self, dataset: &Dataset, output: &mut impl Write) -> Outcome {
        let Self { files, bytes, damaged_files, .. } = self;
        let (samples, version) = (dataset.sample_count(), dataset.version());
        Ok(match damaged_files {
            0 => writeln!(output, "ok: {files} files, {bytes} bytes, {samples} samples, version {version}"),
            damaged => writeln!(output, "damaged: {damaged} of {files} files; {samples} samples, version {version}"),
        }?)
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
