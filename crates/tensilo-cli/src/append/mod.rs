//! `tensilo append`

mod args;
mod dataset;

pub(crate) use args::AppendArgs;

use crate::failure::{Failure, Outcome};
use crate::open::{self, open};
use crate::options::{check_inputs, store};
use crate::output::Output;
use crate::progress::{Progress, Unit};
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use crate::{advice, signals};
use std::time::Duration;
use tensilo::error::display_path;
use tensilo::import::{self, AppendOptions};
use tensilo_convert::{FormatOptions, input_formats};
use tensilo_object::Address;

/// The time that the library has to restore the file after a signal.
const PATIENCE: Duration = Duration::from_secs(60);

/// Appends the inputs, and prints a summary.
pub(crate) fn run(args: &AppendArgs, quiet: bool) -> Outcome {
    check_inputs(&args.inputs)?;
    if let Some(dataset) = open::dataset(&args.file)? {
        return dataset::run(args, &dataset, &options(args, quiet), quiet);
    }
    if Address::is_path(&args.file) {
        let message = "an object is not appended to; make a dataset, which gets further files: \"tensilo convert\" with --shard-bytes";
        return Err(Failure::Usage(format!("{}: {message}", display_path(&args.file))));
    }
    if args.shard_bytes.is_some() {
        let what = match args.file.exists() {
            true => "this is a file; --shard-bytes is for the folder of a dataset",
            false => "there is no such folder; \"tensilo convert\" with --shard-bytes makes a dataset",
        };
        return Err(Failure::Usage(format!("{}: {what}", display_path(&args.file))));
    }
    let appended = append(args, quiet).map_err(|error| Failure::about(&args.file, error))?;
    if quiet {
        return Ok(());
    }
    let reader = open(&args.file, quiet)?;
    let mut output = Output::stdout();
    let (samples, bytes) = (reader.sample_count(), human::bytes(reader.file_bytes()));
    let path = display_path(&args.file);
    let line = format!("{path}: {appended} samples appended, {samples} in all, {bytes} in the file");
    write_wrapped(&mut output, &line, output_width())?;
    output.finish()?;
    advice::note_values(reader.schema());
    Ok(())
}

fn append(args: &AppendArgs, quiet: bool) -> tensilo::Result<u64> {
    let progress = Progress::new(Unit::Samples, quiet);
    import::append(&args.inputs, &args.file, &options(args, quiet), &mut |at| match at {
        import::Progress::Scanning { done, total } => progress.set("scanning", done, total),
        import::Progress::Converting { done, total } => {
            signals::at_work(PATIENCE); // the file is being changed
            progress.set("appending", done, total)
        }
        _ => progress.set("working", 0, None), // a phase newer than this program
    })
}

fn options(args: &AppendArgs, quiet: bool) -> AppendOptions {
    let writer = args.encoding.writer_options().discard_tail(args.discard_tail);
    AppendOptions::new()
        .skip_others(args.skip_others)
        .null_elements(args.null_elements.into())
        .writer(writer)
        .dash_is_stdin(true)
        .formats(input_formats(FormatOptions::new().file_is_sample(args.file_is_sample)))
        .store(store(quiet))
}
