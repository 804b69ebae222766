//! `tensilo salvage`

mod args;
pub(crate) mod dataset;
pub(crate) mod losses;
mod ranges;
pub(crate) mod report;

pub(crate) use args::SalvageArgs;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::output::{Data, Destination, Inputs, Output, write_json};
use crate::progress::{Progress, Unit};
use report::SalvageReport;
use std::io::Write;
use std::path::{Path, PathBuf};
use tensilo::Summary;
use tensilo::salvage::{RewriteOptions, SalvageOptions, Salvaged, salvage};

/// Reports the losses, and writes the intact chunks to a new file.
pub(crate) fn run(args: &SalvageArgs, quiet: bool) -> Outcome<Exit> {
    if let Some(dataset) = open::dataset(&args.file)? {
        return dataset::run(args, &dataset, quiet);
    }
    let inputs = Inputs::file(&args.file);
    let destination = |path: &PathBuf| Destination::new(path, args.force, Data::Binary, inputs);
    let destination = args.output.as_ref().map(destination).transpose()?;
    let salvaged = salvaged(&args.file, quiet)?;
    let written = destination.map(|destination| write(args, &salvaged, destination.create()?, quiet)).transpose()?;
    let output = written.as_ref().map_or_else(|| Box::new(Output::stdout()) as Box<dyn Write>, |it| it.sink.summary());
    let report = SalvageReport { salvaged: &salvaged, written: args.output.as_deref().zip(written.as_ref()) };
    let verdict = if report.is_whole() { Exit::Done } else { Exit::Damaged };
    match print(&report, args.json, quiet, output) {
        // if the reader closes the pipe early, the verdict stays the same
        Ok(()) | Err(Failure::Closed) => Ok(verdict),
        Err(failure) => Err(failure),
    }
}

fn salvaged(file: &Path, quiet: bool) -> Outcome<Salvaged> {
    let about = |error| Failure::about(file, error);
    let source = open::source(file)?;
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |done, total| progress.set("looking for chunks", done, Some(total));
    salvage(source, SalvageOptions::new().decode(true).progress(&mut advance)).map_err(about)
}

fn write(args: &SalvageArgs, salvaged: &Salvaged, output: Output, quiet: bool) -> Outcome<Summary<Output>> {
    let progress = Progress::new(Unit::Samples, quiet);
    let total = Some(salvaged.reader.sample_count());
    let mut advance = |done| progress.set("writing", done, total);
    let writer = args.encoding.writer_options().alignment(salvaged.reader.alignment());
    let options = RewriteOptions::new().leave_out(args.leave_out).progress(&mut advance);
    Ok(salvaged.write_to(output, &writer, options)?)
}

fn print(report: &SalvageReport<'_>, json: bool, quiet: bool, mut output: impl Write) -> Outcome {
    if json {
        write_json(&mut output, &report.document())?;
    } else {
        report.write_text(quiet, &mut output)?;
    }
    Ok(output.flush()?)
}
