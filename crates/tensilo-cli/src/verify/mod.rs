//! `tensilo verify`

mod args;
mod dataset;
mod report;

pub(crate) use args::VerifyArgs;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::foreign::foreign;
use crate::open;
use crate::options::threads;
use crate::output::{Output, write_json};
use crate::progress::{Progress, Unit};
use crate::terminal::warning;
use report::{document, write_text};
use tensilo::source::{PositionedFile, Source};
use tensilo::verify::{VerifyOptions, VerifyReport};

/// Verifies a file or a dataset, and prints every damage.
pub(crate) fn run(args: &VerifyArgs, quiet: bool) -> Outcome<Exit> {
    if let Some(dataset) = open::dataset(&args.file)? {
        return dataset::run(args, &dataset, quiet);
    }
    let report = verify(args, quiet)?;
    if let Some(foreign) = foreign(&args.file).filter(|_| !quiet && !report.damages.is_empty()) {
        warning(&format!("{}: {foreign}", tensilo::error::display_path(&args.file)));
    }
    let verdict = if report.damages.is_empty() { Exit::Done } else { Exit::Damaged };
    match print(&report, args, quiet) {
        // if the reader closes the pipe early, the verdict stays the same
        Ok(()) | Err(Failure::Closed) => Ok(verdict),
        Err(failure) => Err(failure),
    }
}

fn verify(args: &VerifyArgs, quiet: bool) -> Outcome<VerifyReport> {
    let about = |error| Failure::about(&args.file, error);
    let source = PositionedFile::open(&args.file).map_err(about)?;
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |bytes| progress.set("verifying", bytes, Some(source.byte_count()));
    let options = VerifyOptions::new().decode(args.deep).threads(threads(args.threads)).progress(&mut advance);
    tensilo::verify::verify(&source, options).map_err(about)
}

fn print(report: &VerifyReport, args: &VerifyArgs, quiet: bool) -> Outcome {
    let mut output = Output::stdout();
    if args.json {
        write_json(&mut output, &document(report))?;
    } else {
        write_text(report, args.deep, quiet, &mut output)?;
    }
    output.finish()
}
