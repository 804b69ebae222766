//! The command-line program `tensilo`: converts, appends, inspects, verifies, salvages, reads,
//! exports, draws and measures tensilo files.
//!
//! The program is a library, so other packages can ship it: [`run`] takes the arguments and returns
//! the exit code. [`embed`] returns the results of some commands as values, for packages that do
//! not print.
//!
//! A command parses its options, calls the library and formats the result. Three rules hold for all
//! commands: arguments are checked before the first byte is written; an output file appears only
//! when it is complete; and data goes to standard output, messages to standard error.
#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod commands;
pub mod embed;
mod failure;
mod open;
mod options;
mod output;
mod signals;
#[allow(unsafe_code, reason = "a mapped file must not change while it is read: the user promises that it does not")]
mod sys;
mod terminal;
mod text;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use commands::Cli;
use failure::Exit;
use std::ffi::OsString;
use std::path::Path;

/// Runs the program with these arguments and returns its exit code.
///
/// The first argument is the name of the program; it appears only in usage messages. The program
/// reads standard input, and writes to standard output and standard error.
///
/// # Signals
///
/// On Unix, `run` installs handlers for SIGINT, SIGTERM and SIGHUP, which stay installed. After
/// such a signal, `run` undoes the current work and returns. If that takes too long, or a second
/// signal arrives, the process ends. So call `run` only once in a process, as the last thing it
/// does.
///
/// The new handlers call the handlers that were installed before. If the host program has handlers
/// of its own, reset them first: in Python, for example, with
/// `signal.signal(signal.SIGINT, signal.SIG_DFL)`.
///
/// # Exit codes
///
/// 0: done; 1: damaged; 2: bad usage or unsupported input; 3: I/O; 4: a bug in tensilo or a fault
/// of this machine; 5: a writer has not finished; 128 + n: stopped by signal n. `--help` has the
/// details.
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
            let _ = error.print(); // if stderr is closed, the exit code is enough
            if is_unquoted_glob(&error) {
                terminal::note("expected only one file: quote the pattern, as in 'train/*.tsl', or pass the folder");
            }
            return if error.use_stderr() { Exit::Usage.code() } else { Exit::Done.code() };
        }
    };
    signals::watch();
    let exit = cli.command.run(cli.quiet).unwrap_or_else(|failure| {
        if let Some(message) = failure.message() {
            terminal::error(&message);
        }
        failure.exit()
    });
    exit.code()
}

/// Returns whether the refused argument is a file name that the shell could have expanded from a
/// pattern.
fn is_unquoted_glob(error: &clap::Error) -> bool {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) => Path::new(argument).is_file(),
        _ => false,
    }
}
