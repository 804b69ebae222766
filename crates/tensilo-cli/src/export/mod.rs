//! `tensilo export`

mod args;

pub(crate) use args::ExportArgs;

use crate::failure::{Failure, Outcome};
use crate::open::open;
use crate::options::Names;
use crate::output::{Data, Destination, shown};
use crate::progress::{Progress, Unit};
use std::path::Path;
use std::slice;
use tensilo::export::{ExportFormat, ExportOptions, TensorForm, export_into};

/// Exports columns to a Parquet or Arrow file.
pub(crate) fn run(args: &ExportArgs, quiet: bool) -> Outcome {
    let format = args.format.map(ExportFormat::from).or_else(|| ExportFormat::of(&args.output));
    let format = format.ok_or_else(|| {
        let path = shown(&args.output);
        Failure::Usage(format!("{path}: the name tells no format; end it in .parquet or .arrow, or use --format"))
    })?;
    let inputs = slice::from_ref(&args.file);
    let destination = Destination::new(&args.output, args.force, Data::Binary, inputs)?;
    let reader = open(&args.file, quiet)?;
    let progress = Progress::new(Unit::Samples, quiet);
    let total = reader.sample_count();
    let mut note = |samples| progress.set("exporting", samples, Some(total));
    let tensors = args.tensors.map(TensorForm::from).unwrap_or_default();
    let options = ExportOptions::new().tensors(tensors).stored_types(args.stored_types).progress(&mut note);
    let options = match Names::all(&args.columns) {
        Some(columns) => options.columns(columns),
        None => options,
    };
    export_into(&reader, destination.create()?, format, options)
        .map_err(|error| Failure::about(Path::new(&shown(&args.output)), error))?;
    Ok(())
}
