//! `tensilo export`

mod args;
mod format;
mod groups;
mod one_table;

pub(crate) use args::ExportArgs;

use crate::failure::Outcome;
use crate::open::{self, open};
use crate::output::{Data, Destination, Inputs};
use crate::progress::{Progress, Unit};
use format::AnyFormat;
use one_table::write;
use std::path::Path;

/// Exports columns of a file or of a dataset to a file, or the groups of a dataset to files in a
/// folder.
pub(crate) fn run(args: &ExportArgs, quiet: bool) -> Outcome {
    let dataset = open::dataset(&args.file)?;
    let format = AnyFormat::of(args)?;
    let progress = Progress::new(Unit::Samples, quiet);
    match &dataset {
        Some(dataset) if is_folder(&args.output) => groups::export(args, dataset, format, &progress),
        Some(dataset) => {
            let destination = destination(args, Inputs::Dataset(dataset))?;
            let mut note = |samples| progress.set("exporting", samples, Some(dataset.sample_count()));
            write(args, dataset, destination, format, &mut note)
        }
        None => {
            let destination = destination(args, Inputs::file(&args.file))?;
            let reader = open(&args.file, quiet)?;
            let mut note = |samples| progress.set("exporting", samples, Some(reader.sample_count()));
            write(args, &reader, destination, format, &mut note)
        }
    }
}

/// Returns whether an output is a folder for several files: it exists, or its name ends in a slash.
fn is_folder(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn destination(args: &ExportArgs, inputs: Inputs<'_>) -> Outcome<Destination> {
    Destination::new(&args.output, args.force, Data::Binary, inputs)
}
