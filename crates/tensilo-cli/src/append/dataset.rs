//! `tensilo append` to a dataset: new data files, in a new version.

use super::args::AppendArgs;
use crate::advice;
use crate::dataset::{DatasetSize, need_manifest, set_time};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, shown};
use crate::progress::{Progress, Unit};
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use tensilo::import::{AppendOptions, Progress as ImportProgress};
use tensilo_data::Dataset;

/// Appends the inputs, and prints a summary.
pub(super) fn run(args: &AppendArgs, dataset: &Dataset, options: &AppendOptions, quiet: bool) -> Outcome {
    if args.discard_tail {
        let path = shown(&args.file);
        return Err(Failure::Usage(format!("{path}: this is a dataset; --discard-tail is for a file")));
    }
    need_manifest(dataset, &args.file)?;
    let before = dataset.sample_count();
    let dataset = append(args, dataset, options, quiet)?;
    if quiet {
        return Ok(());
    }
    let (samples, size, version) = (dataset.sample_count(), DatasetSize::of(&dataset)?, dataset.version());
    let (path, appended) = (shown(&args.file), samples.saturating_sub(before));
    let files = human::count(size.files, "file");
    let line = format!("{path}: {appended} samples appended, {samples} in all, in {files}; version {version}");
    let mut output = Output::stdout();
    write_wrapped(&mut output, &line, output_width())?;
    output.finish()?;
    advice::note_values(dataset.schema());
    Ok(())
}

/// Returns the new version; the same one if the inputs have no samples.
fn append(args: &AppendArgs, dataset: &Dataset, options: &AppendOptions, quiet: bool) -> Outcome<Dataset> {
    let mut changes = dataset.change()?;
    set_time(&mut changes)?;
    let progress = Progress::new(Unit::Samples, quiet);
    let shard_bytes = args.shard_bytes.unwrap_or(u64::MAX);
    changes.import_rows(&args.inputs, shard_bytes, options, &mut |at| match at {
        ImportProgress::Converting { done, total } => progress.set("appending", done, total),
        _ => progress.set("working", 0, None), // a phase newer than this program
    })?;
    drop(progress);
    if changes.sample_count() == dataset.sample_count() {
        return Ok(dataset.clone());
    }
    Ok(changes.publish("append")?)
}
