//! The arguments of `tensilo dataset`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

const DATASET: &str = "\
Examples:
  tensilo convert 'shards/*.parquet' -o train/ --shard-bytes 1GiB
      make a dataset
  tensilo dataset create train/
      make one of the *.tsl files that are in a folder
  tensilo dataset add train/ train/new/*.tsl
      append the samples of files that are in the folder
  tensilo dataset log train/
      list the versions
  tensilo verify train/
      check the manifest, and every byte of every file

A dataset is a folder of tensilo files with a manifest, which lists them as one
sequence of samples. Each change makes a new version, which appears whole or
not at all; older versions stay as they are. If two programs change a dataset
at the same time, one of them succeeds, and the other is told to repeat.

JSON of \"log\", schema tensilo.log/1 (members may be added; those named here
stay):
  schema, dataset_id
  versions: [{ version, parent, time, samples, files, bytes, change }]
             time in seconds since 1970, or null";

/// The arguments of `tensilo dataset`.
#[derive(Args, Debug)]
#[command(after_help = DATASET)]
pub(crate) struct DatasetArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub(super) command: DatasetCommand,
}

/// The subcommands of `tensilo dataset`.
#[derive(Debug, Subcommand)]
pub(super) enum DatasetCommand {
    /// Make a dataset of tensilo files that are in a folder
    Create(CreateArgs),
    /// Append the samples of tensilo files that are in the folder of a dataset
    Add(AddArgs),
    /// List the versions of a dataset
    Log(LogArgs),
}

/// The arguments of `tensilo dataset create`.
#[derive(Args, Debug)]
pub(super) struct CreateArgs {
    /// The folder
    pub(super) folder: PathBuf,
    /// Files in the folder, in this order [default: all *.tsl files in it, in the order of their
    /// names]
    pub(super) files: Vec<PathBuf>,
}

/// The arguments of `tensilo dataset add`.
#[derive(Args, Debug)]
pub(super) struct AddArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// Files in the folder
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
}

/// The arguments of `tensilo dataset log`.
#[derive(Args, Debug)]
pub(super) struct LogArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    pub(super) json: bool,
}
