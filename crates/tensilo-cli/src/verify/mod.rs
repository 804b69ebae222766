//! `tensilo verify`

mod args;
mod dataset;
mod file;
mod report;

pub(crate) use args::VerifyArgs;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::foreign::foreign;
use crate::open;
use crate::output::{Output, write_json};
use crate::terminal::warning;
use file::verify;
use report::{document, write_text};
use tensilo::verify::{FileState, VerifyReport};
use tensilo_data::Dataset;

/// Verifies a file or a dataset, and prints every damage.
pub(crate) fn run(args: &VerifyArgs, quiet: bool) -> Outcome<Exit> {
    if open::is_dataset(&args.file) {
        let files = Dataset::files_without_manifest(&args.file);
        return match files.map_err(|error| open::with_hint(&args.file, error))? {
            Some(files) => dataset::verify_files(args, files, quiet),
            None => dataset::verify_dataset(args, &Dataset::open(&args.file)?, quiet),
        };
    }
    let report = verify(&args.file, args, quiet)?;
    if let Some(foreign) = foreign(&args.file).filter(|_| !quiet && report.state() == FileState::Damaged) {
        warning(&format!("{}: {foreign}", tensilo::error::display_path(&args.file)));
    }
    let verdict = report.state().into();
    match print(&report, args, quiet) {
        // if the reader closes the pipe early, the verdict stays the same
        Ok(()) | Err(Failure::Closed) => Ok(verdict),
        Err(failure) => Err(failure),
    }
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
