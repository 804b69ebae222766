//! `tensilo convert`

mod args;
mod summary;

pub(crate) use args::ConvertArgs;

use crate::dataset::{source_date_epoch, write_dataset};
use crate::failure::{Failure, Outcome};
use crate::options::Names;
use crate::options::refuse_terminal;
use crate::output::{Data, Destination, Inputs, Output};
use crate::progress::{Progress, Unit};
use crate::{advice, terminal};
use std::io::Write;
use std::ops::ControlFlow;
use summary::write_summary;
use tensilo::Summary;
use tensilo::import::{self, ConvertOptions};
use tensilo_data::Dataset;

/// Converts the inputs, and prints a summary.
pub(crate) fn run(args: &ConvertArgs, quiet: bool) -> Outcome {
    refuse_terminal(&args.inputs)?;
    if let Some(shard_bytes) = args.shard_bytes {
        return dataset(args, shard_bytes, quiet);
    }
    let destination = Destination::new(&args.output, args.force, Data::Binary, Inputs::Files(&args.inputs))?;
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
    import::convert_into(&args.inputs, output, &options(args), &mut |at| show(&progress, at))
}

/// Converts the inputs to a dataset, and prints a summary.
fn dataset(args: &ConvertArgs, shard_bytes: u64, quiet: bool) -> Outcome {
    let mut changes = Dataset::create(&args.output)?;
    if let Some(time) = source_date_epoch() {
        changes.set_time(Some(time));
    }
    let progress = Progress::new(Unit::Samples, quiet);
    changes.import(&args.inputs, shard_bytes, &options(args), &mut |at| show(&progress, at))?;
    drop(progress);
    if changes.sample_count() == 0 {
        return Err(Failure::Usage("the inputs have no samples, of which a dataset could be made".to_owned()));
    }
    let dataset = changes.publish("convert")?;
    if quiet {
        return Ok(());
    }
    let mut output = Output::stdout();
    write_dataset(&dataset, &args.output, &mut output)?;
    output.finish()
}

fn show(progress: &Progress, at: import::Progress) -> ControlFlow<()> {
    match at {
        import::Progress::Scanning { done, total } => progress.set("scanning", done, total),
        import::Progress::Converting { done, total } => progress.set("converting", done, total),
        _ => progress.set("working", 0, None), // a phase newer than this program
    }
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
