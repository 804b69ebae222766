//! `tensilo cache`: shows or clears the local cache of object-store data.
//!
//! The cache is a folder that all processes of a machine share. `TENSILO_CACHE` and
//! `TENSILO_CACHE_BYTES` configure it for every command; `--folder` selects another one here. The
//! crate `tensilo-object` reads and writes it, and checks each entry when it is read.

use crate::failure::{Failure, Outcome};
use crate::output::{print_json, print_line, shown};
use crate::text;
use clap::{Args, Subcommand};
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use tensilo::Error;
use tensilo_object::{Cache, CacheStats};

const CACHE: &str = "\
Examples:
  export TENSILO_CACHE=/scratch/tensilo TENSILO_CACHE_BYTES=200GiB
      let all later commands cache object-store data in this folder
  tensilo verify s3://bucket/train
      fetch the dataset and cache it
  tensilo cache stat
      show the size of the cache
  tensilo cache clear
      remove all entries

Without TENSILO_CACHE, nothing is cached. TENSILO_CACHE_BYTES is 16GiB by
default; above that, the least recently used entries are removed. An entry holds
up to 1 MiB of an object. All processes on a machine share the folder, and each
entry is fetched by only one of them. Every entry is checked when it is read,
and fetched again if it is damaged.

JSON of \"stat\", schema tensilo.cache/1 (these members are stable, and more may
be added):
  schema, folder, max_bytes
  objects, entries, bytes
  oldest_use  in seconds since 1970, or null";

#[derive(Args, Debug)]
#[command(after_help = CACHE)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// Show the number and size of cached entries
    Stat(StatArgs),
    /// Remove all entries; processes that use the cache keep running
    Clear(LocationArgs),
}

#[derive(Args, Debug)]
struct StatArgs {
    #[command(flatten)]
    location: LocationArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// The location of the cache.
#[derive(Args, Debug)]
struct LocationArgs {
    /// The cache folder [default: the value of TENSILO_CACHE]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Shows or clears a cache.
pub(crate) fn run(args: &CacheArgs, quiet: bool) -> Outcome {
    match &args.command {
        CacheCommand::Stat(args) => stat(args),
        CacheCommand::Clear(args) => clear(args, quiet),
    }
}

fn stat(args: &StatArgs) -> Outcome {
    let cache = cache(&args.location)?;
    let stats = cache.stats().map_err(|error| failed(&cache, "reading the cache", error))?;
    let used = stats.oldest_use.and_then(seconds);
    if args.json {
        return print_json(&json!({
            "schema": "tensilo.cache/1",
            "folder": shown(cache.folder()),
            "max_bytes": cache.max_bytes(),
            "objects": stats.objects,
            "entries": stats.entries,
            "bytes": stats.bytes,
            "oldest_use": used,
        }));
    }
    let max = text::bytes(cache.max_bytes());
    let used = used.map(|used| format!("; oldest use at {} UTC", text::utc(used))).unwrap_or_default();
    print_line(&format!("{}: {} of at most {max}{used}", shown(cache.folder()), cached(&stats)))
}

fn clear(args: &LocationArgs, quiet: bool) -> Outcome {
    let cache = cache(args)?;
    let stats = cache.clear().map_err(|error| failed(&cache, "clearing the cache", error))?;
    if quiet { Ok(()) } else { print_line(&format!("{}: removed {}", shown(cache.folder()), cached(&stats))) }
}

/// Returns the cache that the arguments name, or else the cache that the environment names.
fn cache(args: &LocationArgs) -> Outcome<Cache> {
    let found = match &args.folder {
        Some(folder) => Cache::in_folder(folder).map(Some),
        None => Cache::from_environment(),
    };
    found.map_err(|error| Failure::Usage(error.to_string()))?.ok_or_else(|| {
        let message = "there is no cache: set TENSILO_CACHE to a folder, or pass --folder";
        Failure::Usage(message.to_owned())
    })
}

fn failed(cache: &Cache, operation: &'static str, error: io::Error) -> Failure {
    Failure::about(cache.folder(), Error::io(operation, error))
}

fn cached(stats: &CacheStats) -> String {
    let (objects, entries) = (text::count(stats.objects, "object"), stats.entries);
    let noun = if entries == 1 { "cache entry" } else { "cache entries" };
    format!("{entries} {noun} of {objects}, {}", text::bytes(stats.bytes))
}

fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|time| time.as_secs())
}
