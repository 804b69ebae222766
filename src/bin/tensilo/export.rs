//! `tensilo export`

use crate::args::ExportArgs;
use crate::exit::{Failure, Outcome};
use crate::open::open;
use crate::output::refuse_to_replace;
use crate::parse::Names;
use crate::progress::{Progress, Unit};
use tensilo::export;

/// Writes columns of a file to a Parquet or Arrow file.
pub(crate) fn run(args: &ExportArgs, quiet: bool) -> Outcome {
    refuse_to_replace(&args.output, args.force)?;
    let reader = open(&args.file, quiet)?;
    let columns = Names::all(&args.columns);
    let progress = Progress::new(Unit::Samples, quiet);
    let total = reader.sample_count();
    export::export(&reader, &args.output, columns.as_deref(), args.force, &mut |samples| {
        progress.set("exporting", samples, Some(total));
    })
    .map_err(|error| Failure::about(&args.output, error))
}
