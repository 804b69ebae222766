//! `tensilo append`: appends the samples of other files to a file or a dataset.
//!
//! A file grows in place. If anything fails before the commit, the library restores it byte for
//! byte. Restoring takes time, so after a signal the process has a minute to exit instead of two
//! seconds. A dataset gets new data files in a new version; the old version remains. An object
//! cannot be appended to.

use super::dataset::{DatasetSize, require_manifest, set_time};
use crate::failure::{Failure, Outcome, note_values};
use crate::open;
use crate::options::{self, EncodingArgs, InputArgs, check_inputs, store};
use crate::output::{print_line, shown};
use crate::signals;
use crate::terminal::{Progress, Unit, show_import};
use crate::text;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tensilo::import::{self, AppendOptions};
use tensilo_data::Dataset;
use tensilo_object::Address;

const APPEND: &str = "\
Examples:
  tensilo append train.tsl day-2.parquet
      all rows of a file with the same columns
  tensilo append train.tsl 'more/*.parquet' --skip-extra-columns
      files that have additional columns
  tensilo append train.tsl day-3.parquet --profile small
      a file does not record its profile, so pass it again
  tensilo append train/ day-4.parquet --shard-bytes 1GiB
      add files to a dataset, in a new version

Inputs may be in any format that \"tensilo convert\" reads: Parquet, Arrow IPC,
NumPy (.npy, .npz), safetensors, WebDataset (.tar, .tar.gz), TFRecord, JSON
(.jsonl, .json), Megatron (.idx) and tensilo; see \"tensilo convert --help\".

The inputs must have the columns of the file: the same names, types and shapes,
in any order. If they differ, all differences are listed. A nullable column may
be missing or have the type null; its samples are then null. If a column was
rounded when the file was made, its new values are rounded in the same way.

No new sample is visible until all of them are written. If anything fails before
that, the file is restored byte for byte. If the process is killed, the bytes
that it wrote remain after the last commit, and the next append refuses the
file. Then use \"tensilo salvage\" to recover samples from these bytes, or append
with --discard-tail to delete the bytes.

A dataset gets new files in a new version. If another program publishes a
version in the meantime, the append fails and changes nothing; run it again.";

#[derive(Args, Debug)]
#[command(after_help = APPEND)]
pub(crate) struct AppendArgs {
    /// The tensilo file, or the folder of the dataset, to append to
    file: PathBuf,
    /// Files in any of the formats below, folders, or quoted globs; - is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// For a dataset: write files of at most N bytes each, counted before encoding, such as 1GiB
    /// [default: one file]
    #[arg(long, value_name = "N", value_parser = options::shard_bytes)]
    shard_bytes: Option<u64>,
    /// Skip columns that the file does not have
    #[arg(long)]
    skip_extra_columns: bool,
    /// Delete the bytes after the last commit, even if samples could be recovered from them
    #[arg(long)]
    discard_tail: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
}

/// How long the library may take to restore the file after a signal.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(60);

/// Appends the inputs, and prints a summary.
pub(crate) fn run(args: &AppendArgs, quiet: bool) -> Outcome {
    check_inputs(&args.inputs)?;
    let path = shown(&args.file);
    let refused = |message: &str| Err(Failure::Usage(format!("{path}: {message}")));
    let dataset = open::dataset(&args.file)?;
    if let Some(dataset) = &dataset {
        if args.discard_tail {
            return refused("this is a dataset; --discard-tail needs a file");
        }
        return append_to_dataset(args, dataset, quiet);
    }
    if Address::is_url_path(&args.file) {
        return refused(
            "an object cannot be appended to, but a dataset can: create one with \"tensilo convert --shard-bytes\"",
        );
    }
    if args.shard_bytes.is_some() {
        return refused(match args.file.exists() {
            true => "this is a file; --shard-bytes needs the folder of a dataset",
            false => "there is no such folder; \"tensilo convert\" with --shard-bytes creates a dataset",
        });
    }
    append_to_file(args, quiet)
}

fn append_to_file(args: &AppendArgs, quiet: bool) -> Outcome {
    let progress = Progress::new(Unit::Samples, quiet);
    let appended = import::append(&args.inputs, &args.file, &options(args, quiet), &mut |at| {
        if matches!(at, import::Progress::Converting { .. }) {
            signals::begin_work(RESTORE_TIMEOUT); // the file is being changed
        }
        show_import(&progress, "appending", at)
    });
    let appended = appended.map_err(|error| Failure::about(&args.file, error))?;
    drop(progress);
    if quiet {
        return Ok(());
    }
    let reader = open::open(&args.file, quiet)?;
    let (path, samples, bytes) = (shown(&args.file), reader.sample_count(), text::bytes(reader.file_bytes()));
    print_line(&format!("{path}: {appended} samples appended, {samples} in all, {bytes} in the file"))?;
    note_values(reader.schema());
    Ok(())
}

fn append_to_dataset(args: &AppendArgs, dataset: &Dataset, quiet: bool) -> Outcome {
    require_manifest(dataset, &args.file)?;
    let mut changes = dataset.change()?;
    set_time(&mut changes)?;
    let progress = Progress::new(Unit::Samples, quiet);
    let shard_bytes = args.shard_bytes.unwrap_or(u64::MAX);
    let mut show = |at| show_import(&progress, "appending", at);
    changes.append_rows(&args.inputs, shard_bytes, &options(args, quiet), &mut show)?;
    drop(progress);
    let before = dataset.sample_count();
    // without new samples, no version is published
    let is_same = changes.sample_count() == before;
    let dataset = if is_same { dataset.clone() } else { changes.publish("append")? };
    if quiet {
        return Ok(());
    }
    let (samples, files) = (dataset.sample_count(), text::count(DatasetSize::of(&dataset)?.files, "file"));
    let (path, appended, version) = (shown(&args.file), samples.saturating_sub(before), dataset.version());
    print_line(&format!("{path}: {appended} samples appended, {samples} in all, in {files}; version {version}"))?;
    note_values(dataset.schema());
    Ok(())
}

fn options(args: &AppendArgs, quiet: bool) -> AppendOptions {
    let writer = args.encoding.writer_options().discard_tail(args.discard_tail);
    AppendOptions::new()
        .skip_extra_columns(args.skip_extra_columns)
        .null_elements(args.input.null_elements.into())
        .writer(writer)
        .dash_is_stdin(true)
        .formats(args.input.formats())
        .store(store(quiet))
}
