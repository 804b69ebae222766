//! `tensilo verify`: checks every byte of a file, or of all files of a dataset, and lists damage.
//!
//! The core checks a file even if it is too damaged to be opened. If a dataset has a manifest, its
//! files are also compared with the manifest: a replaced file is damaged, but a file to which
//! samples were appended is not. Without a manifest, the files of a folder or a pattern are
//! independent.
//!
//! The verdict is the exit code. It stays the same even if the reader of the output closes the pipe
//! early.

use crate::failure::{Exit, Failure, Outcome, foreign_format, verdict};
use crate::open;
use crate::options::threads;
use crate::output::{Output, shown, write_json};
use crate::terminal::{Progress, Unit, warning};
use crate::text::{self, finding_line};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use tensilo::Reader;
use tensilo::facts::RegionKind;
use tensilo::verify::{FileState, Finding, FindingKind, VerifyOptions, VerifyReport};
use tensilo_data::{DataError, Dataset};

const VERIFY: &str = "\
Examples:
  tensilo verify train.tsl           every byte: checksums, structure, padding
  tensilo verify train.tsl --deep    also decode every chunk
  tensilo verify train.tsl --json | jq '.findings[].samples'
  tensilo verify train/              a dataset: its manifest and all its files
  tensilo verify 'train/*.tsl'       all files that match

Exits with 1 if anything is damaged, and with 5 if the file is intact up to its
last commit, but a writer is still running or was stopped. Also checks files
that are too damaged to be opened.

If a chunk is divided into blocks and its block index is intact, only the
damaged blocks are listed, with the samples that have a byte in one of them.

JSON, schema tensilo.verify/1 (these members are stable, and more may be added):
  schema, ok, file_bytes, chunk_count, sample_count
  state    ok, unfinished or damaged; ok is false for the last two
  findings: [{ offset, bytes, message,
    kind     \"damaged\"; or \"uncommitted\": bytes that an append has not
             committed; or \"unfinished\": the file ends with an intact commit,
             but its writer has not declared it complete
    region   file header, chunk, index page, ...; null if unknown
    column   the column of the chunk or index, or null
    samples  [first, end] of the samples that are or could be lost, end
             excluded, or null if unknown; empty samples in this range are not
             lost if only blocks are damaged
    rule     the broken rule of the format specification, or null }]
For a dataset, schema tensilo.verify-dataset/1:
  schema, ok, state, version
  files: [{ path, and the members above; or a message if the file is not the
            one that the manifest lists }]";

#[derive(Args, Debug)]
#[command(after_help = VERIFY)]
pub(crate) struct VerifyArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    file: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    /// Also decode every chunk and check its content
    #[arg(long)]
    deep: bool,
    /// The number of threads; the report does not depend on it [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl VerifyArgs {
    fn options(&self) -> VerifyOptions<'_> {
        VerifyOptions::new().deep(self.deep).threads(threads(self.threads))
    }
}

/// Verifies a file or a dataset, and prints all findings.
pub(crate) fn run(args: &VerifyArgs, quiet: bool) -> Outcome<Exit> {
    if open::is_dataset(&args.file) {
        let files = Dataset::files_without_manifest(&args.file);
        return match files.map_err(|error| open::with_hint(&args.file, error))? {
            Some(files) => verify_files(args, files, quiet),
            None => verify_dataset(args, &Dataset::open(&args.file)?, quiet),
        };
    }
    let report = verify(&args.file, args, quiet)?;
    if let Some(foreign_format) = foreign_format(&args.file).filter(|_| !quiet && report.state() == FileState::Damaged)
    {
        warning(&format!("{}: {foreign_format}", shown(&args.file)));
    }
    let mut output = Output::stdout();
    let printed = match args.json {
        true => write_json(&mut output, &document(&report)),
        false => write_text(&report, args.deep, quiet, &mut output).map_err(Failure::from),
    };
    verdict(report.state().into(), printed.and_then(|()| output.finish()))
}

/// Verifies a file.
fn verify(path: &Path, args: &VerifyArgs, quiet: bool) -> Outcome<VerifyReport> {
    let source = open::source(path)?;
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |bytes| progress.set("verifying", bytes, Some(source.byte_count()));
    let report = tensilo::verify::verify(&source, args.options().progress(&mut advance));
    report.map_err(|error| Failure::about(path, error))
}

/// Returns the JSON document of schema `tensilo.verify/1`.
fn document(report: &VerifyReport) -> Value {
    json!({
        "schema": "tensilo.verify/1",
        "ok": report.state() == FileState::Intact,
        "state": report.state().name(),
        "file_bytes": report.file_bytes,
        "chunk_count": report.chunk_count,
        "sample_count": report.sample_count,
        "findings": report.findings.iter().map(finding_object).collect::<Vec<Value>>(),
    })
}

fn finding_object(finding: &Finding) -> Value {
    let range = &finding.file_range;
    json!({
        "kind": finding.kind.name(),
        "offset": range.start,
        "bytes": range.end.saturating_sub(range.start),
        "region": finding.region.map(RegionKind::name),
        "column": finding.column.as_deref(),
        "samples": finding.samples.as_ref().map(|samples| [samples.start, samples.end]),
        "rule": finding.error.rule(),
        "message": finding.error.message(),
    })
}

