//! The command line program `tensilo`: converts, appends, inspects, verifies, salvages, reads,
//! exports, draws and measures tensilo files.
//!
//! The whole program is the function [`run`], so that other packages can offer the same program.
//! [`embed`] returns what some commands compute, for packages that print nothing.
#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod advice;
mod append;
mod bench;
mod cache;
mod command_line;
mod convert;
mod dataset;
pub mod embed;
mod exit;
mod export;
mod failure;
mod foreign;
mod get;
mod inspect;
mod map;
mod open;
mod options;
mod output;
mod progress;
mod salvage;
mod signals;
#[allow(unsafe_code, reason = "a mapped file can change under the reader: the user promises that it does not")]
mod sys;
mod terminal;
mod text;
mod verify;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use command_line::{Cli, Command};
use exit::Exit;
use failure::Outcome;
use std::ffi::OsString;
use std::path::Path;

/// Runs the program with these arguments, and returns its exit code.
///
/// The first argument is the name of the program; only usage lines show it. The program reads the
/// standard input, and writes to the standard output and the standard error.
///
/// # Signals
///
/// On Unix, `run` installs handlers for SIGINT, SIGTERM and SIGHUP, which stay installed. After
/// such a signal, `run` undoes the current work and returns. If that takes too long, or a second
/// signal arrives, the process ends. Therefore, call `run` only once in a process, as its last
/// work.
///
/// The new handlers call those that were installed before. If the host has handlers of its own,
/// reset them first: in Python, for example, `signal.signal(signal.SIGINT, signal.SIG_DFL)`.
///
/// # Exit codes
///
/// | code | meaning |
/// |---|---|
/// | 0 | done |
/// | 1 | the file is damaged or not a tensilo file |
/// | 2 | bad usage or unsupported input |
/// | 3 | reading or writing failed |
/// | 4 | a fault of tensilo or of this machine |
/// | 5 | `verify`: all that is committed is intact, but a writer has not finished |
/// | 128 + n | stopped by signal n; no file has changed (see `--help` for a second signal) |
///
/// # Examples
///
/// ```no_run
/// let code = tensilo_cli::run(["tensilo", "verify", "train.tsl"]);
/// assert_eq!(code, 0, "the file is damaged");
/// ```
pub fn run<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // if stderr is closed, the exit code still tells
            if is_of_several_files(&error) {
                terminal::note("these are several files: quote the pattern, as in 'train/*.tsl', or give the folder");
            }
            return if error.use_stderr() { Exit::Usage.code() } else { Exit::Done.code() };
        }
    };
    signals::watch();
    let exit = dispatch(&cli).unwrap_or_else(|failure| {
        if let Some(message) = failure.message() {
            terminal::error(&message);
        }
        failure.exit()
    });
    exit.code()
}

/// Returns whether an argument is refused that a shell may have made of a pattern.
fn is_of_several_files(error: &clap::Error) -> bool {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) => Path::new(argument).is_file(),
        _ => false,
    }
}

fn dispatch(cli: &Cli) -> Outcome<Exit> {
    let done = match &cli.command {
        Command::Convert(args) => convert::run(args, cli.quiet),
        Command::Append(args) => append::run(args, cli.quiet),
        Command::Inspect(args) => inspect::run(args, cli.quiet),
        Command::Verify(args) => return verify::run(args, cli.quiet),
        Command::Salvage(args) => return salvage::run(args, cli.quiet),
        Command::Get(args) => get::run(args, cli.quiet),
        Command::Export(args) => export::run(args, cli.quiet),
        Command::Cache(args) => cache::run(args, cli.quiet),
        Command::Map(args) => return map::run(args, cli.quiet),
        Command::Bench(args) => bench::run(args, cli.quiet),
        Command::Dataset(args) => dataset::run(args, cli.quiet),
    };
    done.map(|()| Exit::Done)
}
