//! tensilo beside other ways to store tensors: ratio, speed of encoding and decoding, random
//! samples.
//!
//! `README.md` says what is compared and how it is kept fair; `peers/mod.rs` and `run.rs` do it.

mod damage;
mod data;
mod measure;
mod peers;
mod report;
mod run;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use report::Report;
use run::Settings;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Compares tensilo with other ways to store tensors, on the same data, in one thread.
///
/// Prints a table for each data set. Every competitor's results are compared with the input.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Folder with sentence_embeddings.parquet, speech_features.parquet and
    /// encoder_layers_bf16.safetensors; without it, the excerpt in the repository and generated
    /// data are used
    #[arg(long, value_name = "DIR", env = "TENSILO_DATA")]
    data: Option<PathBuf>,
    /// Folder to write compare.md, compare.json and compare.svg to, made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only this data set; may be given several times
    #[arg(long, value_name = "DATASET", value_parser = data::NAMES)]
    only: Vec<String>,
    /// Rounds, each of which measures everything once; reports show medians and quartiles over them
    /// [default: 9]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// 3 rounds of short measurements: to see that it runs, not to quote
    #[arg(long)]
    quick: bool,
}

#[derive(Subcommand)]
enum Command {
    Damage(damage::Arguments),
    #[command(hide = true)]
    DamageTrials(damage::child::Arguments),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.command {
        Some(Command::Damage(arguments)) => return damage::run(arguments),
        Some(Command::DamageTrials(arguments)) => return damage::child::run(arguments),
        None => {}
    }
    let settings = Settings {
        rounds: arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 9 }).into(),
        least: Duration::from_millis(if arguments.quick { 2 } else { 20 }),
    };
    check_zstandard()?;
    let simd = peers::blosc2::simd::check()?;
    if let Some(simd) = &simd {
        eprintln!("c-blosc2 {}, {simd}", peers::blosc2::version());
    }
    let folder = tempfile::Builder::new().prefix("tensilo-compare").tempdir().context("a temporary folder")?;
    let mut tables = Vec::new();
    for name in data::NAMES {
        if arguments.only.is_empty() || arguments.only.iter().any(|only| only == name) {
            let data = data::load(name, arguments.data.as_deref())?;
            tables.push(run::run(data, peers::all(), settings, folder.path())?);
        }
    }
    let report = Report { cpu: report::cpu_model(), settings, simd, tables };
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

/// The linker could have taken another Zstandard than the one that everybody is said to use.
fn check_zstandard() -> Result<()> {
    let (linked, meant) = (zstd::zstd_safe::version_number(), zstd_sys::ZSTD_VERSION_NUMBER);
    ensure!(linked == meant, "Zstandard {linked} is linked instead of {meant}");
    Ok(())
}
