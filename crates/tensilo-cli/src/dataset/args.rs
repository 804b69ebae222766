//! The arguments of `tensilo dataset`.

use crate::options::{EncodingArgs, values};
use clap::{Args, Subcommand};
use std::num::NonZeroU64;
use std::path::PathBuf;

const DATASET: &str = "\
Examples:
  tensilo convert 'shards/*.parquet' -o train/ --shard-bytes 1GiB
      make a dataset
  tensilo dataset create train/
      make one of the *.tsl files that are in a folder
  tensilo dataset add train/ train/new/*.tsl
      append the samples of files that are in the folder
  tensilo dataset add-columns train/ train/labels/*.tsl
      add columns: files in the folder, one for each group of samples
  tensilo dataset rename-column train/ emb embedding
  tensilo dataset drop-column train/ draft
      no file is written; older versions keep what they have
  tensilo dataset set-order train/ --run 64 --window 1024
      the sizes in which trainings shuffle unless told
  tensilo dataset repack train/ --shard-bytes 256MiB --profile fast
      the same samples in new files; a training goes on with the same batches
  tensilo dataset gc train/ --keep 1 --dry-run
      list the old versions and files that would be removed
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
    /// Add columns to the samples that a dataset has, from files in its folder
    AddColumns(AddColumnsArgs),
    /// Give a column another name
    RenameColumn(RenameColumnArgs),
    /// Remove a column; older versions keep it
    DropColumn(DropColumnArgs),
    /// Set the sizes of runs and windows in which trainings shuffle unless told
    SetOrder(SetOrderArgs),
    /// Write all samples into new files: of another size, with another profile
    Repack(RepackArgs),
    /// Remove old versions, the files that only they list, and what killed programs have left
    Gc(GcArgs),
    /// List the versions of a dataset
    Log(LogArgs),
}

const CREATE: &str = "\
Examples:
  tensilo dataset create train/                 all *.tsl files in the folder
  tensilo dataset create train/ train/b.tsl train/a.tsl    these, in this order

The files stay where they are. All have the columns of the first one.";

/// The arguments of `tensilo dataset create`.
#[derive(Args, Debug)]
#[command(after_help = CREATE)]
pub(super) struct CreateArgs {
    /// The folder
    pub(super) folder: PathBuf,
    /// Files in the folder, in this order [default: all *.tsl files in it, in the order of their
    /// names]
    pub(super) files: Vec<PathBuf>,
}

const ADD: &str = "\
Example:
  tensilo dataset add train/ train/new/*.tsl

\"tensilo append train/ day-4.parquet\" appends the rows of other files.";

/// The arguments of `tensilo dataset add`.
#[derive(Args, Debug)]
#[command(after_help = ADD)]
pub(super) struct AddArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// Files in the folder
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
}

const ADD_COLUMNS: &str = "\
Example:
  tensilo dataset add-columns train/ train/labels/*.tsl

A group is a run of consecutive samples, and the files that have their columns.
At first it is one file; \"tensilo inspect\" of that file says how many samples
the file with its new columns must have.";

/// The arguments of `tensilo dataset add-columns`.
#[derive(Args, Debug)]
#[command(after_help = ADD_COLUMNS)]
pub(super) struct AddColumnsArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// Files in the folder with the same new columns: one for each group of samples, in order, with
    /// as many samples
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
}

const RENAME_COLUMN: &str = "\
Example:
  tensilo dataset rename-column train/ emb embedding

No file is written. Older versions keep the old name.";

/// The arguments of `tensilo dataset rename-column`.
#[derive(Args, Debug)]
#[command(after_help = RENAME_COLUMN)]
pub(super) struct RenameColumnArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// The name of the column
    pub(super) old: String,
    /// The name that it gets
    pub(super) new: String,
}

const DROP_COLUMN: &str = "\
Example:
  tensilo dataset drop-column train/ draft

No file is written: \"tensilo dataset repack\" writes files without the column,
and \"tensilo dataset gc --keep 1\" then removes those that have it.";

/// The arguments of `tensilo dataset drop-column`.
#[derive(Args, Debug)]
#[command(after_help = DROP_COLUMN)]
pub(super) struct DropColumnArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// The name of the column
    pub(super) name: String,
}

const SET_ORDER: &str = "\
Example:
  tensilo dataset set-order train/ --run 64 --window 1024
      runs of 64 samples that are stored side by side, shuffled; then the
      samples of each 1024 runs, shuffled among each other

\"tensilo bench train/ --loader --order windowed --run 64 --window 1024\" shows
beforehand how fast that is, and how well it shuffles.";

/// The arguments of `tensilo dataset set-order`.
#[derive(Args, Debug)]
#[command(after_help = SET_ORDER)]
pub(super) struct SetOrderArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// The samples of a run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) run: u32,
    /// The runs of a window
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) window: u32,
}

const REPACK: &str = "\
Example:
  tensilo dataset repack train/ --shard-bytes 256MiB --profile fast

Samples keep their numbers, so that a training goes on with the same batches.
Values are the same bit for bit; those that were rounded are not rounded again.
Columns that were dropped are not copied. The version before stays, with its
files, until \"tensilo dataset gc DIR --keep 1\" removes it.";

/// The arguments of `tensilo dataset repack`.
#[derive(Args, Debug)]
#[command(after_help = REPACK)]
pub(super) struct RepackArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// The most raw bytes of a file (those of its values, before encoding), such as 256MiB
    #[arg(long, value_name = "N", value_parser = values::shard_bytes, default_value = "1GiB")]
    pub(super) shard_bytes: u64,
    /// Every chunk begins at a multiple of this; 4096 allows O_DIRECT
    #[arg(long, value_name = "BYTES", value_parser = values::alignments(), default_value = "64")]
    pub(super) align: u32,
    #[command(flatten)]
    pub(super) encoding: EncodingArgs,
}

const GC: &str = "\
Examples:
  tensilo dataset gc train/ --keep 1 --dry-run   list what would be removed
  tensilo dataset gc train/              only what killed programs have left

Removed are, in this order:
  - with --keep, all versions but the newest N
  - the data files that only these versions list, wherever they are in DIR
  - what killed programs have left in DIR/data and DIR/manifest

Other programs may write to the dataset meanwhile: what they may still publish
is left alone. Programs that read a version which is removed get errors, and a
training whose state is of that version cannot go on. Each version that is left
is whole, whenever the work ends.";

/// The arguments of `tensilo dataset gc`.
#[derive(Args, Debug)]
#[command(after_help = GC)]
pub(super) struct GcArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// Keep only the newest N versions, at least 1 [default: all]
    #[arg(long, value_name = "N", value_parser = values::kept_versions)]
    pub(super) keep: Option<NonZeroU64>,
    /// Only list what would be removed
    #[arg(long)]
    pub(super) dry_run: bool,
}

const LOG: &str = "\
Examples:
  tensilo dataset log train/
  tensilo dataset log train/ --json | jq '.versions[0].change'";

/// The arguments of `tensilo dataset log`.
#[derive(Args, Debug)]
#[command(after_help = LOG)]
pub(super) struct LogArgs {
    /// The folder of the dataset
    pub(super) folder: PathBuf,
    /// Print a JSON document
    #[arg(long)]
    pub(super) json: bool,
}
