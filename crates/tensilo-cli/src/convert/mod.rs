//! `tensilo convert`

mod args;
mod summary;

pub(crate) use args::ConvertArgs;

use crate::failure::Outcome;
use crate::options::Names;
use crate::options::refuse_terminal;
use crate::output::{Data, Destination, Output};
use crate::progress::{Progress, Unit};
use crate::{advice, terminal};
use std::io::Write;
use summary::write_summary;
use tensilo::Summary;
use tensilo::import::{self, ConvertOptions};

/// Converts the inputs, and prints a summary.
pub(crate) fn run(args: &ConvertArgs, quiet: bool) -> Outcome {
    refuse_terminal(&args.inputs)?;
    let destination = Destination::new(&args.output, args.force, Data::Binary, &args.inputs)?;
    if !quiet {
        destination.warn_of_litter();
    }
    let written = convert(args, destination.create()?, quiet)?;
    if quiet {
        return Ok(());
    }
    let mut output = written.sink.summary();
    write_summary(&written, &args.output, &mut output)?;
    output.flush()?;
    for note in written.schema.columns.iter().filter_map(advice::odd_samples) {
        terminal::note(&note);
    }
    Ok(())
}

fn convert(args: &ConvertArgs, output: Output, quiet: bool) -> tensilo::Result<Summary<Output>> {
    let progress = Progress::new(Unit::Samples, quiet);
    import::convert_into(&args.inputs, output, &options(args), &mut |at| match at {
        import::Progress::Scanning { done, total } => progress.set("scanning", done, total),
        import::Progress::Converting { done, total } => progress.set("converting", done, total),
        _ => progress.set("working", 0, None), // a phase newer than this program
    })
}

fn options(args: &ConvertArgs) -> ConvertOptions {
    let options = ConvertOptions::new()
        .bf16(args.bf16)
        .casts(args.cast.clone())
        .skip(args.skip.clone())
        .shapes(args.shape.clone())
        .null_elements(args.null_elements.into())
        .distrust_statistics(args.distrust_statistics)
        .writer(args.encoding.writer_options().alignment(args.align))
        .dash_is_stdin(true);
    match Names::all(&args.columns) {
        Some(columns) => options.columns(columns),
        None => options,
    }
}
