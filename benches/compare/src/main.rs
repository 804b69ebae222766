//! Compares tensilo with other ways to store tensors, texts and lists: ratio, speed of encoding and
//! decoding, random samples.
//!
//! `README.md` states what is compared, and how the comparison is kept fair. `peers/mod.rs` has the
//! rules for competitors, `run.rs` the rounds of measurements. Subcommands measure other
//! properties: damage, loaders, cold reads, and the choice of encodings.

mod chats;
mod choices;
#[cfg(target_os = "linux")]
mod cold;
mod damage;
mod data;
mod loader;
mod measure;
mod nested;
mod open_peer;
mod peers;
mod report;
mod run;
mod tensors;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use data::more::{self, DatasetEntry};
use nested::data::Folders;
use report::Report;
use run::Settings;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The raw bytes of a data set of texts.
const TEXT_BYTES: usize = 16 << 20;

/// Compares tensilo with other ways to store tensors, texts and lists, on the same data, in one
/// thread.
///
/// Prints a table for each data set. Checks the results of every competitor against the input.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Folder with sentence_embeddings.parquet, speech_features.parquet and
    /// encoder_layers_bf16.safetensors [default: an excerpt in the repository, and generated data]
    #[arg(long, value_name = "DIR", env = "TENSILO_DATA")]
    data: Option<PathBuf>,
    /// Folder with more tensors and their list, sets.json, as made by data/make.py
    #[arg(long, value_name = "DIR")]
    more: Option<PathBuf>,
    /// Folder with texts (*.txt, UTF-8) for chat, captions and web, or with a folder of that name
    /// for each [default: generated texts]
    #[arg(long, value_name = "DIR", env = "TENSILO_TEXTS")]
    texts: Option<PathBuf>,
    /// Folder for compare.md, compare.json and compare.svg, created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only these data sets, separated by commas; may be repeated
    #[arg(long, value_name = "DATASET", value_delimiter = ',')]
    only: Vec<String>,
    /// Number of rounds, over which reports show medians and quartiles; a round measures everything
    /// once [default: 9]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// Try the program: 3 rounds of short measurements and little text; do not quote the results
    #[arg(long)]
    quick: bool,
}

#[derive(Subcommand)]
enum Command {
    Chats(chats::Arguments),
    Choices(choices::Arguments),
    #[cfg(target_os = "linux")]
    Cold(cold::Arguments),
    Damage(damage::Arguments),
    Loader(loader::Arguments),
    #[command(hide = true)]
    DamageTrials(damage::child::Arguments),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.command {
        Some(Command::Chats(arguments)) => return chats::run(arguments),
        Some(Command::Choices(arguments)) => return choices::run(arguments),
        #[cfg(target_os = "linux")]
        Some(Command::Cold(arguments)) => return cold::run(arguments),
        Some(Command::Damage(arguments)) => return damage::run(arguments),
        Some(Command::Loader(arguments)) => return loader::run(arguments),
        Some(Command::DamageTrials(arguments)) => return damage::child::run(arguments),
        None => {}
    }
    let settings = Settings {
        rounds: arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 9 }).into(),
        min_time: Duration::from_millis(if arguments.quick { 2 } else { 20 }),
    };
    let more = arguments.more.as_deref().map_or_else(|| Ok(Vec::new()), more::list)?;
    check_names(&arguments.only, &more)?;
    check_zstandard()?;
    let simd = peers::blosc2::simd::check()?;
    if let Some(simd) = &simd {
        eprintln!("c-blosc2 {}, {simd}", peers::blosc2::version());
    }
    let folder = tempfile::Builder::new().prefix("tensilo-compare").tempdir().context("a temporary folder")?;
    let mut tables = Vec::new();
    let is_requested = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    for name in data::NAMES.into_iter().filter(|name| is_requested(name)) {
        let data = data::load(name, arguments.data.as_deref())?;
        tables.push(tensors::run(&data, settings, folder.path())?);
    }
    for set in more.iter().filter(|set| is_requested(&set.name)) {
        tables.push(tensors::run_entry(set, settings, folder.path())?);
    }
    let folders = Folders { tensors: arguments.data.as_deref(), texts: arguments.texts.as_deref() };
    let text_bytes = if arguments.quick { TEXT_BYTES / 8 } else { TEXT_BYTES };
    for name in nested::data::NAMES.into_iter().filter(|name| is_requested(name)) {
        let data = nested::data::load(name, folders, text_bytes)?;
        tables.push(nested::run(&data, settings, folder.path())?);
    }
    let report = Report { cpu: report::cpu_model(), kernels: report::kernels(), settings, simd, tables };
    let text = report.markdown();
    print!("{text}");
    if let Some(out) = &arguments.out {
        let write = || -> Result<()> {
            fs::create_dir_all(out)?;
            fs::write(out.join("compare.md"), &text)?;
            fs::write(out.join("compare.json"), report.json()?)?;
            Ok(fs::write(out.join("compare.svg"), report.svg())?)
        };
        write().with_context(|| out.display().to_string())?;
    }
    Ok(())
}

/// Checks that all requested data sets exist, and that all names differ.
fn check_names(only: &[String], more: &[DatasetEntry]) -> Result<()> {
    let mut names: Vec<&str> = data::NAMES.into_iter().chain(nested::data::NAMES).collect();
    for set in more {
        ensure!(!names.contains(&set.name.as_str()), "two data sets have the name {}", set.name);
        names.push(&set.name);
    }
    for name in only {
        ensure!(names.contains(&name.as_str()), "there is no data set {name}; there are {}", names.join(", "));
    }
    Ok(())
}

/// Checks that the linker has taken the Zstandard that all competitors are meant to use.
fn check_zstandard() -> Result<()> {
    let (linked, meant) = (zstd::zstd_safe::version_number(), zstd_sys::ZSTD_VERSION_NUMBER);
    ensure!(linked == meant, "Zstandard {linked} is linked, expected {meant}");
    Ok(())
}
