//! `tensilo salvage`

mod args;
mod report;

pub(crate) use args::SalvageArgs;

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Output, refuse_to_replace, write_json};
use crate::progress::{Progress, Unit};
use report::Report;
use std::path::Path;
use tensilo::{AtomicFile, PositionedFile, RewriteOptions, SalvageOptions, Salvaged, Summary, salvage};

/// Tells what is lost, and writes what is left.
pub(crate) fn run(args: &SalvageArgs, quiet: bool) -> Outcome<Exit> {
    if let Some(output) = &args.output {
        refuse_same_file(&args.file, output)?;
        refuse_to_replace(output, args.force)?;
    }
    let salvaged = open(&args.file, quiet)?;
    let written = args.output.as_deref().map(|output| write(args, &salvaged, output, quiet)).transpose()?;
    let report = Report { salvaged: &salvaged, written: args.output.as_deref().zip(written.as_ref()) };
    let verdict = if salvaged.losses.is_empty() && salvaged.end_is_known { Exit::Done } else { Exit::Damaged };
    match print(&report, args.json, quiet) {
        // the verdict does not depend on how much of it was read
        Ok(()) | Err(Failure::Closed) => Ok(verdict),
        Err(failure) => Err(failure),
    }
}

/// The damaged file is all there is: it is not replaced by what can be had of it today.
fn refuse_same_file(file: &Path, output: &Path) -> Outcome {
    match (file.canonicalize(), output.canonicalize()) {
        (Ok(file), Ok(same)) if file == same => {
            let message = format!("{}: the damaged file is not overwritten; write to another", output.display());
            Err(Failure::Usage(message))
        }
        _ => Ok(()), // one of them does not exist
    }
}

fn open(file: &Path, quiet: bool) -> Outcome<Salvaged<PositionedFile>> {
    let about = |error| Failure::about(file, error);
    let source = PositionedFile::open(file).map_err(about)?;
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |done, total| progress.set("looking for chunks", done, Some(total));
    salvage(source, SalvageOptions::new().decode(true).progress(&mut advance)).map_err(about)
}

fn write(
    args: &SalvageArgs,
    salvaged: &Salvaged<PositionedFile>,
    output: &Path,
    quiet: bool,
) -> Outcome<Summary<AtomicFile>> {
    let progress = Progress::new(Unit::Samples, quiet);
    let total = Some(salvaged.reader.sample_count());
    let mut advance = |done| progress.set("writing", done, total);
    let writer = args.encoding.writer_options().alignment(salvaged.reader.alignment());
    let options = RewriteOptions::new().leave_out(args.leave_out).progress(&mut advance);
    let sink = AtomicFile::create(output, args.force)?;
    Ok(salvaged.write_to(sink, &writer, options)?)
}

fn print(report: &Report<'_>, json: bool, quiet: bool) -> Outcome {
    let mut output = Output::stdout();
    if json {
        write_json(&mut output, &report.document())?;
    } else {
        report.write_text(quiet, &mut output)?;
    }
    output.finish()
}
