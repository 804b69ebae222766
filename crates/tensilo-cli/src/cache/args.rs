//! The arguments of `tensilo cache`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

const CACHE: &str = "\
Examples:
  export TENSILO_CACHE=/scratch/tensilo TENSILO_CACHE_BYTES=200GiB
      keep what is read from object stores, for this and all later commands
  tensilo verify s3://bucket/train
      fetches the dataset, and keeps it
  tensilo cache stat
      tell what is kept
  tensilo cache clear
      remove it

Without TENSILO_CACHE nothing is kept. All processes of a machine share the
folder, and each piece of 1 MiB is fetched by one of them. If there is no room
for more, the pieces that were not used for the longest time are removed.
TENSILO_CACHE_BYTES is 16GiB unless told. An object that was replaced is
another one: its old pieces are not used any more.

Every piece is checked when it is read, and fetched again if it is damaged. A
process that is killed, or a full disk, leaves nothing wrong behind.

JSON of \"stat\", schema tensilo.cache/1 (members may be added; those named here
stay):
  schema, folder, most_bytes
  objects, pieces, bytes
  oldest_use  in seconds since 1970, or null";

/// The arguments of `tensilo cache`.
#[derive(Args, Debug)]
#[command(after_help = CACHE)]
pub(crate) struct CacheArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub(super) command: CacheCommand,
}

/// The subcommands of `tensilo cache`.
#[derive(Debug, Subcommand)]
pub(super) enum CacheCommand {
    /// Tell what is kept of objects on this machine
    Stat(StatArgs),
    /// Remove what is kept; processes that use it go on
    Clear(PlaceArgs),
}

/// The arguments of `tensilo cache stat`.
#[derive(Args, Debug)]
pub(super) struct StatArgs {
    #[command(flatten)]
    pub(super) place: PlaceArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The place of the cache.
#[derive(Args, Debug)]
pub(super) struct PlaceArgs {
    /// The folder of the cache [default: TENSILO_CACHE]
    #[arg(long, value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
}
