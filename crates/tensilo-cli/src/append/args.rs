//! The arguments of `tensilo append`.

use crate::options::{EncodingArgs, OnNullElement, values};
use clap::Args;
use std::path::PathBuf;

const APPEND: &str = "\
Examples:
  tensilo append train.tsl day-2.parquet
      all rows of a file that has the same columns
  tensilo append train.tsl 'more/*.parquet' --skip-others
      files that have more columns
  tensilo append train.tsl day-3.parquet --profile small
      the file does not remember its profile, so give it again

  tensilo append train/ day-4.parquet --shard-bytes 1GiB
      new files of a dataset, in a new version

Inputs are those of \"tensilo convert\". They must have the columns of the file:
the same names, types and shapes, in any order. All differences are listed.
A nullable column may be missing, or have the type null: its samples are null.
Columns that were rounded when the file was made are rounded again.

The samples appear together, after all are written. If anything fails before
that, the file is restored to the last byte. Readers are not disturbed. A
second append at the same time is refused.

If the process is killed, the bytes written so far stay behind the last commit.
Readers ignore them, \"tensilo verify\" reports them, and the next append stops
there. \"tensilo salvage\" recovers them; --discard-tail cuts them off.

The samples appended to a dataset are in new files, of the columns that it has.
The version with them appears whole or not at all. If another program publishes
a version meanwhile, nothing has changed, and the append has to be repeated.";

/// The arguments of `tensilo append`.
#[derive(Args, Debug)]
#[command(after_help = APPEND)]
pub(crate) struct AppendArgs {
    /// The tensilo file, or the folder of the dataset, to append to
    pub(crate) file: PathBuf,
    /// Files as of "tensilo convert", folders or quoted globs of them; - is the standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Begin another file of a dataset before its raw bytes exceed this, such as 1GiB [default: one
    /// file]
    #[arg(long, value_name = "N", value_parser = values::shard_bytes)]
    pub(crate) shard_bytes: Option<u64>,
    /// Leave out columns that the file does not have
    #[arg(long)]
    pub(crate) skip_others: bool,
    /// Cut off the bytes after the last commit, even if they could be recovered
    #[arg(long)]
    pub(crate) discard_tail: bool,
    /// Take each .npz and .safetensors file as one sample, with a column for each tensor
    #[arg(long)]
    pub(crate) file_is_sample: bool,
    /// Treatment of a null element of a tensor, which cannot be stored (a null tensor can)
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t)]
    pub(crate) null_elements: OnNullElement,
    #[command(flatten)]
    pub(crate) encoding: EncodingArgs,
}