/// Writes the report. If `deep`, chunks were decoded, so the findings include the chunks that need
/// a damaged table.
fn write_text(report: &VerifyReport, deep: bool, quiet: bool, output: &mut impl Write) -> io::Result<()> {
    for finding in &report.findings {
        writeln!(output, "{}", finding_line(finding))?;
    }
    if quiet {
        return Ok(());
    }
    if !deep && report.findings.iter().any(|finding| finding.region == Some(RegionKind::Table)) {
        writeln!(
            output,
            "chunks that need a damaged table (a Zstandard dictionary) are also lost; --deep lists their samples"
        )?;
    }
    let (bytes, chunks) = (report.file_bytes, report.chunk_count);
    let samples =
        report.sample_count.map_or_else(|| "no readable commit".to_owned(), |count| format!("{count} samples"));
    match report.state() {
        FileState::Intact => writeln!(output, "ok: {bytes} bytes, {chunks} chunks, {samples}"),
        FileState::Unfinished => writeln!(
            output,
            "unfinished: {bytes} bytes, {chunks} chunks, {samples}; all of these are intact, but a writer is still \
             running or was stopped"
        ),
        _ => {
            let damaged = report.findings.iter().filter(|finding| finding.kind == FindingKind::Damaged);
            let ranges = text::count(u64::try_from(damaged.count()).unwrap_or(u64::MAX), "range");
            writeln!(output, "damaged: {ranges} in {bytes} bytes; {chunks} chunks are intact, {samples}")
        }
    }
}

/// The result for a file of a dataset: a report, or the reason why the file is not the one that the
/// manifest lists.
type FileResult = Result<VerifyReport, String>;

/// Verifies all files that a manifest lists, and prints all findings.
fn verify_dataset(args: &VerifyArgs, dataset: &Dataset, quiet: bool) -> Outcome<Exit> {
    let mut report = DatasetReport::new(args, quiet);
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
                Err(error) if error.is_permanent() => Err(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            report.add(&file.path, &checked)?;
        }
    }
    report.finish(Some(dataset.version()), dataset.sample_count())
}

/// Verifies independent files, and prints all findings. The files can have different columns, or be
/// too damaged to be opened.
fn verify_files(args: &VerifyArgs, files: Vec<PathBuf>, quiet: bool) -> Outcome<Exit> {
    let mut report = DatasetReport::new(args, quiet);
    let mut samples = 0_u64;
    for file in files {
        let checked = verify(&file, args, quiet)?;
        samples = samples.saturating_add(checked.sample_count.unwrap_or(0));
        report.add(&file, &Ok(checked))?;
    }
    report.finish(None, samples)
}

fn verify_listed(reader: &Reader, args: &VerifyArgs, quiet: bool) -> Outcome<VerifyReport> {
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |bytes| progress.set("verifying", bytes, Some(reader.file_bytes()));
    let mut report = reader.verify(args.options().progress(&mut advance))?;
    // a dataset can use an earlier commit of a file, written before the writer finished
    report.findings.retain(|finding| finding.kind == FindingKind::Damaged);
    Ok(report)
}

/// The findings in a dataset, printed file by file or as one document.
struct DatasetReport<'a> {
    args: &'a VerifyArgs,
    quiet: bool,
    output: Output,
    /// The numbers of intact, unfinished and damaged files.
    files: [u64; 3],
    bytes: u64,
    documents: Vec<Value>,
}

impl<'a> DatasetReport<'a> {
    fn new(args: &'a VerifyArgs, quiet: bool) -> Self {
        Self { args, quiet, output: Output::stdout(), files: [0; 3], bytes: 0, documents: Vec::new() }
    }

    fn add(&mut self, path: &Path, checked: &FileResult) -> Outcome {
        self.bytes = self.bytes.saturating_add(checked.as_ref().map_or(0, |report| report.file_bytes));
        let state = checked.as_ref().map_or(FileState::Damaged, VerifyReport::state);
        let [intact, unfinished, damaged] = &mut self.files;
        *match state {
            FileState::Intact => intact,
            FileState::Unfinished => unfinished,
            _ => damaged,
        } += 1;
        if self.args.json {
            self.documents.push(file_document(&shown(path), checked));
        } else if state != FileState::Intact {
            match checked {
                Ok(report) => {
                    writeln!(self.output, "{}:", shown(path))?;
                    write_text(report, self.args.deep, self.quiet, &mut self.output)?;
                }
                Err(message) => writeln!(self.output, "{message}")?,
            }
        }
        Ok(())
    }

    /// Prints the totals.
    fn finish(mut self, version: Option<u64>, samples: u64) -> Outcome<Exit> {
        let (files, bytes) = (self.files.iter().sum::<u64>(), self.bytes);
        let (state, count) = match self.files {
            [_, 0, 0] => (FileState::Intact, 0),
            [_, unfinished, 0] => (FileState::Unfinished, unfinished),
            [_, _, damaged] => (FileState::Damaged, damaged),
        };
        let version_text = version.map_or(String::new(), |version| format!(", version {version}"));
        let printed = if self.args.json {
            let document = json!({
                "schema": "tensilo.verify-dataset/1",
                "ok": state == FileState::Intact,
                "state": state.name(),
                "version": version.unwrap_or(0),
                "files": self.documents,
            });
            write_json(&mut self.output, &document)
        } else if self.quiet {
            Ok(())
        } else {
            let what = match state {
                FileState::Intact => format!("{}, {bytes} bytes, {samples} samples", text::count(files, "file")),
                _ => format!("{count} of {files} files; {samples} samples"),
            };
            writeln!(self.output, "{}: {what}{version_text}", state.name()).map_err(Failure::from)
        };
        verdict(state.into(), printed.and_then(|()| self.output.finish()))
    }
}

fn file_document(path: &str, checked: &FileResult) -> Value {
    let mut object = match checked {
        Ok(report) => document(report),
        Err(message) => json!({ "ok": false, "message": message, "findings": [] }),
    };
    if let Some(members) = object.as_object_mut() {
        members.shift_remove("schema");
        members.shift_insert(0, "path".to_owned(), path.into());
    }
    object
}
