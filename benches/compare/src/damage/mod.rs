//! Damages the files of tensilo and of its peers in the same ways, and reads them: which readers
//! notice it, return wrong values or crash, and how much can still be read.
//!
//! The outcome of a trial is the first of these that applies:
//!
//! * **crash**: the reader panicked, aborted, was killed by a signal, took more than 10 s, or
//!   needed more than 1 GiB of address space;
//! * **wrong**: it returned a value that was not written, without an error for this value (other
//!   values may have had errors);
//! * **detected**: it returned an error, or samples were missing;
//! * **harmless**: every value was right.

pub mod child;
mod formats;
mod kind;
mod outcome;
mod report;

use crate::data::{self, Dataset};
use anyhow::{Context, Result, bail, ensure};
use child::Trial;
use report::{Report, Row};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The maximum duration of a trial.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum size of the values of a data set. Shorter ones are repeated.
const MIN_VALUE_BYTES: usize = 128 << 10;
/// The maximum address space of a child process.
const MAX_ADDRESS_SPACE_KIB: u64 = 1 << 20;

/// Damages files of tensilo and of its peers, and reports how their readers react.
///
/// Prints tables of the outcomes. The same seed gives the same damage.
#[derive(clap::Args)]
pub struct Arguments {
    /// As in the comparison
    #[arg(long, value_name = "DIR", env = "TENSILO_DATA")]
    data: Option<PathBuf>,
    /// Folder for damage.md and damage.json, created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Trials per kind of damage and peer; the five data sets take turns
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(5..=1_000_000))]
    trials: u32,
    /// Seed of the damage
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tensilo-damage").tempdir().context("a temporary folder")?;
    let formats = formats::all();
    let mut rows: Vec<Row> = formats.iter().map(|format| Row::new(format.name(), format.about())).collect();
    let mut origins = Vec::new();
    for (number, name) in data::NAMES.into_iter().enumerate() {
        let mut data = data::load(name, arguments.data.as_deref())?;
        // a file of less than 8 KiB would not have two blocks to swap
        let length = data.values.len();
        while size_of_val(data.values.as_slice()) < MIN_VALUE_BYTES {
            data.values.extend_from_within(..length);
        }
        let values = folder.path().join(name);
        fs::write(&values, data.bytes())?;
        for ((index, format), row) in formats.iter().enumerate().zip(&mut rows) {
            eprint!("\r{name}: {:<24}", row.name);
            let file = folder.path().join(format!("{name}-{index}"));
            format.write(&data, &file).with_context(|| format!("{} writes {name}", row.name))?;
            ensure!(
                fs::metadata(&file)?.len() >= kind::MIN_FILE_BYTES,
                "the file of {} is too small for {name}",
                row.name
            );
            let trials = child::Arguments {
                values: values.clone(),
                file,
                dataset: name.to_owned(),
                shape: data.shape.clone(),
                format: index,
                trials: arguments.trials as usize,
                seed: arguments.seed,
                done: 0,
            };
            run_trials(trials, number, &data, row).with_context(|| format!("{} on {name}", row.name))?;
        }
        origins.push((name, data.origin));
    }
    eprintln!();
    let report = Report { trials: arguments.trials, seed: arguments.seed, origins, rows };
    let text = report.markdown();
    print!("{text}");
    if let Some(out) = &arguments.out {
        let write = || -> Result<()> {
            fs::create_dir_all(out)?;
            fs::write(out.join("damage.md"), &text)?;
            Ok(fs::write(out.join("damage.json"), report.json()?)?)
        };
        write().with_context(|| out.display().to_string())?;
    }
    Ok(())
}

/// Runs all trials of a format on a data set. Starts another process after each crash.
fn run_trials(mut trials: child::Arguments, number: usize, data: &Dataset, row: &mut Row) -> Result<()> {
    let plan = child::plan(number, trials.trials);
    while trials.done < plan.len() {
        let (mut child, lines) = start(&trials)?;
        if lines.recv_timeout(TIMEOUT).as_deref() != Ok("intact") {
            child.kill()?;
            bail!("cannot read the intact file: {}", child.wait()?);
        }
        for (kind, _) in &plan[trials.done..] {
            let cell = &mut row.cells[*kind as usize];
            let ended = match lines.recv_timeout(TIMEOUT) {
                Ok(line) => {
                    cell.count(&Trial::parse(&line)?, data.samples());
                    None
                }
                Err(RecvTimeoutError::Timeout) => {
                    child.kill()?;
                    child.wait()?;
                    Some("more than 10 s".to_owned())
                }
                Err(RecvTimeoutError::Disconnected) => Some(ending(child.wait()?)),
            };
            trials.done += 1;
            if let Some(reason) = ended {
                cell.crash(reason);
                break;
            }
        }
        child.wait()?;
    }
    fs::remove_file(child::copy(&trials.file))?;
    Ok(fs::remove_file(&trials.file)?)
}

/// Returns how a process ended: a panic, or the number and name of a signal.
fn ending(status: ExitStatus) -> String {
    if status.code() == Some(101) { "panic".to_owned() } else { status.to_string() }
}

/// Starts a process for the trials from `done` on. Returns it and the lines that it writes.
fn start(trials: &child::Arguments) -> Result<(Child, Receiver<String>)> {
    let shape: Vec<String> = trials.shape.iter().map(u32::to_string).collect();
    let path = |option: &str, path: &Path| [option.into(), path.as_os_str().to_owned()];
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -c 0; ulimit -v {MAX_ADDRESS_SPACE_KIB}; exec \"$0\" \"$@\"")])
        .arg(env::current_exe()?)
        .arg("damage-trials")
        .args(path("--values", &trials.values))
        .args(path("--file", &trials.file))
        .args(["--dataset", &trials.dataset, "--shape", &shape.join(",")])
        .args(["--format", &trials.format.to_string(), "--trials", &trials.trials.to_string()])
        .args(["--seed", &trials.seed.to_string(), "--done", &trials.done.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null()) // panics are counted, not shown
        .spawn()
        .context("sh")?;
    let (sender, receiver) = mpsc::channel();
    let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    Ok((child, receiver))
}
