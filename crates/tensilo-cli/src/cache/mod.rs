//! `tensilo cache`

mod args;

pub(crate) use args::CacheArgs;

use crate::failure::{Failure, Outcome};
use crate::output::{Output, shown, write_json};
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use args::{CacheCommand, PlaceArgs, StatArgs};
use serde_json::json;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use tensilo::Error;
use tensilo_object::{Cache, CacheFacts};

/// Tells what a cache has, or removes it.
pub(crate) fn run(args: &CacheArgs, quiet: bool) -> Outcome {
    match &args.command {
        CacheCommand::Stat(args) => stat(args),
        CacheCommand::Clear(args) => clear(args, quiet),
    }
}

fn stat(args: &StatArgs) -> Outcome {
    let cache = cache(&args.place)?;
    let facts = cache.facts().map_err(|error| failed(&cache, "reading the cache", error))?;
    let used = facts.oldest_use.and_then(seconds);
    let mut output = Output::stdout();
    if args.json {
        let document = json!({
            "schema": "tensilo.cache/1",
            "folder": shown(cache.folder()).to_string(),
            "most_bytes": cache.most_bytes(),
            "objects": facts.objects,
            "pieces": facts.pieces,
            "bytes": facts.bytes,
            "oldest_use": used,
        });
        write_json(&mut output, &document)?;
    } else {
        let used = used.map(|used| format!("; the oldest was used at {}", human::utc(used))).unwrap_or_default();
        let line = format!("{}: {} of at most {}{used}", shown(cache.folder()), kept(&facts), most(&cache));
        write_wrapped(&mut output, &line, output_width())?;
    }
    output.finish()
}

fn clear(args: &PlaceArgs, quiet: bool) -> Outcome {
    let cache = cache(args)?;
    let facts = cache.clear().map_err(|error| failed(&cache, "clearing the cache", error))?;
    let mut output = Output::stdout();
    if !quiet {
        let line = format!("{}: removed {}", shown(cache.folder()), kept(&facts));
        write_wrapped(&mut output, &line, output_width())?;
    }
    output.finish()
}

/// Returns the cache of the arguments, or that of the environment.
fn cache(args: &PlaceArgs) -> Outcome<Cache> {
    let found = Cache::from_environment().map_err(|error| Failure::Usage(error.to_string()))?;
    match (&args.folder, found) {
        (Some(folder), found) => Ok(Cache::new(folder, found.map_or(u64::MAX, |found| found.most_bytes()))),
        (None, Some(found)) => Ok(found),
        (None, None) => Err(Failure::Usage(
            "there is no cache: set TENSILO_CACHE to a folder to have one, or name one by --folder".to_owned(),
        )),
    }
}

fn failed(cache: &Cache, doing: &'static str, error: io::Error) -> Failure {
    Failure::about(cache.folder(), Error::io(doing, error))
}

fn kept(facts: &CacheFacts) -> String {
    let (objects, pieces) = (human::count(facts.objects, "object"), human::count(facts.pieces, "piece"));
    format!("{pieces} of {objects}, {}", human::bytes(facts.bytes))
}

/// Returns the limit in words.
fn most(cache: &Cache) -> String {
    match cache.most_bytes() {
        u64::MAX => "any size".to_owned(),
        bytes => human::bytes(bytes),
    }
}

fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|time| time.as_secs())
}
