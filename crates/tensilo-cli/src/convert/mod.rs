//! `tensilo convert`

mod args;
mod summary;

pub(crate) use args::ConvertArgs;

use crate::dataset::set_time;
use crate::failure::{Failure, Outcome};
use crate::options::{Names, check_inputs, store};
use crate::output::{Data, Destination, Inputs, Output, shown};
use crate::progress::{Progress, Unit};
use crate::{advice, terminal};
use std::io::Write;
use std::ops::ControlFlow;
use summary::{write_dataset, write_file};
use tensilo::import::{self, ConvertOptions};
use tensilo::{Schema, Summary};
use tensilo_convert::{FormatOptions, input_formats};
use tensilo_data::Dataset;

/// Converts the inputs, and prints a summary.
pub(crate) fn run(args: &ConvertArgs, quiet: bool) -> Outcome {
    check_inputs(&args.inputs)?;
    check_output(args)?;
    if let Some(shard_bytes) = args.shard_bytes {
        return dataset(args, shard_bytes, quiet);
    }
    let destination = Destination::new(&args.output, args.force, Data::Binary, Inputs::Files(&args.inputs))?;
    if !quiet {
        destination.warn_of_litter();
    }
    let written = convert(args, &destination, quiet)?;
    if quiet {
        return Ok(());
    }
    let mut output = written.sink.summary();
    write_file(&written, &args.output, &mut output)?;
    output.flush()?;
    tell(&written.schema);
    Ok(())
}

/// Refuses an output whose name is not that of what would be written there.
fn check_output(args: &ConvertArgs) -> Outcome {
    let path = shown(&args.output);
    let refused = |message: String| Err(Failure::Usage(message));
    let ends_in_slash = args.output.as_os_str().as_encoded_bytes().ends_with(b"/");
    match args.shard_bytes {
        None if args.output.is_dir() => refused(format!(
            "{path}: a folder is there; write to another path, or add to the dataset in it with \"tensilo append\""
        )),
        None if ends_in_slash => refused(format!(
            "{path}: the name is that of a folder; --shard-bytes 1GiB writes a dataset there, and a file has a name \
             without a slash"
        )),
        Some(_) if args.output.extension().is_some_and(|extension| extension == "tsl") && !args.output.is_dir() => {
            refused(format!("{path}: with --shard-bytes the output is a folder; leave .tsl out, or --shard-bytes"))
        }
        _ => Ok(()),
    }
}

fn convert(args: &ConvertArgs, destination: &Destination, quiet: bool) -> Outcome<Summary<Output>> {
    let progress = Progress::new(Unit::Samples, quiet);
    let (options, mut show) = (options(args, quiet), |at| show(&progress, at));
    if destination.is_restartable() {
        return import::convert_with(&args.inputs, &mut || destination.create(), &options, &mut show);
    }
    Ok(import::convert_into(&args.inputs, destination.create()?, &options, &mut show)?)
}

/// Converts the inputs to a dataset, and prints a summary.
fn dataset(args: &ConvertArgs, shard_bytes: u64, quiet: bool) -> Outcome {
    let mut changes = Dataset::create(&args.output)?;
    set_time(&mut changes)?;
    let progress = Progress::new(Unit::Samples, quiet);
    changes.import(&args.inputs, shard_bytes, &options(args, quiet), &mut |at| show(&progress, at))?;
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
    output.finish()?;
    tell(dataset.schema());
    Ok(())
}

/// Tells which metadata the file lacks, and what is surprising in its columns.
fn tell(schema: &Schema) {
    let dropped: Vec<String> =
        import::dropped_metadata(schema).iter().map(|key| key.escape_debug().to_string()).collect();
    if !dropped.is_empty() {
        terminal::warning(&format!(
            "some metadata was left out because the format cannot keep it: {}",
            dropped.join(", ")
        ));
    }
    advice::notes(schema).for_each(|note| terminal::note(&note));
}

fn show(progress: &Progress, at: import::Progress) -> ControlFlow<()> {
    match at {
        import::Progress::Scanning { done, total } => progress.set("scanning", done, total),
        import::Progress::Converting { done, total } => progress.set("converting", done, total),
        _ => progress.set("working", 0, None), // a phase newer than this program
    }
}

fn options(args: &ConvertArgs, quiet: bool) -> ConvertOptions {
    let options = ConvertOptions::new()
        .bf16(args.bf16)
        .casts(args.cast.clone())
        .skip(args.skip.clone())
        .renames(args.rename.clone())
        .shapes(args.shape.clone())
        .null_elements(args.null_elements.into())
        .distrust_statistics(args.distrust_statistics)
        .writer(args.encoding.writer_options().alignment(args.align))
        .dash_is_stdin(true)
        .formats(input_formats(FormatOptions::new().file_is_sample(args.file_is_sample)))
        .store(store(quiet));
    match Names::all(&args.columns) {
        Some(columns) => options.columns(columns),
        None => options,
    }
}
